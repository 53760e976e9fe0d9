/**
 * The worker: places the order of every row without an outcome, and writes the outcome into the
 * row. You may kill it at any point and start it again. `node worker.ts` uses pg, and `node
 * worker.ts drizzle` uses Drizzle.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type CreateManyResult, CustomerOrderingClient } from 'customer-ordering-sdk'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import pg from 'pg'
import { type Outcome, type Purchase, purchasesWithPg } from './purchases.ts'
import { purchasesWithDrizzle } from './purchases-drizzle.ts'

/** How soon a row without an outcome is tried again. */
const SECONDS = Number(process.env['RETRY_SECONDS'] ?? 60)

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
pool.on('error', (error) => console.error(`database: ${error.message}`))

const purchases = process.argv[2] === 'drizzle' ? purchasesWithDrizzle(pool) : purchasesWithPg(pool)
const client = new CustomerOrderingClient({
  account: 'example.com/shop-eu',
  store: new PostgresStore({ client: pool }),
})

let stopping = false
process.once('SIGTERM', () => {
  stopping = true
})

// Settles what a killed worker left open. If you run several workers, leave out `takeOver`.
await client.orders.recover({ takeOver: true })
let lastRecovery = Date.now()
while (!stopping) {
  const rows = await purchases.take(SECONDS)
  for await (const result of client.orders.createMany(rows.map(toRequest)))
    await purchases.write(outcomeOf(result))
  if (Date.now() - lastRecovery > 60_000) {
    // Looks up the orders that are too old to be sent again.
    const { needsAttention } = await client.orders.recover()
    for (const { record, reason } of needsAttention)
      console.error(`${record.externalOrderId} needs a person: ${reason}`)
    lastRecovery = Date.now()
  }
  if (rows.length === 0) await pause(Math.min(1000, SECONDS * 1000))
}
await client.close()
await pool.end()

function toRequest({ id, serviceId, target, quantity }: Purchase) {
  return { serviceId, target, quantity, metadata: { externalOrderId: id } }
}

function outcomeOf(result: CreateManyResult): Outcome {
  const id = result.request.metadata?.externalOrderId ?? ''
  if (result.ok) return { id, state: 'ordered', orderId: result.order.id }
  const { charged, code: reason, orderId } = result.error
  // The row's content has changed since it was sent: a person compares it with the order.
  if (reason === 'idempotency_conflict') return { id, state: 'doubt', orderId, reason }
  if (charged === 'yes' && orderId !== undefined) return { id, state: 'ordered', orderId, reason }
  // Also an order that was charged and cannot be read yet.
  if (charged !== 'no') return { id, state: 'doubt', reason }
  switch (reason) {
    // The service would refuse the same row again.
    case 'invalid_request':
    case 'bad_request':
    case 'not_found':
    case 'order_not_accepted':
      return { id, state: 'refused', reason }
    // An empty wallet, a rate limit or a wrong API key: try again.
    default:
      return { id, state: 'waiting', reason }
  }
}
