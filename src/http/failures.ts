import { bare, defined } from '../defined.ts'
import {
  type AnyCustomerOrderingError,
  ApiError,
  AuthenticationError,
  BadRequestError,
  type Charged,
  ConfigurationError,
  ConflictError,
  ConnectionError,
  CustomerOrderingError,
  type ErrorFacts,
  IdempotencyConflictError,
  IdempotencyInProgressError,
  InvalidResponseError,
  knownError,
  NotFoundError,
  OrderNotAcceptedError,
  PaymentRequiredError,
  PermissionDeniedError,
  RateLimitError,
  RequestAbortedError,
  ServerError,
  TimeoutError,
} from '../errors.ts'
import { readProblem } from '../schemas/problem.ts'
import type { AttemptResult } from './attempt.ts'
import type { Ending, Endpoint } from './call.ts'
import type { FailureDetail } from './proof.ts'
import { redact } from './redact.ts'
import { requestIdOf } from './request-id.ts'
import { parseRetryAfter } from './retry.ts'
import type { Unsent } from './transport.ts'

/** What is known of a call when it fails. */
export interface FailureContext {
  readonly endpoint: Endpoint
  /** Path below the base URL without the query. */
  readonly path: string
  readonly attempts: number
  /** Absent for reads, which cannot charge and whose messages need not say so. */
  readonly charged?: Charged
  readonly idempotencyKey?: string | undefined
  readonly externalOrderId?: string | undefined
  readonly orderId?: string | undefined
  /** API keys used by the call; cut out of everything that the server said. */
  readonly secrets: Iterable<string>
  /** True if the call would have gone on, had there been time. */
  readonly outOfTime?: boolean
  readonly deadline?: 'attempt' | 'total'
  readonly now: number
  /** The caller's signal's reason. */
  readonly reason?: unknown
}

type ErrorClass = new (message: string, facts: ErrorFacts) => CustomerOrderingError

/** What a status is, what it means, what to do next, and whether that is right while an order is in doubt, too. */
type Refusal = readonly [ErrorClass, meaning: string, next: string, inDoubt?: true]

/** Nothing that changes a request is right in doubt: under the same key, another payload is a conflict. */
const BY_STATUS: Readonly<Record<number, Refusal>> = {
  400: [BadRequestError, 'invalid request body or headers', 'Correct the request'],
  401: [AuthenticationError, 'missing or invalid API key', 'Check the API key', true],
  402: [PaymentRequiredError, 'payment required', 'Top up the wallet', true],
  403: [PermissionDeniedError, 'the API key lacks a permission', 'Use an API key that has it', true],
  404: [NotFoundError, 'not found', 'Check the ids and the API key'],
  422: [OrderNotAcceptedError, 'order cannot be accepted', 'Change the order'],
  429: [RateLimitError, 'too many requests', 'Wait'],
}

/** How a request ended of which no byte left. */
const UNSENT: Readonly<Record<Unsent, string>> = {
  unreachable: 'could not connect',
  certificate: "did not trust the server's certificate",
  transport_closed: 'found its transport closed',
  late: 'connected after the time until which it may be sent',
}

/** Codes of undici for connections that their owner closed, before a request or under it. */
const CLOSED: ReadonlySet<string> = new Set(['UND_ERR_CLOSED', 'UND_ERR_DESTROYED'])
const RENEW = 'Make a new transport, and a client with it'
const AWAKE = 'Let the machine stay awake'

const LONGEST_MESSAGE = 500

/** What to tell the caller about the wallet, and what to do next. */
export function chargedSentence(charged: Charged): string {
  return {
    no: 'The wallet was not charged.',
    yes: 'The wallet was charged; do not order again under another reference or key.',
    unknown:
      'The wallet may have been charged: call create() again with the same request and reference (or key), or run orders.recover(); never order again under another one.',
  }[charged]
}

/** The same for a request of the caller's own, of which nothing is remembered. */
function effectSentence(charged: Charged): string {
  return charged === 'no'
    ? 'Nothing was sent, so it had no effect.'
    : 'It may have had its effect, and nothing is remembered of it: look before you send it again.'
}

/** The same for a reference or key that another order has. */
export function conflictSentence(charged: Charged): string {
  const what = { no: 'was not', yes: 'was', unknown: 'may have been' }[charged]
  const next =
    charged === 'unknown'
      ? ' Once you know what became of it, close it with orders.resolve(). Processes that use the same references need a store that all processes share.'
      : ''
  return `The order that has it ${what} charged. Another order needs a reference or key of its own.${next}`
}

