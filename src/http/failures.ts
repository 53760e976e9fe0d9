/** The error of a call that failed: what happened, what is known of the wallet, and the next step. */
import { withFields } from '../defined.ts'
import {
  type AnyCustomerOrderingError,
  type Charged,
  ConfigurationError,
  ConnectionError,
  CustomerOrderingError,
  type ErrorFacts,
  IdempotencyConflictError,
  InvalidResponseError,
  knownError,
  NotFoundError,
  PermissionDeniedError,
  RequestAbortedError,
  TimeoutError,
} from '../errors/classes.ts'
import { chargedSentence, conflictSentence, rawRequestSentence } from '../errors/messages.ts'
import { type Advice, type ErrorClass, statusRow } from '../errors/statuses.ts'
import { issuesText } from '../schemas/check.ts'
import { readProblem } from '../schemas/problem.ts'
import { answerOf, type BodyProblem } from './attempt.ts'
import { type Ending, type Endpoint, noTrail } from './call.ts'
import { isTimeout } from './deadline.ts'
import type { FailureDetail } from './node.ts'
import { redact, requestIdOf } from './redact.ts'
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
  reason: undefined,
  change: '',
} as const

type Failure = Exclude<Ending<unknown>, { readonly end: 'done' | 'steered' }>
/** What an error says: what happened, the next step, and facts about the response. */
type Told = readonly [Class: ErrorClass, what: string, next: Advice | string, facts?: ErrorFacts]

const TIME: Advice = ['Allow more time']
/** An order is held back if its attempt would outlast the window, or the store has lost its claim. */
const FITTING: Advice = ['Check the store, and that timeout fits into safeRetryWindow']
const ADDRESS: Advice = ['Check baseUrl']
const NETWORK: Advice = ['Check the network and baseUrl']

const HTML_PAGE = {
  meaning: 'a page of HTML or XML',
  advice: ['Check baseUrl and the proxies in between', true],
} as const

const UNSENT: Readonly<Record<Unsent, readonly [what: string, advice: Advice]>> = {
  unreachable: ['could not connect', NETWORK],
  certificate: [
    "could not connect: the server's certificate is not trusted",
    ['Check the certificate and baseUrl'],
  ],
  transport_closed: [
    'could not be sent: the transport is closed',
    ['Create a new transport and client', true],
  ],
  late: ['connected too late to send', ['Keep the machine awake', true]],
}

const NO_RESPONSE = 'got no complete response'

/** Why a body could not be read. A body that is not as documented has no reason. */
const UNREAD: Readonly<Record<BodyProblem | 'none', readonly [ErrorClass, why: string, Advice]>> = {
  none: [InvalidResponseError, 'is not as documented', ADDRESS],
  aborted: [InvalidResponseError, 'is not as documented', ADDRESS],
  too_large: [
    InvalidResponseError,
    'exceeds the size limit',
    ['Check baseUrl (or lower the limit of a list)'],
  ],
  undecodable: [InvalidResponseError, 'could not be decompressed', ['Check the proxies in between', true]],
  cut: [ConnectionError, 'was cut off: the connection was lost', NETWORK],
  timeout: [TimeoutError, 'did not arrive', TIME],
}

const WITHIN = {
  total: 'in time (totalTimeout)',
  signal: 'in time (the limit of the signal)',
  attempt: 'in time (timeout)',
} as const

const LONGEST_MESSAGE = 500

function nextSteps({ endpoint, charged, change }: CallContext, [next, inDoubt]: Advice): string {
  const again = ` ${next}, then call again.`
  if (charged === undefined) return again
  // All advice about a read is safe while the order is ambiguous, because a read charges nothing.
  if (endpoint.method === 'GET') return `${again} ${chargedSentence(charged, false)}`
  const isRaw = endpoint.operation === 'request'
  const money = ` ${isRaw ? rawRequestSentence(charged) : chargedSentence(charged, change)}`
  return charged === 'no' ? money + again : inDoubt ? ` ${next}.${money}` : money
}

function factsOf(context: CallContext, attempts: number): ErrorFacts {
  const { charged = 'no', idempotencyKey, externalOrderId, orderId } = context
  return { charged, attempts, idempotencyKey, externalOrderId, orderId }
}

export function unexpectedBody(
  context: CallContext,
  answered: ErrorFacts,
  ...advice: Advice
): InvalidResponseError {
  const { status, issues = [] } = answered
  const why =
    issues.length === 0 ? 'a body that could not be read' : `an unexpected body: ${issuesText(issues)}`
  return new InvalidResponseError(
    `${context.endpoint.method} ${context.path} returned ${status} with ${why}.${nextSteps(context, advice)}`,
    { ...factsOf(context, 0), ...answered },
  )
}

export function errorOf(ending: Failure, context: CallContext): AnyCustomerOrderingError {
  const { end, error, trail } = ending
  // An error that came with the ending keeps its stack.
  if (error instanceof CustomerOrderingError && end !== 'credentials') return knownError(error)
  const [Class, what, next, facts] = tell(ending, context)
  const message = what + (typeof next === 'string' ? next : nextSteps(context, next))
  const made = knownError(new Class(message, { ...factsOf(context, trail.attempts), ...facts }))
  // Leaves out this function: by default, V8 keeps only ten lines, and the caller's own line must
  // be one of them.
  Error.captureStackTrace?.(made, errorOf)
  return made
}

