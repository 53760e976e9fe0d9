import { defined } from '../defined.ts'
import type { Charged, CustomerOrderingError } from '../errors/classes.ts'
import { statusRow } from '../errors/statuses.ts'
import type { ResponseInfo } from '../response-info.ts'
import { type Checked, parseJson, wrong } from '../schemas/check.ts'
import { type AttemptResult, answerOf } from './attempt.ts'
import {
  type CallSettings,
  type Connection,
  type Ending,
  type Endpoint,
  type Judgement,
  perform,
  type Trail,
} from './call.ts'
import { Deadline, Interruption } from './deadline.ts'
import { type CallContext, errorOf, UNKNOWN_CALL, unexpectedBody } from './failures.ts'
import { infoLater } from './info.ts'
import { LIKE_A_KEY, redact, requestIdOf } from './redact.ts'

type Answer = Extract<AttemptResult, { readonly kind: 'answer' }>

export const MAX_ITEM_BYTES: number = 1024 * 1024
export const MAX_PAGE_BYTES: number = 16 * 1024 * 1024

/**
 * A call that stores no record. No field is optional: an absent field would be read from a polluted
 * `Object.prototype`.
 */
export interface ReadCall<T> {
  readonly endpoint: Endpoint
  readonly path: string
  readonly query: string | undefined
  readonly body: string | undefined
  readonly idempotencyKey: string | undefined
  readonly settings: CallSettings
  readonly maxBytes: number
  /** False for a request that may be repeated only if the service certainly did not process it. */
  readonly repeatable: boolean
  /**
   * What errors report about the wallet. `none`: nothing, because the call only reads. `may_move`:
   * whether the call charged the wallet. `in_doubt`: the call searches for an order that may have
   * been charged. `charged`: the call reads an order that was charged.
   */
  readonly money: 'none' | 'may_move' | 'in_doubt' | 'charged'
  parse(body: unknown): Checked<T> | Promise<Checked<T>>
}

type PlainRead = Omit<ReadCall<unknown>, 'endpoint' | 'path' | 'settings' | 'parse'>

export const READ_ITEM: PlainRead = {
  query: undefined,
  body: undefined,
  idempotencyKey: undefined,
  maxBytes: MAX_ITEM_BYTES,
  repeatable: true,
  money: 'none',
}
export const READ_PAGE: PlainRead = { ...READ_ITEM, maxBytes: MAX_PAGE_BYTES }

/** The `charged` field of an error, if the request may have been sent. */
const CHARGED: Readonly<Record<ReadCall<unknown>['money'], Charged | undefined>> = {
  none: undefined,
  may_move: 'unknown',
  in_doubt: 'unknown',
  charged: 'yes',
}

export interface Reply<T> {
  readonly value: T
  readonly info: () => ResponseInfo
}

export async function read<T>(connection: Connection, call: ReadCall<T>): Promise<Reply<T>> {
  const { runtime, reporter } = connection
  const deadline = new Deadline(runtime, call.settings.totalTimeout, call.settings.signal)
  // Creates an id only if needed: the first id makes Node load its whole crypto module.
  const callId = reporter.watched ? runtime.randomId() : ''
  let unsent = true
  let interrupted: Interruption | undefined
  const performed = await perform<T>(connection, {
    endpoint: call.endpoint,
    path: call.path,
    query: call.query,
    body: call.body,
    idempotencyKey: call.idempotencyKey,
    settings: call.settings,
    deadline,
    callId,
    maxBytes: call.maxBytes,
    attemptsBefore: 0,
    credential: undefined,
    beforeSend: undefined,
    isLate: undefined,
    judge: (result, trail) => {
      if (!(result.kind === 'failed' && result.unsent !== false)) unsent = false
      if (!(result.kind === 'answer' && isSuccess(result))) return judgeFailure(call, result, unsent)
      const judged = judgeSuccess(call, deadline, result, trail)
      if (!(judged instanceof Promise)) return judged
      return judged.then((judgement) => {
        if (!(judgement instanceof Interruption)) return judgement
        interrupted = judgement
        return { next: 'stop' }
      })
    },
  })
  const ending = interrupted === undefined ? performed : cutShort(interrupted, performed.trail)
  const charged = call.money === 'may_move' && unsent ? 'no' : CHARGED[call.money]
  const { attempts, last } = ending.trail
  const durationMs = deadline.elapsed()
  const eventOf = () => ({
    callId,
    operation: call.endpoint.operation,
    method: call.endpoint.method,
    path: call.path,
    attempts,
    durationMs,
    ...defined({ idempotencyKey: call.idempotencyKey }),
  })
  if (ending.end === 'done') {
    const answer = answerOf(last)
    if (reporter.watched) reporter.settled({ ...eventOf(), ok: true, ...defined({ status: answer?.status }) })
    return { value: ending.value, info: infoLater(ending.trail, durationMs) }
  }
  if (ending.end === 'steered') throw ending.error
  const error = errorOf(ending, {
    ...contextOf(call, charged),
    now: runtime.now(),
    reason: call.settings.signal?.reason,
  })
  reporter.settled({
    ...eventOf(),
    ok: false,
    code: error.code,
    ...defined({ status: error.status, charged }),
  })
  throw error
}

