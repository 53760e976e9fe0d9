import type { OrderStore, StoredRow } from '../store.ts'
import type { ContractCase } from './case.ts'
import { expectIds, expectRow, expectSame } from './expect.ts'
import {
  EVERYTHING,
  insertAll,
  makeRow,
  makeRows,
  mustUpdate,
  nextVersion,
  SCOPE,
  WRITTEN_AT,
  walk,
} from './rows.ts'
import { seeded } from './seeded.ts'

/**
 * Rows stop changing after this many pages. Without a limit, new rows could keep a walk from
 * ending.
 */
const CHANGING_PAGES = 60

const openPages =
  (store: OrderStore, scope = SCOPE) =>
  (options: { readonly after?: string; readonly limit: number }) =>
    store.listOpen(scope, options)

const allPages =
  (store: OrderStore, since?: number, scope = SCOPE) =>
  (options: { readonly after?: string; readonly limit: number }) =>
    store.list(scope, since === undefined ? options : { ...options, since })

/** Inserts and changes rows at random. The rows in `staying` remain open. */
class Churn {
  readonly #store: OrderStore
  readonly #next: (below: number) => number
  readonly #staying: StoredRow[]
  readonly #changing: StoredRow[]
  #created = 1_000

  constructor(
    store: OrderStore,
    seed: number,
    staying: readonly StoredRow[],
    changing: readonly StoredRow[],
  ) {
    this.#store = store
    this.#next = seeded(seed)
    this.#staying = [...staying]
    this.#changing = [...changing]
  }

