import type { CustomerOrderingClient } from 'customer-ordering-sdk'
import type { MysqlClient, MysqlStore } from 'customer-ordering-sdk/stores/mysql'
import { expect, it } from 'vitest'
import { makeRow, SCOPE } from '../../../src/stores/contract/rows.ts'
import { exportsOf, programsAbout } from '../../docs/support/pages.ts'
import { during, sqlServer } from '../support/during.ts'
import { makeMysqlPool } from '../support/mysql.ts'
import { describeWith } from '../support/services.ts'

/** The names and parameters of the page's functions. */
interface Page {
  openClient(pool: MysqlClient): CustomerOrderingClient
  openStore(pool: MysqlClient): Promise<MysqlStore>
}

describeWith('mariadb', 'what the documentation shows of MysqlStore', () => {
  const server = sqlServer('mariadb')
  const pool = during(
    async () => makeMysqlPool(server().url, { connectionLimit: 1 }),
    (opened) => opened.end(),
  )
  it('the documented MySQL code works', async () => {
    const { openClient, openStore } = await exportsOf<Page>('mysql-docs', programsAbout('/stores/mysql'))
    const client = openClient(pool())
    for await (const record of client.orders.unresolved()) throw new Error(`it has ${record.slot}`)
    const store = await openStore(pool())
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
    expect((await store.listOpen(SCOPE, { limit: 5 })).rows).toEqual([makeRow(1)])
  })
})
