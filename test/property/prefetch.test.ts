import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Pages } from '../../src/lists/pages.ts'
import type { FetchedPage } from '../../src/lists/prefetch.ts'
import { effort } from '../support/effort.ts'
import { fetched, idsOf, type Row, rows } from '../unit/lists/rows.ts'

type Fetch = ConstructorParameters<typeof Pages<Row>>[0]
type At = Parameters<Fetch>[0]

const TOTALS = {
  none: () => undefined,
  honest: (whole: number) => whole,
  'its own count': (_whole: number, page: number) => page,
  'rows that remain': (whole: number, _page: number, offset: number) => whole - offset,
  'too small': (whole: number) => Math.min(whole, 1),
  'too large': (whole: number) => whole + 7,
} as const

const behaviour = fc.record({
  rows: fc.integer({ min: 0, max: 130 }),
  limit: fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
  start: fc.integer({ min: 0, max: 5 }),
  cap: fc.constantFrom(Number.POSITIVE_INFINITY, 1, 2, 3, 7, 20),
  /** Rows missing from the page at an offset, by the offset's remainder. */
  short: fc.array(fc.constantFrom(0, 0, 0, 1, 5), { minLength: 1, maxLength: 11 }),
  total: fc.constantFrom(...(Object.keys(TOTALS) as (keyof typeof TOTALS)[])),
  hasMore: fc.constantFrom('none', 'honest', 'always'),
  offset: fc.constantFrom('kept', 'kept', 'clamped', 'ignored', 'refused past the end'),
})
type Behaviour = typeof behaviour extends fc.Arbitrary<infer T> ? T : never

/**
 * Turns that requests wait before the list is read, and before the response: responses overtake
 * each other.
 */
const turns = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 20 })
const ahead = fc.integer({ min: 1, max: 16 })
const sizes = fc.integer({ min: 2, max: 20 })
const few = fc.integer({ min: 0, max: 8 })
const items = fc.integer({ min: 1, max: 60 })

function answerOf(list: readonly Row[], given: Behaviour, at: At): FetchedPage<Row> {
  const size = Math.min(at.limit ?? 50, given.cap)
  let offset = at.offset
  if (given.offset === 'ignored') offset = 0
  if (given.offset === 'clamped' && offset >= list.length) offset = Math.max(0, list.length - size)
  if (given.offset === 'refused past the end' && offset >= list.length && offset > 0)
    throw new Error(`refused: ${offset}`)
  // If pages are clamped and short, rows repeat further apart than the client remembers, with and
  // without prefetch.
  const fewer = given.offset === 'clamped' ? 0 : (given.short[offset % given.short.length] ?? 0)
  const page = list.slice(offset, offset + Math.max(1, size - fewer))
  const total = TOTALS[given.total](list.length, page.length, offset)
  const hasMore = given.hasMore === 'honest' ? offset + page.length < list.length : true
  return fetched(page, {
    ...(total === undefined ? {} : { total }),
    ...(given.hasMore === 'none' ? {} : { hasMore }),
  })
}

/** A service that responds in any order, and knows the requests in flight. */
function service(delays: readonly number[], answer: (at: At) => FetchedPage<Row>) {
  let count = 0
  const flying = new Set<At>()
  const seen = { most: 0, mostRows: 0, asked: [] as number[] }
  const pause = async (n: number): Promise<void> => {
    for (let i = 0; i < n; i++) await Promise.resolve()
  }
  const fetch: Fetch = async (at) => {
    if (count > 3000) throw new Error('endless')
    const [before, after] = [count, count + 7].map((n) => delays[n % delays.length] ?? 0)
    count++
    flying.add(at)
    at.signal?.addEventListener('abort', () => flying.delete(at))
    seen.asked.push(at.offset)
    seen.most = Math.max(seen.most, flying.size)
    seen.mostRows = Math.max(seen.mostRows, flying.size * (at.limit ?? 50))
    try {
      await pause(before ?? 0)
      at.signal?.throwIfAborted()
      const answered = answer(at)
      await pause(after ?? 0)
      at.signal?.throwIfAborted()
      return answered
    } finally {
      flying.delete(at)
    }
  }
  return { fetch, flying, seen }
}

async function collect(items: AsyncIterable<Row>, most = 5000): Promise<{ ids: string[]; ending: unknown }> {
  const ids: string[] = []
  try {
    for await (const { id } of items) if (ids.push(id) >= most) return { ids, ending: 'left' }
    return { ids, ending: 'done' }
  } catch (error) {
    return { ids, ending: String(error) }
  }
}

