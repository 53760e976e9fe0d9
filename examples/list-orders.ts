/** Reads the list of orders in several ways: `npm run example list-orders`. */
import assert from 'node:assert/strict'
import { CustomerOrderingClient, responseInfo } from 'customer-ordering-sdk'

const client = new CustomerOrderingClient({ account: 'example.com/list-orders' })

for (let number = 1; number <= 12; number++) {
  // The sandbox takes an order's source system from its metadata. The real service may take it from
  // elsewhere.
  const metadata = { externalOrderId: `order-${number}`, sourceSystem: number % 3 === 0 ? 'shop' : 'crm' }
  await client.orders.create({ serviceId: 'svc_standard', target: '@ada', quantity: number, metadata })
}

// Item by item. The first request is sent when the loop starts, and memory holds one page at most.
let total = 0
for await (const { amount } of client.orders.list({ limit: 5 })) total += amount
console.log(`12 orders cost ${total} minor units`)
assert.equal(total, 250 * 78)

// Leaving the loop ends the request in flight.
for await (const order of client.orders.list()) {
  console.log(`one order: ${order.id}`)
  break
}

// Page by page, with the details of each page's response.
for await (const page of client.orders.list({ limit: 5 }).pages())
  console.log(`from ${page.offset}: ${page.items.length} orders, status ${responseInfo(page)?.status}`)

// One page only.
const page = await client.orders.list({ limit: 3, offset: 10 })
console.log(`from 10: ${page.items.length} orders`)
assert.equal(page.items.length, 2)

// The orders of one source system, as an array with a maximum length.
const fromShop = await client.orders.list({ sourceSystem: 'shop' }).toArray({ max: 100 })
console.log(`${fromShop.length} orders from the shop`)
assert.equal(fromShop.length, 4)

await client.close()
