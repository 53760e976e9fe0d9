import { describe, expect, it } from 'vitest'
import { Reporter } from '../../../../src/hooks.ts'
import { prune, pruned, pruneHourly } from '../../../../src/orders/record/retention.ts'
import { MemoryStore } from '../../../../src/stores/memory.ts'
import type { PruneOptions } from '../../../../src/stores/store.ts'
import { errorOf } from '../../../support/errors.ts'
import { journalOver } from '../../../support/order-context.ts'
import { fails } from '../../../support/place.ts'
import { fakeRuntime } from '../../../support/runtime.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** A store whose records were last written so many days ago. */
async function storeWith(...ages: readonly number[]) {
  const runtime = fakeRuntime()
  const store = new MemoryStore()
  const journal = journalOver(store, runtime)
  const limits: PruneOptions[] = []
  const real = store.prune.bind(store)
  store.prune = async (scope, options) => {
    limits.push(options)
    return await real(scope, options)
  }
  for (const [index, age] of ages.entries()) {
    const time = runtime.now() - age * DAY
    const facts = { version: 1, open: false, state: 'created', createdAt: time, updatedAt: time } as const
    await store.insert({ scope: 's', id: `${index}`, ...facts, data: '' })
  }
  return { runtime, store, journal, limits }
}

describe('the time before which records are removed', () => {
  it.each([
    ['there is no record at all', [], 0],
    ['no record is older than a quarter of the retention', [0, 9], 0],
    ['a record is a quarter of the retention old', [10], 40],
    ['another record is older than that', [10.9], 40.9],
    ['another record is twice as old', [19, 0], 49],
    ['another record is eight times as old', [79], 109],
    ['another record is 128 times as old', [1279], 1309],
    ['all others are older than that', [1281], 0],
  ])('a record is removed at an age of so many days, if %s: %j → %d', async (_if, ages, days) => {
    const { runtime, journal, limits } = await storeWith(...ages)
    await prune(journal, { created: 40 * DAY, rejected: 40 * DAY }, runtime)
    const expected = days === 0 ? 0 : runtime.now() - days * DAY
    expect(limits).toEqual([{ createdBefore: expected, rejectedBefore: expected }])
  })

  it('each state has a retention of its own', async () => {
    const { runtime, journal, limits } = await storeWith(12)
    await prune(journal, { created: 40 * DAY, rejected: 400 * DAY }, runtime)
    expect(limits).toEqual([{ createdBefore: runtime.now() - 42 * DAY, rejectedBefore: 0 }])
  })

  it('a clock that is a year ahead removes nothing', async () => {
    const { runtime, journal, store } = await storeWith(0, 1, 20)
    runtime.jump(365 * DAY)
    await prune(journal, { created: 40 * DAY, rejected: 40 * DAY }, runtime)
    expect((await store.list('s', { since: 0, limit: 10 })).rows).toHaveLength(3)
  })

  it('a store that fails is reported', async () => {
    const { runtime, journal, store } = await storeWith()
    store.prune = fails
    expect(await errorOf(prune(journal, { created: DAY, rejected: DAY }, runtime))).toMatchObject({
      code: 'store',
      message: 'The store could not remove old records. Nothing was sent. Call again.',
    })
  })
})

describe('the hourly removal', () => {
  const kept = { created: DAY, rejected: DAY }

  it('old records are removed once an hour for each store and scope', async () => {
    const { runtime, store, journal, limits } = await storeWith()
    const reporter = new Reporter({}, undefined, 'off')
    for (const [passes, count] of [
      [0, 1],
      [HOUR - 1, 1],
      [1, 2],
    ] as const) {
      await runtime.advance(passes)
      pruneHourly(journal, kept, runtime, reporter)
      pruneHourly(journalOver(store, runtime), kept, runtime, reporter)
      await pruned(store)
      expect(limits).toHaveLength(count)
    }
    const other = await storeWith()
    pruneHourly(other.journal, kept, other.runtime, reporter)
    await pruned(other.store)
    expect(other.limits).toHaveLength(1)
  })

  it('a removal that fails is logged, and ends before the store is closed', async () => {
    const { runtime, store, journal } = await storeWith()
    const lines: unknown[] = []
    const log = (...line: unknown[]): void => void lines.push(line)
    const logger = { debug: log, info: log, warn: log, error: log }
    store.prune = fails
    pruneHourly(journal, kept, runtime, new Reporter({}, logger, 'warn'))
    await pruned(store)
    expect(JSON.stringify(lines)).toContain('old records could not be removed; no new attempt for an hour')
  })
})
