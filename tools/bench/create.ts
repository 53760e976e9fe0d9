/**
 * CPU and time of `orders.create()` with its `MemoryStore`, compared with sending the same body
 * without a record.
 */
import './platform-fetch.ts'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { undiciTransport } from 'customer-ordering-sdk/undici'
import { type Cell, compare } from './blocks.ts'
import { BASELINE, KEY, orderBody, orderSchema } from './contenders.ts'
import { startService } from './service.ts'

export const CREATE = 'create()'
export const CREATE_OVER_UNDICI = 'create() over undici'
export const BARE_POST = 'client.request'

/** Ways to send a new order. */
export function placers(url: string): ReadonlyMap<string, () => Promise<unknown>> {
  const options = { baseUrl: url, apiKey: KEY, account: 'bench' }
  const client = new CustomerOrderingClient(options)
  const overUndici = new CustomerOrderingClient({ ...options, transport: undiciTransport() })
  let orders = 0
  const next = () => orderBody(`order-${++orders}`)
  return new Map<string, () => Promise<unknown>>([
    [CREATE, () => client.orders.create(next())],
    [CREATE_OVER_UNDICI, () => overUndici.orders.create(next())],
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

/** Ratios to raw `fetch` with the same body. */
export async function measureCreate(rounds: number): Promise<ReadonlyMap<string, Cell>> {
  const service = await startService(0, 0)
  const found = await compare(placers(service.url), {
    rounds,
    calls: 24,
    at: 1,
    warmUp: 2_000,
    isBaseline: (name) => name === BASELINE,
  })
  service.close()
  return found
}