/**
 * The end of a message: what is known of the wallet and what to do next, with a space before it.
 * @param charged undefined for reads, whose messages need not speak of the wallet
 * @param next what to do before calling again, without a full stop
 * @param inDoubt whether that is to be done, too, where the wallet may have been charged
 */
export function nextSteps(
  { operation }: Endpoint,
  charged: Charged | undefined,
  next: string,
  inDoubt = false,
): string {
  const again = ` ${next}, then call again.`
  if (charged === undefined) return again
  const money = ` ${operation === 'request' ? effectSentence(charged) : chargedSentence(charged)}`
  return charged === 'no' ? money + again : inDoubt ? ` ${next}.${money}` : money
}

/** What is known of a call besides how it ended. */
export interface ErrorContext {
  readonly endpoint: Endpoint
  readonly path: string
  readonly charged: Charged | undefined
  readonly idempotencyKey?: string | undefined
  readonly externalOrderId?: string | undefined
  readonly orderId?: string | undefined
  readonly now: number
  readonly reason: unknown
}

/** The typed error for a call that ended without a result. */
export function errorOf(
  ending: Exclude<Ending<unknown>, { readonly end: 'done' }>,
  context: ErrorContext,
): AnyCustomerOrderingError {
  return knownError(makeError(ending, context))
}

function makeError(
  ending: Exclude<Ending<unknown>, { readonly end: 'done' }>,
  context: ErrorContext,
): CustomerOrderingError {
  const { end, error, trail } = ending
  const { charged, idempotencyKey, externalOrderId, orderId } = context
  const facts = {
    charged: charged ?? 'no',
    attempts: trail.attempts,
    ...defined({ idempotencyKey, externalOrderId, orderId }),
  } as const
  const { endpoint } = context
  if (error instanceof CustomerOrderingError && end !== 'credentials') return error
  if (end === 'credentials') {
    // The function's own error is the caller's; its text may name secrets, so it is reachable but never printed.
    const known = error instanceof ConfigurationError ? error.message : 'The apiKey function failed.'
    const next = nextSteps(endpoint, charged, 'Correct it', true)
    return new ConfigurationError(known + next, { ...facts, cause: error })
  }
  const failure = {
    ...defined(context),
    endpoint,
    path: context.path,
    now: context.now,
    reason: context.reason,
    attempts: trail.attempts,
    secrets: trail.secrets,
  }
  if (end === 'aborted') return failureOf({ kind: 'aborted' }, failure)
  if (trail.last === undefined || (end === 'deadline' && trail.last.kind === 'timeout')) {
    if (end === 'deadline') return failureOf({ kind: 'timeout' }, { ...failure, deadline: 'total' })
    const next = nextSteps(endpoint, charged, 'Allow more time')
    return new TimeoutError(`${endpoint.operation} ended before it could send.${next}`, facts)
  }
  return failureOf(trail.last, {
    ...failure,
    deadline: trail.cutByDeadline ? 'total' : 'attempt',
    outOfTime: end === 'deadline',
  })
}

