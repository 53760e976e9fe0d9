/** Prints how many bytes of the heap a MemoryStore needs for each settled order. */
import { CustomerOrderingClient } from '../../../src/client.ts'
import { createSandbox } from '../../../src/sandbox/index.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import type { StoredRow } from '../../../src/stores/store.ts'

const COUNT = 100_000

class Watched extends MemoryStore {
  last: StoredRow | undefined

  override update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    this.last = row
    return super.update(row, expectedVersion)
  }
}

/** The row of an order that was placed. */
async function settledRow(): Promise<StoredRow> {
  const { baseUrl, apiKey, fetch } = createSandbox()
  const store = new Watched()
  const client = new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'example.com/shop-eu', store })
  const metadata = { externalOrderId: crypto.randomUUID(), campaign: 'spring' }
  await client.orders.create({ serviceId: 'svc_standard', target: '@ada.lovelace', quantity: 100, metadata })
  await client.close()
  if (store.last === undefined) throw new Error('the order was not settled')
  return store.last
}

const used = (): number => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const row = await settledRow()
const uuids = new Set(row.data.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g))
const store = new MemoryStore()
const before = used()
for (let at = 0; at < COUNT; at++) {
  let { data } = row
  for (const uuid of uuids) data = data.replaceAll(uuid, crypto.randomUUID())
  data = data.replace(/"ord_[^"]+"/, `"ord_${at.toString(36).padStart(12, '0')}"`)
  await store.insert({
    ...row,
    // The id of a row is one string; what randomUUID() returns is a tree of its parts.
    id: [...crypto.randomUUID()].join(''),
    createdAt: row.createdAt + at,
    updatedAt: row.updatedAt + at,
    data,
  })
}
console.log(((used() - before) / COUNT).toFixed(0))
await store.close()
