// A shop's process with an outbox. `buy REFERENCE` begins a transaction, writes an order and a
// checkout, reports it, and waits to be killed before the commit. `recover` sends the committed
// orders and reports each outcome.
import { CustomerOrderingClient } from '../../../../src/client.ts'
import { PostgresStore } from '../../../../src/stores/postgres.ts'
import { makePool } from '../../support/postgres-clients.ts'

const [url = '', baseUrl = '', apiKey = '', task = '', reference = ''] = process.argv.slice(2)
const pool = makePool(url)
const store = new PostgresStore({ client: pool })
const client = new CustomerOrderingClient({ baseUrl, apiKey, account: 'shop-eu', store })

if (task === 'buy') {
  await store.migrate()
  const connection = await pool.connect()
  await connection.query('BEGIN')
  await connection.query('INSERT INTO checkouts VALUES ($1)', [reference])
  const metadata = { externalOrderId: reference }
  const request = { serviceId: 'svc_standard', target: '@ada', quantity: 2, metadata }
  await client.orders.enqueue(request, { within: store.within(connection) })
  process.send?.('written')
} else {
  for await (const { outcome, record } of client.orders.recover({ takeOver: task === 'take over' }))
    process.send?.(`${outcome} ${record.externalOrderId}`)
  await client.close()
  await pool.end()
  process.disconnect?.()
}
