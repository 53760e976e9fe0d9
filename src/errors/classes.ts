import { bare } from '../defined.ts'
import {
  brand,
  CustomerOrderingError,
  type ErrorFacts,
  type Issue,
  type MissingResource,
  type Permission,
  type StoreErrorFacts,
} from './base.ts'

export {
  type Charged,
  CustomerOrderingError,
  type ErrorFacts,
  type Issue,
  type MissingResource,
  type Permission,
  type StoreErrorFacts,
  type SupportReference,
  supportReference,
} from './base.ts'

/**
 * An option is missing, unknown or wrong, the `apiKey` function failed, or the client was closed.
 *
 * An earlier request may have been sent: see `charged`.
 */
export class ConfigurationError extends CustomerOrderingError {
  static {
    brand(this, 'ConfigurationError')
  }
  override readonly code = 'configuration'
}

/**
 * The call or one of its arguments is wrong.
 *
 * This call placed no order, but an earlier call may have: see `charged`.
 */
export class InvalidRequestError extends CustomerOrderingError {
  static {
    brand(this, 'InvalidRequestError')
  }
  override readonly code = 'invalid_request'
  /** The wrong fields, each with its reason. */
  readonly issues: readonly Issue[]

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts)
    this.issues = bare(facts).issues ?? []
  }
}

export function invalidArgument(path: string, problem: string, call = ''): InvalidRequestError {
  return new InvalidRequestError(
    `${call}${path === '' ? 'The argument' : path} ${problem}. Nothing was sent.`,
    {
      issues: [{ path, message: problem }],
    },
  )
}

/** The store could not be read or written. Without a stored record, no order is sent. */
export class StoreError extends CustomerOrderingError {
  static {
    brand(this, 'StoreError')
  }
  override readonly code = 'store'
  /**
   * `false` if the store is certain that neither the failed write nor an earlier write to the same
   * row will be applied later.
   *
   * Absent if the store is not certain: then the client reads the row to find out.
   */
  readonly applied?: false

  constructor(message: string, facts: StoreErrorFacts = {}) {
    const { applied, cause } = bare(facts)
    // The driver's error, whose code names the failure: the client's message quotes the store's.
    super(message, { ...facts, cause: cause instanceof StoreError ? (cause.cause ?? cause) : cause })
    if (applied === false) this.applied = false
  }
}

/**
 * Another call is placing an identical order without a reference or key. This call sent nothing.
 */
export class DuplicateOrderError extends CustomerOrderingError {
  static {
    brand(this, 'DuplicateOrderError')
  }
  override readonly code = 'duplicate_order'
}

/**
 * An earlier call for this order must be settled first.
 *
 * This call sent no order. `charged` is `'unknown'`, or `'yes'` if the earlier call charged the
 * wallet.
 */
export class UnresolvedOrderError extends CustomerOrderingError {
  static {
    brand(this, 'UnresolvedOrderError')
  }
  override readonly code = 'unresolved_order'
}

/** The connection failed: no complete response arrived. See `charged`. */
export class ConnectionError extends CustomerOrderingError {
  static {
    brand(this, 'ConnectionError')
  }
  override readonly code: 'connection' | 'timeout' = 'connection'
}

/**
 * No complete response arrived in time. See `charged`, and `deadline` for the limit that was
 * reached.
 */
export class TimeoutError extends ConnectionError {
  static {
    brand(this, 'TimeoutError')
  }
  override readonly code = 'timeout'
  /** The limit that was reached: `timeout` (one attempt) or `totalTimeout` (the whole call). */
  readonly deadline: 'attempt' | 'total'

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts)
    this.deadline = bare(facts).deadline ?? 'total'
  }
}

/**
 * The caller's signal aborted the call.
 *
 * Aborting does not undo a request that was sent: see `charged`. `cause` is the signal's reason.
 */
export class RequestAbortedError extends CustomerOrderingError {
  static {
    brand(this, 'RequestAbortedError')
  }
  override readonly code = 'aborted'
}

/**
 * The service returned a success with an undocumented body (unreadable, wrong fields), or a
 * redirect, which the client never follows.
 */
export class InvalidResponseError extends CustomerOrderingError {
  static {
    brand(this, 'InvalidResponseError')
  }
  override readonly code = 'invalid_response'
  /** The wrong fields of the response, if it could be read. */
  readonly issues: readonly Issue[]

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts)
    this.issues = bare(facts).issues ?? []
  }
}

/** Codes of {@link ApiError} and its subclasses. */
export type ApiErrorCode =
  | 'api'
  | 'bad_request'
  | 'authentication'
  | 'payment_required'
  | 'permission_denied'
  | 'not_found'
  | ConflictCode
  | 'order_not_accepted'
  | 'rate_limit'
  | 'server'

