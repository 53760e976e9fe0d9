/** 2,000 orders, 50 a page, at 20 ms latency. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { startService } from './service.ts'
import { type Spread, shuffled, spread } from './statistics.ts'

/** Pages per second by pages in flight; 0 is one at a time, as every peer does it. */
export async function measurePaging(rounds: number): Promise<ReadonlyMap<number, Spread>> {
  const service = await startService(20, 2_000)
  const client = new CustomerOrderingClient({ baseUrl: service.url, apiKey: 'sk_test_benchmark' })
  const rates = new Map([0, 1, 4, 8].map((prefetch) => [prefetch, [] as number[]]))
  // The first walk pays for loading and connecting.
  for (let round = -1; round < rounds; round++) {
    for (const [prefetch, found] of shuffled([...rates])) {
      const before = performance.now()
      let items = 0
      for await (const _ of client.orders.list({ limit: 50 }, { prefetch })) items++
      if (items !== 2_000) throw new Error(`${items} items with prefetch ${prefetch}`)
      if (round >= 0) found.push((40 / (performance.now() - before)) * 1000)
    }
  }
  service.close()
  return new Map([...rates].map(([prefetch, found]) => [prefetch, spread(found)]))
}