test('an unchanged list returns the same items with and without prefetch, whatever the service does', async () => {
  await fc.assert(
    fc.asyncProperty(behaviour, turns, ahead, async (given, delays, prefetch) => {
      const list = rows(given.rows)
      const start = { offset: given.start, ...(given.limit === undefined ? {} : { limit: given.limit }) }
      const alone = service([0], (at) => answerOf(list, given, at))
      const early = service(delays, (at) => answerOf(list, given, at))
      const expected = await collect(new Pages(alone.fetch, start))
      const found = await collect(new Pages(early.fetch, { ...start, prefetch }))
      expect(found).toEqual(expected)
      expect(early.flying.size).toBe(0)
      expect(early.seen.most).toBeLessThanOrEqual(prefetch)
    }),
    { numRuns: effort(300, 1500) },
  )
})

const ways = fc.constantFrom('break', 'abort', 'error', 'throw')

test('leaving the loop, an abort and an error leave no request in flight', async () => {
  await fc.assert(
    fc.asyncProperty(behaviour, turns, ahead, items, ways, async (given, delays, prefetch, after, how) => {
      const list = rows(given.rows)
      const controller = new AbortController()
      const { fetch, flying, seen } = service(delays, (at) => {
        if (how === 'error' && seen.asked.length * 5 > after) throw new Error('broken')
        return answerOf(list, given, at)
      })
      const { signal } = controller
      const pages = new Pages(fetch, { offset: 0, limit: given.limit ?? 20, prefetch, signal })
      let count = 0
      let left = false
      const read = async (): Promise<void> => {
        for await (const _ of pages) {
          count++
          // After an abort, items of the current page may still be returned, but no item that
          // needs a request.
          if (left && how === 'abort') continue
          if (count < after) continue
          left = true
          if (how === 'break') break
          if (how === 'throw') throw new Error('mine')
          if (how === 'abort') {
            controller.abort()
            expect(flying.size).toBe(0)
          }
        }
      }
      await read().catch(() => {})
      const asked = seen.asked.length
      expect(flying.size).toBe(0)
      for (let i = 0; i < 50; i++) await Promise.resolve()
      expect(seen.asked.length).toBe(asked)
    }),
    { numRuns: effort(150, 500) },
  )
})

test('toArray requests no page behind the wanted items', async () => {
  await fc.assert(
    fc.asyncProperty(items, ahead, sizes, turns, async (max, prefetch, limit, delays) => {
      const list = rows(200)
      const { fetch, seen } = service(delays, ({ offset }) => {
        return fetched(list.slice(offset, offset + limit), { total: 200 })
      })
      const found = await new Pages(fetch, { offset: 0, limit, prefetch }).toArray({ max })
      expect(found).toEqual(list.slice(0, max))
      expect(Math.max(...seen.asked)).toBeLessThan(max)
    }),
  )
})

/** Rows that appear or disappear at a certain read of the list. */
const change = fc.record({ read: fc.integer({ min: 1, max: 12 }), rows: fc.integer({ min: 1, max: 6 }) })
// At most one change a read: two would insert the same rows.
const changes = fc.uniqueArray(change, { maxLength: 4, selector: ({ read }) => read })

const totals = fc.constantFrom<keyof typeof TOTALS>('none', 'honest', 'too large')

test('rows inserted before or behind the others hide and repeat none of them', async () => {
  await fc.assert(
    fc.asyncProperty(
      changes,
      changes,
      turns,
      few,
      totals,
      async (before, behind, delays, prefetch, total) => {
        const first = rows(90)
        let list = first
        let reads = 0
        const { fetch } = service(delays, (at) => {
          reads++
          for (const change of before.filter(({ read }) => read === reads))
            list = [...rows(change.rows, 1000 * reads), ...list]
          for (const change of behind.filter(({ read }) => read === reads))
            list = [...list, ...rows(change.rows, 1000 * reads + 500)]
          const page = list.slice(at.offset, at.offset + 15)
          const all = TOTALS[total](list.length, page.length, at.offset)
          return fetched(page, all === undefined ? {} : { total: all })
        })
        const { ids, ending } = await collect(new Pages(fetch, { offset: 0, limit: 15, prefetch }))
        expect(ending).toBe('done')
        expect(ids.filter((id) => first.some((row) => row.id === id))).toEqual(idsOf(first))
        expect(new Set(ids).size).toBe(ids.length)
      },
    ),
    { numRuns: effort(200, 800) },
  )
})

test('rows that disappear hide no other row if the service reports a total', async () => {
  await fc.assert(
    fc.asyncProperty(fc.tuple(change), turns, few, async (removed, delays, prefetch) => {
      const first = rows(120)
      let list = first
      let reads = 0
      const { fetch } = service(delays, (at) => {
        reads++
        for (const change of removed.filter(({ read }) => read === reads)) list = list.slice(change.rows)
        return fetched(list.slice(at.offset, at.offset + 15), { total: list.length })
      })
      const { ids, ending } = await collect(new Pages(fetch, { offset: 0, limit: 15, prefetch }))
      expect(ending).toBe('done')
      expect(list.filter(({ id }) => !ids.includes(id))).toEqual([])
    }),
    { numRuns: effort(150, 500) },
  )
})
