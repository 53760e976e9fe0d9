/**
 * A crash in mid-order: `npm run example:crash-recovery`.
 *
 * A process places orders and is killed while two of them are under way: the sandbox has charged one and is silent, and
 * has not even looked at the other. Another process starts over the same store, recovers, and places what is left.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'

const invoices = ['invoice-1', 'invoice-2', 'invoice-3', 'invoice-4', 'invoice-5', 'invoice-6']

const [, program, database] = process.argv
if (database === undefined) await supervise()
else await work(database)

/** The worker: recover first, then place what is asked for. This is all that a real program needs. */
async function work(path: string): Promise<void> {
  const client = new CustomerOrderingClient({ account: 'crash-recovery', store: new SqliteStore({ path }) })

  for await (const { outcome, record, order } of client.orders.recover({ takeOver: true }))
    console.log(`  recovered ${record.externalOrderId}: ${outcome} ${order?.id ?? ''}`)

  await Promise.all(
    invoices.map(async (externalOrderId) => {
      const order = await client.orders.create({
        serviceId: 'svc_standard',
        target: '@ada',
        quantity: 1,
        metadata: { externalOrderId },
      })
      console.log(`  placed ${externalOrderId}: ${order.id}`)
    }),
  )
  await client.close()
}

/** Starts the worker, kills it in mid-order, starts another, and looks at what the service charged. */
async function supervise(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'crash-recovery-'))
  const path = join(folder, 'orders.db')
  const client = new CustomerOrderingClient()
  const before = await client.balance.retrieve()
  try {
    console.log('First process')
    const first = start(path)
    let placed = 0
    for await (const line of createInterface(first.stdout)) {
      console.log(line)
      if (++placed < 4) continue
      // Two answers are still missing, and no clean-up of any kind will run.
      first.kill('SIGKILL')
      console.log('  killed')
    }

    console.log('Second process, over the same store')
    const second = start(path)
    second.stdout.pipe(process.stdout)
    const [code] = await once(second, 'close')
    assert.equal(code, 0)

    console.log('What the service has')
    const charges = new Map<unknown, number>()
    let spent = 0
    for await (const order of client.orders.list()) {
      const { externalOrderId } = order['metadata'] as { externalOrderId?: unknown }
      charges.set(externalOrderId, (charges.get(externalOrderId) ?? 0) + 1)
      spent += order.amount
    }
    for (const invoice of invoices) console.log(`  ${invoice}: ${charges.get(invoice)} order`)
    const after = await client.balance.retrieve()
    console.log(
      `  ${before.amount - after.amount} minor units left the wallet, ${spent} is what the orders cost`,
    )

    for (const invoice of invoices) assert.equal(charges.get(invoice), 1, `${invoice} was not charged once`)
    assert.equal(before.amount - after.amount, spent)
    console.log('Every order was charged once.')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function start(path: string) {
  const flags = ['--disable-warning=ExperimentalWarning']
  const command = [...flags, program ?? fileURLToPath(import.meta.url), path]
  return spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] })
}
