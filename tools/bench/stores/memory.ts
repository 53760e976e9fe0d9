/**
 * Memory and rate of `createMany` over a million requests.
 *
 *     npm run bench stores-memory                      1,000,000 requests over MemoryStore
 *     npm run bench stores-memory -- --store sqlite    the same over SqliteStore, in a temporary file
 *     npm run bench stores-memory -- 100000
 *
 * The heap is limited to 96 MB, which a client that kept anything of each order would soon exceed.
 * The sandbox remembers every order, so a new one replaces it after every 10,000 requests.
 * MemoryStore keeps every record on the heap, so it prunes each record when its order is settled.
 * SqliteStore keeps all records in its file.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CustomerOrderingClient } from '../../../src/client.ts'
import { createSandbox, type Sandbox } from '../../../src/sandbox/index.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'
import type { OrderStore, StoredRow } from '../../../src/stores/store.ts'
import { positiveInteger, readArguments, UsageError } from '../../programs/arguments.ts'

const { requests: REQUESTS, store: STORE } = readArguments(
  {
    usage: `npm run bench stores-memory -- [REQUESTS] [--store memory|sqlite]
  places that many orders (default 1,000,000)`,
    positionals: 1,
    options: { store: { type: 'string', default: 'memory' } },
  },
  ({ positionals: [requests = '1_000_000'], values: { store } }) => {
    if (store !== 'memory' && store !== 'sqlite') throw new UsageError('--store is memory or sqlite.')
    return { requests: positiveInteger('REQUESTS', requests), store }
  },
)
const LIFETIME = 10_000

/** Prunes each record when its order is settled. */
class OpenRecords extends MemoryStore {
  override async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    const updated = await super.update(row, expectedVersion)
    if (!row.open) {
      const all = Number.POSITIVE_INFINITY
      await this.prune(row.scope, { createdBefore: all, rejectedBefore: all })
    }
    return updated
  }
}

const directory = mkdtempSync(join(tmpdir(), 'bench-'))
const store: OrderStore =
  STORE === 'memory' ? new OpenRecords() : new SqliteStore({ path: join(directory, 'orders.db') })

let served = 0
let sandbox: Sandbox = createSandbox({ balance: 1e12 })
const { baseUrl, apiKey } = sandbox
const client = new CustomerOrderingClient({
  baseUrl,
  apiKey,
  account: 'bench',
  store,
  fetch: async (input, init) => {
    // Respond in a new task, like a network: V8 keeps the target of every WeakRef until the current task ends.
    await new Promise((resolve) => setImmediate(resolve))
    if (++served % LIFETIME === 0) sandbox = createSandbox({ balance: 1e12, apiKey })
    return await sandbox.fetch(input, init)
  },
})

function* requests() {
  for (let number = 1; number <= REQUESTS; number++)
    yield {
      serviceId: 'svc_standard',
      target: '@someone',
      quantity: 1,
      metadata: { externalOrderId: `order-${number}` },
    }
}

const { gc } = globalThis
if (gc === undefined) throw new Error('run it with --expose-gc')

console.log('| orders | heap in use, MB | whole process, MB | orders/s |\n| --- | --- | --- | --- |')
const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)
let placed = 0
const begin = performance.now()
for await (const result of client.orders.createMany(requests(), { concurrency: 16 })) {
  if ('error' in result) throw result.error
  // After 1,000 orders, all code has been compiled once.
  if (++placed !== 1000 && placed % (REQUESTS / 20) !== 0) continue
  // Collect repeatedly, because weakly held objects are freed one collection later.
  for (let times = 0; times < 3; times++) gc()
  const { heapUsed, rss } = process.memoryUsage()
  const count = placed.toLocaleString('en')
  const perSecond = Math.round((placed * 1000) / (performance.now() - begin)).toLocaleString('en')
  console.log(`| ${count} | ${megabytes(heapUsed)} | ${megabytes(rss)} | ${perSecond} |`)
}
await client.close()
rmSync(directory, { recursive: true })
