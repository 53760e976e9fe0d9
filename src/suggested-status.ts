import {
  type AnyCustomerOrderingError,
  ApiError,
  type ApiErrorCode,
  isCustomerOrderingError,
} from './errors/classes.ts'
import { suggestedOf } from './errors/statuses.ts'

/** For errors that no response caused, by code. Without a status there is no row to take it from. */
const LOCAL: Readonly<Record<Exclude<AnyCustomerOrderingError['code'], ApiErrorCode>, number>> = {
  // The setup of the program that uses this package is wrong. Its callers cannot correct that.
  configuration: 500,
  invalid_request: 400,
  duplicate_order: 409,
  unresolved_order: 409,
  invalid_response: 502,
  store: 503,
  connection: 503,
  aborted: 503,
  timeout: 504,
}

/**
 * Returns the HTTP status with which your own API should respond after a client call threw this
 * error.
 *
 * The status is 202 if the wallet was or may have been charged for this order: the order may exist,
 * so your caller must not order again under another reference. The status is 500 for an error that
 * is not from this package.
 *
 * @example
 * return Response.json({ charged: error.charged }, { status: suggestedStatus(error) })
 */
export function suggestedStatus(error: unknown): number {
  if (!isCustomerOrderingError(error)) return 500
  // The order that may have been charged is an earlier order with the same reference or key, not
  // the rejected order.
  if (error.code === 'idempotency_conflict') return 409
  if (error.charged !== 'no') return 202
  // The wallet belongs to the API key, so the program's callers cannot correct this.
  if (error.code === 'not_found' && error.resource === 'wallet') return 500
  return error instanceof ApiError ? suggestedOf(error.name) : LOCAL[error.code]
}
