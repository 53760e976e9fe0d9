/** The retry loop: repeats a request until it has an outcome, or the call must end. */
import { defined } from '../defined.ts'
import type { CustomerOrderingError, MissingResource, Permission } from '../errors/classes.ts'
import type { Reporter, RequestEvent } from '../hooks.ts'
import { API_KEY_TAG } from '../identity/keys.ts'
import type { Runtime } from '../runtime.ts'
import { type AttemptResult, answerOf, type Send } from './attempt.ts'
import { type Deadline, Interruption } from './deadline.ts'
import { requestIdOf } from './redact.ts'
import { type Counts, decide, noCounts, type Pace, parseRetryAfter } from './retry.ts'

export interface Endpoint {
  /** Client method that calls the endpoint, such as `orders.create`, for messages and events. */
  readonly operation: string
  readonly method: string
  readonly permission?: Permission
  /** The resource that a 404 reports as missing (API document, "Errors"). */
  readonly missing?: MissingResource
}

export interface Credentials {
  /**
   * Returns the key for one attempt, or null if a proxy adds the key. Throws a `ConfigurationError`
   * if the key has a wrong form, and any error that the caller's function throws.
   */
  get(): Promise<string | null> | string | null
  /** True if the next call of `get` may return a different key. */
  readonly rotates: boolean
  /** Tag of the API key that the proxy adds, from the last response that had a tag. */
  proxyTag?: string | undefined
}

