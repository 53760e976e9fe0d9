/**
 * Memory of `createMany` over a million requests.
 *
 *     npm run bench stores-memory            1,000,000 requests
 *     npm run bench stores-memory -- 100000
 *
 * What would grow by its nature is kept small: the sandbox, which remembers every order, is replaced by a new one after every
 * 10,000 requests, and the store forgets a record when it is closed. What is left is the client. The heap is limited to 96 MB,
 * which a program that kept anything of each order would soon exceed.
 */
import { positiveInteger, readArguments } from '../../scripts/arguments.ts'
import { CustomerOrderingClient } from '../../src/client.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/index.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import type { StoredRow } from '../../src/stores/store.ts'

const REQUESTS = readArguments(
  {
    usage: `npm run bench stores-memory -- [REQUESTS]
  places that many orders (default 1,000,000)`,
    positionals: 1,
    options: {},
  },
  ({ positionals: [requests = '1_000_000'] }) => positiveInteger('REQUESTS', requests),
)
const LIFETIME = 10_000

/** Forgets what is settled. */
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

let served = 0
let sandbox: Sandbox = createSandbox({ balance: 1e12 })
const { baseUrl, apiKey } = sandbox
const client = new CustomerOrderingClient({
  baseUrl,
  apiKey,
  account: 'bench',
  store: new OpenRecords(),
  fetch: async (input, init) => {
    // As an answer over a network would: without it the program never comes to the end of a job, and until then the engine keeps
    // whatever a WeakRef was made of.
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
  // After 1,000 everything has been compiled once.
  if (++placed !== 1000 && placed % (REQUESTS / 20) !== 0) continue
  // More than once, because what is only held weakly goes a collection later.
  for (let times = 0; times < 3; times++) gc()
  const { heapUsed, rss } = process.memoryUsage()
  const count = placed.toLocaleString('en')
  const perSecond = Math.round((placed * 1000) / (performance.now() - begin)).toLocaleString('en')
  console.log(`| ${count} | ${megabytes(heapUsed)} | ${megabytes(rss)} | ${perSecond} |`)
}
await client.close()
