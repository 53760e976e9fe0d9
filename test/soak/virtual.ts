/**
 * Hours of virtual time in one client: orders that succeed, fail and are recovered, lists, waits and signals, and now and
 * then a look at what is left: timers, listeners, rows and heap must not grow with the hours.
 */

import { CustomerOrderingClient, isCustomerOrderingError, MemoryStore } from '../../src/index.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { Draw } from '../simulation/draw.ts'
import { VirtualTime } from '../support/virtual-time.ts'

const HOUR = 3_600_000
/** Everything older is pruned, so that what is remembered does not grow either. */
const RETENTION = 2 * HOUR

/** What is left at one moment. */
export interface Sample {
  readonly hours: number
  readonly timers: number
  readonly listeners: number
  readonly rows: number
  /** Bytes after a forced collection; 0 without one. */
  readonly heap: number
}

/** A signal whose listeners are counted, as a server's own for its shutdown would live. */
function countedSignal(): { readonly signal: AbortSignal; count(): number } {
  const { signal } = new AbortController()
  let listeners = 0
  const target: EventTarget = signal
  const add = target.addEventListener.bind(target)
  const remove = target.removeEventListener.bind(target)
  const live = new Set<unknown>()
  target.addEventListener = (
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: unknown,
  ) => {
    if (!live.has(listener)) listeners++
    live.add(listener)
    add(type, listener, options as AddEventListenerOptions)
  }
  target.removeEventListener = (type: string, listener: EventListenerOrEventListenerObject | null) => {
    if (live.delete(listener)) listeners--
    remove(type, listener)
  }
  return { signal, count: () => listeners }
}

/** Lives through that many hours and tells what was left after each eighth of them. */
export async function liveThrough(
  hours: number,
  seed: number,
  collect: () => number = () => 0,
): Promise<readonly Sample[]> {
  const time = new VirtualTime()
  const owner = {}
  const draw = new Draw(seed, 0)
  const sandbox = createSandbox({
    balance: 1e12,
    keepRequests: 10,
    now: () => time.now,
    sleep: (milliseconds) => time.sleep(sandbox, milliseconds),
    behaviour: { keyLifetime: HOUR },
  })
  const { signal, count } = countedSignal()
  const store = new MemoryStore()
  let scope = ''
  const insert = store.insert.bind(store)
  store.insert = (row) => {
    scope = row.scope
    return insert(row)
  }
  const client = new CustomerOrderingClient(
    {
      baseUrl: sandbox.baseUrl,
      apiKey: sandbox.apiKey,
      account: 'shop',
      fetch: sandbox.fetch,
      store,
      retention: { created: RETENTION, rejected: RETENTION },
      maxRetries: 2,
    },
    time.runtime(owner, seed),
  )
  const began = time.now
  const samples: Sample[] = []
  let orders = 0

  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      if (!isCustomerOrderingError(error)) throw error
    }
  }
  const order = () => {
    const externalOrderId = `order-${++orders}`
    return client.orders.create(
      { serviceId: 'svc_standard', target: '@x', quantity: 10, metadata: { externalOrderId } },
      { signal },
    )
  }
  const disturb = (): void => {
    const match = { operation: 'createOrder' } as const
    const action = draw.pick(
      { type: 'drop' },
      { type: 'commitThenDrop' },
      { type: 'stall', commit: true },
      { type: 'cutBody' },
      { type: 'status', status: 503 },
      { type: 'status', status: 402, code: 'NO' },
      { type: 'retryAfter', value: '7' },
      { type: 'inProgress', commit: true },
    )
    sandbox.faults.add({ match, times: draw.between(1, 4), action })
  }
  const work = async (): Promise<void> => {
    for (let minute = 0; minute < hours * 60; minute++) {
      sandbox.faults.clear()
      if (draw.chance(0.3)) disturb()
      await attempt(async () => await Promise.all([order(), order()]))
      if (minute % 10 === 0) {
        await attempt(() => client.orders.list({ limit: 20 }, { signal }).toArray({ max: 60 }))
        await attempt(() => client.balance.retrieve({ signal }))
        await attempt(async () => {
          for await (const _ of client.orders.recover({ signal }));
        })
        const until = (): boolean => draw.chance(0.5)
        const [known] = sandbox.orders().slice(-1)
        if (known !== undefined)
          await attempt(() => client.orders.waitFor(known.id, { until, timeout: 5_000, signal }))
      }
      await time.sleep(sandbox, Math.max(0, began + (minute + 1) * 60_000 - time.now))
      if ((minute + 1) % Math.ceil((hours * 60) / 8) === 0) await sample(minute + 1)
    }
    await client.close()
  }
  const sample = async (minutes: number): Promise<void> => {
    // What the service itself remembers is not the client's: its books go.
    sandbox.load({ ...sandbox.dump(), orders: [], ledger: [], keys: [] })
    let rows = 0
    for (let cursor: string | undefined; ; ) {
      const page = await store.list(scope, { limit: 500, ...(cursor === undefined ? {} : { after: cursor }) })
      rows += page.rows.length
      cursor = page.next
      if (cursor === undefined) break
    }
    samples.push({
      hours: minutes / 60,
      timers: time.pending(owner),
      listeners: count(),
      rows,
      heap: collect(),
    })
  }
  await time.run(work())
  const left = time.pending(owner)
  if (left > 0) throw new Error(`${left} timers are left after close()`)
  return samples
}
