import { expect } from 'vitest'
import { emptyRow } from '../../../src/orders/record/record.ts'
import type { OrderStore, PruneOptions } from '../../../src/stores/store.ts'
import { deferred, throwing } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { failure, Lab, order, told } from '../../support/lab.ts'
import { faultyStore } from '../../support/stores.ts'

const HOUR = 60 * 60_000
const DAY = 24 * HOUR

/** The lab's rows in a store that records calls of prune(), or that cannot prune. */
function watched(lab: Lab, fails?: () => Promise<number>): { store: OrderStore; pruned: PruneOptions[] } {
  const pruned: PruneOptions[] = []
  const prune: OrderStore['prune'] = (scope, options) => {
    pruned.push(options)
    return fails?.() ?? lab.rows.prune(scope, options)
  }
  return { store: { ...faultyStore(lab.rows, lab.runtime), prune }, pruned }
}

/** Puts a closed record of this age into the lab's store. */
async function writtenAt(lab: Lab, time: number): Promise<void> {
  const { scope } = lab.place('ref:any')
  await lab.rows.insert(emptyRow(scope, String(time), time))
}

async function kept(lab: Lab): Promise<readonly string[]> {
  await lab.runtime.settle()
  const found: string[] = []
  for await (const { externalOrderId = '' } of lab.orders.remembered({ since: 0 }))
    found.push(externalOrderId)
  return found.sort()
}

const recovered = (lab: Lab, store: OrderStore): Promise<unknown> => lab.client({ store }).orders.recover()

it('orders remove old closed records once an hour, and none in the first hour of a process', async (lab) => {
  const { store, pruned } = watched(lab)
  for (const [reference, removals] of [
    ['r1', 0],
    ['r2', 1],
    ['r3', 2],
  ] as const) {
    await lab.client({ store }).orders.create(order(reference))
    await lab.runtime.advance(HOUR - 1000)
    await lab.client({ store }).orders.create(order(`${reference} again`))
    expect(pruned).toHaveLength(removals)
    await lab.runtime.advance(1000)
  }
})

it('close() waits until a removal of old records that has begun is done', async (lab) => {
  const events: string[] = []
  const store: OrderStore = {
    ...faultyStore(lab.rows, lab.runtime),
    prune: () =>
      new Promise((resolve) => {
        lab.runtime.setTimer(() => {
          events.push('pruned')
          resolve(0)
        }, 1000)
      }),
    close: async () => {
      events.push('closed')
    },
  }
  const client = lab.client({ store })
  await client.orders.recover()
  await client.close()
  expect(events).toEqual(['pruned', 'closed'])
  events.length = 0
  const owner = lab.client({ store })
  await owner.withOptions({ account: 'other shop' }).orders.recover()
  await owner.close()
  expect(events).toEqual(['pruned', 'closed'])
})

it('created records are kept for 400 days and rejected ones for 7, unless retention changes it', async (lab) => {
  const now = lab.runtime.now()
  // The youngest records that confirm the clock, at a quarter of each retention.
  for (const days of [100, 2.5, 1.75]) await writtenAt(lab, now - days * DAY)
  const { store, pruned } = watched(lab)
  await recovered(lab, store)
  const { store: other, pruned: otherwise } = watched(lab)
  const client = lab.client({ store: other, retention: { created: 10 * DAY } })
  await client.orders.recover()
  await lab.runtime.settle()
  expect(pruned).toEqual([{ createdBefore: now - 400 * DAY, rejectedBefore: now - 7 * DAY }])
  expect(otherwise).toEqual([{ createdBefore: now - 10 * DAY, rejectedBefore: now - 7 * DAY }])
})

it('old records are kept longer if the youngest record that confirms the clock is older', async () => {
  // The age of the only record, and how long a created or a rejected record is kept then.
  const DAYS: readonly (readonly [number, number | undefined, number | undefined])[] = [
    [1.74, undefined, undefined],
    [1.9, undefined, 7.15],
    [3, undefined, 8.25],
    [14, undefined, 19.25],
    [100, 400, 105.25],
    [110, 410, 115.25],
    [224, 524, 229.25],
    [225, 525, undefined],
  ]
  for (const [age, created, rejected] of DAYS) {
    const lab = new Lab()
    const now = lab.runtime.now()
    await writtenAt(lab, now - age * DAY)
    const { store, pruned } = watched(lab)
    await recovered(lab, store)
    await lab.runtime.settle()
    const limit = (days: number | undefined): number => (days === undefined ? 0 : now - days * DAY)
    expect(pruned).toEqual([{ createdBefore: limit(created), rejectedBefore: limit(rejected) }])
  }
})

