import { defined } from '../defined.ts'
import {
  ApiError,
  AuthenticationError,
  BadRequestError,
  type Charged,
  ConflictError,
  ConnectionError,
  type CustomerOrderingError,
  type ErrorFacts,
  IdempotencyConflictError,
  IdempotencyInProgressError,
  InvalidResponseError,
  type MissingResource,
  NotFoundError,
  OrderNotAcceptedError,
  PaymentRequiredError,
  type Permission,
  PermissionDeniedError,
  RateLimitError,
  RequestAbortedError,
  ServerError,
  TimeoutError,
} from '../errors.ts'
import { readProblem } from '../schemas/problem.ts'
import { redact } from './redact.ts'
import { parseRetryAfter } from './retry.ts'
import type { AttemptResult } from './transport.ts'

/** What an endpoint needs and what its 404 means (API document, "Endpoints" and "Errors"). */
export interface Endpoint {
  /** Method of the client that calls it, for messages and events. */
  readonly operation: string
  readonly method: string
  readonly permission?: Permission
  readonly missing?: MissingResource
}

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

const BY_STATUS: Readonly<Record<number, readonly [ErrorClass, meaning: string]>> = {
  400: [BadRequestError, 'invalid request body or headers'],
  401: [AuthenticationError, 'missing or invalid API key'],
  402: [PaymentRequiredError, 'payment required'],
  403: [PermissionDeniedError, 'the API key lacks a permission'],
  404: [NotFoundError, 'not found'],
  422: [OrderNotAcceptedError, 'order cannot be accepted'],
  429: [RateLimitError, 'too many requests'],
}

const LONGEST_MESSAGE = 500

const REQUEST_ID = ['x-request-id', 'request-id', 'x-correlation-id', 'x-amzn-requestid', 'cf-ray']

/** The request id of an answer, from whichever of the usual headers is there. */
export function requestIdOf(headers: Headers, secrets: Iterable<string> = []): string | undefined {
  for (const name of REQUEST_ID) {
    const value = headers.get(name)
    if (value !== null && /^[\x21-\x7e]{1,200}$/.test(value)) return redact(value, secrets)
  }
  return undefined
}

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
export function effectSentence(charged: Charged): string {
  return charged === 'no'
    ? 'Nothing was sent, so it had no effect.'
    : 'It may have had its effect, and nothing is remembered of it: look before you send it again.'
}

/** The typed error for an attempt that did not give the caller its result. */
export function failureOf(result: AttemptResult, context: FailureContext): CustomerOrderingError {
  const { endpoint, path, charged, secrets, outOfTime } = context
  const call = `${endpoint.method} ${path}`
  const sentence = endpoint.operation === 'request' ? effectSentence : chargedSentence
  const money = charged === undefined ? '' : ` ${sentence(charged)}`
  const facts: ErrorFacts = {
    charged: charged ?? 'no',
    attempts: context.attempts,
    ...defined({
      idempotencyKey: context.idempotencyKey,
      externalOrderId: context.externalOrderId,
      orderId: context.orderId,
    }),
  }
  if (result.kind === 'aborted') {
    return new RequestAbortedError(`${call} was ended by the caller's signal.${money}`, {
      ...facts,
      cause: context.reason,
    })
  }
  const { deadline = 'attempt' } = context
  const within = `within ${deadline === 'total' ? 'the total time of the call (totalTimeout)' : 'the time of one attempt (timeout)'}`
  if (result.kind === 'timeout')
    return new TimeoutError(`${call} got no complete answer ${within}.${money}`, { ...facts, deadline })
  const late = outOfTime === true ? " No time was left for another try within the call's deadline." : ''
  if (result.kind === 'failed') {
    const { code, syscall, name } = result.detail
    const detail = [code ?? name, syscall].filter((part) => part !== undefined).join(' ')
    const what = {
      unreachable: 'could not connect, so nothing was sent',
      certificate: "did not trust the server's certificate, so nothing was sent",
      no: 'lost the connection before a complete answer',
    }[result.unsent === false ? 'no' : result.unsent]
    return new ConnectionError(`${call} ${what} (${detail}).${late}${money}`, {
      ...facts,
      cause: transportCause(detail, result.detail),
    })
  }
  const requestId = requestIdOf(result.headers, secrets)
  const answered: ErrorFacts = { ...facts, status: result.status, ...defined({ requestId }) }
  if (result.kind === 'redirect') {
    const status = result.status === 0 ? 'a redirect' : `redirect ${result.status}`
    return new InvalidResponseError(
      `${call} was answered with ${status}, which is never followed: check baseUrl.${money}`,
      answered,
    )
  }
  if (result.status >= 200 && result.status < 300) {
    const but = `${call} was answered with ${result.status}, but its body`
    if (result.problem === 'timeout')
      return new TimeoutError(`${but} did not arrive ${within}.${money}`, { ...answered, deadline })
    if (result.problem === 'cut')
      return new ConnectionError(`${but} was cut off: the connection was lost.${late}${money}`, answered)
    const why =
      result.problem === 'too_large' ? 'is larger than this client reads' : 'is not what it should be'
    return new InvalidResponseError(`${but} ${why}.${money}`, answered)
  }
  const problem = readProblem(result.text)
  const serverCode = problem.code === undefined ? undefined : redact(problem.code, secrets)
  // Cut only afterwards: half a key would not be recognised.
  const serverMessage = problem.message && redact(problem.message, secrets).slice(0, LONGEST_MESSAGE)
  const retryAfter = parseRetryAfter(result.headers.get('retry-after'), context.now)
  const [Class, meaning] = classOf(result.status, problem.idempotency)
  const told = serverCode === undefined ? meaning : `${meaning}, code ${serverCode}`
  const needs =
    Class === PermissionDeniedError && endpoint.permission !== undefined
      ? ` It needs ${endpoint.permission}.`
      : ''
  const wait =
    outOfTime === true && retryAfter !== undefined
      ? ` The service asked to wait ${retryAfter} ms, which reaches past the call's deadline.`
      : late
  return new Class(`${call} was answered with ${result.status} (${told}).${needs}${wait}${money}`, {
    ...answered,
    ...defined({ serverCode, serverMessage, retryAfter }),
    ...(Class === PermissionDeniedError ? defined({ requiredPermission: endpoint.permission }) : {}),
    ...(Class === NotFoundError ? defined({ resource: endpoint.missing }) : {}),
  })
}

function classOf(status: number, idempotency: string | undefined): readonly [ErrorClass, string] {
  if (status === 409) {
    if (idempotency === 'IDEMPOTENCY_CONFLICT')
      return [IdempotencyConflictError, 'this key was used with another payload']
    if (idempotency !== undefined)
      return [IdempotencyInProgressError, 'an earlier request with this key is still running']
    return [ConflictError, 'conflict']
  }
  return (
    BY_STATUS[status] ?? (status >= 500 ? [ServerError, 'server error'] : [ApiError, 'unexpected status'])
  )
}

/** A fresh error for `cause`: the platform's own may hold the request, and so the API key. */
function transportCause(text: string, detail: { readonly code?: string; readonly syscall?: string }): Error {
  return Object.assign(new Error(text), defined({ code: detail.code, syscall: detail.syscall }))
}
