/**
 * The process: opens the store, settles what the last one left, serves, and ends in good order.
 *
 * PORT, ORDERS_DB, CUSTOMER_ORDERING_BASE_URL and CUSTOMER_ORDERING_API_KEY come from the environment.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { CustomerOrderingClient, isCustomerOrderingError, type RecoverOptions } from 'customer-ordering-sdk'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'
import { createApp, type Log } from './app.ts'

const RECOVERY_INTERVAL = 60_000

const log: Log = (line) => console.log(JSON.stringify(line))

const client = new CustomerOrderingClient({
  account: 'shop-eu',
  store: new SqliteStore({ path: process.env['ORDERS_DB'] ?? 'orders.db' }),
  // A person is waiting: respond within ten seconds, and leave to recovery what is open then.
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

/** What the process before this one left open, before anything new is sold; from then on, once a minute. */
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

/** No new requests; those under way get their responses; then the store is closed, and nothing is left to run. */
process.once('SIGTERM', () => {
  stopping.abort()
  server.close(async () => {
    await recovery
    await client.close()
    log({ stopped: true })
  })
})
