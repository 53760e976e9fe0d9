/**
 * Places an order and finds out its outcome. It uses the client and no page, so it fits any
 * framework.
 */
import {
  type CreateOrderRequest,
  type CustomerOrderingClient,
  type CustomerOrderingError,
  isCustomerOrderingError,
  type Order,
} from 'customer-ordering-sdk'

/** The outcome of an order, as far as it is known. */
export type Ending =
  /** Bought once. If the response could not be read, some fields are missing. */
  | { readonly state: 'placed'; readonly orderId: string | undefined; readonly amount?: number | undefined }
  /** Not bought, nothing charged. */
  | { readonly state: 'refused'; readonly error?: CustomerOrderingError | undefined }
  /** Nobody knows yet. Ordering again under another reference could buy twice. */
  | { readonly state: 'checking' }
  /** Only a person can find out. */
  | { readonly state: 'attention'; readonly key: string }

/** An order with the reference that makes all attempts the same order. */
export type ReferencedOrder = CreateOrderRequest & { readonly metadata: { readonly externalOrderId: string } }

/**
 * Name of the lock that a tab holds while it places an order, so that other tabs do not settle it.
 * A closed tab releases the lock.
 */
const PLACING = 'placing an order'

export class Checkout {
  readonly #client: CustomerOrderingClient
  /** Orders whose outcome only a person can find out. They do not block other orders. */
  readonly #hopeless = new Set<string>()

  constructor(client: CustomerOrderingClient) {
    this.#client = client
  }

  /** Places the order. Calling it again with the same reference never buys twice. */
  async place(request: ReferencedOrder): Promise<Ending> {
    try {
      const order = await navigator.locks.request(PLACING, { mode: 'shared' }, () =>
        this.#client.orders.create(request),
      )
      return placed(order)
    } catch (error) {
      if (!isCustomerOrderingError(error)) throw error
      // Another tab used this reference for a different order: report the outcome of that order.
      if (error.code === 'idempotency_conflict' && error.local)
        return (await this.find(request.metadata.externalOrderId)) ?? { state: 'refused', error }
      if (error.charged === 'no') return { state: 'refused', error }
      if (error.charged === 'yes') return { state: 'placed', orderId: error.orderId }
      if (error.code === 'idempotency_conflict')
        return { state: 'attention', key: error.idempotencyKey ?? '' }
      return { state: 'checking' }
    }
  }

  /**
   * Returns what this browser remembers of the order with this reference, or undefined if the order
   * may be placed.
   */
  async find(reference: string): Promise<Ending | undefined> {
    for await (const { state, order, hold, key } of this.#client.orders.remembered({
      externalOrderId: reference,
    })) {
      if (state === 'created') return placed(order)
      // Another order has this reference at the service, and may have been paid.
      if (hold === 'conflict') return { state: 'attention', key }
      if (state === 'open') return { state: 'checking' }
    }
    return undefined
  }

  /** Returns the reference of an order whose outcome is not known yet, or undefined. */
  async findOpen(): Promise<string | undefined> {
    for await (const { externalOrderId, slot } of this.#client.orders.unresolved())
      if (externalOrderId !== undefined && !this.#hopeless.has(slot)) return externalOrderId
    return undefined
  }

  /**
   * Settles every order whose outcome is not known. Safe at any time, even in many tabs
   * concurrently.
   */
  async *settle(): AsyncGenerator<{ readonly reference: string | undefined; readonly ending: Ending }> {
    const { held = [] } = await navigator.locks.query()
    const takeOver = !held.some(({ name }) => name === PLACING)
    for await (const { outcome, record, order, error } of this.#client.orders.recover({ takeOver })) {
      const reference = record.externalOrderId
      if (outcome === 'created') yield { reference, ending: placed(order ?? record.order) }
      else if (outcome === 'rejected') yield { reference, ending: { state: 'refused', error } }
      else if (outcome === 'needs_attention') {
        this.#hopeless.add(record.slot)
        yield { reference, ending: { state: 'attention', key: record.key } }
      } else yield { reference, ending: { state: 'checking' } }
    }
  }
}

function placed(order: Partial<Order> | undefined): Ending {
  return { state: 'placed', orderId: order?.id, amount: order?.amount }
}
