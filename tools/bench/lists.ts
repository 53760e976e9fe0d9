/** Pages per second of 2,000 orders at 50 a page, from a service that responds after 20 ms. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { median, shuffled, table } from './compare.ts'
import { KEY } from './orders.ts'
import { startService } from './service.ts'

const [PAGES, ORDERS, ROUNDS] = [40, 2_000, 8]
const service = await startService(20)
const client = new CustomerOrderingClient({ baseUrl: service.url, apiKey: KEY })

async function* plain(): AsyncGenerator<unknown, void, undefined> {
  const headers = { authorization: `Bearer ${KEY}` }
  for (let offset = 0; offset < ORDERS; offset += 50) {
    const response = await fetch(`${service.url}/v1/orders?limit=50&offset=${offset}`, { headers })
    const { data } = await response.json()
    yield* data
  }
}

const walks = new Map<string, () => AsyncIterable<unknown>>([
  ['a loop over `fetch`', plain],
  ...[0, 4, 8].map(
    (prefetch) =>
      [`this package, prefetch: ${prefetch}`, () => client.orders.list({ limit: 50 }, { prefetch })] as const,
  ),
])
const rates = new Map([...walks.keys()].map((name) => [name, [] as number[]]))
// Discards the first round, which includes loading and connecting.
for (let round = -1; round < ROUNDS; round++)
  for (const [name, walk] of shuffled([...walks])) {
    const before = performance.now()
    let items = 0
    for await (const _ of walk()) items++
    if (items !== ORDERS) throw new Error(`${items} items by ${name}`)
    if (round >= 0) rates.get(name)?.push((PAGES / (performance.now() - before)) * 1000)
  }
service.close()
process.stdout.write(`2,000 orders at 50 a page, from a service that responds after 20 ms.

${table(
  ['', 'pages a second'],
  [...rates].map(([name, found]) => [name, median(found).toFixed(0)]),
)}`)
process.exit()
