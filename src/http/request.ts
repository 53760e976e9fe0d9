import { defined } from '../defined.ts'
import type { Charged } from '../errors.ts'
import type { ResponseInfo } from '../response-info.ts'
import type { Checked } from '../schemas/check.ts'
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
import { LIKE_A_KEY, redact } from './redact.ts'
import { requestIdOf } from './request-id.ts'

type Answer = Extract<AttemptResult, { readonly kind: 'answer' }>

/** Most bytes of one order, service or balance. */
export const MAX_ITEM_BYTES: number = 1024 * 1024
/** Most bytes of a page of a list. */
export const MAX_LIST_BYTES: number = 16 * 1024 * 1024

/** The fields of a call that sends no more than an address. */
export const ADDRESS_ONLY = { query: undefined, body: undefined, idempotencyKey: undefined } as const

/**
 * A call whose answer is parsed and returned, with nothing to remember. No field is optional, so that none comes out of a
 * polluted `Object.prototype`.
 */
export interface ReadCall<T> {
  readonly endpoint: Endpoint
  readonly path: string
  readonly query: string | undefined
  readonly body: string | undefined
  readonly idempotencyKey: string | undefined
  readonly settings: CallSettings
  readonly maxBytes: number
  /** False for a request that must not be sent twice unless it surely never arrived. */
  readonly repeatable: boolean
  /**
   * What the call has to do with the wallet: `none` for reads; `may_move` for a request that may charge, so that its
   * errors must say what is known; `in_doubt` for looking for an order that may be charged, `charged` for reading one
   * that is.
   */
  readonly money: 'none' | 'may_move' | 'in_doubt' | 'charged'
  parse(body: unknown): Checked<T> | Promise<Checked<T>>
}

/** What is known of the wallet once something was sent. */
const CHARGED: Readonly<Record<ReadCall<unknown>['money'], Charged | undefined>> = {
  none: undefined,
  may_move: 'unknown',
  in_doubt: 'unknown',
  charged: 'yes',
}

/** A result and what came with it. */
export interface Reply<T> {
  readonly value: T
  readonly info: () => ResponseInfo
}

/** Performs a call and returns its parsed answer, or throws one of our errors. */
export async function read<T>(connection: Connection, call: ReadCall<T>): Promise<Reply<T>> {
  const { runtime, reporter } = connection
  const deadline = new Deadline(runtime, call.settings.totalTimeout, call.settings.signal)
  // The first id makes Node load its whole crypto.
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

/** True for the ends that a repeated read may turn into a result (design: network errors, 408, 425, 429, 5xx). */
export function isTransient(result: AttemptResult): boolean {
  if (result.kind === 'failed') return result.unsent === false || result.unsent === 'unreachable'
  if (result.kind === 'timeout') return true
  if (result.kind !== 'answer') return false
  const { status, problem } = result
  if (status >= 200 && status < 300)
    return problem === 'cut' || problem === 'undecodable' || problem === 'timeout'
  return status === 408 || status === 425 || status === 429 || status >= 500
}

/** The end of a call whose answer was there and whose checking took too long: as if there had been no answer. */
function cutShort({ why }: Interruption, { last: _last, ...trail }: Trail): Ending<never> {
  return { end: why, trail }
}

function isSuccess({ status, problem }: Answer): boolean {
  return status >= 200 && status < 300 && problem === undefined
}

/** What the body of a success says; that what it is checked with took too long is told by an {@link Interruption}. */
function judgeSuccess<T>(
  call: ReadCall<T>,
  deadline: Deadline,
  answer: Answer,
  trail: Trail,
): Judgement<T> | Promise<Judgement<T> | Interruption> {
  // What is found of an order that may be charged is stored.
  const stored = call.money === 'in_doubt' || call.money === 'charged'
  const body = parseJson(stored ? redact(answer.text, trail.secrets, LIKE_A_KEY) : answer.text)
  const parsed =
    body === undefined ? { issues: [{ path: '', message: 'is not JSON' }] } : call.parse(body.json)
  if (!(parsed instanceof Promise)) return judgeChecked(call, answer, trail, parsed)
  // A caller's schema may take its time, which is part of the call's.
  return deadline
    .race(parsed)
    .then((checked) =>
      checked instanceof Interruption ? checked : judgeChecked(call, answer, trail, checked),
    )
}

function judgeChecked<T>(
  call: ReadCall<T>,
  { status, headers, text }: Answer,
  trail: Trail,
  checked: Checked<T>,
): Judgement<T> {
  if ('value' in checked) return { next: 'done', value: checked.value }
  // A caller's schema may quote the value that it does not like.
  const issues = checked.issues.map((issue) => ({
    path: redact(issue.path, trail.secrets),
    message: redact(issue.message, trail.secrets),
  }))
  const error = unexpectedBody(
    contextOf(call, CHARGED[call.money]),
    { attempts: trail.attempts, status, requestId: requestIdOf(headers, trail.secrets), issues },
    'Check baseUrl and schemas',
  )
  // A proxy that loses its connection may end the body as if it were whole.
  return call.repeatable && isTruncated(text)
    ? { next: 'retry', pace: 'backoff', error }
    : { next: 'stop', error }
}

/** True for JSON that does not end; for no page of a proxy, which asking again would not change. */
function isTruncated(text: string): boolean {
  return /^\s*[[{]/.test(text) && parseJson(text) === undefined
}

function judgeFailure(call: ReadCall<unknown>, result: AttemptResult, unsent: boolean): Judgement<never> {
  // Not processed by any reading of the status, so even a request that must not run twice may be sent again.
  const refused = result.kind === 'answer' && (result.status === 425 || result.status === 429)
  if (!isTransient(result) || !(call.repeatable || unsent || refused)) return { next: 'stop' }
  return { next: 'retry', pace: result.kind === 'failed' && result.closed ? 'now' : 'backoff' }
}

/** The parsed text; nothing if it is no JSON. An empty text is no value at all, as a 204 has it. */
export function parseJson(text: string): { readonly json: unknown } | undefined {
  if (text === '') return { json: undefined }
  try {
    return { json: JSON.parse(text) }
  } catch {
    return undefined
  }
}
