// The same by `require`.
const assert = require('node:assert/strict')
const manifest = require('customer-ordering-sdk/package.json')
const { CustomerOrderingClient, isCustomerOrderingError } = require('customer-ordering-sdk')
const { createSandbox } = require('customer-ordering-sdk/sandbox')
const { SqliteStore } = require('customer-ordering-sdk/stores/sqlite')

/** Entry points that need a package of their own. */
const peers = ['./msw', './undici', './opentelemetry']
const exported = {}
for (const path of Object.keys(manifest.exports)) {
  if (/\.(json|yaml)$/.test(path) || (peers.includes(path) && process.env.WITHOUT_PEERS === 'true')) continue
  exported[path] = Object.keys(require(path.replace('.', 'customer-ordering-sdk'))).sort()
}

async function main() {
  const sandbox = createSandbox()
  const store = new SqliteStore({ path: ':memory:' })
  const client = new CustomerOrderingClient({
    baseUrl: sandbox.baseUrl,
    apiKey: sandbox.apiKey,
    fetch: sandbox.fetch,
    account: 'consumer',
    store,
  })
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  await client.orders.create({
    serviceId: 'svc_standard',
    target: '@ada',
    quantity: 2,
    metadata: { externalOrderId: 'order-1' },
  })
  sandbox.expectChargedOnce('order-1')
  assert.equal((await client.orders.list().toArray({ max: 10 })).length, 1)
  const error = await client.orders.retrieve('none').catch((reason) => reason)
  assert(isCustomerOrderingError(error) && error.code === 'not_found')
  await client.close()

  console.log(JSON.stringify(exported))
}

main()
