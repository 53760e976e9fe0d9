import type { ContractCase } from './case.ts'
import { expectIds, expectNoRow, expectRow, expectSame, show } from './expect.ts'
import { EVERYTHING, insertAll, makeRow, mustUpdate, nextVersion, SCOPE, walk } from './rows.ts'

/** Scopes that a store would confuse if it compared, joined or escaped them carelessly. */
const ALIKE_SCOPES: readonly string[] = [
  '',
  ' ',
  'a',
  'A',
  'a ',
  ' a',
  'a\u0000',
  'a\u0000b',
  'a%',
  'a_',
  'a*',
  'a?',
  'a\\',
  "a'",
  'a"',
  'a:b',
  'a/b',
  'a/../b',
  '{a}',
  'a{b}',
  'ａ',
  'å',
  'a\u030a',
  'null',
  'undefined',
  '__proto__',
  'constructor',
  '\ufffd',
  '𝒶',
  'a'.repeat(300),
  `${'a'.repeat(299)}b`,
]

const ALIKE_IDS: readonly string[] = ['id', 'ID', 'Id', 'id ', 'id  ', ' id', 'id\t', 'id_', 'id%', 'íd']

/** Rows whose scopes or ids are alike must stay apart. */
export const alike: readonly ContractCase[] = [
  {
    title: 'a scope never sees or changes rows of another scope, however similar their names are',
    run: async ({ store }) => {
      const rows = ALIKE_SCOPES.map((scope, index) => makeRow(1, { scope, data: `scope ${index}` }))
      await insertAll(store, rows)
      for (const row of rows)
        expectRow(await store.get(row.scope, row.id), row, `the row of scope ${show(row.scope)}`)
      for (const [index, row] of rows.entries()) {
        const page = await store.listOpen(row.scope, { limit: 100 })
        expectSame(page.rows.length, 1, `the number of open rows of scope ${show(row.scope)}`)
        expectRow(page.rows[0], row, `the open row of scope ${show(row.scope)}`)
        rows[index] = nextVersion(row, { data: `changed ${index}` })
        await mustUpdate(store, nextVersion(row, { data: `changed ${index}` }))
      }
      for (const row of rows)
        expectRow(await store.get(row.scope, row.id), row, `the row of scope ${show(row.scope)}`)
      const elsewhere = makeRow(1, { scope: 'a scope without rows', version: 3 })
      expectSame(await store.update(elsewhere, 2), false, 'update() in a scope without rows')
      expectNoRow(await store.get(elsewhere.scope, elsewhere.id), 'get() in a scope without rows')
    },
  },
  {
    title: 'ids are compared exactly: case, whitespace and accents distinguish rows',
    run: async ({ store }) => {
      const rows = ALIKE_IDS.map((id, index) => makeRow(index, { id, data: `row ${index}` }))
      await insertAll(store, rows)
      for (const [index, row] of rows.entries()) {
        expectRow(await store.get(SCOPE, row.id), row, `the row with id ${show(row.id)}`)
        rows[index] = nextVersion(row, { data: `changed ${index}` })
        await mustUpdate(store, nextVersion(row, { data: `changed ${index}` }))
      }
      for (const row of rows)
        expectRow(await store.get(SCOPE, row.id), row, `the row with id ${show(row.id)}`)
      // A page that ends between two of these ids must not make the next page skip a row.
      for (const limit of [1, 3]) {
        const open = await walk((options) => store.listOpen(SCOPE, options), limit)
        expectIds(open, rows, `listOpen() with limit ${limit}`)
        const all = await walk((options) => store.list(SCOPE, options), limit)
        expectIds(all, rows, `list() with limit ${limit}`)
      }
    },
  },
  {
    title: 'list and prune access only their own scope, however similar other scope names are',
    run: async ({ store }) => {
      const closed = { open: false, state: 'created' } as const
      const rows = ALIKE_SCOPES.map((scope) => makeRow(1, { ...closed, scope }))
      await insertAll(store, rows)
      for (const [index, { scope }] of rows.entries()) {
        const page = await store.list(scope, { limit: 100 })
        expectSame(page.rows.length, 1, `the number of rows of scope ${show(scope)}`)
        expectSame(
          await store.prune(scope, EVERYTHING),
          1,
          `the number of rows pruned in scope ${show(scope)}`,
        )
        for (const row of rows.slice(index + 1))
          expectRow(await store.get(row.scope, row.id), row, `the row of scope ${show(row.scope)}`)
      }
    },
  },
]
