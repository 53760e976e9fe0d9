/** One client over real sockets for a given time, and other clients that each place one order. */
import { getEventListeners } from 'node:events'
import {
  type ClientOptions,
  CustomerOrderingClient,
  isCustomerOrderingError,
  MemoryStore,
  type Order,
} from '../../../src/index.ts'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { createSandbox, type FaultAction } from '../../../src/sandbox/index.ts'
import { walk } from '../../../src/stores/contract/rows.ts'
import { kept } from '../../support/heap.ts'
import { scopeOf } from '../core.ts'
import type { Look } from './flat.ts'

const HOUR = 3_600_000
/** Fewer orders between two samples prove little, even on a slow machine. */
const LEAST = 64
const KEPT = 2048

/** A deliberate leak, to check that a soak detects it: a text for each order, or each closed client. */
export type Leak = 'orders' | 'clients'

/** The faults of some rounds, by the number of rounds from one to the next. */
const FAULTS: readonly (readonly [every: number, action: FaultAction])[] = [
  [8, { type: 'commitThenDrop' }],
  [10, { type: 'inProgress', commit: true }],
  [12, { type: 'status', status: 503 }],
  [15, { type: 'status', status: 402, code: 'NO' }],
  [18, { type: 'drop' }],
  [20, { type: 'cutBody' }],
]

/** Places orders, reads lists and waits for the given time, and takes `count` samples. */
export async function soak(milliseconds: number, count: number, leak?: Leak): Promise<readonly Look[]> {
  const sandbox = createSandbox({ balance: 1e12, keepRequests: 10 })
  let server = await serveSandbox(sandbox, { port: 0 })
  const { signal } = new AbortController()
  const leaked: unknown[] = []
  const keep = (as: Leak, value: () => unknown): void => {
    if (as === leak) leaked.push(value())
  }
  // An hour passes between two rounds, while no call is running, so that the client prunes its
  // store after each.
  let hours = 0
  const runtime = {
    now: () => Date.now() + hours * HOUR,
    monotonic: () => performance.now() + hours * HOUR,
    random: () => 0,
  }
  const store = new MemoryStore()
  const options: ClientOptions = {
    ...{ baseUrl: server.url, apiKey: sandbox.apiKey, account: 'shop', timeout: 2_000, maxRetries: 1 },
    // Prune everything older, so that intended growth is not reported.
    retention: { created: 2 * HOUR, rejected: 2 * HOUR },
    hooks: {
      onSettled: ({ operation }) => {
        if (operation === 'orders.create') keep('orders', () => Buffer.alloc(KEPT, 'x').toString('latin1'))
      },
    },
  }
  const client = new CustomerOrderingClient({ ...options, store }, runtime)
  const { orders, balance } = client
  let placed = 0
  const order = (by = client): Promise<Order> => {
    const externalOrderId = `order-${++placed}`
    return by.orders.create(
      { serviceId: 'svc_standard', target: '@x', quantity: 10, metadata: { externalOrderId } },
      { signal },
    )
  }
  /** Every second one shares the store of the long-lived client. */
  const orderElsewhere = async (): Promise<void> => {
    const other =
      hours % 2 === 0 ? new CustomerOrderingClient(options, runtime) : client.withOptions({ maxRetries: 1 })
    keep('clients', () => other)
    await order(other).finally(() => other.close())
  }
  /** Settles open orders as a person would at the end: an order that was not found is abandoned. */
  const settle = async (): Promise<void> => {
    for await (const _ of orders.recover({ signal }));
    for await (const { state, externalOrderId } of orders.unresolved())
      if (state === 'open' && externalOrderId !== undefined)
        await orders.resolve({ externalOrderId }, { as: 'abandoned' })
  }
  const round = async (): Promise<void> => {
    for (const [every, action] of FAULTS) if (hours % every === 0) sandbox.faults.add({ action })
    const [known] = sandbox.orders().slice(-1)
    let looks = 0
    const works: Promise<unknown>[] = [
      ...Array.from({ length: 7 }, () => order()),
      orderElsewhere(),
      orders.list({ limit: 20 }, { signal }).toArray({ max: 40 }),
      balance.retrieve({ signal }),
      // It checks the order at intervals of its own, so rarely.
      ...(known !== undefined && hours % 40 === 0
        ? [orders.waitFor(known.id, { until: () => ++looks > 1, timeout: 5_000, signal })]
        : []),
    ]
    // A call may fail, but only with an error of this package.
    for (const ended of await Promise.allSettled(works))
      if (ended.status === 'rejected' && !isCustomerOrderingError(ended.reason)) throw ended.reason
    sandbox.faults.clear()
    await settle()
    hours++
    if (hours % 25 === 0) forget()
  }
  /** The service's memory does not belong to the client. */
  const forget = (): void => sandbox.load({ ...sandbox.dump(), orders: [], ledger: [], keys: [] })
  const look = async (): Promise<Look> => {
    // The number of connections depends on the load. Without them, all remaining resources belong
    // to someone.
    const { port } = server
    await server.close()
    for (let turns = 0; turns < 1000 && 'TCPSocketWrap' in resourcesNow(); turns++)
      await new Promise((resolve) => setImmediate(resolve))
    const resources = resourcesNow()
    server = await serveSandbox(sandbox, { port })
    forget()
    const scope = scopeOf(server.url, 'shop')
    return {
      orders: placed,
      listeners: getEventListeners(signal, 'abort').length,
      rows: (await walk((page) => store.list(scope, page), 500)).length,
      resources,
      ...(await kept()),
    }
  }
  const looks: Look[] = []
  const began = performance.now()
  try {
    for (let part = 1; part <= count; part++) {
      const least = placed + LEAST
      do await round()
      while (placed < least || performance.now() - began < (milliseconds * part) / count)
      looks.push(await look())
    }
  } finally {
    await client.close()
    await server.close()
  }
  return looks
}

/** Timers, sockets and other resources that keep the process alive, by kind. */
function resourcesNow(): Readonly<Record<string, number>> {
  const found: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) found[kind] = (found[kind] ?? 0) + 1
  return found
}