/** The error of a call that its caller's signal ended while it sent nothing. */
export function abortedError(context: CallContext, attempts = 0): AnyCustomerOrderingError {
  return errorOf({ end: 'aborted', trail: { ...noTrail(true), attempts } }, context)
}

function tell({ end, error, trail }: Failure, context: CallContext): Told {
  const { endpoint, path, reason, charged } = context
  const call = `${endpoint.method} ${path}`
  const { last, attempts, secrets } = trail
  const bySignal = isTimeout(reason)
  if (end === 'credentials') {
    // Quotes only a ConfigurationError: any other error of the `apiKey` function may contain
    // secrets.
    const known = error instanceof ConfigurationError ? error.message : 'The apiKey function failed.'
    return [ConfigurationError, known, ['Check apiKey', true], { cause: error }]
  }
  if (end === 'aborted' || last?.kind === 'aborted') {
    const what = `${call} was aborted by the caller's signal.`
    // A run of several calls ends so, whatever its signal's reason.
    const Class = bySignal ? TimeoutError : RequestAbortedError
    return [Class, what, ['If you still need the result'], { cause: reason }]
  }
  const outOfTime = end === 'deadline'
  const late = outOfTime ? ' No time was left for another attempt.' : ''
  if (last === undefined && !outOfTime)
    return [TimeoutError, `${endpoint.operation} ended before it could send the request.`, FITTING]
  const deadline = trail.cutByDeadline || (outOfTime && !answerOf(last)) ? 'total' : 'attempt'
  const within = WITHIN[deadline === 'total' && bySignal ? 'signal' : deadline]
  if (last === undefined || last.kind === 'timeout') {
    const what = attempts === 0 ? 'was not sent' : NO_RESPONSE
    const cause = bySignal ? reason : undefined
    return [TimeoutError, `${call} ${what} ${within}.`, TIME, { deadline, cause }]
  }
  if (last.kind === 'failed') {
    const { unsent, detail } = last
    const named = [detail.code ?? detail.name, detail.syscall].filter((part) => part !== undefined).join(' ')
    const [what, advice] = unsent === false ? [NO_RESPONSE, NETWORK] : UNSENT[unsent]
    const isEarlier = unsent !== false && charged === 'unknown' && endpoint.method !== 'GET'
    const earlier = isEarlier ? ', but an earlier attempt may have sent the order' : ''
    const cause = transportCause(named, detail)
    return [ConnectionError, `${call} ${what}${earlier} (${named}).${late}`, advice, { cause }]
  }
  const { status } = last
  const facts = { status, requestId: requestIdOf(last.headers, secrets) }
  if (last.kind === 'redirect') {
    const code = status === 0 ? '' : ` (${status})`
    const what = `${call} returned a redirect${code}, which is never followed.`
    return [InvalidResponseError, what, ['Check baseUrl', true], facts]
  }
  if (status >= 200 && status < 300) {
    const { problem = 'none' } = last
    const [Class, why, advice] = UNREAD[problem]
    const when = problem === 'timeout' ? ` ${within}.` : problem === 'cut' ? `.${late}` : '.'
    return [Class, `${call} returned ${status}, but the body ${why}${when}`, advice, { ...facts, deadline }]
  }
  const { idempotency, code, message } = readProblem(last.text)
  const serverCode = code && redact(code, secrets)
  const row = statusRow(status, idempotency)
  // HTML or XML comes from a gateway or another server, so ids and permissions are not the cause.
  const isPage = status < 500 && /^\s*</.test(last.text)
  const { error: Class, meaning, advice } = isPage ? { ...row, ...HTML_PAGE } : row
  const denied = Class === PermissionDeniedError ? endpoint.permission : undefined
  const needs = denied === undefined || isPage ? '' : ` The call needs the permission ${denied}.`
  const coded = serverCode === undefined ? meaning : `${meaning}, code ${serverCode}`
  // A raw request has no record, so orders.resolve() cannot close its order.
  const isConflict =
    Class === IdempotencyConflictError && charged !== undefined && endpoint.operation !== 'request'
  const next = isConflict ? ` ${conflictSentence(charged)}` : advice
  return [
    Class,
    `${call} returned ${status} (${coded}).${needs}${late}`,
    next,
    {
      ...facts,
      serverCode,
      // Truncates after redaction, because half an API key would not be recognised.
      serverMessage: message && redact(message, secrets).slice(0, LONGEST_MESSAGE),
      retryAfter: trail.retryAfter,
      requiredPermission: denied,
      resource: Class === NotFoundError ? endpoint.missing : undefined,
    },
  ]
}

/** Does not return the platform's own error, which may contain the API key. */
function transportCause(text: string, { code, syscall, name, frames }: FailureDetail): Error {
  const thrown = frames && { name, stack: `${name}\n${frames}` }
  return withFields(new Error(text), { ...(code && { code }), ...(syscall && { syscall }), ...thrown })
}
