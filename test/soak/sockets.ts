/**
 * One client over real sockets for as long as it is told, with the garbage collected by force before each look: handles
 * of the process, listeners of the caller's signal and heap must not grow.
 */
import { getEventListeners } from 'node:events'
import { CustomerOrderingClient, isCustomerOrderingError } from '../../src/index.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { serveSandbox } from '../../src/sandbox/server.ts'

/** What there was at one moment. */
export interface Look {
  readonly orders: number
  readonly listeners: number
  /** Timers, sockets and whatever else keeps the process alive, by kind. */
  readonly resources: Readonly<Record<string, number>>
  /** Bytes in use after a forced collection. */
  readonly heap: number
}

const KEEP = 200

/** Places orders and reads lists for that long; tells what there was after each tenth of the time. */
export async function soak(milliseconds: number, collect: () => Promise<void>): Promise<readonly Look[]> {
  const sandbox = createSandbox({ balance: 1e12, keepRequests: 10 })
  const server = await serveSandbox(sandbox, { port: 0 })
  const { signal } = new AbortController()
  // Few rows are remembered, so that what is found to grow is not what is meant to.
  const connect = () =>
    new CustomerOrderingClient({ baseUrl: server.url, apiKey: sandbox.apiKey, timeout: 2_000, maxRetries: 1 })
  let client = connect()
  const looks: Look[] = []
  const began = performance.now()
  let orders = 0
  try {
    for (let tenth = 1; tenth <= 10; tenth++) {
      while (performance.now() - began < (milliseconds * tenth) / 10 || orders === 0) {
        await round()
        orders += 8
        if (orders % KEEP === 0) {
          await client.close()
          client = connect()
          sandbox.load({ ...sandbox.dump(), orders: [], ledger: [], keys: [] })
        }
      }
      await collect()
      const resources: Record<string, number> = {}
      for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
      const listeners = getEventListeners(signal, 'abort').length
      looks.push({ orders, listeners, resources, heap: process.memoryUsage().heapUsed })
    }
  } finally {
    await client.close()
    await server.close()
  }
  return looks

  async function round(): Promise<void> {
    const n = orders
    if (n % 64 === 0) sandbox.faults.add({ action: { type: 'commitThenDrop' } })
    if (n % 96 === 0) sandbox.faults.add({ action: { type: 'status', status: 503 } })
    if (n % 160 === 0) sandbox.faults.add({ action: { type: 'cutBody' } })
    const calls = Array.from({ length: 8 }, (_, index) =>
      client.orders.create(
        {
          serviceId: 'svc_standard',
          target: '@x',
          quantity: 10,
          metadata: { externalOrderId: `order-${n + index}` },
        },
        { signal },
      ),
    )
    const list = client.orders.list({ limit: 20 }, { signal }).toArray({ max: 40 })
    for (const ended of await Promise.allSettled([...calls, list, client.balance.retrieve({ signal })]))
      if (ended.status === 'rejected' && !isCustomerOrderingError(ended.reason)) throw ended.reason
    for await (const _ of client.orders.recover({ signal }));
  }
}
