import {
  type AnyCustomerOrderingError,
  type Charged,
  ConfigurationError,
  ConnectionError,
  CustomerOrderingError,
  type ErrorFacts,
  IdempotencyConflictError,
  InvalidResponseError,
  type Issue,
  knownError,
  moneySentence,
  NotFoundError,
  PermissionDeniedError,
  RequestAbortedError,
  TimeoutError,
} from '../errors/classes.ts'
import { type Advice, type ErrorClass, statusRow } from '../errors/statuses.ts'
import { issuesText } from '../schemas/check.ts'
import { readProblem } from '../schemas/problem.ts'
import type { AttemptResult, BodyProblem } from './attempt.ts'
import type { Ending, Endpoint } from './call.ts'
import { isTimeout } from './deadline.ts'
import type { FailureDetail } from './failure-detail.ts'
import { redact, requestIdOf } from './redact.ts'
import { parseRetryAfter } from './retry.ts'
import type { Unsent } from './transport.ts'

/** No field is optional: an absent field would be read from a polluted `Object.prototype`. */
export interface CallContext {
  readonly endpoint: Endpoint
  /** Path below the base URL without the query. */
  readonly path: string
  /** Undefined for plain reads, which never charge: their messages do not mention the wallet. */
  readonly charged: Charged | undefined
  readonly idempotencyKey: string | undefined
  readonly externalOrderId: string | undefined
  readonly orderId: string | undefined
  /** Wall-clock time in milliseconds, used when `Retry-After` is a date. */
  readonly now: number
  /** The `reason` of the caller's aborted signal. */
  readonly reason: unknown
  /** What the caller must change to repeat the order, with a leading space. */
  readonly change: string
}

export const UNKNOWN_CALL = {
  charged: undefined,
  idempotencyKey: undefined,
  externalOrderId: undefined,
  orderId: undefined,
  now: 0,
  reason: undefined,
  change: '',
} as const

interface UnexpectedAnswer {
  readonly attempts: number
  readonly status: number | undefined
  readonly requestId: string | undefined
  readonly issues: readonly Issue[]
}

type Failure = Exclude<Ending<unknown>, { readonly end: 'done' | 'steered' }>
type Of<Kind> = Extract<AttemptResult, { readonly kind: Kind }>
const HTML_PAGE = {
  meaning: "HTML or XML, not this service's response",
  advice: ['Check baseUrl and any proxy or gateway in between', true],
} as const
const UNSENT: Readonly<Record<Unsent, string>> = {
  unreachable: 'could not connect',
  certificate: "could not connect: the server's certificate is not trusted",
  transport_closed: 'could not be sent: the transport is closed',
  late: 'connected too late to send',
}

const NO_RESPONSE = 'got no complete response'

const TIME: Advice = ['Allow more time']
const ADDRESS: Advice = ['Check baseUrl']
const NETWORK: Advice = ['Check the network and baseUrl']
const AWAKE: Advice = ['Keep the machine awake', true]
const RENEW: Advice = ['Create a new transport and client', true]
const NO_TLS: Advice = ['Check the scheme and port of baseUrl (the server may not speak TLS there)', true]
const BETWEEN: Advice = ['Check any proxy or gateway in between', true]

/** By {@link Unsent} or by error code. */
const BY_FAILURE: ReadonlyMap<string | false | undefined, Advice> = new Map([
  ['late', AWAKE],
  ['certificate', ['Check the certificate and baseUrl']],
  ['UND_ERR_CLOSED', RENEW],
  ['UND_ERR_DESTROYED', RENEW],
  ['ERR_SSL_WRONG_VERSION_NUMBER', NO_TLS],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', NO_TLS],
  ['BAD_PORT', ['Use a port in baseUrl that fetch does not block', true]],
])

const UNREAD: Readonly<Record<BodyProblem | 'none', readonly [ErrorClass, why: string, ...Advice]>> = {
  none: [InvalidResponseError, 'is not as documented', ...ADDRESS],
  aborted: [InvalidResponseError, 'is not as documented', ...ADDRESS],
  too_large: [InvalidResponseError, 'exceeds the size limit', 'Check baseUrl (or lower the limit of a list)'],
  undecodable: [InvalidResponseError, 'could not be decompressed', ...BETWEEN],
  cut: [ConnectionError, 'was cut off: the connection was lost', ...NETWORK],
  timeout: [TimeoutError, 'did not arrive', ...TIME],
}

