/** Calls that store no record: what they send, how they judge a response, and what they reply. */
import { bare, defined } from '../defined.ts'
import type { Charged, ErrorFacts, Issue } from '../errors/classes.ts'
import { statusRow } from '../errors/statuses.ts'
import type { ResponseInfo } from '../response-info.ts'
import { type Checked, parseJson, wrong } from '../schemas/check.ts'
import { type AttemptResult, answerOf } from './attempt.ts'
import { type CallRequest, type Connection, type Judgement, perform, type Trail } from './call.ts'
import { Deadline, Interruption } from './deadline.ts'
import { type CallContext, errorOf, UNKNOWN_CALL, unexpectedBody } from './failures.ts'
import { LIKE_A_KEY, redact, requestIdOf } from './redact.ts'
import type { ResponseHeaders } from './transport.ts'

type Answer = Extract<AttemptResult, { readonly kind: 'answer' }>

export const MAX_ITEM_BYTES: number = 1024 * 1024
export const MAX_PAGE_BYTES: number = 16 * 1024 * 1024

/** No field is optional: an absent field would be read from a polluted `Object.prototype`. */
export interface ReadCall<T> extends CallRequest {
  /** False for a request that may be repeated only if the service certainly did not process it. */
  readonly repeatable: boolean
  /**
   * What errors report about the wallet once the request may have been sent. Undefined for a call
   * that only reads: nothing. A read that reports it looks for an order, which is stored.
   */
  readonly charged: Charged | undefined
  /** What errors name: the key that is sent, or the order that is read. */
  readonly names: Pick<ErrorFacts, 'idempotencyKey' | 'externalOrderId' | 'orderId'>
  parse(body: unknown): Checked<T> | Promise<Checked<T>>
}

type PlainRead = Omit<ReadCall<unknown>, 'endpoint' | 'path' | 'settings' | 'parse'>

export const READ_ITEM: PlainRead = {
  query: undefined,
  body: undefined,
  idempotencyKey: undefined,
  maxBytes: MAX_ITEM_BYTES,
  repeatable: true,
  charged: undefined,
  names: {},
}
export const READ_PAGE: PlainRead = { ...READ_ITEM, maxBytes: MAX_PAGE_BYTES }

export interface Reply<T> {
  readonly value: T
  readonly info: () => ResponseInfo
}

export async function read<T>(connection: Connection, call: ReadCall<T>): Promise<Reply<T>> {
  const { runtime, reporter } = connection
  const { endpoint, path, idempotencyKey, settings } = call
  const deadline = new Deadline(runtime, settings.totalTimeout, settings.signal)
  // Creates an id only if needed: the first id makes Node load its whole crypto module.
  const callId = reporter.watched ? runtime.randomId() : ''
  let unsent = true
  const ending = await perform<T>(connection, {
    ...call,
    deadline,
    callId,
    attemptsBefore: 0,
    credential: undefined,
    beforeSend: undefined,
    isLate: undefined,
    judge: (result, trail) => {
      if (!(result.kind === 'failed' && result.unsent !== false)) unsent = false
      const isSuccess = result.kind === 'answer' && statusClass(result) === 2 && result.problem === undefined
      return isSuccess ? judgeSuccess(call, deadline, result, trail) : judgeFailure(call, result, unsent)
    },
  })
  const { trail } = ending
  const durationMs = deadline.elapsed()
  const report = (ok: boolean, facts: Pick<ErrorFacts, 'status' | 'charged'>, code?: string) => {
    if (!reporter.watched) return
    const { operation, method } = endpoint
    const told = defined({ idempotencyKey, code, ...facts })
    reporter.settled({ callId, operation, method, path, attempts: trail.attempts, durationMs, ok, ...told })
  }
  if (ending.end === 'steered') {
    report(false, {})
    throw ending.error
  }
  if (ending.end === 'done') {
    report(true, { status: answerOf(trail.last)?.status })
    return { value: ending.value, info: infoLater(trail, durationMs) }
  }
  const charged = call.charged !== undefined && unsent && endpoint.method !== 'GET' ? 'no' : call.charged
  const error = errorOf(ending, { ...contextOf(call, charged), reason: settings.signal?.reason })
  report(false, { status: error.status, charged }, error.code)
  throw error
}

function contextOf({ endpoint, path, names }: ReadCall<unknown>, charged: Charged | undefined): CallContext {
  return { ...UNKNOWN_CALL, ...names, endpoint, path, charged }
}

