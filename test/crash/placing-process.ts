/**
 * A process that places orders and may be killed at any moment. It first recovers what an earlier run left, then asks
 * for every order that no run has a known ending for. Each thing it is told goes to the log before anything else happens,
 * written synchronously, so that a kill cannot take back what the caller has heard.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { CustomerOrderingClient, isCustomerOrderingError } from '../../src/index.ts'
import { SqliteStore } from '../../src/stores/sqlite.ts'

/** What the parent passes as JSON in the first argument. */
export interface Placing {
  readonly baseUrl: string
  readonly apiKey: string
  readonly database: string
  readonly log: string
  readonly orders: readonly { readonly reference: string; readonly serviceId: string }[]
  readonly concurrency: number
}

/** One line of the log: what the caller was told of an order. */
export interface Told {
  readonly reference: string
  readonly by: 'create' | 'recover'
  readonly charged: 'no' | 'yes' | 'unknown'
  readonly orderId?: string
  readonly outcome: string
}

const { baseUrl, apiKey, database, log, orders, concurrency } = JSON.parse(process.argv[2] ?? '') as Placing

const tell = (told: Told): void => appendFileSync(log, `${JSON.stringify(told)}\n`)

const known = new Set<string>()
if (existsSync(log)) {
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    if (line === '') continue
    const told = JSON.parse(line) as Told
    if (told.charged !== 'unknown') known.add(told.reference)
  }
}

await using client = new CustomerOrderingClient({
  baseUrl,
  apiKey,
  account: 'crash',
  store: new SqliteStore({ path: database }),
  timeout: 2_000,
  totalTimeout: 10_000,
})

for await (const { outcome, record, order } of client.orders.recover({ takeOver: true })) {
  const reference = record.externalOrderId ?? ''
  const charged = outcome === 'created' ? 'yes' : outcome === 'rejected' ? 'no' : 'unknown'
  const id = order?.id ?? record.order?.id
  tell({ reference, by: 'recover', charged, outcome, ...(id === undefined ? {} : { orderId: id }) })
  if (charged !== 'unknown') known.add(reference)
}

const waiting = orders.filter(({ reference }) => !known.has(reference))
await Promise.all(
  Array.from({ length: concurrency }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { reference, serviceId } = next
      try {
        const request = { serviceId, target: '@crash', quantity: 1, metadata: { externalOrderId: reference } }
        const order = await client.orders.create(request)
        tell({ reference, by: 'create', charged: 'yes', outcome: 'created', orderId: order.id })
      } catch (error) {
        if (!isCustomerOrderingError(error)) throw error
        tell({ reference, by: 'create', charged: error.charged, outcome: error.code })
      }
    }
  }),
)