const WITHIN = {
  total: 'within the total time of the call (totalTimeout)',
  signal: "before the time limit in the call's signal",
  attempt: 'within the time of one attempt (timeout)',
} as const

const LONGEST_MESSAGE = 500

const SAME = ' with the same request and reference (or key)'

const repeated = (change: string): string =>
  ` Call create() again${change || SAME}, or run orders.recover().` +
  ' If the outcome stays unknown, settle the order with orders.resolve().'

export function chargedSentence(charged: Charged, repeat: string = repeated('')): string {
  const next = charged === 'unknown' ? repeat : ''
  const never = charged === 'no' ? '' : ' Do not order again under another reference or key.'
  return moneySentence(charged) + next + never
}

function rawRequestSentence(charged: Charged): string {
  return charged === 'no'
    ? moneySentence(charged)
    : 'The request may have taken effect and charged the wallet. Check its effect before you send' +
        ' it again: the client has no record of it.'
}

export function conflictSentence(charged: Charged): string {
  const next =
    charged === 'unknown'
      ? ' Close the existing order with orders.resolve() once you know its outcome.' +
        ' Processes that use the same references must share one store.'
      : ''
  const money = moneySentence(charged, 'The existing order')
  return `${money} A different order needs its own reference or key.${next}`
}

function nextSteps({ endpoint, charged, change }: CallContext, [next, inDoubt]: Advice): string {
  const again = ` ${next}, then call again.`
  if (charged === undefined) return again
  // All advice about a read is safe while the order is ambiguous, because a read charges nothing.
  if (endpoint.method === 'GET') return `${again} ${chargedSentence(charged, '')}`
  const sentence = endpoint.operation === 'request' ? rawRequestSentence : chargedSentence
  const money = ` ${sentence(charged, repeated(change))}`
  return charged === 'no' ? money + again : inDoubt ? ` ${next}.${money}` : money
}

function factsOf(context: CallContext, attempts: number): ErrorFacts {
  const { charged = 'no', idempotencyKey, externalOrderId, orderId } = context
  return { charged, attempts, idempotencyKey, externalOrderId, orderId }
}

export function unexpectedBody(
  context: CallContext,
  answered: UnexpectedAnswer,
  ...advice: Advice
): InvalidResponseError {
  const { attempts, status, issues } = answered
  const why =
    issues.length === 0 ? 'a body that could not be read' : `an unexpected body: ${issuesText(issues)}`
  return new InvalidResponseError(
    `${context.endpoint.method} ${context.path} returned ${status} with ${why}.${nextSteps(context, advice)}`,
    { ...factsOf(context, attempts), ...answered },
  )
}

export function errorOf(ending: Failure, context: CallContext): AnyCustomerOrderingError {
  const error = knownError(makeError(ending, context))
  // Leaves out the functions that make the error: by default, V8 keeps only ten lines, and the
  // caller's own line must be one of them. An error that came with the ending keeps its stack.
  if (error !== ending.error) Error.captureStackTrace?.(error, errorOf)
  return error
}

function makeError({ end, error, trail }: Failure, context: CallContext): CustomerOrderingError {
  if (error instanceof CustomerOrderingError && end !== 'credentials') return error
  const { endpoint } = context
  const call = `${endpoint.method} ${context.path}`
  const facts = factsOf(context, trail.attempts)
  const next = (advice: Advice): string => nextSteps(context, advice)
  const { last } = trail
  if (end === 'credentials') {
    // Quotes only a ConfigurationError: any other error of the `apiKey` function may contain
    // secrets.
    const known = error instanceof ConfigurationError ? error.message : 'The apiKey function failed.'
    return new ConfigurationError(known + next(['Check apiKey', true]), { ...facts, cause: error })
  }
  if (end === 'aborted' || last?.kind === 'aborted') {
    const what = `${call} was aborted by the caller's signal.${next(['If you still need the result'])}`
    return new RequestAbortedError(what, { ...facts, cause: context.reason })
  }
  const outOfTime = end === 'deadline'
  const { reason } = context
  const bySignal = isTimeout(reason)
  const within = (deadline: 'total' | 'attempt'): string =>
    WITHIN[deadline === 'total' && bySignal ? 'signal' : deadline]
  if (last === undefined && !outOfTime)
    return new TimeoutError(
      `${endpoint.operation} ended before it could send the request.${next(TIME)}`,
      facts,
    )
  if (last === undefined || last.kind === 'timeout') {
    const deadline = outOfTime || trail.cutByDeadline ? 'total' : 'attempt'
    const what = trail.attempts === 0 ? 'was not sent' : NO_RESPONSE
    const cause = bySignal ? reason : undefined
    return new TimeoutError(`${call} ${what} ${within(deadline)}.${next(TIME)}`, {
      ...facts,
      deadline,
      cause,
    })
  }
  const late = outOfTime ? ' No time was left for another attempt.' : ''
  if (last.kind === 'failed') return notConnected(last, call, late, facts, context)
  const requestId = requestIdOf(last.headers, trail.secrets)
  const answered: ErrorFacts = { ...facts, status: last.status, requestId }
  if (last.kind === 'redirect') {
    const status = last.status === 0 ? '' : ` (${last.status})`
    const what = `${call} returned a redirect${status}, which is never followed.`
    return new InvalidResponseError(what + next(['Check baseUrl', true]), answered)
  }
  if (last.status < 200 || last.status >= 300)
    return refused(last, call, late, trail.secrets, answered, context)
  const { problem = 'none' } = last
  const [Class, why, ...advice] = UNREAD[problem]
  const deadline = trail.cutByDeadline ? 'total' : 'attempt'
  const when = problem === 'timeout' ? ` ${within(deadline)}.` : problem === 'cut' ? `.${late}` : '.'
  return new Class(`${call} returned ${last.status}, but the body ${why}${when}${next(advice)}`, {
    ...answered,
    deadline,
  })
}

