/**
 * Places the orders of a CSV file: `node examples/bulk-orders.ts place orders.csv orders.db`.
 * Ctrl-C stops it cleanly: it finishes the orders in progress and begins no more. Run it again to
 * place the rest: it never buys an order twice.
 *
 * `npm run example bulk-orders` interrupts it and runs it again, against a sandbox that loses
 * responses.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type CreateOrderRequest, CustomerOrderingClient } from 'customer-ordering-sdk'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'

const connect = (path: string): CustomerOrderingClient =>
  new CustomerOrderingClient({ account: 'example.com/shop-eu', store: new SqliteStore({ path }) })

/**
 * Reads the orders of a file one by one. For plain CSV only: if values contain quotes or commas,
 * use a parser.
 */
async function* ordersOf(file: string): AsyncGenerator<CreateOrderRequest> {
  let header = true
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const [reference = '', serviceId = '', target = '', quantity = ''] = line.split(',')
    // The reference makes a row the same order, however often you run the file.
    if (!header && line !== '')
      yield { serviceId, target, quantity: Number(quantity), metadata: { externalOrderId: reference } }
    header = false
  }
}

async function place(file: string, path: string): Promise<void> {
  const client = connect(path)
  let stopping = false
  // Handle only the first Ctrl-C. A second one ends the process immediately, which is safe: the
  // next run starts with recover().
  process.once('SIGINT', () => {
    stopping = true
    console.log('\nstopping: finishing the orders in progress')
  })

  for await (const { outcome, record } of client.orders.recover({ takeOver: true }))
    console.log(`${record.externalOrderId}, left by an earlier run: ${outcome}`)

  let total = 0
  for await (const _order of ordersOf(file)) total++
  async function* untilStopped(): AsyncGenerator<CreateOrderRequest> {
    for await (const order of ordersOf(file)) {
      if (stopping) return
      yield order
    }
  }

  let completed = 0
  let bought = 0
  const failures: string[] = []
  for await (const result of client.orders.createMany(untilStopped(), { concurrency: 4 })) {
    completed++
    if (!result.ok) {
      const { error, request, charged } = result
      failures.push(`${request.metadata?.externalOrderId}: ${error.code}, charged: ${charged}`)
    } else if (result.replayed !== true) bought++
    show(completed, total)
  }
  console.log(
    `\n${completed} of ${total} rows: ${bought} bought now, ${completed - bought - failures.length} before`,
  )
  for (const failure of failures) console.log(`  ${failure}`)
  await client.close()
  process.exitCode = stopping ? 130 : failures.length > 0 ? 1 : 0
}

/** Redraws a progress bar, or prints a line now and then if the output is not a terminal. */
function show(completed: number, total: number): void {
  const width = 40
  if (process.stdout.isTTY) {
    const filled = Math.round((width * completed) / total)
    process.stdout.write(`\r[${'#'.repeat(filled)}${'.'.repeat(width - filled)}] ${completed}/${total}`)
  } else if (completed % 10 === 0) console.log(`${completed}/${total}`)
}

/** Runs the program, sends Ctrl-C when `time` resolves, and returns the exit code. */
async function run(file: string, path: string, time?: () => Promise<boolean>): Promise<number | null> {
  const script = fileURLToPath(import.meta.url)
  const program = spawn(process.execPath, [...process.execArgv, script, 'place', file, path], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const ended = once(program, 'exit') as Promise<[number | null]>
  while (time !== undefined && program.exitCode === null)
    if (await time()) {
      program.kill('SIGINT')
      break
    }
  return (await ended)[0]
}

/** Simulates the person. */
async function main(): Promise<void> {
  const file = fileURLToPath(new URL('bulk-orders.csv', import.meta.url))
  const directory = await mkdtemp(join(tmpdir(), 'bulk-orders-'))
  const path = join(directory, 'orders.db')
  const watching = connect(path)
  try {
    const { amount: before } = await watching.balance.retrieve()
    const spent = async (): Promise<number> => before - (await watching.balance.retrieve()).amount

    console.log('The first run, interrupted:')
    assert.equal(await run(file, path, async () => (await spent()) > 10_000), 130)
    const first = await spent()
    for await (const { externalOrderId } of watching.orders.unresolved())
      assert.fail(`${externalOrderId} was left behind`)

    console.log('\nThe second run:')
    // One row orders a sold-out service, which does not stop the others.
    assert.equal(await run(file, path), 1)

    console.log('\nThe third run, which must buy nothing:')
    const second = await spent()
    assert.ok(second > first)
    assert.equal(await run(file, path), 1)

    let bought = 0
    let worth = 0
    for await (const { kind, order } of watching.orders.reconcile()) {
      assert.equal(kind, 'matched')
      bought++
      worth += order?.amount ?? 0
    }
    console.log(`\n${bought} orders are worth ${worth} minor units, and ${await spent()} were spent`)
    assert.equal(await spent(), worth)
    assert.equal(await spent(), second)
  } finally {
    await watching.close()
    await rm(directory, { recursive: true })
  }
}

const [role, file = '', path = ''] = process.argv.slice(2)
await (role === 'place' ? place(file, path) : main())
