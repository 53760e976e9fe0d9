/**
 * `PUT /orders/<reference>` places an order, from wherever in the world the worker runs. Once a minute one of them settles
 * what others have left behind.
 */
import { CustomerOrderingClient, isCustomerOrderingError } from 'customer-ordering-sdk'
import { DurableObjectStore } from './durable-object-store.ts'
import type { OrderObject } from './order-object.ts'

export { OrderObject } from './order-object.ts'

export interface Env {
  readonly ORDERS: DurableObjectNamespace<OrderObject>
  readonly ORDERING_BASE_URL: string
  readonly ORDERING_ACCOUNT: string
  /** A secret. */
  readonly ORDERING_API_KEY: string
  /** Milliseconds for an order with all its attempts; a request is busy for as long, also one whose worker has died. */
  readonly ORDERING_TOTAL_TIMEOUT: number
}

/**
 * A client and a store for each request. A worker must not wait for what another request of its has begun, and calls that
 * share a store in one isolate would; in this way the record alone decides, as it does between isolates.
 */
function openClient(env: Env): CustomerOrderingClient {
  return new CustomerOrderingClient({
    baseUrl: env.ORDERING_BASE_URL,
    apiKey: env.ORDERING_API_KEY,
    account: env.ORDERING_ACCOUNT,
    store: new DurableObjectStore(env.ORDERS),
    totalTimeout: env.ORDERING_TOTAL_TIMEOUT,
    maxRetries: 2,
  })
}

export default {
  async fetch(request, env, ctx): Promise<Response> {
    const { pathname } = new URL(request.url)
    const [, reference] = /^\/orders\/([\w-]{1,100})$/.exec(pathname) ?? []
    if (request.method !== 'PUT' || reference === undefined) return Response.json({}, { status: 404 })
    const client = openClient(env)
    const placed = place(client, reference, await request.json().catch(() => undefined))
    // Whoever asked may go away; what has begun is finished, as far as the platform lets it, and the rest is for recovery.
    ctx.waitUntil(placed.then(() => client.close()))
    return await placed
  },

  async scheduled(_controller, env): Promise<void> {
    const client = openClient(env)
    for await (const { outcome, record, reason } of client.orders.recover())
      console.log(JSON.stringify({ recovered: record.externalOrderId, outcome, reason }))
    await client.close()
  },
} satisfies ExportedHandler<Env>

async function place(client: CustomerOrderingClient, reference: string, cart: unknown): Promise<Response> {
  // Only what an order is made of; `create()` checks what is in it.
  const { serviceId, target, quantity } = Object(cart)
  try {
    const metadata = { externalOrderId: reference }
    const order = await client.orders.create({ serviceId, target, quantity, metadata })
    return Response.json({ state: 'ordered', orderId: order.id })
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    // Another order has this reference; it may be paid, but this one was not placed.
    if (error.code === 'idempotency_conflict')
      return Response.json({ state: 'refused', reason: error.code }, { status: 409 })
    switch (error.charged) {
      case 'yes':
        return Response.json({ state: 'ordered', orderId: error.orderId })
      case 'unknown':
        return Response.json({ state: 'pending' }, { status: 202 })
      case 'no':
        return Response.json({ state: 'refused', reason: error.code }, { status: 422 })
    }
  }
}
