/**
 * The process: opens the store, settles the orders that the last process left open, serves
 * requests, and shuts down cleanly.
 *
 * The environment variables PORT, ORDERS_DB, CUSTOMER_ORDERING_BASE_URL and
 * CUSTOMER_ORDERING_API_KEY configure it.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { CustomerOrderingClient, isCustomerOrderingError, type RecoverOptions } from 'customer-ordering-sdk'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'
import { createApp, type Log } from './app.ts'

const RECOVERY_INTERVAL = 60_000

const log: Log = (line) => console.log(JSON.stringify(line))

const client = new CustomerOrderingClient({
  account: 'example.com/shop-eu',
  store: new SqliteStore({ path: process.env['ORDERS_DB'] ?? 'orders.db' }),
  // A person is waiting: respond within ten seconds, and let recovery finish orders that are still
  // open.
  totalTimeout: 10_000,
  maxRetries: 1,
})

const stopping = new AbortController()

async function recover(options: RecoverOptions): Promise<void> {
  try {
    for await (const { outcome, record, reason } of client.orders.recover(options))
      log({ recovered: record.externalOrderId, outcome, reason })
  } catch (error) {
    if (stopping.signal.aborted) return
    log({ recovery: 'failed', code: isCustomerOrderingError(error) ? error.code : String(error) })
  }
}

/**
 * Recover the orders that the last process left open, before selling anything new. Then recover
 * once a minute.
 */
await recover({ takeOver: true })
const recovery = (async () => {
  const { signal } = stopping
  while (!signal.aborted) {
    await pause(RECOVERY_INTERVAL, undefined, { signal }).catch(() => {})
    if (!signal.aborted) await recover({ signal })
  }
})()

const server = serve(
  { fetch: createApp(client, log).fetch, port: Number(process.env['PORT'] ?? 3000), hostname: '127.0.0.1' },
  ({ port }) => log({ listening: port }),
)

/**
 * Accept no new requests, finish those in progress, then close the store. The process then ends.
 */
process.once('SIGTERM', () => {
  stopping.abort()
  server.close(async () => {
    await recovery
    await client.close()
    log({ stopped: true })
  })
})
