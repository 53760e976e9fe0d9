// Loads every entry point by `import` and uses it. Prints the names of what each entry point exports.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { CustomerOrderingClient, isCustomerOrderingError } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'

const manifest = JSON.parse(
  await readFile(new URL(import.meta.resolve('customer-ordering-sdk/package.json'))),
)
/** Entry points that need a package of their own. */
const peers = ['./msw', './undici', './opentelemetry']
const exported = {}
for (const path of Object.keys(manifest.exports)) {
  if (/\.(json|yaml)$/.test(path) || (peers.includes(path) && process.env.WITHOUT_PEERS === 'true')) continue
  exported[path] = Object.keys(await import(path.replace('.', 'customer-ordering-sdk'))).sort()
}

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
