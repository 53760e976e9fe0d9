import {
  ApiError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  type CustomerOrderingError,
  type ErrorFacts,
  IdempotencyConflictError,
  IdempotencyInProgressError,
  NotFoundError,
  OrderNotAcceptedError,
  PaymentRequiredError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
} from './classes.ts'

export interface ErrorClass {
  new (message: string, facts: ErrorFacts): CustomerOrderingError
  readonly prototype: CustomerOrderingError
}

/** The two error codes in the API document. */
export type IdempotencyCode = 'IDEMPOTENCY_CONFLICT' | 'IDEMPOTENCY_IN_PROGRESS'

/** What an error status means for an order. The outcome table says what each means for the wallet. */
export type StatusOutcome =
  | 'refused'
  | 'refused_unprocessed'
  | 'unauthorized'
  | 'forbidden'
  | 'too_early'
  | 'rate_limited'
  | 'conflict'
  | 'in_progress'
  | 'conflict_unknown'
  | 'request_timeout'
  | 'server_error'
  | 'unrecognised'

/**
 * The next step. `true` marks a step that is also advised while the order is ambiguous. Then the
 * other steps are omitted: some would change the request, and another payload under the same key is
 * a conflict.
 */
export type Advice = readonly [next: string, inDoubt?: true]

/** Everything that one status means, for the messages, the outcomes, the retries and the docs. */
export interface StatusRow {
  readonly error: ErrorClass
  readonly meaning: string
  readonly advice: Advice
  readonly outcome: StatusOutcome
  /** Which calls repeat their request: none, those that may run twice, or all. */
  readonly repeat: 'none' | 'repeatable' | 'all'
  /** What `suggestedStatus()` returns if the wallet was not charged. */
  readonly suggested: number
  /** True if a response without a recognisable error body means the same. */
  readonly alone: boolean
}

function row(
  error: ErrorClass,
  meaning: string,
  advice: Advice,
  outcome: StatusOutcome,
  suggested: number,
  repeat: StatusRow['repeat'] = 'none',
  alone: boolean = repeat !== 'none',
): StatusRow {
  return { error, meaning, advice, outcome, repeat, suggested, alone }
}

const WAIT: Advice = ['Wait']
const SERVER_FAILED = row(ServerError, 'server error', WAIT, 'server_error', 502, 'repeatable')

// 421 is missing on purpose: browsers and Node's fetch repeat the request after a 421, so the first
// request may have been charged.
const OTHER = 'unexpected status'
const CHECK: Advice = ['Check baseUrl and the request']
const UNEXPECTED = row(ApiError, OTHER, CHECK, 'unrecognised', 502)
const UNPROCESSED = row(ApiError, OTHER, CHECK, 'refused_unprocessed', 502)

/** The pages are generated from this table (npm run docs:tables). */
export const STATUSES: Readonly<Record<number, StatusRow>> = {
  400: row(BadRequestError, 'invalid request body or headers', ['Correct the request'], 'refused', 400),
  401: row(
    AuthenticationError,
    'missing or invalid API key',
    ['Check the API key or sign in at the proxy', true],
    'unauthorized',
    // The setup of the program is wrong. Its callers cannot correct that.
    500,
    'none',
    true,
  ),
  402: row(PaymentRequiredError, 'payment required', ['Top up the wallet', true], 'refused', 402),
  403: row(
    PermissionDeniedError,
    'the API key lacks a permission',
    ['Give this API key that permission', true],
    'forbidden',
    500,
  ),
  404: row(NotFoundError, 'not found', ['Check the ids, the API key and baseUrl'], 'refused', 404),
  405: UNPROCESSED,
  406: UNPROCESSED,
  408: row(ApiError, OTHER, WAIT, 'request_timeout', 502, 'repeatable'),
  409: row(ConflictError, 'conflict', WAIT, 'conflict_unknown', 409, 'none', true),
  411: UNPROCESSED,
  413: UNPROCESSED,
  414: UNPROCESSED,
  415: UNPROCESSED,
  422: row(OrderNotAcceptedError, 'order cannot be accepted', ['Change the order'], 'refused', 422),
  425: row(ApiError, OTHER, WAIT, 'too_early', 502, 'all'),
  429: row(RateLimitError, 'too many requests', WAIT, 'rate_limited', 503, 'all'),
  431: UNPROCESSED,
}

/** A 409 with one of the documented codes. With another 4xx, the codes have the same outcome. */
export const CONFLICTS: Readonly<Record<IdempotencyCode, StatusRow>> = {
  IDEMPOTENCY_CONFLICT: row(
    IdempotencyConflictError,
    'this key belongs to an order with another payload',
    ['Give each order its own reference or key'],
    'conflict',
    409,
    'none',
    true,
  ),
  IDEMPOTENCY_IN_PROGRESS: row(
    IdempotencyInProgressError,
    'an earlier request with this key is still running',
    WAIT,
    'in_progress',
    409,
    'none',
    true,
  ),
}

/** What `suggestedStatus()` returns for an error of this name if the wallet was not charged. */
export function suggestedOf(name: string): number {
  const rows = [...Object.values(CONFLICTS), ...Object.values(STATUSES)]
  return (rows.find(({ error }) => error.prototype.name === name) ?? SERVER_FAILED).suggested
}

/** The row of an error status. `code` decides the class only for a 409. */
export function statusRow(status: number, code?: IdempotencyCode): StatusRow {
  if (status === 409 && code !== undefined) return CONFLICTS[code]
  return STATUSES[status] ?? (status >= 500 ? SERVER_FAILED : UNEXPECTED)
}

/**
 * After a documented code, the key may have bought an order, whatever 4xx the service or a gateway
 * sends it with.
 * @param recognised whether the body seems to be an error of the service
 */
export function outcomeOfStatus(status: number, recognised: boolean, code?: IdempotencyCode): StatusOutcome {
  const { outcome, alone } = statusRow(code !== undefined && status < 500 ? 409 : status, code)
  return recognised || alone ? outcome : 'unrecognised'
}
