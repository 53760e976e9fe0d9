import { describe, expect, it } from 'vitest'
import type { OrderStore, PruneOptions } from '../../src/idempotency/store.ts'
import { faultyStore } from './support/faulty-store.ts'
import { failure, Lab, order } from './support/lab.ts'

const HOUR = 60 * 60_000
const DAY = 24 * HOUR

/** The lab's rows in a store that notes how it is pruned, or that cannot be. */
function watched(lab: Lab, fails?: () => Promise<number>): { store: OrderStore; pruned: PruneOptions[] } {
  const pruned: PruneOptions[] = []
  const prune: OrderStore['prune'] = (scope, options) => {
    pruned.push(options)
    return fails?.() ?? lab.rows.prune(scope, options)
  }
  return { store: { ...faultyStore(lab.rows, lab.runtime), prune }, pruned }
}

async function recovered(lab: Lab, store: OrderStore): Promise<void> {
  for await (const _outcome of lab.client({ store }).orders.recover());
}

describe('old closed records', () => {
  it('are removed after an order was placed, at most once an hour', async () => {
    const lab = new Lab()
    const { store, pruned } = watched(lab)
    for (const reference of ['r1', 'r2', 'r3']) await lab.client({ store }).orders.create(order(reference))
    expect(pruned).toHaveLength(1)
    await lab.runtime.advance(HOUR - 1000)
    await lab.client({ store }).orders.create(order('r4'))
    expect(pruned).toHaveLength(1)
    await lab.runtime.advance(1000)
    await lab.client({ store }).orders.create(order('r5'))
    expect(pruned).toHaveLength(2)
  })

  it('are removed by a recovery as well', async () => {
    const lab = new Lab()
    const { store, pruned } = watched(lab)
    await recovered(lab, store)
    await recovered(lab, store)
    expect(pruned).toHaveLength(1)
  })

  it('are removed before the store is closed, if their removal has begun', async () => {
    const lab = new Lab()
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
    for await (const _outcome of client.orders.recover());
    await client.close()
    expect(events).toEqual(['pruned', 'closed'])
  })

  it('are kept for 400 days if created and 7 if rejected, unless retention says otherwise', async () => {
    const lab = new Lab()
    const now = lab.runtime.now()
    const { store, pruned } = watched(lab)
    await recovered(lab, store)
    const { store: other, pruned: otherwise } = watched(lab)
    const client = lab.client({ store: other, retention: { created: 10 * DAY } })
    for await (const _outcome of client.orders.recover());
    expect(pruned).toEqual([{ createdBefore: now - 400 * DAY, rejectedBefore: now - 7 * DAY }])
    expect(otherwise).toEqual([{ createdBefore: now - 10 * DAY, rejectedBefore: now - 7 * DAY }])
  })

  it('are gone after their time, the created later than the rejected, the open never', async () => {
    const lab = new Lab()
    const client = lab.client()
    await client.orders.create(order('created'))
    lab.drain()
    await failure(client.orders.create(order('rejected')))
    lab.sandbox.faults.add({ times: 'always', action: { type: 'drop' } })
    await failure(client.orders.create(order('open')))
    lab.sandbox.faults.clear()
    lab.topUp()
    const kept = async (): Promise<string[]> => {
      const found: string[] = []
      for await (const { externalOrderId = '' } of client.orders.remembered({ since: 0 }))
        found.push(externalOrderId)
      return found.sort()
    }
    await lab.runtime.advance(7 * DAY + HOUR)
    await client.orders.create(order('later'))
    expect(await kept()).toEqual(['created', 'later', 'open'])
    await lab.runtime.advance(393 * DAY + HOUR)
    await client.orders.create(order('last'))
    expect(await kept()).toEqual(['last', 'later', 'open'])
  })

  it('are removed for each account by itself', async () => {
    const lab = new Lab()
    const { store, pruned } = watched(lab)
    for (const account of ['shop', 'other shop'])
      await lab.client({ store, account }).orders.create(order('r1'))
    expect(pruned).toHaveLength(2)
  })

  it('may fail to be removed: that is logged, and the order is none the worse', async () => {
    const failures: (() => Promise<number>)[] = [
      () => Promise.reject(new Error('secret text of a database')),
      () => {
        throw new Error('at once')
      },
      () => new Promise(() => {}),
    ]
    for (const fails of failures) {
      const lab = new Lab()
      const { store } = watched(lab, fails)
      const logged: unknown[][] = []
      const log = (...line: unknown[]): void => void logged.push(line)
      const logger = { debug: log, info: log, warn: log, error: log }
      const placed = await lab.client({ store, logger }).orders.create(order('r1'))
      expect(placed.id).toBe(lab.sandbox.expectChargedOnce('r1').orderId)
      await lab.runtime.advance(11_000)
      expect(logged).toEqual([[expect.stringContaining('old records were not removed'), { code: 'store' }]])
    }
  })
})
