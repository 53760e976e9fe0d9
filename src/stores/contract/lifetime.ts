import type { StoredRow } from '../store.ts'
import type { ContractCase } from './case.ts'
import { expectIds, expectNoRow, expectRow, expectSame, show } from './expect.ts'
import { EVERYTHING, insertAll, makeRow, makeRows, mustUpdate, nextVersion, SCOPE, walk } from './rows.ts'

function scribbleOver(row: StoredRow): void {
  const scribble = {
    scope: 'x',
    id: 'x',
    version: 99,
    open: false,
    state: 'rejected',
    createdAt: 9,
    updatedAt: 9,
    data: 'x',
  }
  // Unlike an assignment, `Reflect.set` does not throw if the row is frozen.
  for (const [field, value] of Object.entries(scribble)) Reflect.set(row, field, value)
}

export const lifetime: readonly ContractCase[] = [
  {
    title: 'durability is memory, device or server',
    run: async ({ store }) => {
      if (!['memory', 'device', 'server'].includes(store.durability)) {
        throw new Error(`durability: expected "memory", "device" or "server", got ${show(store.durability)}`)
      }
    },
  },
  {
    title: 'changing a row after a write does not change the stored row',
    run: async ({ store }) => {
      const inserted = makeRow(1)
      await insertAll(store, [inserted])
      scribbleOver(inserted)
      expectRow(await store.get(SCOPE, makeRow(1).id), makeRow(1), 'the inserted row')
      const updated = nextVersion(makeRow(1), { data: 'updated' })
      await mustUpdate(store, updated)
      scribbleOver(updated)
      const expected = nextVersion(makeRow(1), { data: 'updated' })
      expectRow(await store.get(SCOPE, makeRow(1).id), expected, 'the updated row')
      expectIds(await walk((options) => store.listOpen(SCOPE, options), 10), [expected], 'listOpen()')
    },
  },
  {
    title: 'changing a row that a read returned does not change the stored row',
    run: async ({ store }) => {
      const row = makeRow(1)
      await insertAll(store, [row])
      const handedOut = [
        await store.get(SCOPE, row.id),
        (await store.listOpen(SCOPE, { limit: 1 })).rows[0],
        (await store.list(SCOPE, { limit: 1 })).rows[0],
        await store.insert(row).then((result) => (result.inserted ? undefined : result.current)),
      ]
      for (const [index, found] of handedOut.entries()) {
        const method = ['get', 'listOpen', 'list', 'insert'][index]
        if (found === undefined) throw new Error(`${method}() did not return the row`)
        scribbleOver(found)
        expectRow(await store.get(SCOPE, row.id), row, `the row after changing what ${method}() returned`)
      }
    },
  },
  {
    title: 'close can be called again',
    run: async ({ store }) => {
      await insertAll(store, [makeRow(1)])
      await store.close()
      await store.close()
      await Promise.all([store.close(), store.close()])
    },
  },
  {
    title: 'closing one handle leaves the other working',
    needs: 'openSecond',
    run: async ({ store, openSecond }) => {
      const second = await openSecond()
      await insertAll(store, [makeRow(1)])
      await store.close()
      expectRow(await second.get(SCOPE, makeRow(1).id), makeRow(1), 'the row read through the open handle')
      await mustUpdate(second, nextVersion(makeRow(1)))
    },
  },
  {
    title: 'rows survive closing and reopening the store',
    needs: 'reopenStore',
    run: async ({ store, reopen }) => {
      const rows = makeRows(20)
      await insertAll(store, rows)
      const updated = rows
        .slice(0, 10)
        .map((row) => nextVersion(row, { open: false, state: 'created', data: 'updated' }))
      for (const row of updated) await mustUpdate(store, row)
      const gone = makeRow(50, { open: false, state: 'rejected', updatedAt: 1 })
      await insertAll(store, [gone])
      await store.prune(SCOPE, { createdBefore: 0, rejectedBefore: 2 })
      const again = await reopen()
      const expected = [...updated, ...rows.slice(10)]
      for (const row of expected) expectRow(await again.get(SCOPE, row.id), row, 'the row after reopening')
      expectNoRow(await again.get(SCOPE, gone.id), 'the pruned row after reopening')
      expectIds(
        await walk((options) => again.listOpen(SCOPE, options), 3),
        rows.slice(10),
        'listOpen() after reopening',
      )
      expectIds(await walk((options) => again.list(SCOPE, options), 3), expected, 'list() after reopening')
      const lost = await again.insert(makeRow(1, { data: 'too late' }))
      expectSame(lost.inserted, false, '`inserted` for a row that was stored before reopening')
      await mustUpdate(again, nextVersion(makeRow(20), { open: false, state: 'created' }))
      expectSame(await again.prune(SCOPE, EVERYTHING), 11, 'the number of closed rows pruned after reopening')
    },
  },
]

/** Runs if the option `reopenStore` is missing, instead of the cases that need it. */
export const claimsNoMoreThanMemory: ContractCase = {
  title: 'a store that the suite cannot reopen declares durability memory',
  run: async ({ store }) => {
    if (store.durability === 'memory') return
    throw new Error(
      `durability is ${show(store.durability)}, but the suite cannot check that: pass \`reopenStore\``,
    )
  },
}