  async step(): Promise<void> {
    for (let changes = this.#next(4); changes > 0; changes--) await this.#change()
  }

  async #change(): Promise<void> {
    const choice = this.#next(6)
    if (choice === 0) {
      const row = makeRow(this.#created++)
      await insertAll(this.#store, [row])
      this.#changing.push(row)
    } else if (choice === 1) {
      // A walk in the order of `updatedAt` could miss an open row whose time changes.
      await this.#replace(this.#staying, { updatedAt: WRITTEN_AT + this.#next(2_000) - 1_000 })
    } else {
      await this.#replace(
        this.#changing,
        this.#next(2) === 0 ? { open: false, state: 'created' } : { open: true, state: 'open' },
      )
    }
  }

  async #replace(rows: StoredRow[], fields: Partial<StoredRow>): Promise<void> {
    const index = this.#next(rows.length)
    const row = rows[index]
    if (row === undefined) return
    const next = nextVersion(row, fields)
    await mustUpdate(this.#store, next)
    rows[index] = next
  }
}

export const paging: readonly ContractCase[] = [
  {
    title: 'listOpen and list return one empty page for an empty scope',
    run: async ({ store }) => {
      await insertAll(store, [makeRow(1, { scope: 'another scope' })])
      expectIds(await walk(openPages(store), 5), [], 'listOpen()')
      expectIds(await walk(allPages(store), 5), [], 'list()')
    },
  },
  {
    title: 'listOpen returns each open row of its scope once, for any limit',
    run: async ({ store }) => {
      const open = makeRows(23)
      const created = makeRow(24, { state: 'created' })
      const closed = [
        makeRow(25, { open: false, state: 'created' }),
        makeRow(26, { open: false, state: 'rejected' }),
      ]
      await insertAll(store, [...open, created, ...closed, makeRow(27, { scope: 'another scope' })])
      for (const limit of [1, 2, 7, 23, 24, 25, 1_000]) {
        expectIds(await walk(openPages(store), limit), [...open, created], `listOpen() with limit ${limit}`)
      }
    },
  },
  {
    title: "listOpen and list reach every row of a large scope with the client's limit",
    run: async ({ store }) => {
      // Every tenth row is long, because a store may limit the bytes in a page.
      const rows = makeRows(230).map((row, index) =>
        index % 10 === 0 ? { ...row, data: 'x'.repeat(100_000) } : row,
      )
      for (let start = 0; start < rows.length; start += 10)
        await insertAll(store, rows.slice(start, start + 10))
      expectIds(await walk(openPages(store), 100), rows, 'listOpen() with limit 100')
      expectIds(await walk(allPages(store), 100), rows, 'list() with limit 100')
    },
  },
  {
    title: 'listOpen returns every field as it was last written',
    run: async ({ store }) => {
      const first = makeRow(1)
      await insertAll(store, [first, makeRow(2, { open: false, state: 'created' })])
      const next = nextVersion(first, { data: 'next', state: 'created' })
      await mustUpdate(store, next)
      const [only, ...others] = await walk(openPages(store), 10)
      expectRow(only, next, 'the open row')
      expectSame(others.length, 0, 'the number of other open rows')
    },
  },
  {
    title: 'listOpen reflects that a row was closed or reopened',
    run: async ({ store }) => {
      const closing = makeRow(1)
      const opening = makeRow(2, { open: false, state: 'created' })
      await insertAll(store, [closing, opening])
      expectIds(await walk(openPages(store), 1), [closing], 'listOpen() after the inserts')
      const closed = nextVersion(closing, { open: false, state: 'rejected' })
      await mustUpdate(store, closed)
      await mustUpdate(store, nextVersion(opening, { open: true }))
      expectIds(
        await walk(openPages(store), 1),
        [opening],
        'listOpen() after closing one and opening the other',
      )
      await mustUpdate(store, nextVersion(closed, { open: true, state: 'open' }))
      expectIds(
        await walk(openPages(store), 1),
        [closing, opening],
        'listOpen() after opening the first again',
      )
    },
  },
  {
    title: 'listOpen reaches every row even if its caller closes each row, as recovery does',
    run: async ({ store }) => {
      for (const [round, limit] of [1, 2, 5].entries()) {
        const rows = makeRows(round * 100 + 20).slice(round * 100)
        await insertAll(store, rows)
        const seen = await walk(async (options) => {
          const page = await store.listOpen(SCOPE, options)
          for (const row of page.rows)
            await mustUpdate(store, nextVersion(row, { open: false, state: 'created' }))
          return page
        }, limit)
        expectIds(seen, rows, `listOpen() with limit ${limit}`)
      }
    },
  },
  {
    title: 'listOpen never omits a row that stays open, even if other rows change between pages',
    run: async ({ store, seed }) => {
      // Alternate staying and changing rows. Closing a row then shifts the staying rows after it.
      const rows = makeRows(40)
      const staying = rows.filter((_, index) => index % 2 === 0)
      await insertAll(store, rows)
      const changing = rows.filter((_, index) => index % 2 === 1)
      const churn = new Churn(store, seed, staying, changing)
      for (const limit of [1, 2, 3, 7]) {
        const seen = await walk(openPages(store), limit, async (pagesRead) => {
          if (pagesRead <= CHANGING_PAGES) await churn.step()
        })
        const missed = staying.filter(({ id }) => !seen.some((row) => row.id === id))
        if (missed.length > 0) {
          throw new Error(
            `with seed ${seed}: listOpen() with limit ${limit} omitted ${missed.length} of ` +
              `${staying.length} rows that stayed open`,
          )
        }
      }
    },
  },
  {
    title: "concurrent readers do not affect each other's pages",
    run: async ({ store }) => {
      const rows = makeRows(12)
      await insertAll(store, rows)
      const other = store.listOpen(SCOPE, { limit: 5 })
      const walks = await Promise.all([1, 2, 5].map((limit) => walk(openPages(store), limit)))
      for (const seen of walks) expectIds(seen, rows, 'listOpen() during other reads')
      const { next } = await other
      if (next === undefined) throw new Error('listOpen() with limit 5 returned no `next` for 12 open rows')
      const [once, again] = [
        await store.listOpen(SCOPE, { limit: 50, after: next }),
        await store.listOpen(SCOPE, { limit: 50, after: next }),
      ]
      expectIds(again.rows, once.rows, 'a second listOpen() with the same `after`')
    },
  },
  {
    title: 'list returns each row of its scope once, open or closed, for any limit',
    run: async ({ store }) => {
      // Several rows share each `updatedAt`. A cursor that contains only the time would skip some.
      const rows = makeRows(23).map((row, index) => ({
        ...row,
        open: index % 3 === 0,
        state: (['open', 'created', 'rejected'] as const)[index % 3] ?? 'open',
        updatedAt: WRITTEN_AT + (index % 4),
      }))
      await insertAll(store, [...rows, makeRow(99, { scope: 'another scope' })])
      for (const limit of [1, 2, 7, 23, 1_000]) {
        const seen = await walk(allPages(store), limit)
        expectIds(seen, rows, `list() with limit ${limit}`)
        for (const row of rows)
          expectRow(
            seen.find(({ id }) => id === row.id),
            row,
            'the listed row',
          )
      }
    },
  },
  {
    title: 'list returns the rows last written at `since` or later',
    run: async ({ store }) => {
      const rows = makeRows(12).map((row, index) => ({
        ...row,
        updatedAt: WRITTEN_AT + Math.floor(index / 2),
        createdAt: 5,
      }))
      await insertAll(store, rows)
      for (const since of [0, WRITTEN_AT, WRITTEN_AT + 3, WRITTEN_AT + 5, WRITTEN_AT + 6]) {
        const expected = rows.filter(({ updatedAt }) => updatedAt >= since)
        for (const limit of [1, 3, 100]) {
          expectIds(
            await walk(allPages(store, since), limit),
            expected,
            `list() since ${since} with limit ${limit}`,
          )
        }
      }
      await mustUpdate(store, nextVersion(makeRow(1), { updatedAt: WRITTEN_AT + 100 }))
      expectIds(
        await walk(allPages(store, WRITTEN_AT + 100), 1),
        [makeRow(1)],
        'list() since the time of an update',
      )
    },
  },
  {
    title: 'list and prune compare times as numbers, whatever their number of digits',
    run: async ({ store }) => {
      // Compared as strings, 1000 and 10000 come before 999, so a cursor could skip rows.
      const times = [9, 999, 1_000, 10_000, 99_999, 100_000]
      const rows = times.map((updatedAt, index) =>
        makeRow(index + 1, { open: false, state: 'created', createdAt: 1, updatedAt }),
      )
      await insertAll(store, rows)
      for (const since of [0, 10, 999, 1_000, 9_999, 99_999]) {
        const expected = rows.filter(({ updatedAt }) => updatedAt >= since)
        for (const limit of [1, 2, 100]) {
          expectIds(
            await walk(allPages(store, since), limit),
            expected,
            `list() since ${since} with limit ${limit}`,
          )
        }
      }
      const pruned = await store.prune(SCOPE, { createdBefore: 1_000, rejectedBefore: 0 })
      expectSame(pruned, 2, 'the number of rows that prune() removed')
      expectIds(await walk(allPages(store), 1), rows.slice(2), 'list() after prune()')
    },
  },
  {
    title: 'list never omits an unchanged row, even if other rows change between pages',
    run: async ({ store }) => {
      const rows = makeRows(30).map((row, index) => ({ ...row, updatedAt: WRITTEN_AT + index }))
      const staying = rows.filter((_, index) => index % 2 === 0)
      const changing = rows.filter((_, index) => index % 2 === 1)
      await insertAll(store, rows)
      const seen = await walk(allPages(store, WRITTEN_AT), 2, async (pagesRead) => {
        const row = changing[pagesRead]
        if (row === undefined) return
        await mustUpdate(
          store,
          nextVersion(row, { open: false, state: 'rejected', updatedAt: WRITTEN_AT + 100 }),
        )
        if (pagesRead % 3 === 0) await store.prune(SCOPE, EVERYTHING)
        await insertAll(store, [makeRow(500 + pagesRead)])
      })
      const missed = staying.filter(({ id }) => !seen.some((row) => row.id === id))
      expectSame(missed.length, 0, 'the number of unchanged rows that list() omitted')
    },
  },
]
