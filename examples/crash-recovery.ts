/**
 * A process is killed while it places orders, and the next process finishes its work. `npm run
 * example crash-recovery` runs this against a sandbox that responds to some orders slowly: they are
 * charged, but the killed process never receives the response.
 *
 * Recovery needs a store that outlives the process, your own reference for each order, and
 * `recover()` at startup.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type CreateOrderRequest, CustomerOrderingClient } from 'customer-ordering-sdk'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'

const ORDERS = Array.from({ length: 10 }, (_, index) => `invoice-${2001 + index}`)
const PRICE = 250

function* requests(): Generator<CreateOrderRequest> {
  for (const externalOrderId of ORDERS)
    yield { serviceId: 'svc_standard', target: '@ada', quantity: 1, metadata: { externalOrderId } }
}

const connect = (path: string): CustomerOrderingClient =>
  new CustomerOrderingClient({
    account: 'example.com/shop-eu',
    store: new SqliteStore({ path }),
  })

/**
 * Works as a shop's worker does: first recovers the orders that an earlier run left open, then
 * places all orders.
 */
async function work(path: string): Promise<void> {
  const client = connect(path)
  for await (const { outcome, record, order } of client.orders.recover({ takeOver: true }))
    console.log(`  recovered ${record.externalOrderId}: ${outcome} ${order?.id ?? ''}`)
  for await (const result of client.orders.createMany(requests(), { concurrency: 4 })) {
    const reference = result.request.metadata?.externalOrderId
    if (!result.ok) {
      console.log(`  ${reference}: ${result.error.message}`)
      process.exitCode = 1
    } else {
      const known = result.replayed === true ? ', placed before' : ''
      console.log(`  ${reference} is order ${result.order.id}${known}`)
    }
  }
  await client.close()
}

/**
 * Runs a worker until it ends, or until `killed` resolves to true and it is killed. Returns its
 * exit code or signal.
 */
async function run(path: string, killed?: () => Promise<boolean>): Promise<number | string | null> {
  const worker = spawn(
    process.execPath,
    [...process.execArgv, fileURLToPath(import.meta.url), 'work', path],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  )
  const ended = once(worker, 'exit') as Promise<[number | null, string | null]>
  while (killed !== undefined && worker.exitCode === null)
    if (await killed()) {
      worker.kill('SIGKILL')
      break
    }
  const [code, signal] = await ended
  return signal ?? code
}

/** Simulates the machine, which runs one worker after the other. */
async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'crash-recovery-'))
  const path = join(directory, 'orders.db')
  try {
    const watching = connect(path)
    const before = (await watching.balance.retrieve()).amount
    const charged = async (): Promise<number> => (before - (await watching.balance.retrieve()).amount) / PRICE

    console.log('A worker begins with ten orders and is killed:')
    assert.equal(await run(path, async () => (await charged()) >= 5), 'SIGKILL')
    const open: unknown[] = []
    for await (const { externalOrderId } of watching.orders.unresolved()) open.push(externalOrderId)
    console.log(
      `  ${await charged()} orders are charged, and the outcome of ${open.length} orders is unknown`,
    )
    assert.ok(open.length > 0)

    console.log('The next worker starts:')
    assert.equal(await run(path), 0)

    console.log('The orders, as the service lists them:')
    const references: unknown[] = []
    for await (const { kind, record, order } of watching.orders.reconcile()) {
      console.log(`  ${record?.externalOrderId}: order ${order?.id}, ${order?.amount} minor units, ${kind}`)
      assert.equal(kind, 'matched')
      references.push(record?.externalOrderId)
    }
    console.log(`${references.length} orders, ${await charged()} charges: each was charged once`)
    assert.deepEqual(references.sort(), ORDERS)
    assert.equal(await charged(), ORDERS.length)
    await watching.close()
  } finally {
    await rm(directory, { recursive: true })
  }
}

const [role, path = ''] = process.argv.slice(2)
await (role === 'work' ? work(path) : main())
