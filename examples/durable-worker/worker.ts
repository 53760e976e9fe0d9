/**
 * `PUT /orders/<reference>` places an order for a program of the shop's own, from wherever in the world the worker runs. Once a
 * minute one of them settles what others have left behind.
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
  /** A secret: the key of the wallet. */
  readonly ORDERING_API_KEY?: string
  /** A secret: what callers of this worker prove themselves by. Without it nobody is served. */
  readonly CALLER_TOKEN?: string
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
    // Without a key the client refuses to be made.
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
      console.error('Nobody is served until the secrets CALLER_TOKEN and ORDERING_API_KEY are set.')
      return refused(503, 'not_configured')
    }
    if (!(await isCaller(request, env.CALLER_TOKEN)))
      return refused(401, 'unauthenticated', { 'WWW-Authenticate': 'Bearer' })
    const { pathname } = new URL(request.url)
    const [, reference] = /^\/orders\/([\w-]{1,100})$/.exec(pathname) ?? []
    if (request.method !== 'PUT' || reference === undefined) return refused(404, 'not_found')
    const client = openClient(env)
    const placed = place(client, reference, await request.json().catch(() => undefined))
    // The caller may disconnect: the platform finishes what it can of the order, and recovery does the rest.
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
