import type { AnyCustomerOrderingError, Order, OrderRecord } from 'customer-ordering-sdk'

/** What the shop tells about an order. */
export type OrderAnswer =
  | {
      readonly state: 'ordered'
      readonly orderId?: string | undefined
      readonly status?: string | undefined
      readonly amount?: number | undefined
    }
  /** Money may have moved, or may not. Nothing is promised; sending the same request again is safe. */
  | { readonly state: 'pending' }
  | { readonly state: 'refused'; readonly reason: string }

/** What the shop responds with when an order, or something else, did not go as asked. */
export interface ErrorAnswer {
  readonly status: 200 | 202 | 400 | 402 | 404 | 409 | 422 | 502 | 503
  readonly body: OrderAnswer
  /** Milliseconds after which asking again makes sense. */
  readonly retryAfter?: number | undefined
}

const PENDING = { status: 202, body: { state: 'pending' }, retryAfter: 5_000 } as const

/** Of an order that was paid; of what came back, perhaps not even the id could be read. */
export function ordered({ id, status, amount }: Partial<Order> = {}): OrderAnswer {
  return { state: 'ordered', orderId: id, status, amount }
}

/** What an error means for the customer: first what is known of the money, then whose fault it was. */
export function answerOf(error: AnyCustomerOrderingError): ErrorAnswer {
  const refused = { state: 'refused', reason: error.code } as const
  // This reference is another order, which may well be paid; this one was not placed.
  if (error.code === 'idempotency_conflict') return { status: 409, body: refused }
  switch (error.charged) {
    case 'yes':
      // Paid, only the details could not be read. Nobody may pay again.
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
      // The shop's own API key, or the service: trying again does not help.
      return { status: 502, body: refused }
    default:
      return { status: 503, body: refused, retryAfter: 5_000 }
  }
}

/** What is remembered of an order, as an answer; nothing is asked of the service. */
export function remembered({ state, order, rejection }: OrderRecord): ErrorAnswer {
  switch (state) {
    case 'created':
      return { status: 200, body: ordered(order) }
    case 'open':
      return PENDING
    case 'rejected':
      // The service has another order under this reference, which may have been paid.
      if (rejection?.kind === 'conflict')
        return { status: 409, body: { state: 'refused', reason: 'idempotency_conflict' } }
      return {
        status: 200,
        body: { state: 'refused', reason: rejection?.code ?? rejection?.kind ?? 'unknown' },
      }
  }
}
