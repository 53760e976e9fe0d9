/**
 * A worker: takes jobs from the queue and places their orders. Run any number of workers, on any
 * number of machines.
 *
 * BullMQ repeats a job if its worker dies or its attempt fails. That is safe, because the job's id
 * is the order's reference: the next worker requests the same order.
 */
import { type Job, UnrecoverableError, Worker } from 'bullmq'
import { CustomerOrderingClient, isCustomerOrderingError } from 'customer-ordering-sdk'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import pg from 'pg'
import { type OrderJob, QUEUE, redis } from './queue.ts'

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 10 })
pool.on('error', (error) => console.error(`database: ${error.message}`))

const client = new CustomerOrderingClient({
  account: 'example.com/shop-eu',
  store: new PostgresStore({ client: pool }),
  // Shorter than the default of two minutes: other workers must wait this long before they take
  // over the order of a dead worker.
  totalTimeout: 4_000,
  maxRetries: 1,
})

async function place(job: Job<OrderJob, string>): Promise<string> {
  try {
    const metadata = { externalOrderId: job.id ?? '' }
    const order = await client.orders.create({ ...job.data, metadata })
    return order.id
  } catch (error) {
    const refused = isCustomerOrderingError(error) && error.charged === 'no' && REFUSED.has(error.status ?? 0)
    // The service refused the order, so a retry does not help. Retry every other error: the wallet
    // may have been charged.
    if (refused) throw new UnrecoverableError(error.message)
    throw error
  }
}

const REFUSED: ReadonlySet<number> = new Set([400, 402, 404, 422])

const worker = new Worker<OrderJob, string>(QUEUE, place, {
  connection: redis,
  concurrency: 4,
  // How soon another worker takes over the jobs of a dead worker, and how often that may happen to
  // one job.
  lockDuration: 2_000,
  stalledInterval: 1_000,
  maxStalledCount: 100,
})
worker.on('error', (error) => console.error(`queue: ${error.message}`))

/**
 * Settles orders whose jobs will not run again, because they were removed or have no attempts left.
 */
async function recover(): Promise<void> {
  for await (const { outcome, record, reason } of client.orders.recover())
    if (outcome === 'needs_attention') console.error(`${record.externalOrderId} needs a person: ${reason}`)
}
const recovered = recover().catch((error) => console.error(`recovery: ${error}`))

/** Finishes the jobs in progress, then ends. */
async function stop(): Promise<void> {
  await Promise.all([worker.close(), recovered])
  await client.close()
  await pool.end()
}
process.once('SIGTERM', () => void stop())