export interface Connection {
  /** Base URL without a trailing slash. */
  readonly baseUrl: string
  readonly send: Send
  /**
   * True if something between the client and the network may send a request more than once: the
   * caller's own or patched `fetch`, a dispatcher that is not Node's, or a service worker. A refusal
   * then does not prove that the first request was refused. Computed when read, in up to 0.3 ms.
   */
  readonly mayResend: boolean
  readonly credentials: Credentials
  /** Headers of every request, with lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly runtime: Runtime
  readonly reporter: Reporter
}

/** No field is optional: an absent field would be read from a polluted `Object.prototype`. */
export interface CallSettings {
  readonly signal: AbortSignal | undefined
  /** Time limit of one attempt in milliseconds, including the response body. */
  readonly timeout: number
  /** Time limit of the whole call in milliseconds. */
  readonly totalTimeout: number
  readonly maxRetries: number
  /** Additional headers of this call, with lower-case names. */
  readonly headers: Readonly<Record<string, string>>
}

export type Judgement<T> =
  | { readonly next: 'done'; readonly value: T }
  /** If no retry or no time is left, the call fails with `error`. */
  | { readonly next: 'retry'; readonly pace: Pace; readonly error?: CustomerOrderingError }
  /** `error`, if set, replaces the default error for the attempt's result. */
  | { readonly next: 'stop'; readonly error?: CustomerOrderingError }
  /** The call had to end during the judgement. It ends as if no response had arrived. */
  | Interruption

/** What every attempt of a call sends. */
export interface CallRequest {
  readonly endpoint: Endpoint
  /** Percent-encoded path below the base URL, with a leading slash. */
  readonly path: string
  /** Query string with a leading `?`. Empty or undefined for no query. */
  readonly query: string | undefined
  readonly body: string | undefined
  readonly idempotencyKey: string | undefined
  readonly settings: CallSettings
  readonly maxBytes: number
}

/** No field is optional: an absent field would be read from a polluted `Object.prototype`. */
export interface Call<T> extends CallRequest {
  readonly deadline: Deadline
  readonly callId: string
  /**
   * Number of attempts that the public method, such as `create()`, made before this call. The
   * attempt numbers in events include them.
   */
  readonly attemptsBefore: number
  /** API key of the first attempt, if it was already fetched. */
  readonly credential: string | null | undefined
  judge(result: AttemptResult, trail: Trail): Judgement<T> | Promise<Judgement<T>>
  /** Called before every attempt. If it resolves to false, nothing is sent and the call ends. */
  readonly beforeSend: ((credential: string | null) => Promise<boolean>) | undefined
  readonly isLate: (() => boolean) | undefined
}

export interface Trail {
  attempts: number
  counts: Counts
  last: AttemptResult | undefined
  /** Milliseconds that the last response asked the client to wait. */
  retryAfter: number | undefined
  /** True if `totalTimeout`, rather than `timeout`, limited the last attempt. */
  cutByDeadline: boolean
  /** API keys that were sent and must be redacted. */
  readonly secrets: Set<string>
}

export function noTrail(cutByDeadline: boolean): Trail {
  return {
    attempts: 0,
    counts: noCounts,
    last: undefined,
    retryAfter: undefined,
    cutByDeadline,
    secrets: new Set(),
  }
}

export type Ending<T> =
  | { readonly end: 'done'; readonly value: T; readonly trail: Trail }
  /** The call throws `error` unchanged: see the `signpost` of an attempt's result. */
  | { readonly end: 'steered'; readonly error: unknown; readonly trail: Trail }
  | {
      /**
       * `stopped`: by `judge` or `beforeSend`, or because no retry was left. `deadline`: no time was
       * left. `aborted`: the caller's signal fired. `credentials`: no API key was available.
       */
      readonly end: 'stopped' | 'deadline' | 'aborted' | 'credentials'
      readonly error?: unknown
      readonly trail: Trail
    }

export async function perform<T>(connection: Connection, call: Call<T>): Promise<Ending<T>> {
  const { runtime, reporter, credentials } = connection
  const { deadline, settings } = call
  const trail = noTrail(false)
  let refreshed = false
  for (;;) {
    const over = deadline.over()
    if (over !== undefined) return { end: over.why, trail }
    let credential = trail.attempts === 0 ? call.credential : undefined
    if (credential === undefined) {
      const asked = await askCredential(credentials, deadline)
      if (asked instanceof Interruption) return { end: asked.why, trail }
      if (asked !== null && typeof asked === 'object')
        return { end: 'credentials', error: asked.error, trail }
      credential = asked
    }
    if (credential !== null) trail.secrets.add(credential)
    const mayBeSent = call.beforeSend === undefined || (await call.beforeSend(credential))
    // Checks the deadline again, because fetching the API key and `beforeSend` may have taken time.
    // An attempt that is not sent cannot charge the wallet.
    const late = deadline.over()
    if (late !== undefined) return { end: late.why, trail }
    if (!mayBeSent) return { end: 'stopped', trail }

    trail.attempts++
    const event = reporter.watched ? eventOf(call, trail) : undefined
    if (event !== undefined) reporter.request({ ...event })
    const sentAt = event === undefined ? 0 : runtime.monotonic()
    const remaining = deadline.remaining()
    const result = await connection.send({
      method: call.endpoint.method,
      url: connection.baseUrl + call.path + (call.query ?? ''),
      headers: headersOf(connection, call, credential),
      body: call.body,
      timeout: Math.min(settings.timeout, remaining),
      signal: settings.signal,
      maxBytes: call.maxBytes,
      isLate: call.isLate,
    })
    trail.last = result
    trail.cutByDeadline = remaining <= settings.timeout || deadline.remaining() <= 0
    const answered = answerOf(result)
    if (credential === null) credentials.proxyTag = answered?.headers.get(API_KEY_TAG) ?? credentials.proxyTag
    if (event !== undefined)
      reporter.response({
        ...event,
        outcome: result.kind,
        durationMs: runtime.monotonic() - sentAt,
        ...defined({
          status: answered?.status,
          requestId: answered && requestIdOf(answered.headers, trail.secrets),
          failure: result.kind === 'failed' ? (result.detail.code ?? result.detail.name) : undefined,
        }),
      })

    const judged = call.judge(result, trail)
    let judgement = judged instanceof Promise ? await judged : judged
    if (judgement instanceof Interruption) return { end: judgement.why, trail: { ...trail, last: undefined } }
    if (judgement.next === 'done') return { end: 'done', value: judgement.value, trail }
    if (result.kind === 'failed' && result.signpost !== undefined)
      return { end: 'steered', error: result.signpost, trail }
    const retryAfter = answered && parseRetryAfter(answered.headers.get('retry-after'), runtime.now())
    trail.retryAfter = retryAfter
    const unauthorized = result.kind === 'answer' && result.status === 401
    if (judgement.next === 'stop' && unauthorized && credentials.rotates && !refreshed) {
      refreshed = true
      judgement = { next: 'retry', pace: 'refresh' }
    }
    if (result.kind === 'aborted' || (result.kind === 'answer' && result.problem === 'aborted'))
      return { end: 'aborted', trail }
    const ended = deadline.over()
    if (result.kind === 'failed' && result.unsent === 'late' && ended !== undefined)
      return { end: ended.why, trail: { ...trail, last: undefined } }
    if (judgement.next === 'stop') return { end: 'stopped', error: judgement.error, trail }

    const decision = decide({
      pace: judgement.pace,
      counts: trail.counts,
      maxRetries: settings.maxRetries,
      retryAfter,
      remaining: deadline.remaining(),
      random: runtime.random(),
    })
    if ('stop' in decision) return { end: decision.stop, error: judgement.error, trail }
    trail.counts = decision.counts
    if (event !== undefined)
      reporter.retry({
        ...event,
        reason: judgement.pace,
        delayMs: decision.wait,
        ...defined({ status: answered?.status, retryAfter }),
      })
    if (decision.wait > 0) {
      const interrupted = await deadline.sleep(decision.wait)
      if (interrupted !== undefined) return { end: interrupted.why, trail }
    }
  }
}

function eventOf<T>(call: Call<T>, trail: Trail): RequestEvent {
  return {
    callId: call.callId,
    operation: call.endpoint.operation,
    method: call.endpoint.method,
    path: call.path,
    attempt: call.attemptsBefore + trail.attempts,
    ...defined({ idempotencyKey: call.idempotencyKey }),
  }
}

export async function askCredential(
  credentials: Credentials,
  deadline: Deadline,
): Promise<string | null | Interruption | { readonly error: unknown }> {
  try {
    const key = credentials.get()
    return typeof key === 'string' || key === null ? key : await deadline.race(key)
  } catch (error) {
    return { error }
  }
}

function headersOf<T>(
  connection: Connection,
  call: Call<T>,
  credential: string | null,
): Record<string, string> {
  const headers: Record<string, string> = {
    ...connection.headers,
    ...call.settings.headers,
    accept: 'application/json',
  }
  if (call.body !== undefined) headers['content-type'] = 'application/json'
  if (call.idempotencyKey !== undefined) headers['idempotency-key'] = call.idempotencyKey
  if (credential !== null) headers['authorization'] = `Bearer ${credential}`
  return headers
}
