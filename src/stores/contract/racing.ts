import type { OrderStore, StoredRow } from '../store.ts'
import type { ContractCase } from './case.ts'
import { expectNoRow, expectRow, expectSame } from './expect.ts'
import { recordHistory } from './history.ts'
import { explainHistory } from './linearizability.ts'
import { EVERYTHING, insertAll, makeRow, makeRows, mustUpdate, nextVersion, SCOPE } from './rows.ts'

type Handles = readonly [OrderStore, ...OrderStore[]]

const WRITERS = 24
/** A faulty store may fail in only some of the races. */
const ROUNDS = 8
const MAX_ATTEMPTS = 10_000

async function raceInserts(stores: Handles): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const offered = Array.from({ length: WRITERS }, (_, writer) =>
      makeRow(round, { data: `writer ${writer}` }),
    )
    const results = await Promise.all(offered.map((row, writer) => handleOf(stores, writer).insert(row)))
    const winners = offered.filter((_, writer) => results[writer]?.inserted)
    expectSame(winners.length, 1, `the number of winners among ${WRITERS} racing inserts of one row`)
    for (const result of results) {
      if (!result.inserted)
        expectRow(result.current, winners[0] ?? makeRow(round), 'the row that a losing insert() returned')
    }
    for (const store of stores) {
      expectRow(await store.get(SCOPE, makeRow(round).id), winners[0] ?? makeRow(round), 'the stored row')
    }
  }
}

async function raceUpdates(stores: Handles): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const first = makeRow(round)
    await insertAll(handleOf(stores, 0), [first])
    const offered = Array.from({ length: WRITERS }, (_, writer) =>
      nextVersion(first, { data: `writer ${writer}` }),
    )
    const results = await Promise.all(offered.map((row, writer) => handleOf(stores, writer).update(row, 1)))
    const winners = offered.filter((_, writer) => results[writer])
    expectSame(winners.length, 1, `the number of winners among ${WRITERS} racing updates of one version`)
    for (const store of stores)
      expectRow(await store.get(SCOPE, first.id), winners[0] ?? first, 'the stored row')
  }
}

async function count(stores: Handles): Promise<void> {
  const [clients, additions] = [8, 5]
  await insertAll(handleOf(stores, 0), [makeRow(1, { data: '0' })])
  await Promise.all(Array.from({ length: clients }, (_, client) => add(handleOf(stores, client), additions)))
  const total = clients * additions
  const expected = makeRow(1, { version: 1 + total, data: String(total) })
  const counted = await handleOf(stores, 0).get(SCOPE, expected.id)
  expectSame(counted?.data, expected.data, 'the counter')
  expectSame(counted?.version, expected.version, 'the version of the counter')
}

async function add(store: OrderStore, additions: number): Promise<void> {
  const { id } = makeRow(1)
  let left = additions
  for (let attempts = 0; left > 0; attempts++) {
    if (attempts > MAX_ATTEMPTS)
      throw new Error(`${left} of ${additions} updates did not succeed in ${MAX_ATTEMPTS} attempts`)
    const row = await store.get(SCOPE, id)
    if (row === undefined) throw new Error('the counter is missing')
    const next: StoredRow = { ...row, version: row.version + 1, data: String(Number(row.data) + 1) }
    if (await store.update(next, row.version)) left--
  }
}

async function checkHistory(stores: Handles, seed: number, size: { clients: number; operations: number }) {
  const { calls, failures } = await recordHistory(stores, { seed, ...size })
  if (failures.length > 0)
    throw new Error(`with seed ${seed}: rejected calls: ${failures.length}, the first with: ${failures[0]}`)
  const explanation = explainHistory(calls)
  if (explanation !== undefined) throw new Error(`with seed ${seed}: ${explanation}`)
}

function handleOf(stores: Handles, client: number): OrderStore {
  return stores[client % stores.length] ?? stores[0]
}

export const racing: readonly ContractCase[] = [
  {
    title: "exactly one of several racing inserts wins, and the losers get the winner's row",
    run: ({ store }) => raceInserts([store]),
  },
  {
    title: 'exactly one of several racing updates of one version wins',
    run: ({ store }) => raceUpdates([store]),
  },
  {
    title: 'clients that read and update in a loop lose no update',
    run: ({ store }) => count([store]),
  },
  {
    title: 'racing updates of different rows do not affect each other',
    run: async ({ store }) => {
      const rows = makeRows(40)
      await insertAll(store, rows)
      const next = rows.map((row) => nextVersion(row, { data: `next of ${row.id}` }))
      const updated = await Promise.all(next.map((row) => store.update(row, 1)))
      expectSame(updated.filter((done) => !done).length, 0, 'the number of updates that resolved to false')
      for (const row of next) expectRow(await store.get(SCOPE, row.id), row, 'the row')
    },
  },
  {
    title: 'either a racing prune or a racing update gets the row, but not both',
    run: async ({ store }) => {
      const rows = makeRows(20, { open: false, state: 'rejected' })
      await insertAll(store, rows)
      const reopened = rows.map((row) => nextVersion(row, { open: true, state: 'open' }))
      const half = Math.floor(rows.length / 2)
      const before = reopened.slice(0, half).map((row) => store.update(row, 1))
      const pruned = store.prune(SCOPE, EVERYTHING)
      const after = reopened.slice(half).map((row) => store.update(row, 1))
      const updated = await Promise.all([...before, ...after])
      const removed = await pruned
      expectSame(removed, updated.filter((done) => !done).length, 'the number of rows that prune() removed')
      for (const [index, row] of reopened.entries()) {
        const found = await store.get(SCOPE, row.id)
        if (updated[index]) expectRow(found, row, 'the reopened row')
        else expectNoRow(found, 'the pruned row')
      }
    },
  },
  {
    title: 'concurrent histories are linearizable for every row',
    run: ({ store, seed, history }) => checkHistory([store], seed, history),
  },
  {
    title: 'the next read through another handle sees a resolved write',
    needs: 'openSecond',
    run: async ({ store, openSecond }) => {
      const second = await openSecond()
      let row = makeRow(1)
      await insertAll(store, [row])
      expectRow(await second.get(SCOPE, row.id), row, 'the row read through the second handle')
      for (let turn = 0; turn < 10; turn++) {
        const [writer, reader] = turn % 2 === 0 ? [second, store] : [store, second]
        row = nextVersion(row, { data: `turn ${turn}`, open: turn % 4 < 2 })
        await mustUpdate(writer, row)
        expectRow(await reader.get(SCOPE, row.id), row, 'the row read through the other handle')
        const open = await reader.listOpen(SCOPE, { limit: 10 })
        expectSame(open.rows.length, row.open ? 1 : 0, 'the number of open rows that the other handle lists')
      }
    },
  },
  {
    title:
      "exactly one of several racing inserts through two handles wins, and the losers get the winner's row",
    needs: 'openSecond',
    run: async ({ store, openSecond }) => raceInserts([store, await openSecond()]),
  },
  {
    title: 'exactly one of several racing updates through two handles wins',
    needs: 'openSecond',
    run: async ({ store, openSecond }) => raceUpdates([store, await openSecond()]),
  },
  {
    title: 'clients of two handles that read and update in a loop lose no update',
    needs: 'openSecond',
    run: async ({ store, openSecond }) => count([store, await openSecond()]),
  },
  {
    title: 'concurrent histories through two handles are linearizable for every row',
    needs: 'openSecond',
    run: async ({ store, openSecond, seed, history }) =>
      checkHistory([store, await openSecond()], seed, history),
  },
]
