import { type AnyCustomerOrderingError, isCustomerOrderingError } from './errors.ts'

/** For errors after which the wallet was not charged. */
const UNCHARGED: Readonly<Record<AnyCustomerOrderingError['code'], number>> = {
  // What your program is set up with is wrong: its own caller can do nothing about it.
  configuration: 500,
  authentication: 500,
  permission_denied: 500,
  invalid_request: 400,
  bad_request: 400,
  payment_required: 402,
  not_found: 404,
  duplicate_order: 409,
  conflict: 409,
  idempotency_conflict: 409,
  idempotency_in_progress: 409,
  unresolved_order: 409,
  order_not_accepted: 422,
  api: 502,
  invalid_response: 502,
  server: 502,
  store: 503,
  connection: 503,
  aborted: 503,
  rate_limit: 503,
  timeout: 504,
}

/**
 * The HTTP status for a program's own API to respond with, after a call of the client threw this.
 *
 * 202 whenever the wallet was charged or may have been: the order may exist, so that its caller must neither be told that it
 * failed nor order again under another reference. 500 for what is no error of this package.
 *
 * @example
 * return Response.json({ charged: error.charged }, { status: suggestedStatus(error) })
 */
export function suggestedStatus(error: unknown): number {
  if (!isCustomerOrderingError(error)) return 500
  // What may have been charged is the earlier order of that reference, and not the one that was asked for.
  if (error.code === 'idempotency_conflict') return 409
  if (error.charged !== 'no') return 202
  // The wallet belongs to the API key, and not to who called the program.
  if (error.code === 'not_found' && error.resource === 'wallet') return 500
  return UNCHARGED[error.code]
}