function statusClass({ status }: Answer): number {
  return Math.floor(status / 100)
}

function judgeSuccess<T>(
  call: ReadCall<T>,
  deadline: Deadline,
  { status, headers, text }: Answer,
  { attempts, secrets }: Trail,
): Judgement<T> | Promise<Judgement<T>> {
  const flawed = (issues: readonly Issue[], advice: string) => {
    const about = { attempts, status, requestId: requestIdOf(headers, secrets), issues }
    return unexpectedBody(contextOf(call, call.charged), about, advice)
  }
  const judge = (checked: Checked<T> | Interruption): Judgement<T> => {
    if (checked instanceof Interruption) return checked
    if ('value' in checked) return { next: 'done', value: checked.value }
    // The caller's schema may quote a rejected value, which may contain an API key.
    const issues = checked.issues.map(({ path, message }) => ({
      path: redact(path, secrets),
      message: redact(message, secrets),
    }))
    const error = flawed(issues, 'Check baseUrl, schemas and listEnvelope')
    // A proxy that loses its connection to the service may end a truncated body as if it were
    // complete. An HTML page would come again.
    const isTruncated = /^\s*[[{]/.test(text) && parseJson(text) === undefined
    return call.repeatable && isTruncated
      ? { next: 'retry', pace: 'backoff', error }
      : { next: 'stop', error }
  }
  // The order that a lookup finds is stored later, so API keys in the response are redacted here.
  const stored = call.charged !== undefined && call.endpoint.method === 'GET'
  // A cached list may lack the very order that the lookup is for (RFC 9111 section 5.1).
  // Several caches may have joined their ages: `0, 12`.
  if (stored && /[1-9]/.test(headers.get('age') ?? '')) {
    const { issues } = wrong('comes from a cache (it has the header Age)')
    return { next: 'stop', error: flawed(issues, 'Let no cache store the responses of the service') }
  }
  const body = parseJson(stored ? redact(text, secrets, LIKE_A_KEY) : text)
  const parsed = body === undefined ? wrong('is not JSON') : call.parse(body.json)
  // The time that the caller's async schema takes counts towards the call's total time.
  return parsed instanceof Promise ? deadline.race(parsed).then(judge) : judge(parsed)
}

function judgeFailure(call: ReadCall<unknown>, result: AttemptResult, unsent: boolean): Judgement<never> {
  const always = result.kind === 'answer' && statusRow(result.status).repeat === 'all'
  if (!isTransient(result) || !(call.repeatable || unsent || always)) return { next: 'stop' }
  return { next: 'retry', pace: result.kind === 'failed' && result.closed ? 'now' : 'backoff' }
}

function isTransient(result: AttemptResult): boolean {
  if (result.kind === 'failed') return result.unsent === false || result.unsent === 'unreachable'
  if (result.kind !== 'answer') return result.kind === 'timeout'
  const { status, problem } = result
  if (statusClass(result) !== 2) return statusRow(status).repeat !== 'none'
  return problem !== 'too_large' && problem !== 'aborted'
}

type AnswerFacts = Pick<ResponseInfo, 'status' | 'requestId'>

export function answerFacts(info: AnswerFacts): AnswerFacts {
  const { status, requestId } = bare(info)
  return defined({ status, requestId })
}

// infoLater() returns a function that does not refer to the response body. Objects with getters would
// keep large bodies in memory: V8 frees such objects only in a full garbage collection (measured with
// Node 24).

export function infoLater({ attempts, secrets, last }: Trail, durationMs: number): () => ResponseInfo {
  const answered = answerOf(last)
  const status = answered?.status
  const headers = answered?.headers
  return () => ({
    ...defined({ status, requestId: headers && requestIdOf(headers, secrets) }),
    attempts,
    durationMs,
    headers: redacted(headers, secrets),
  })
}

function redacted(headers: ResponseHeaders | undefined, secrets: Iterable<string>): Headers {
  const clean: [string, string][] = []
  let found = false
  try {
    headers?.forEach((value, name) => {
      const text = redact(value, secrets)
      found ||= text !== value
      clean.push([name, text])
    })
    return headers instanceof Headers && !found ? headers : new Headers(clean)
  } catch {
    // The platform refuses some headers of custom transports. A charged order must not fail by them.
    return new Headers()
  }
}
