// Runs the whole contract with SqliteStore in this runtime, and recovers an order whose response
// was lost. Prints the results.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'

const directory = mkdtempSync(join(tmpdir(), 'sqlite-'))
let files = 0
const open = () => new SqliteStore({ path: join(directory, `${files}.db`) })

/** Runs the tests one after the other. */
const tests = []
storeContract({
  test: { describe: (_title, body) => body(), it: (title, body) => tests.push({ title, body }) },
  createStore: () => {
    files++
    return open()
  },
  openSecond: open,
  reopenStore: open,
  history: { clients: 8, operations: 60 },
})
const failed = []
for (const { title, body } of tests)
  try {
    await body()
  } catch (error) {
    failed.push(`${title}: ${error.message}`)
  }

files++
const sandbox = createSandbox()
const { baseUrl, apiKey, fetch } = sandbox
const client = () =>
  new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'shop', maxRetries: 0, store: open() })
const order = {
  serviceId: 'svc_standard',
  target: '@ada',
  quantity: 1,
  metadata: { externalOrderId: 'cart-1' },
}
sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
const before = client()
const charged = await before.orders.create(order).catch((error) => error.charged)
await before.close()
const after = client()
const { created } = await after.orders.recover()
sandbox.expectChargedOnce('cart-1')
await after.close()
rmSync(directory, { recursive: true })
console.log(JSON.stringify({ tests: tests.length, failed, charged, created }))
