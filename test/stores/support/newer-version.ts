/**
 * Checks how every SQL store handles tables that a newer version of the package has updated
 * meanwhile.
 */
import { expect, it } from 'vitest'
import { EVERYTHING, makeRow, nextVersion, SCOPE } from '../../../src/stores/contract/rows.ts'
import { expectFailure, expectFailures, readsOf } from './failures.ts'
import type { SqlEngine } from './sql-store.ts'

export const NEWER = 'a newer version of customer-ordering-sdk wrote it (schema 2, this version supports 1)'

/** Updates of a newer version. Each raises the version of the tables. */
const UPDATES: readonly (readonly [what: string, sql: string])[] = [
  ['nothing but the version', ''],
  ['a state that this version does not know', "UPDATE customer_ordering_rows SET state = 'held';"],
  ['another name of a column', 'ALTER TABLE customer_ordering_rows RENAME COLUMN data TO content;'],
  ['another name of the table', 'ALTER TABLE customer_ordering_rows RENAME TO customer_ordering_orders;'],
]

export function keepsFromNewerTables({ open, query, versions, schema }: SqlEngine): void {
  const raise = (sql = '') => query(`BEGIN; ${sql} INSERT INTO ${versions} (version) VALUES (2); COMMIT`)

  it.each(UPDATES)('this version does not change the tables after an update of %s', async (_, sql) => {
    const store = open()
    await store.insert(makeRow(1))
    await raise(sql)
    const before = await query(schema)
    const writes = [
      () => store.insert(makeRow(2)),
      () => store.update(nextVersion(makeRow(1)), 1),
      () => store.update(nextVersion(makeRow(9)), 1),
    ]
    for (const { applied, message } of await expectFailures(writes, NEWER)) {
      expect(applied).toBe(false)
      expect(message).toContain('Update the package; nothing was changed.')
    }
    // Reads report the newer version, not damage.
    if (sql !== '') await expectFailures(readsOf(store), NEWER)
    await expectFailure(() => open().insert(makeRow(2)), NEWER)
    await store.prune(SCOPE, EVERYTHING).catch(({ message }) => expect(message).toContain(NEWER))
    expect(await query(schema)).toEqual(before)
  })

  it('after the update, prune removes no closed row', async () => {
    const store = open()
    await store.insert(makeRow(1, { open: false, state: 'rejected' }))
    await raise()
    await store.prune(SCOPE, EVERYTHING).catch(({ message }) => expect(message).toContain(NEWER))
    const rows = await query('SELECT count(*) AS count FROM customer_ordering_rows')
    expect(Number(rows[0]?.['count'])).toBe(1)
  })
}
