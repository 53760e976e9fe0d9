/** CPU and time of placing an order by `orders.create()` with its `MemoryStore`, against sending the same body unremembered. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { type Cell, compare } from './blocks.ts'
import { BASELINE, KEY, orderBody, orderSchema } from './contenders.ts'
import { startService } from './service.ts'

export const CREATE = 'create()'
export const BARE_POST = 'client.request'

/** Ways to send an order that nobody has sent before. */
export function placers(url: string): ReadonlyMap<string, () => Promise<unknown>> {
  const client = new CustomerOrderingClient({ baseUrl: url, apiKey: KEY, account: 'bench' })
  let orders = 0
  const next = () => orderBody(`order-${++orders}`)
  return new Map<string, () => Promise<unknown>>([
    [CREATE, () => client.orders.create(next())],
    [
      BARE_POST,
      () => client.request({ method: 'POST', path: '/v1/orders', body: next(), schema: orderSchema }),
    ],
    [
      BASELINE,
      async () => {
        const response = await fetch(`${url}/v1/orders`, {
          method: 'POST',
          headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
          body: JSON.stringify(next()),
        })
        return await response.json()
      },
    ],
  ])
}

/** Ratios to a bare POST by the same client. */
export async function measureCreate(rounds: number): Promise<ReadonlyMap<string, Cell>> {
  const service = await startService(0, 0)
  const found = await compare(placers(service.url), {
    rounds,
    calls: 24,
    at: 1,
    warmUp: 2_000,
    isBaseline: (name) => name === BARE_POST,
  })
  service.close()
  return found
}
