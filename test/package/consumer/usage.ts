// Compiled but never run: the types of every entry point in a user's TypeScript.
import {
  type AnyCustomerOrderingError,
  type Charged,
  type CreateOrderRequest,
  CustomerOrderingClient,
  isCustomerOrderingError,
  type Order,
  type OrderStore,
  type Pages,
  responseInfo,
} from 'customer-ordering-sdk'
import { createSandbox, type SandboxCharge } from 'customer-ordering-sdk/sandbox'
import { type SandboxServer, serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'

declare module 'customer-ordering-sdk' {
  interface CreateOrderRequest {
    readonly sourceSystem?: string
  }
  interface Order {
    readonly createdAt?: string
  }
}

// Fields that a user's schema adds are known after this, and no others.
export const requests: readonly CreateOrderRequest[] = [
  { serviceId: 's', target: 't', quantity: 1, sourceSystem: 'shop' },
  // @ts-expect-error of another type than the user has said
  { serviceId: 's', target: 't', quantity: 1, sourceSystem: 5 },
  // @ts-expect-error misspelt
  { serviceId: 's', target: 't', quantity: 1, sourcesystem: 'shop' },
]

export async function use(): Promise<Charged> {
  const sandbox = createSandbox({ seed: 2 })
  const store: OrderStore = new SqliteStore({ path: ':memory:' })
  const client = new CustomerOrderingClient({
    baseUrl: sandbox.baseUrl,
    apiKey: () => sandbox.apiKey,
    fetch: sandbox.fetch,
    account: 'consumer',
    store,
  })
  try {
    const order: Order = await client.orders.create(
      {
        serviceId: 'svc_standard',
        target: '@ada',
        quantity: 1,
        metadata: { externalOrderId: 'order-1' },
        sourceSystem: 'shop',
      },
      { signal: new AbortController().signal },
    )
    const pages: Pages<Order> = client.orders.list({ limit: 10 })
    for await (const { id } of pages) if (id === order.id) break
    for await (const { outcome } of client.orders.recover()) if (outcome === 'needs_attention') break
    const requestId: string | undefined = responseInfo(order)?.requestId
    const createdAt: string | undefined = order.createdAt
    // @ts-expect-error misspelt
    if (createdAt === order.stauts) return 'unknown'
    const charge: SandboxCharge = sandbox.expectChargedOnce('order-1')
    return charge.orderId === requestId ? 'yes' : 'unknown'
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    const known: AnyCustomerOrderingError = error
    if (known.code === 'timeout') return known.deadline === 'total' ? 'unknown' : known.charged
    // @ts-expect-error: there is no such code
    if (known.code === 'out_of_luck') return 'no'
    // @ts-expect-error: a quantity is a number
    await client.orders.create({ serviceId: 'svc_standard', target: '@ada', quantity: '1' })
    return known.charged
  }
}

export async function serve(): Promise<string> {
  const server: SandboxServer = await serveSandbox(createSandbox(), { control: true })
  await server.close()
  return server.url
}

export function runContract(describe: (name: string, body: () => void) => void, it: typeof describe): void {
  storeContract({ test: { describe, it }, createStore: () => new SqliteStore({ path: ':memory:' }) })
}
