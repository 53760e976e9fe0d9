/**
 * Weeks of virtual time in one client: hours of work with orders that succeed, fail and are
 * recovered, lists, waits and signals, with quiet days in between, in which only `recover()` is
 * called every hour.
 */
import { createSandbox } from '../../../src/sandbox/index.ts'
import { Draw } from '../../support/seeds.ts'
import { VirtualTime } from '../../support/virtual-time.ts'
import { attempt, Clients, HOUR, type Leak } from './clients.ts'
import type { Look } from './flat.ts'

const MINUTE = 60_000
/** Hours without an order after each hour of work. */
const QUIET = 48
const MOST_LOOKS = 12

/** Runs that many hours of work, and returns a sample after each, or after each few. */
export async function liveThrough(hours: number, seed: number, leak?: Leak): Promise<readonly Look[]> {
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
  const { signal } = new AbortController()
  const clients = new Clients(
    { baseUrl: sandbox.baseUrl, apiKey: sandbox.apiKey, fetch: sandbox.fetch, maxRetries: 2 },
    time.runtime(owner, seed),
    signal,
    leak,
  )
  const { orders, balance } = clients.main
  const looks: Look[] = []

  const disturb = (): void => {
    const match = { operation: 'createOrder' } as const
    const action = draw.pick(
      { type: 'drop' },
      { type: 'commitThenDrop' },
      { type: 'stall', commit: true },
      { type: 'cutBody' },
      { type: 'status', status: 503 },
      { type: 'status', status: 402, code: 'NO' },
      { type: 'status', status: 429, headers: { 'retry-after': '7' } },
      { type: 'inProgress', commit: true },
    )
    sandbox.faults.add({ match, times: draw.between(1, 4), action })
  }
  const recover = async (): Promise<void> => {
    for await (const _ of orders.recover({ signal }));
  }
  const work = async (): Promise<void> => {
    const began = time.now
    for (let minute = 0; minute < 60; minute++) {
      sandbox.faults.clear()
      if (draw.chance(0.3)) disturb()
      await attempt(() => Promise.all([clients.order(), clients.order()]))
      await clients.orderElsewhere()
      if (minute % 10 === 0) {
        await attempt(() => orders.list({ limit: 20 }, { signal }).toArray({ max: 60 }))
        await attempt(() => balance.retrieve({ signal }))
        await attempt(recover)
        const until = (): boolean => draw.chance(0.5)
        const [known] = sandbox.orders().slice(-1)
        if (known !== undefined)
          await attempt(() => orders.waitFor(known.id, { until, timeout: 5_000, signal }))
      }
      await time.sleep(sandbox, Math.max(0, began + (minute + 1) * MINUTE - time.now))
    }
    sandbox.faults.clear()
    await clients.settle()
  }
  const rest = async (): Promise<void> => {
    for (let hour = 0; hour < QUIET; hour++) {
      await time.sleep(sandbox, HOUR)
      await recover()
    }
  }
  const every = Math.ceil(hours / MOST_LOOKS)
  for (let hour = 1; hour <= hours; hour++) {
    await time.run(work())
    await time.run(rest())
    if (hour % every === 0) looks.push(await clients.look(sandbox, { timers: time.pending(owner) }))
  }
  await time.run(clients.main.close())
  const left = time.pending(owner)
  if (left > 0) throw new Error(`${left} timers are left after close()`)
  return looks
}
