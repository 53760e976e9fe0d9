/**
 * Places orders over MemoryStore, recovers open ones, and reconciles all of them with the service's
 * list, in a process with little memory. `argv[2]` is the number of orders.
 */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { table } from './compare.ts'
import { instantService, KEY, orderBody } from './orders.ts'

const ORDERS = Number(process.argv[2] ?? 100_000)
const OPEN = 10_000
const { gc } = globalThis
if (gc === undefined) throw new Error('run it by `npm run bench -- memory`')

let broken = true
const options = { baseUrl: 'https://api.example.com', apiKey: KEY, account: 'bench', maxRetries: 0 }
const client = new CustomerOrderingClient({
  ...options,
  logLevel: 'off',
  fetch: async (input, init) => {
    if (broken) throw new TypeError('the network is down')
    return await instantService(input, init)
  },
})

async function heap(): Promise<number> {
  for (let times = 0; times < 4; times++) {
    gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return process.memoryUsage().heapUsed
}

async function timed(run: () => Promise<number>): Promise<string> {
  const before = performance.now()
  const count = await run()
  return Math.round((count / (performance.now() - before)) * 1000).toLocaleString('en')
}

const bodies = function* (count: number) {
  for (let left = count; left > 0; left--) yield orderBody()
}
const failed = await client.orders.createMany(bodies(OPEN), { concurrency: 64 })
if (failed.failed !== OPEN) throw new Error(`${failed.failed} orders failed`)
broken = false
const recovering = await timed(async () => {
  const { created } = await client.orders.recover()
  if (created !== OPEN) throw new Error(`${created} orders recovered`)
  return created
})
const before = await heap()
const placing = await timed(async () => {
  const { created } = await client.orders.createMany(bodies(ORDERS), { concurrency: 16 })
  if (created !== ORDERS) throw new Error(`${created} orders created`)
  return created
})
const bytes = Math.round(((await heap()) - before) / ORDERS)
const records = await heap()
let peak = 0
const reconciling = await timed(async () => {
  let matched = 0
  for await (const { kind } of client.orders.reconcile()) {
    if (kind !== 'matched') throw new Error(kind)
    if (++matched % 20_000 === 0) peak = Math.max(peak, await heap())
  }
  return matched
})
process.stdout.write(`One process with a heap of 256 MB, \`MemoryStore\`, and a service without a network.

${table(
  ['', 'a second', 'memory'],
  [
    [`\`recover()\` of ${OPEN.toLocaleString('en')} open orders, 8 at a time`, recovering, ''],
    [
      `\`createMany()\` of ${ORDERS.toLocaleString('en')} orders, 16 at a time`,
      placing,
      `${bytes} bytes an order`,
    ],
    [
      '`reconcile()` of these records with the service',
      reconciling,
      `${Math.round((peak - records) / (ORDERS + OPEN))} bytes a record`,
    ],
  ],
)}`)
process.exit()