function contextOf(
  { endpoint, path, idempotencyKey }: ReadCall<unknown>,
  charged: Charged | undefined,
): CallContext {
  return { ...UNKNOWN_CALL, endpoint, path, charged, idempotencyKey }
}

export function isTransient(result: AttemptResult): boolean {
  if (result.kind === 'failed') return result.unsent === false || result.unsent === 'unreachable'
  if (result.kind === 'timeout') return true
  if (result.kind !== 'answer') return false
  const { status, problem } = result
  if (status >= 200 && status < 300)
    return problem === 'cut' || problem === 'undecodable' || problem === 'timeout'
  return statusRow(status).repeat !== 'none'
}

/**
 * Ends a call as if no response had arrived, because the call had to end while the caller's schema
 * was still checking the response.
 */
function cutShort({ why }: Interruption, { last: _last, ...trail }: Trail): Ending<never> {
  return { end: why, trail }
}

function isSuccess({ status, problem }: Answer): boolean {
  return status >= 200 && status < 300 && problem === undefined
}

function judgeSuccess<T>(
  call: ReadCall<T>,
  deadline: Deadline,
  answer: Answer,
  trail: Trail,
): Judgement<T> | Promise<Judgement<T> | Interruption> {
  // The order that a lookup finds is stored later, so API keys in the response are redacted here.
  const stored = call.money === 'in_doubt' || call.money === 'charged'
  // A cached list may lack the very order that the lookup is for (RFC 9111 section 5.1).
  if (stored && Number(answer.headers.get('age')) > 0)
    return { next: 'stop', error: fromCache(call, answer, trail) }
  const body = parseJson(stored ? redact(answer.text, trail.secrets, LIKE_A_KEY) : answer.text)
  const parsed = body === undefined ? wrong('is not JSON') : call.parse(body.json)
  if (!(parsed instanceof Promise)) return judgeChecked(call, answer, trail, parsed)
  // The time that the caller's async schema takes counts towards the call's total time.
  return deadline
    .race(parsed)
    .then((checked) =>
      checked instanceof Interruption ? checked : judgeChecked(call, answer, trail, checked),
    )
}

function fromCache(
  call: ReadCall<unknown>,
  { status, headers }: Answer,
  trail: Trail,
): CustomerOrderingError {
  return unexpectedBody(
    contextOf(call, CHARGED[call.money]),
    {
      attempts: trail.attempts,
      status,
      requestId: requestIdOf(headers, trail.secrets),
      issues: [{ path: '', message: 'comes from a cache (it has the header Age)' }],
    },
    'Let no cache store the responses of the service',
  )
}

function judgeChecked<T>(
  call: ReadCall<T>,
  { status, headers, text }: Answer,
  trail: Trail,
  checked: Checked<T>,
): Judgement<T> {
  if ('value' in checked) return { next: 'done', value: checked.value }
  // The caller's schema may quote a rejected value, which may contain an API key.
  const issues = checked.issues.map((issue) => ({
    path: redact(issue.path, trail.secrets),
    message: redact(issue.message, trail.secrets),
  }))
  const error = unexpectedBody(
    contextOf(call, CHARGED[call.money]),
    { attempts: trail.attempts, status, requestId: requestIdOf(headers, trail.secrets), issues },
    'Check baseUrl, schemas and listEnvelope',
  )
  // A proxy that loses its connection to the service may end a truncated body as if it were
  // complete.
  return call.repeatable && isTruncated(text)
    ? { next: 'retry', pace: 'backoff', error }
    : { next: 'stop', error }
}

/** False for an HTML page: a retry would return the same page. */
function isTruncated(text: string): boolean {
  return /^\s*[[{]/.test(text) && parseJson(text) === undefined
}

function judgeFailure(call: ReadCall<unknown>, result: AttemptResult, unsent: boolean): Judgement<never> {
  const always = result.kind === 'answer' && statusRow(result.status).repeat === 'all'
  if (!isTransient(result) || !(call.repeatable || unsent || always)) return { next: 'stop' }
  return { next: 'retry', pace: result.kind === 'failed' && result.closed ? 'now' : 'backoff' }
}
