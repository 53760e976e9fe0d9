import { DurableObject } from 'cloudflare:workers'
import { CustomerOrderingClient, isCustomerOrderingError } from 'customer-ordering-sdk'
import { DurableObjectStore } from 'customer-ordering-sdk/stores/durable-object'
import { refused } from './refused.ts'

export interface OrderEnv {
  readonly ORDERING_BASE_URL: string
  readonly ORDERING_ACCOUNT: string
  /** Secret: the API key of the wallet. */
  readonly ORDERING_API_KEY?: string
  /**
   * Maximum milliseconds for an order with all its attempts. If the object dies, the order stays
   * claimed until this time has passed.
   */
  readonly ORDERING_TOTAL_TIMEOUT: number
}

/** Places the orders of one account, and remembers them in its storage. */
export class OrderObject extends DurableObject<OrderEnv> {
  /** All requests of the object share one client, so that they wait for each other in memory. */
  readonly #client: CustomerOrderingClient

  constructor(ctx: DurableObjectState, env: OrderEnv) {
    super(ctx, env)
    this.#client = new CustomerOrderingClient({
      baseUrl: env.ORDERING_BASE_URL,
      // The constructor rejects an empty key.
      apiKey: env.ORDERING_API_KEY ?? '',
      account: env.ORDERING_ACCOUNT,
      store: new DurableObjectStore({ storage: ctx.storage }),
      totalTimeout: env.ORDERING_TOTAL_TIMEOUT,
      maxRetries: 2,
    })
  }

  /** Places the order that `cart` describes as JSON. */
  async place(reference: string, cart: string): Promise<Response> {
    // Read these fields and no others. `create()` checks their values.
    const { serviceId, target, quantity } = Object(parsed(cart))
    try {
      const metadata = { externalOrderId: reference }
      const order = await this.#client.orders.create({ serviceId, target, quantity, metadata })
      return Response.json({ state: 'ordered', orderId: order.id })
    } catch (error) {
      if (!isCustomerOrderingError(error)) throw error
      // Another order has this reference, and may be paid. This order was not placed.
      if (error.code === 'idempotency_conflict') return refused(409, error.code)
      switch (error.charged) {
        case 'yes':
          return Response.json({ state: 'ordered', orderId: error.orderId })
        case 'unknown':
          return Response.json({ state: 'pending' }, { status: 202 })
        case 'no':
          return refused(422, error.code)
      }
    }
  }

  /** Settles the orders that other requests left open. */
  async recover(): Promise<void> {
    for await (const { outcome, record, reason } of this.#client.orders.recover())
      console.log(JSON.stringify({ recovered: record.externalOrderId, outcome, reason }))
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // `create()` rejects the missing fields.
    return undefined
  }
}