it("old records are kept even if one client's clock is 401 days ahead and it restarts repeatedly", async (lab) => {
  const right = lab.client()
  await right.orders.create(order('r1'))
  lab.drain()
  await failure(right.orders.create(order('refused')))
  lab.topUp()
  /** A client whose process starts, places an order, recovers and ends. */
  const run = async (reference: string): Promise<void> => {
    const wrong = lab.ahead(401 * DAY)
    await wrong.orders.create(order(reference))
    await wrong.orders.recover()
    await wrong.close()
  }
  for (const reference of ['ahead-1', 'ahead-2']) {
    await run(reference)
    await lab.runtime.advance(DAY)
  }
  expect(await kept(lab)).toEqual(['ahead-1', 'ahead-2', 'r1', 'refused'])
  // A refusal looks old if the clock was wrong for a quarter of the 7 days, and an order after
  // 100 days.
  for (const reference of ['ahead-3', 'ahead-4', 'ahead-5']) {
    await lab.runtime.advance(30 * DAY)
    await run(reference)
  }
  expect(await kept(lab)).toContain('r1')
  await right.orders.create(order('r1'))
  expect(lab.posts.filter(({ body }) => body.includes('"r1"'))).toHaveLength(1)
  lab.sandbox.expectChargedOnce('r1')
})

it('old records are removed when their time is over: created later than rejected, open never', async (lab) => {
  const client = lab.client()
  await client.orders.create(order('created'))
  lab.drain()
  await failure(client.orders.create(order('rejected')))
  lab.fault({ type: 'drop' }, 'always')
  await failure(client.orders.create(order('open')))
  lab.sandbox.faults.clear()
  lab.topUp()
  await lab.runtime.advance(6 * DAY)
  await client.orders.create(order('later'))
  await lab.runtime.advance(2 * DAY)
  await client.orders.recover()
  expect(await kept(lab)).toEqual(['created', 'later', 'open'])
  await lab.runtime.advance(300 * DAY)
  await client.orders.create(order('last'))
  expect(await kept(lab)).toEqual(['created', 'last', 'later', 'open'])
  await lab.runtime.advance(105 * DAY)
  await client.orders.recover()
  expect(await kept(lab)).toEqual(['last', 'open'])
})

it('a recovery removes old records once an hour, and separately for each account', async (lab) => {
  const { store, pruned } = watched(lab)
  for (const account of ['shop', 'other shop', 'shop']) await lab.client({ store, account }).orders.recover()
  await lab.runtime.settle()
  expect(pruned).toHaveLength(2)
})

it('a call that slept while its record was pruned and bought again does not write over the new record', async (lab) => {
  await lab.refused()
  const asked = deferred<string>()
  const { ending } = await lab.begin(() =>
    told(lab.elsewhere({ apiKey: () => asked.promise }).orders.create(order('r1'))),
  )
  lab.runtime.auto = false
  lab.runtime.jump(7.2 * DAY)
  await lab.elsewhere().orders.create(order('witness'))
  lab.runtime.jump(2.25 * DAY)
  await lab.elsewhere().orders.recover()
  expect(await kept(lab)).toEqual(['witness'])
  const { id } = await lab.elsewhere().orders.create(order('r1'))
  asked.resolve(lab.sandbox.apiKey)
  lab.runtime.auto = true
  expect((await ending).order?.id ?? id).toBe(id)
  expect((await lab.elsewhere().orders.create(order('r1'))).id).toBe(id)
})

it('a failed removal of old records is logged, and does not affect the order', async () => {
  const failures: (() => Promise<number>)[] = [
    () => Promise.reject(new Error('secret text of a database')),
    throwing('at once'),
    () => new Promise(() => {}),
  ]
  for (const fails of failures) {
    const lab = new Lab()
    const { store } = watched(lab, fails)
    const logged: unknown[][] = []
    const log = (...line: unknown[]): void => void logged.push(line)
    const logger = { debug: log, info: log, warn: log, error: log }
    await lab.client({ store }).orders.create(order('r1'))
    await lab.runtime.advance(HOUR)
    const placed = await lab.client({ store, logger }).orders.create(order('r2'))
    expect(await lab.record('ref:r2')).toMatchObject({ state: 'created', order: { id: placed.id } })
    await lab.runtime.advance(11_000)
    expect(logged).toEqual([[expect.stringContaining('old records could not be removed'), { code: 'store' }]])
  }
})
