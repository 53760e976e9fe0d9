/**
 * The basics, step by step. `npm run quickstart` runs this against a sandbox in a separate process.
 * The sandbox charges the first order, then drops the connection instead of responding.
 */
import assert from 'node:assert/strict'
import {
  CustomerOrderingClient,
  formatAmount,
  isCustomerOrderingError,
  responseInfo,
} from 'customer-ordering-sdk'

const client = new CustomerOrderingClient({
  // baseUrl and apiKey come from the environment: CUSTOMER_ORDERING_BASE_URL, CUSTOMER_ORDERING_API_KEY
  account: 'example.com/quickstart',
  // Identifies the service instead of the address, because the sandbox has a different port each
  // time. Keys are derived from it.
  server: 'sandbox',
  hooks: {
    onRequest: ({ method, path, idempotencyKey }) => {
      if (method === 'POST') console.log(`  -> ${method} ${path}, Idempotency-Key ${idempotencyKey}`)
    },
    onResponse: ({ method, status, outcome }) => {
      if (method === 'POST') console.log(`  <- ${status ?? `no response: connection ${outcome}`}`)
    },
  },
})

console.log('Services')
for await (const { productId, amount, currency, ...limits } of client.services.list()) {
  const { minQuantity, maxQuantity, stepQuantity } = limits
  const price = formatAmount({ amount, currency }, 'en').padStart(12)
  console.log(`  ${productId.padEnd(16)}${price}   ${minQuantity} to ${maxQuantity}, step ${stepQuantity}`)
}

const before = await client.balance.retrieve()
const { currency } = before
console.log(`\nBalance ${formatAmount(before, 'en')}`)

console.log('\nAn order whose first response is lost')
const request = {
  serviceId: 'svc_standard',
  target: '@ada',
  quantity: 2,
  metadata: { externalOrderId: 'invoice-1001' },
}
const order = await client.orders.create(request)
const requests = responseInfo(order)?.attempts
console.log(`  order ${order.id}, ${order.status}, ${formatAmount({ ...order, currency }, 'en')}`)

const after = await client.balance.retrieve()
console.log(`\nBalance ${formatAmount(after, 'en')}: ${requests} requests, charged once`)
assert.equal(requests, 2)
assert.equal(before.amount - after.amount, order.amount)

console.log('\nThe same call again: the client remembers the order and sends nothing')
const again = await client.orders.create(request)
console.log(`  order ${again.id}, ${responseInfo(again)?.attempts} requests`)
assert.equal(again.id, order.id)

console.log('\nThree more orders')
for (const quantity of [100, 200, 300])
  await client.orders.create({
    serviceId: 'svc_bulk',
    target: '@ada',
    quantity,
    metadata: { externalOrderId: `invoice-${1001 + quantity / 100}` },
  })

console.log('\nAll orders, two to a page')
let found = 0
for await (const { offset, items } of client.orders.list({ limit: 2 }).pages()) {
  console.log(`  from ${offset}: ${items.map(({ id }) => id).join(', ')}`)
  found += items.length
}
assert.equal(found, 4)

console.log('\nAn order that the wallet cannot pay')
try {
  await client.orders.create({
    serviceId: 'svc_premium',
    target: '@ada',
    quantity: 1,
    metadata: { externalOrderId: 'invoice-1005' },
  })
  assert.fail('the balance should not cover this order')
} catch (error) {
  if (!isCustomerOrderingError(error)) throw error
  console.log(`  ${error.name}: code ${error.code}, charged ${error.charged}`)
  console.log(`  ${error.message}`)
  assert.equal(error.code, 'payment_required')
}

await client.close()
