/**
 * `PUT /orders/<reference>` places an order for one of the shop's own programs. Once a minute, the
 * cron trigger settles the orders that other requests left open.
 */
import { CustomerOrderingClient, isCustomerOrderingError } from 'customer-ordering-sdk'
import { isCaller } from './caller.ts'
import { DurableObjectStore } from './durable-object-store.ts'
import type { OrderObject } from './order-object.ts'

export { OrderObject } from './order-object.ts'

export interface Env {
  readonly ORDERS: DurableObjectNamespace<OrderObject>
  readonly ORDERING_BASE_URL: string
  readonly ORDERING_ACCOUNT: string
  /** Secret: the API key of the wallet. */
  readonly ORDERING_API_KEY?: string
  /** Secret: the token that callers of this worker send. Without it, every request is rejected. */
  readonly CALLER_TOKEN?: string
  /**
   * Maximum milliseconds for an order with all its attempts. If its worker dies, the order stays
   * claimed until this time has passed.
   */
  readonly ORDERING_TOTAL_TIMEOUT: number
}

/**
 * Opens a client and a store for each request. Calls that share a store in one isolate wait for
 * each other in memory, but a worker must not wait for another request's work. With separate
 * stores, calls wait by polling the record, as they do between isolates.
 */
function openClient(env: Env): CustomerOrderingClient {
  return new CustomerOrderingClient({
    baseUrl: env.ORDERING_BASE_URL,
    // The constructor rejects an empty key.
    apiKey: env.ORDERING_API_KEY ?? '',
    account: env.ORDERING_ACCOUNT,
    store: new DurableObjectStore(env.ORDERS),
    totalTimeout: env.ORDERING_TOTAL_TIMEOUT,
    maxRetries: 2,
  })
}

export default {
  async fetch(request, env, ctx): Promise<Response> {
    if (!env.CALLER_TOKEN || !env.ORDERING_API_KEY) {
      console.error('The request was rejected: set the secrets CALLER_TOKEN and ORDERING_API_KEY.')
      return refused(503, 'not_configured')
    }
    if (!(await isCaller(request, env.CALLER_TOKEN)))
      return refused(401, 'unauthenticated', { 'WWW-Authenticate': 'Bearer' })
    const { pathname } = new URL(request.url)
    const [, reference] = /^\/orders\/([\w-]{1,100})$/.exec(pathname) ?? []
    if (request.method !== 'PUT' || reference === undefined) return refused(404, 'not_found')
    const client = openClient(env)
    const placed = place(client, reference, await request.json().catch(() => undefined))
    // If the caller disconnects, keep the request alive as long as the platform allows. Recovery
    // settles the order if that is not long enough.
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
  // Read these fields and no others. `create()` checks their values.
  const { serviceId, target, quantity } = Object(cart)
  try {
    const metadata = { externalOrderId: reference }
    const order = await client.orders.create({ serviceId, target, quantity, metadata })
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

function refused(status: number, reason: string, headers: Record<string, string> = {}): Response {
  return Response.json({ state: 'refused', reason }, { status, headers })
}