/** The typed error for an attempt that did not give the caller its result. */
export function failureOf(result: AttemptResult, given: FailureContext): CustomerOrderingError {
  const context = bare(given)
  const { endpoint, path, charged, secrets, outOfTime, attempts } = context
  const call = `${endpoint.method} ${path}`
  const end = (next: string, inDoubt?: true): string => nextSteps(endpoint, charged, next, inDoubt)
  const facts: ErrorFacts = {
    charged: charged ?? 'no',
    attempts,
    ...defined({
      idempotencyKey: context.idempotencyKey,
      externalOrderId: context.externalOrderId,
      orderId: context.orderId,
    }),
  }
  if (result.kind === 'aborted') {
    return new RequestAbortedError(
      `${call} was ended by the caller's signal.${end('Decide if it is still wanted')}`,
      {
        ...facts,
        cause: context.reason,
      },
    )
  }
  const { deadline = 'attempt' } = context
  const within = `within ${deadline === 'total' ? 'the total time of the call (totalTimeout)' : 'the time of one attempt (timeout)'}`
  const CONNECTION = 'Check the network and baseUrl'
  if (result.kind === 'timeout') {
    const what = attempts === 0 ? 'was not sent' : 'got no complete answer'
    return new TimeoutError(`${call} ${what} ${within}.${end('Allow more time')}`, { ...facts, deadline })
  }
  const late = outOfTime === true ? ' No time was left for another try.' : ''
  if (result.kind === 'failed') {
    const { unsent } = result
    const { code, syscall, name } = result.detail
    const detail = [code ?? name, syscall].filter((part) => part !== undefined).join(' ')
    const what =
      unsent !== false
        ? UNSENT[unsent]
        : code === undefined
          ? 'got no complete answer: fetch failed'
          : 'lost the connection before a complete answer'
    const sent =
      unsent === false || charged === undefined || charged === 'yes'
        ? ''
        : charged === 'no'
          ? ', so nothing was sent'
          : ', so this attempt was not sent, but an earlier one may have been'
    const next =
      unsent === 'late' ? end(AWAKE, true) : CLOSED.has(code ?? '') ? end(RENEW, true) : end(CONNECTION)
    return new ConnectionError(`${call} ${what}${sent} (${detail}).${late}${next}`, {
      ...facts,
      cause: transportCause(detail, result.detail),
    })
  }
  const requestId = requestIdOf(result.headers, secrets)
  const answered: ErrorFacts = { ...facts, status: result.status, ...defined({ requestId }) }
  const was = `${call} was answered with `
  if (result.kind === 'redirect') {
    const status = result.status === 0 ? 'a redirect' : `redirect ${result.status}`
    return new InvalidResponseError(
      `${was}${status}, which is never followed.${end('Check baseUrl', true)}`,
      answered,
    )
  }
  if (result.status >= 200 && result.status < 300) {
    const but = `${was}${result.status}, but its body`
    if (result.problem === 'timeout')
      return new TimeoutError(`${but} did not arrive ${within}.${end('Allow more time')}`, {
        ...answered,
        deadline,
      })
    if (result.problem === 'cut')
      return new ConnectionError(
        `${but} was cut off: the connection was lost.${late}${end(CONNECTION)}`,
        answered,
      )
    const why =
      result.problem === 'too_large' ? 'is larger than this client reads' : 'is not what it should be'
    return new InvalidResponseError(`${but} ${why}.${end('Check baseUrl')}`, answered)
  }
  const problem = readProblem(result.text)
  const serverCode = problem.code === undefined ? undefined : redact(problem.code, secrets)
  // Cut only afterwards: half a key would not be recognised.
  const serverMessage = problem.message && redact(problem.message, secrets).slice(0, LONGEST_MESSAGE)
  const retryAfter = parseRetryAfter(result.headers.get('retry-after'), context.now)
  const refusal = refusalOf(result.status, problem.idempotency)
  // A page comes from whatever stands at the address: ids and permissions are not what is wrong.
  const isPage = result.status < 500 && /^\s*</.test(result.text)
  const [Class, meaning, next, inDoubt] = isPage ? notTheService(refusal) : refusal
  const told = serverCode === undefined ? meaning : `${meaning}, code ${serverCode}`
  const needs =
    Class === PermissionDeniedError && endpoint.permission !== undefined && !isPage
      ? ` It needs ${endpoint.permission}.`
      : ''
  const wait =
    outOfTime === true && retryAfter !== undefined
      ? ` The service asked to wait ${retryAfter} ms, which reaches past the call's deadline.`
      : late
  const conflict = Class === IdempotencyConflictError && charged !== undefined
  const rest = conflict ? ` ${conflictSentence(charged)}` : end(next, inDoubt)
  return new Class(`${was}${result.status} (${told}).${needs}${wait}${rest}`, {
    ...answered,
    ...defined({ serverCode, serverMessage, retryAfter }),
    ...(Class === PermissionDeniedError ? defined({ requiredPermission: endpoint.permission }) : {}),
    ...(Class === NotFoundError ? defined({ resource: endpoint.missing }) : {}),
  })
}

function notTheService([Class]: Refusal): Refusal {
  return [
    Class,
    "an HTML page, not this service's response",
    'Check baseUrl and what stands before the service',
    true,
  ]
}

function refusalOf(status: number, idempotency: string | undefined): Refusal {
  const LATER = 'Wait'
  if (status === 409) {
    if (idempotency === 'IDEMPOTENCY_CONFLICT')
      return [IdempotencyConflictError, 'this key was used with another payload', 'Use another key']
    if (idempotency !== undefined)
      return [IdempotencyInProgressError, 'an earlier request with this key is still running', LATER]
    return [ConflictError, 'conflict', LATER]
  }
  return (
    BY_STATUS[status] ??
    (status >= 500
      ? [ServerError, 'server error', LATER]
      : [ApiError, 'unexpected status', 'Look at serverCode'])
  )
}

/** A fresh error for `cause`: the platform's own may hold the request, and so the API key. */
function transportCause(text: string, { code, syscall, name, frames }: FailureDetail): Error {
  const cause = Object.assign(new Error(text), defined({ code, syscall }))
  return frames === undefined ? cause : Object.assign(cause, { name, stack: `${name}\n${frames}` })
}
