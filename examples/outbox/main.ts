/**
 * Checks the worker: kills it 30 times while it works, each time replaced by a worker of the other
 * kind (pg, Drizzle), and compares the table with the service's charges. `npm run example outbox`
 * starts PostgreSQL, and a sandbox that is slow, loses responses and refuses orders. KILLS=5 kills
 * five times.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { purchasesWithPg } from './purchases.ts'
import { purchasesWithDrizzle } from './purchases-drizzle.ts'

const KILLS = Number(process.env['KILLS'] ?? 30)
const KINDS = ['pg', 'drizzle'] as const
const TIME_LIMIT = 600_000

interface Charge {
  readonly orderId: string
  readonly externalOrderId: string
}

/** Only the sandbox shows its charges; with the real service, use `client.orders.reconcile()`. */
async function charges(): Promise<readonly Charge[]> {
  const response = await fetch(`${process.env['CUSTOMER_ORDERING_BASE_URL']}/__sandbox/ledger`)
  return (await response.json()) as Charge[]
}

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
await pool.query(await readFile(new URL('schema.sql', import.meta.url), 'utf8'))

const purchases = { pg: purchasesWithPg(pool), drizzle: purchasesWithDrizzle(pool) }
const total = 20 * (KILLS + 1)
for (let number = 1; number <= total; number++)
  await purchases[number % 2 === 0 ? 'pg' : 'drizzle'].add({
    id: `purchase-${number}`,
    // The service refuses every tenth row.
    serviceId: number % 10 === 0 ? 'svc_sold_out' : 'svc_standard',
    target: '@ada',
    quantity: 1,
  })

function startWorker(number: number): ChildProcess {
  const script = fileURLToPath(new URL('worker.ts', import.meta.url))
  const parameters = [...process.execArgv, script, KINDS[number % 2] ?? 'pg']
  return spawn(process.execPath, parameters, {
    env: { ...process.env, RETRY_SECONDS: '1' },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}

const begin = Date.now()
/** Waits until the worker has done something. Fails if it ends first, or takes too long. */
async function until(worker: ChildProcess, done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) {
    assert.equal(worker.exitCode, null, 'a worker ended by itself')
    assert.ok(Date.now() - begin < TIME_LIMIT, 'the rows had no outcome in time')
    await pause(20)
  }
}

for (let kill = 0; kill < KILLS; kill++) {
  const worker = startWorker(kill)
  const ended = once(worker, 'exit')
  const before = (await charges()).length
  await until(worker, async () => (await charges()).length >= before + 5 + (kill % 9))
  worker.kill('SIGKILL')
  await ended
}
const last = startWorker(KILLS)
const lastEnded = once(last, 'exit')
// A worker was killed while the service refused a row. The next worker hears the refusal, which
// does not prove that the first request bought nothing: only a person can settle this row.
const unsettled = `SELECT FROM purchases WHERE state = 'waiting'
  OR state = 'doubt' AND service_id <> 'svc_sold_out' LIMIT 1`
await until(last, async () => (await pool.query(unsettled)).rowCount === 0)
last.kill('SIGTERM')
assert.deepEqual(await lastEnded, [0, null])

const charged = await charges()
const bought = charged.map(({ externalOrderId }) => externalOrderId)
// The person asks the service's support, which reads the ledger, and then gives up these rows.
const { rowCount: settled } = await pool.query(
  "UPDATE purchases SET state = 'refused' WHERE state = 'doubt' AND NOT id = ANY ($1)",
  [bought],
)
const { rows } = await pool.query<{ id: string; order_id: string }>(
  "SELECT id, order_id FROM purchases WHERE state = 'ordered'",
)
console.log(
  `${total} rows, ${KILLS} workers killed: ${rows.length} ordered, ${charged.length} charges, ` +
    `${total - rows.length} refused (${settled} by a person)`,
)
assert.equal(rows.length, total * 0.9)
const pairs = (from: readonly (readonly [string, string])[]): string[] =>
  from.map((pair) => pair.join()).sort()
assert.deepEqual(
  pairs(charged.map(({ externalOrderId, orderId }) => [externalOrderId, orderId])),
  pairs(rows.map(({ id, order_id }) => [id, order_id])),
)
await pool.end()
