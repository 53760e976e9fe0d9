import { takeRejection } from './defined.ts'
import type { Charged } from './errors/classes.ts'

/** Fields of every event. No event contains a header, a body or a query string. */
export interface CallEvent {
  /** Id of the call, the same in every event of that call. */
  readonly callId: string
  /** Method of the client, for example `orders.create`. */
  readonly operation: string
  /** HTTP method. */
  readonly method: string
  /** Path below the base URL, ids included, without the query. */
  readonly path: string
  /** Idempotency-Key of the order; absent for reads. */
  readonly idempotencyKey?: string
}

/** A request is about to be sent. */
export interface RequestEvent extends CallEvent {
  /** Number of the request within the call, counted from 1. */
  readonly attempt: number
}

/** A request ended, with or without a response. */
export interface ResponseEvent extends RequestEvent {
  /** `answer`: any response except a redirect, which is never followed. */
  readonly outcome: 'answer' | 'redirect' | 'failed' | 'timeout' | 'aborted'
  /** HTTP status, if a response arrived. */
  readonly status?: number
  /** Request id from the response's headers. */
  readonly requestId?: string
  /** Error code, for example `ECONNRESET`. If there is no code, the name of the error. */
  readonly failure?: string
  /** Milliseconds from sending to the last byte of the body, or to the failure. */
  readonly durationMs: number
}

/** The call continues after a wait of `delayMs`, which may be 0. */
export interface RetryEvent extends RequestEvent {
  /**
   * What the call does next:
   *
   * - `now`: retries after a closed connection, the first time without a wait
   * - `backoff`: retries with exponential backoff
   * - `refresh`: retries after calling the `apiKey` function again, because of a 401
   * - `poll`: checks whether an earlier request with the same Idempotency-Key has ended
   * - `replay`: repeats the request, because the order in a success response was unreadable
   * - `claimed`: reads the store again, because another process is placing the same order. The wait
   *   may be shorter than `delayMs`, and `attempt` is 0
   */
  readonly reason: 'now' | 'backoff' | 'refresh' | 'poll' | 'replay' | 'claimed'
  /** Milliseconds of the wait. */
  readonly delayMs: number
  /** HTTP status of the attempt before the wait, if it had a response. */
  readonly status?: number
  /** Milliseconds that the service asked the client to wait (`Retry-After`). */
  readonly retryAfter?: number
}

/** The call ended. The outcome of an order is already stored, unless `remembered` is false. */
export interface SettledEvent extends CallEvent {
  /** True if the call returned a result. */
  readonly ok: boolean
  /** Number of HTTP requests that the call tried to send. `orders.recover`: of all calls for the order. */
  readonly attempts: number
  /**
   * Milliseconds from the start of the call to its end.
   *
   * 0 for an order that `orders.recover` only looks up, or whose record it cannot read.
   */
  readonly durationMs: number
  /** `code` of the error, if the call failed. */
  readonly code?: string
  /** HTTP status of the last response. */
  readonly status?: number
  /** Whether the wallet was charged; absent for reads, except failed look-ups of an order. */
  readonly charged?: Charged
  /** The caller's own reference for the order. */
  readonly externalOrderId?: string
  /** Identifier of the order, if known. */
  readonly orderId?: string
  /**
   * Orders only: false if the outcome could not be stored.
   *
   * The next `recover()` settles an order that is still open.
   */
  readonly remembered?: boolean
  /** `orders.recover` only: the outcome of the record. */
  readonly recovery?: 'created' | 'rejected' | 'in_progress' | 'still_open' | 'needs_attention'
}

/**
 * Functions that the client runs for each request, wait and outcome.
 *
 * Events are frozen, and returned promises are not awaited. If a function throws or rejects, the
 * client logs an error and the call continues.
 *
 * @example
 * hooks: { onSettled: ({ operation, code = 'ok' }) => counter.inc({ operation, code }) }
 */
export interface Hooks {
  /** Called once per request, just before it is sent. */
  readonly onRequest?: ((event: RequestEvent) => void) | undefined
  /** Called once per request, when it has ended, with or without a response. */
  readonly onResponse?: ((event: ResponseEvent) => void) | undefined
  /** Called before each wait of a call, including the wait for another process (`claimed`). */
  readonly onRetry?: ((event: RetryEvent) => void) | undefined
  /** Called once per call, after the call has ended. */
  readonly onSettled?: ((event: SettledEvent) => void) | undefined
}

