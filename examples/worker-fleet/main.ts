/**
 * Simulates a fleet of four workers. Kills workers at random while they work, replaces each, and
 * checks the service's charges at the end. `npm run example worker-fleet` starts Redis, PostgreSQL,
 * and a sandbox that is slow and loses responses. A seed, such as SEED=5, selects another sequence
 * of kills.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Queue } from 'bullmq'
import { enqueue } from './enqueue.ts'
import { type OrderJob, QUEUE, redis } from './queue.ts'

const WORKERS = 4
const KILLS = 10
const PRICE = 250
const TIME_LIMIT = 180_000

const orders = new Map<string, OrderJob>()
for (let number = 1; number <= 120; number++)
  orders.set(`invoice-${3000 + number}`, { serviceId: 'svc_standard', target: '@ada', quantity: 1 })

const seed = Number(process.env['SEED'] ?? 1)
let state = seed
/** Returns the seed's next random number, from 0 to 1. */
function random(): number {
  state = (state * 1_103_515_245 + 12_345) % 2 ** 31
  return state / 2 ** 31
}

/** The running workers, by number. */
const workers = new Map<number, ChildProcess>()
function startWorker(number: number): void {
  const script = fileURLToPath(new URL('worker.ts', import.meta.url))
  const worker = spawn(process.execPath, [...process.execArgv, script], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  workers.set(number, worker)
}

async function endWorker(number: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const worker = workers.get(number)
  assert.equal(worker?.exitCode, null, `worker ${number} ended before it was told to`)
  const ended = once(worker, 'exit')
  worker.kill(signal)
  const [code] = await ended
  assert.ok(code === 0 || code === null, `worker ${number} failed during shutdown`)
}

const queue = new Queue<OrderJob, string>(QUEUE, { connection: redis })
const done = async (): Promise<number> => (await queue.getJobCounts('completed'))['completed'] ?? 0

await enqueue(orders)
// Add the jobs again, as a program does that does not know whether it has added them. This adds
// nothing.
await enqueue(orders)
console.log(`${orders.size} jobs, ${WORKERS} workers, seed ${seed}`)
for (let number = 1; number <= WORKERS; number++) startWorker(number)

const begin = Date.now()
let kills = 0
/** The next worker is killed when this number of jobs is done. */
let next = 5
for (let count = 0; count < orders.size; count = await done()) {
  assert.ok(Date.now() - begin < TIME_LIMIT, 'the jobs were not done in time')
  await pause(50)
  if (count < next || kills >= KILLS) continue
  const number = 1 + Math.floor(random() * WORKERS)
  await endWorker(number, 'SIGKILL')
  startWorker(number)
  kills++
  next = count + 4 + Math.floor(random() * 8)
  console.log(`  ${count} jobs done; worker ${number} killed and started again`)
}
await Promise.all([...workers.keys()].map((number) => endWorker(number, 'SIGTERM')))

/**
 * The service's charges. Only the sandbox reveals them; with the real service, use
 * `client.orders.reconcile()`.
 */
const response = await fetch(`${process.env['CUSTOMER_ORDERING_BASE_URL']}/__sandbox/ledger`)
const ledger = (await response.json()) as { orderId: string; externalOrderId: string; amount: number }[]
const ids = new Map(ledger.map(({ externalOrderId, orderId }) => [externalOrderId, orderId]))
for (const reference of orders.keys()) {
  const job = await queue.getJob(reference)
  assert.equal(
    job?.returnvalue,
    ids.get(reference),
    `the job of ${reference} returned another order than the service has`,
  )
}
console.log(
  `${await done()} jobs done, ${kills} workers killed: ${ledger.length} charges, one for each order`,
)
assert.equal(ledger.length, orders.size)
assert.ok(ledger.every(({ amount }) => amount === PRICE))
await queue.close()
