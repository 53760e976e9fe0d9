/** Checks of every store in an SQL database, with direct access to its tables. */
import { describe, expect, it } from 'vitest'
import { EVERYTHING, makeRow, SCOPE } from '../../../src/stores/contract/rows.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { callsOf, expectFailure, expectFailures } from './failures.ts'
import { keepsFromNewerTables } from './newer-version.ts'

export interface SqlEngine {
  readonly name: string
  readonly open: () => OrderStore
  readonly query: (sql: string) => Promise<readonly Record<string, unknown>[]>
  /** The name of the table of versions. */
  readonly versions: string
  readonly dropIndex: string
  /** A query whose result changes with every table or index. */
  readonly schema: string
  /** What the error says after the table of rows was dropped. */
  readonly dropped: string
}

export function behavesAsSqlStore(engine: SqlEngine): void {
  const { name, open, query, versions, dropIndex, schema, dropped } = engine

  describe('tables that a newer version updates while this version uses them', () =>
    keepsFromNewerTables(engine))

  it('the store completes tables that lack something, and keeps their rows', async () => {
    await open().insert(makeRow(1))
    const whole = await query(schema)
    await query(`DELETE FROM ${versions}; ${dropIndex}`)
    expect(await query(schema)).not.toEqual(whole)
    expect(await open().listOpen(SCOPE, { limit: 5 })).toEqual({ rows: [makeRow(1)] })
    expect(await query(schema)).toEqual(whole)
  })

  it('tables that are dropped while the store is open are not created again', async () => {
    const store = open()
    await store.insert(makeRow(1))
    await query('DROP TABLE customer_ordering_rows')
    const without = await query(schema)
    await expectFailures(callsOf(store), dropped)
    expect(await query(schema)).toEqual(without)
  })

  it('the store rejects a value in the table that it did not write', async () => {
    const store = open()
    await store.insert(makeRow(1))
    await query("UPDATE customer_ordering_rows SET state = 'paid'")
    const call = () => store.get(SCOPE, makeRow(1).id)
    await expectFailure(call, 'contains a row that it did not write')
  })

  it('the store rejects half of a surrogate pair in every argument', async () => {
    const store = open()
    const half = '\ud800'
    const calls = [
      () => store.get(half, 'id'),
      () => store.get(SCOPE, half),
      () => store.insert(makeRow(1, { data: half })),
      () => store.insert(makeRow(1, { id: half })),
      () => store.update(makeRow(1, { scope: half }), 1),
      () => store.listOpen(half, { limit: 1 }),
      () => store.list(half, { limit: 1 }),
      () => store.prune(half, EVERYTHING),
    ]
    await expectFailures(calls, 'half of a surrogate pair')
  })

  it.each(['nonsense', '', ' id', 'x id', '12'])('the store rejects the cursor %j', async (after) => {
    const call = () => open().list(SCOPE, { limit: 1, after })
    await expectFailure(call, '`after` must be the `next` of a page that this store returned')
  })

  it('every call after close rejects', async () => {
    const store = open()
    await store.insert(makeRow(1))
    await store.close()
    await expectFailures(callsOf(store), `was closed. Create a new ${name}`)
  })
}
