import type { ContractCase } from './case.ts'
import { expectIds, expectNoRow, expectRow, expectSame } from './expect.ts'
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

const CREATED = { open: false, state: 'created' } as const
const REJECTED = { open: false, state: 'rejected' } as const
const NOTHING = { createdBefore: 0, rejectedBefore: 0 } as const

export const pruning: readonly ContractCase[] = [
  {
    title: 'prune removes the closed rows last written before the cutoff time for their state',
    run: async ({ store }) => {
      const [createdBefore, rejectedBefore] = [WRITTEN_AT + 10, WRITTEN_AT + 20]
      const removed = [
        makeRow(1, { ...CREATED, updatedAt: createdBefore - 1 }),
        makeRow(2, { ...REJECTED, updatedAt: rejectedBefore - 1 }),
        makeRow(3, { ...REJECTED, updatedAt: createdBefore + 1 }),
      ]
      const kept = [
        makeRow(4, { ...CREATED, updatedAt: createdBefore }),
        makeRow(5, { ...CREATED, updatedAt: createdBefore + 1, createdAt: 1 }),
        makeRow(6, { ...REJECTED, updatedAt: rejectedBefore }),
      ]
      await insertAll(store, [...removed, ...kept])
      expectSame(
        await store.prune(SCOPE, { createdBefore, rejectedBefore }),
        3,
        'the number of rows that prune() removed',
      )
      for (const { id } of removed) expectNoRow(await store.get(SCOPE, id), 'a pruned row')
      for (const row of kept) expectRow(await store.get(SCOPE, row.id), row, 'a row that is too new to prune')
      expectIds(await walk((options) => store.list(SCOPE, options), 10), kept, 'list() after prune()')
    },
  },
  {
    title: 'prune applies a separate cutoff time to each state',
    run: async ({ store }) => {
      const [created, rejected] = [makeRow(1, CREATED), makeRow(2, REJECTED)]
      await insertAll(store, [created, rejected])
      expectSame(await store.prune(SCOPE, NOTHING), 0, 'the number of rows pruned with cutoff times of 0')
      expectSame(
        await store.prune(SCOPE, { ...NOTHING, rejectedBefore: WRITTEN_AT + 1 }),
        1,
        'the number of rejected rows pruned',
      )
      expectRow(await store.get(SCOPE, created.id), created, 'the created row')
      expectNoRow(await store.get(SCOPE, rejected.id), 'the pruned rejected row')
      expectSame(
        await store.prune(SCOPE, { ...NOTHING, createdBefore: WRITTEN_AT + 1 }),
        1,
        'the number of created rows pruned',
      )
      expectNoRow(await store.get(SCOPE, created.id), 'the pruned created row')
    },
  },
  {
    title: 'prune never removes an open row, regardless of its state and age',
    run: async ({ store }) => {
      const open = [
        makeRow(1, { updatedAt: 1 }),
        makeRow(2, { state: 'created', updatedAt: 1 }),
        makeRow(3, { state: 'rejected', updatedAt: 1 }),
      ]
      await insertAll(store, [...open, makeRow(4, CREATED)])
      const reopened = nextVersion(makeRow(4, CREATED), { open: true })
      await mustUpdate(store, reopened)
      expectSame(await store.prune(SCOPE, EVERYTHING), 0, 'the number of rows that prune() removed')
      for (const row of [...open, reopened])
        expectRow(await store.get(SCOPE, row.id), row, 'an open row after prune()')
      expectIds(
        await walk((options) => store.listOpen(SCOPE, options), 10),
        [...open, reopened],
        'listOpen() after prune()',
      )
    },
  },
  {
    title: "prune compares the cutoff with the time of a row's last write",
    run: async ({ store }) => {
      const touched = nextVersion(makeRow(1), { ...CREATED, updatedAt: WRITTEN_AT + 50 })
      await insertAll(store, [makeRow(1), makeRow(2, CREATED)])
      await mustUpdate(store, touched)
      expectSame(
        await store.prune(SCOPE, { ...NOTHING, createdBefore: WRITTEN_AT + 50 }),
        1,
        'the number of rows pruned',
      )
      expectRow(await store.get(SCOPE, touched.id), touched, 'the row that was written later')
    },
  },
  {
    title: 'prune removes no row of another scope',
    run: async ({ store }) => {
      const elsewhere = makeRow(1, { ...CREATED, scope: 'another scope' })
      await insertAll(store, [makeRow(1, CREATED), elsewhere])
      expectSame(await store.prune(SCOPE, EVERYTHING), 1, 'the number of rows pruned')
      expectRow(await store.get(elsewhere.scope, elsewhere.id), elsewhere, 'the row of another scope')
      expectSame(
        await store.prune('a scope without rows', EVERYTHING),
        0,
        'the number of rows pruned in an empty scope',
      )
    },
  },
  {
    title: 'prune returns the number of removed rows, and 0 the second time',
    run: async ({ store }) => {
      await insertAll(store, [...makeRows(150, CREATED), ...makeRows(180).slice(150), makeRow(200, REJECTED)])
      expectSame(await store.prune(SCOPE, EVERYTHING), 151, 'the number of rows pruned')
      expectSame(await store.prune(SCOPE, EVERYTHING), 0, 'the number of rows pruned the second time')
    },
  },
  {
    title: 'a pruned row can be inserted again',
    run: async ({ store }) => {
      await insertAll(store, [makeRow(1, CREATED)])
      await store.prune(SCOPE, EVERYTHING)
      expectSame(await store.update(nextVersion(makeRow(1, CREATED)), 1), false, 'update() of a pruned row')
      const anew = makeRow(1, { data: 'anew' })
      await insertAll(store, [anew])
      expectRow(await store.get(SCOPE, anew.id), anew, 'the row inserted anew')
      expectIds(await walk((options) => store.listOpen(SCOPE, options), 10), [anew], 'listOpen()')
    },
  },
  {
    title: 'another insert does not overwrite a row that was inserted again after a prune',
    run: async ({ store }) => {
      await insertAll(store, [makeRow(1, CREATED)])
      expectSame(await store.prune(SCOPE, EVERYTHING), 1, 'the number of rows pruned')
      const anew = makeRow(1, { data: 'anew' })
      await insertAll(store, [anew])
      const second = await store.insert(makeRow(1, { data: 'second' }))
      if (second.inserted)
        throw new Error('insert() of a row that was inserted anew after a prune() resolved to inserted: true')
      expectRow(second.current, anew, 'the current row that insert() returns')
      expectRow(await store.get(SCOPE, anew.id), anew, 'the row inserted anew')
    },
  },
]