function notConnected(
  { unsent, detail }: Of<'failed'>,
  call: string,
  late: string,
  facts: ErrorFacts,
  context: CallContext,
): ConnectionError {
  const { charged, endpoint } = context
  const { code, syscall, name } = detail
  const named = [code ?? name, syscall].filter((part) => part !== undefined).join(' ')
  const what = unsent === false ? NO_RESPONSE : UNSENT[unsent]
  const sent =
    unsent === false || charged === undefined || charged === 'yes' || endpoint.method === 'GET'
      ? ''
      : charged === 'no'
        ? ', so this attempt sent nothing'
        : ', but an earlier attempt or another process may have sent the request'
  const advice = BY_FAILURE.get(unsent) ?? BY_FAILURE.get(code) ?? NETWORK
  return new ConnectionError(`${call} ${what}${sent} (${named}).${late}${nextSteps(context, advice)}`, {
    ...facts,
    cause: transportCause(named, detail),
  })
}

function refused(
  { status, headers, text }: Of<'answer'>,
  call: string,
  late: string,
  secrets: Iterable<string>,
  answered: ErrorFacts,
  context: CallContext,
): CustomerOrderingError {
  const { endpoint, charged } = context
  const { idempotency, code, message } = readProblem(text)
  const serverCode = code && redact(code, secrets)
  // Truncates after redaction, because half an API key would not be recognised.
  const serverMessage = message && redact(message, secrets).slice(0, LONGEST_MESSAGE)
  const retryAfter = parseRetryAfter(headers.get('retry-after'), context.now)
  const row = statusRow(status, idempotency)
  // HTML or XML comes from a gateway or another server, so ids and permissions are not the cause.
  const isPage = status < 500 && /^\s*</.test(text)
  const { error: Class, meaning, advice } = isPage ? { ...row, ...HTML_PAGE } : row
  const denied = Class === PermissionDeniedError ? endpoint.permission : undefined
  const needs = denied === undefined || isPage ? '' : ` The call needs the permission ${denied}.`
  const wait =
    late !== '' && retryAfter !== undefined
      ? ` The service asked the client to wait ${retryAfter} ms.${late}`
      : late
  // A raw request has no record, so orders.resolve() cannot close its order.
  const conflict =
    Class === IdempotencyConflictError && charged !== undefined && endpoint.operation !== 'request'
  const rest = conflict ? ` ${conflictSentence(charged)}` : nextSteps(context, advice)
  const told = serverCode === undefined ? meaning : `${meaning}, code ${serverCode}`
  return new Class(`${call} returned ${status} (${told}).${needs}${wait}${rest}`, {
    ...answered,
    serverCode,
    serverMessage,
    retryAfter,
    requiredPermission: denied,
    resource: Class === NotFoundError ? endpoint.missing : undefined,
  })
}

/** Does not return the platform's own error, which may contain the API key. */
function transportCause(text: string, { code, syscall, name, frames }: FailureDetail): Error {
  const cause = Object.assign(new Error(text), code && { code }, syscall && { syscall })
  return frames === undefined ? cause : Object.assign(cause, { name, stack: `${name}\n${frames}` })
}