/**
 * Destination of log lines: `console`, or a logger from pino, winston or consola.
 *
 * A pino logger receives the fields first, then the message.
 */
export interface Logger {
  /** Logs requests, responses, waits, and calls that succeeded. */
  debug(message: string, fields?: object): void
  /** Logs calls that failed, and the orders that a recovery left open. */
  info(message: string, fields?: object): void
  /**
   * Logs orders whose outcome is unknown or not stored, and once for each recovery how many orders
   * need attention.
   */
  warn(message: string, fields?: object): void
  /** Logs hooks that throw. */
  error(message: string, fields?: object): void
}

interface PinoLogger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Least severe level that is logged. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'off'

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'off']

export class Reporter {
  readonly #hooks: Hooks
  readonly #logger: Logger | undefined
  readonly #least: number
  readonly watched: boolean

  constructor(hooks: Hooks, logger: Logger | undefined, level: LogLevel) {
    this.#hooks = hooks
    this.#logger = logger
    this.#least = LEVELS.indexOf(level)
    this.watched = logger !== undefined || Object.values(hooks).some((hook) => hook !== undefined)
  }

  request(event: RequestEvent): void {
    this.#tell(this.#hooks.onRequest, event)
    this.log('debug', 'request sent', event)
  }

  response(event: ResponseEvent): void {
    this.#tell(this.#hooks.onResponse, event)
    this.log('debug', 'request ended', event)
  }

  retry(event: RetryEvent): void {
    this.#tell(this.#hooks.onRetry, event)
    this.log('debug', 'trying again', event)
  }

  settled(event: SettledEvent): void {
    this.#tell(this.#hooks.onSettled, event)
    this.log(levelOf(event), event.ok ? 'call ended' : 'call failed', event)
  }

  /** Passes the outcomes of a recovery on, and warns once at its end if a person is needed. */
  async *recovered<Outcome extends Recovered>(
    outcomes: AsyncIterable<Outcome>,
  ): AsyncGenerator<Outcome, void, undefined> {
    const references: string[] = []
    try {
      for await (const outcome of outcomes) {
        const { externalOrderId, key, slot } = outcome.record
        if (outcome.outcome === 'needs_attention') references.push(externalOrderId ?? (key || slot))
        yield outcome
      }
    } finally {
      const orders = references.length
      if (orders > 0)
        this.log('warn', 'orders need attention', { orders, references: references.slice(0, 10) })
    }
  }

  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: object): void {
    const logger = this.#logger
    if (logger === undefined || LEVELS.indexOf(level) < this.#least) return
    const line = `customer-ordering-sdk: ${message}`
    try {
      // pino silently drops fields that follow the message.
      const returned = isPino(logger) ? logger[level](fields, line) : logger[level](line, fields)
      takeRejection(returned, () => {})
    } catch {
      // A failing logger must not make a payment fail. There is nowhere to report its error.
    }
  }

  #tell<Event extends object>(hook: ((event: Event) => void) | undefined, event: Event): void {
    if (hook === undefined) return
    try {
      takeRejection(hook(Object.freeze(event)), () => this.#hookFailed(event))
    } catch {
      this.#hookFailed(event)
    }
  }

  #hookFailed(event: object): void {
    this.log('error', 'a hook threw', event)
  }
}

/** What a log line needs of the outcome of a recovery. */
interface Recovered {
  readonly outcome: string
  readonly record: { readonly externalOrderId?: string; readonly key: string; readonly slot: string }
}

/**
 * A warning is for a person.
 *
 * Another process that places an order is normal, and a recovery warns once for all of its orders.
 */
function levelOf({ ok, code, charged, remembered, recovery }: SettledEvent): LogLevel & keyof Logger {
  if (remembered === false) return 'warn'
  if (recovery === 'needs_attention' || recovery === 'still_open') return 'info'
  if (recovery === 'in_progress') return 'debug'
  if (charged === 'unknown' && code !== 'duplicate_order') return 'warn'
  return ok ? 'debug' : 'info'
}

/** Only pino's loggers have `bindings()`. */
function isPino(logger: object): logger is PinoLogger {
  return 'bindings' in logger && typeof logger.bindings === 'function'
}
