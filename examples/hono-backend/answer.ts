import type { AnyCustomerOrderingError, Order, OrderRecord } from 'customer-ordering-sdk'

/** The shop's response about an order. */
export type OrderAnswer =
  | {
      readonly state: 'ordered'
      readonly orderId?: string | undefined
      readonly status?: string | undefined
      readonly amount?: number | undefined
    }
  /** The wallet may have been charged. Sending the same request again is safe. */
  | { readonly state: 'pending' }
  | { readonly state: 'refused'; readonly reason: string }

/** The shop's response to an error. */
export interface ErrorAnswer {
  readonly status: 200 | 202 | 400 | 402 | 404 | 409 | 422 | 502 | 503
  readonly body: OrderAnswer
  /** Milliseconds to wait before sending the request again. */
  readonly retryAfter?: number | undefined
}

const PENDING = { status: 202, body: { state: 'pending' }, retryAfter: 5_000 } as const

/**
 * Describes a paid order. Fields are missing, even the id, if the service's response could not be
 * read.
 */
export function ordered({ id, status, amount }: Partial<Order> = {}): OrderAnswer {
  return { state: 'ordered', orderId: id, status, amount }
}

/**
 * Turns an error into a response: first by whether the wallet was charged, then by who caused the
 * error.
 */
export function answerOf(error: AnyCustomerOrderingError): ErrorAnswer {
  const refused = { state: 'refused', reason: error.code } as const
  // Another order has this reference, and may be paid. This order was not placed.
  if (error.code === 'idempotency_conflict') return { status: 409, body: refused }
  switch (error.charged) {
    case 'yes':
      // The order is paid, but its details could not be read. Never let the customer pay again.
      return { status: 200, body: { state: 'ordered', orderId: error.orderId } }
    case 'unknown':
      return PENDING
    case 'no':
      break
  }
  switch (error.code) {
    case 'invalid_request':
    case 'bad_request':
      return { status: 400, body: refused }
    case 'payment_required':
      return { status: 402, body: refused }
    case 'not_found':
      return { status: 404, body: refused }
    case 'order_not_accepted':
      return { status: 422, body: refused }
    case 'rate_limit':
      return { status: 503, body: refused, retryAfter: error.retryAfter }
    case 'authentication':
    case 'permission_denied':
    case 'invalid_response':
      // The cause is the shop's API key or the service, so a retry does not help.
      return { status: 502, body: refused }
    default:
      return { status: 503, body: refused, retryAfter: 5_000 }
  }
}

/** Turns a stored record into a response. Sends no request to the service. */
export function remembered({ state, order, rejection, hold }: OrderRecord): ErrorAnswer {
  switch (state) {
    case 'created':
      return { status: 200, body: ordered(order) }
    case 'open':
      // The service has another order with this reference, and that order may have been paid.
      return hold === 'conflict'
        ? { status: 409, body: { state: 'refused', reason: 'idempotency_conflict' } }
        : PENDING
    case 'rejected':
      return {
        status: 200,
        body: { state: 'refused', reason: rejection?.code ?? rejection?.kind ?? 'unknown' },
      }
  }
}
