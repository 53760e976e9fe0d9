// Compiled but never run: the types in a page's TypeScript, with the DOM library and without Node's
// types.
import { CustomerOrderingClient, type Order } from 'customer-ordering-sdk'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'

export async function order(): Promise<Order> {
  const store = new IndexedDbStore({ name: 'orders', openTimeout: 5_000 })
  const client = new CustomerOrderingClient({ baseUrl: '/api', apiKey: null, account: 'page', store })
  const metadata = { externalOrderId: 'cart-1' }
  const placed = await client.orders.create({
    serviceId: 'svc_standard',
    target: '@ada',
    quantity: 1,
    metadata,
  })
  await client.close()
  return placed
}
