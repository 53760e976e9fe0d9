/** Measures the paging of 2,000 orders, 50 per page, with 20 ms latency. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { peerWalks } from './contenders.ts'
import { startService } from './service.ts'
import { type Spread, shuffled, spread } from './statistics.ts'

const PAGES = 40
const ORDERS = 2_000

/** Pages per second. */
export interface Paging {
  /** This package, by `prefetch`. 0 means one page at a time. */
  readonly ours: ReadonlyMap<number, Spread>
  /** The other clients, one page at a time. */
  readonly peers: ReadonlyMap<string, Spread>
}

/** Runs the clients one after the other, in a new order in each round. */
export async function measurePaging(rounds: number): Promise<Paging> {
  const service = await startService(20, ORDERS)
  const client = new CustomerOrderingClient({ baseUrl: service.url, apiKey: 'sk_test_benchmark' })
  const walks = [
    ...[0, 1, 4, 8].map((prefetch) => ({
      name: prefetch,
      walk: (): AsyncIterable<unknown> => client.orders.list({ limit: 50 }, { prefetch }),
    })),
    ...Object.entries(peerWalks(service.url)).map(([name, walk]) => ({ name, walk })),
  ]
  const rates = new Map(walks.map(({ name }) => [name, [] as number[]]))
  // Discard the first walk, which includes loading and connecting.
  for (let round = -1; round < rounds; round++) {
    for (const { name, walk } of shuffled(walks)) {
      const before = performance.now()
      let items = 0
      for await (const _ of walk()) items++
      if (items !== ORDERS) throw new Error(`${items} items by ${name}`)
      if (round >= 0) rates.get(name)?.push((PAGES / (performance.now() - before)) * 1000)
    }
  }
  service.close()
  const ours = new Map<number, Spread>()
  const peers = new Map<string, Spread>()
  for (const [name, found] of rates) {
    if (typeof name === 'number') ours.set(name, spread(found))
    else peers.set(name, spread(found))
  }
  return { ours, peers }
}