/** Codes of {@link ConflictError} and its subclasses. */
export type ConflictCode = 'conflict' | 'idempotency_conflict' | 'idempotency_in_progress'

/** The service returned an error status. Base class of the errors for specific statuses. */
export class ApiError extends CustomerOrderingError {
  static {
    brand(this, 'ApiError')
  }
  override readonly code: ApiErrorCode = 'api'
  /** Milliseconds that the service asked to wait, if the response had `Retry-After`. */
  declare readonly retryAfter?: number
}

/** 400: invalid request body or headers. */
export class BadRequestError extends ApiError {
  static {
    brand(this, 'BadRequestError')
  }
  override readonly code = 'bad_request'
}

/** 401: missing or invalid API key. */
export class AuthenticationError extends ApiError {
  static {
    brand(this, 'AuthenticationError')
  }
  override readonly code = 'authentication'
}

/** 402: payment required. */
export class PaymentRequiredError extends ApiError {
  static {
    brand(this, 'PaymentRequiredError')
  }
  override readonly code = 'payment_required'
}

/** 403: the API key lacks a permission. */
export class PermissionDeniedError extends ApiError {
  static {
    brand(this, 'PermissionDeniedError')
  }
  override readonly code = 'permission_denied'
  /**
   * The permission that this endpoint needs (API document, "Endpoints").
   *
   * Absent for endpoints that this package has no method for.
   */
  declare readonly requiredPermission?: Permission
}

/** 404: the resource does not exist, or this API key cannot see it. */
export class NotFoundError extends ApiError {
  static {
    brand(this, 'NotFoundError')
  }
  override readonly code = 'not_found'
  /** What was not found. Absent for endpoints that document no 404. */
  declare readonly resource?: MissingResource
}

/** 409 without a documented code. Base class of the errors for the two documented codes. */
export class ConflictError extends ApiError {
  static {
    brand(this, 'ConflictError')
  }
  override readonly code: ConflictCode = 'conflict'
}

/**
 * The key or reference belongs to an order with another payload.
 *
 * This payload was not bought. The other order may have been bought.
 */
export class IdempotencyConflictError extends ConflictError {
  static {
    brand(this, 'IdempotencyConflictError')
  }
  override readonly code = 'idempotency_conflict'
  /**
   * True if the remembered record shows the conflict and nothing was sent.
   *
   * False if the service returned 409.
   */
  readonly local: boolean
  /** Names of the fields that differ from the remembered order, if known. */
  readonly fields: readonly string[]

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts)
    const { local = false, fields = [] } = bare(facts)
    this.local = local
    this.fields = fields
  }
}

/** When the call ended, the service was still working on an earlier request with the same key. */
export class IdempotencyInProgressError extends ConflictError {
  static {
    brand(this, 'IdempotencyInProgressError')
  }
  override readonly code = 'idempotency_in_progress'
}

/** 422: the order cannot be accepted. */
export class OrderNotAcceptedError extends ApiError {
  static {
    brand(this, 'OrderNotAcceptedError')
  }
  override readonly code = 'order_not_accepted'
}

/** 429: too many requests. `retryAfter` is the time to wait, if the service returned one. */
export class RateLimitError extends ApiError {
  static {
    brand(this, 'RateLimitError')
  }
  override readonly code = 'rate_limit'
}

/** 5xx: the service or a gateway in front of it failed. */
export class ServerError extends ApiError {
  static {
    brand(this, 'ServerError')
  }
  override readonly code = 'server'
}

/** Every error of this package as a union that narrows by `code` in a switch. */
export type AnyCustomerOrderingError =
  | ConfigurationError
  | InvalidRequestError
  | StoreError
  | DuplicateOrderError
  | UnresolvedOrderError
  | (ConnectionError & { readonly code: 'connection' })
  | TimeoutError
  | RequestAbortedError
  | InvalidResponseError
  | (ApiError & { readonly code: 'api' })
  | BadRequestError
  | AuthenticationError
  | PaymentRequiredError
  | PermissionDeniedError
  | NotFoundError
  | (ConflictError & { readonly code: 'conflict' })
  | IdempotencyConflictError
  | IdempotencyInProgressError
  | OrderNotAcceptedError
  | RateLimitError
  | ServerError

/**
 * True for every error of this package, whichever copy of the package created it.
 *
 * Narrows by `code` in a `switch`.
 *
 * @example
 * if (!isCustomerOrderingError(error)) throw error
 * if (error.charged === 'unknown') return 'pending'
 */
export function isCustomerOrderingError(error: unknown): error is AnyCustomerOrderingError {
  return error instanceof CustomerOrderingError
}

export function knownError(error: CustomerOrderingError): AnyCustomerOrderingError {
  if (!isCustomerOrderingError(error)) throw error
  return error
}
