import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CustomerOrderingClient } from 'customer-ordering-sdk'
import type { MysqlClient, MysqlStore } from 'customer-ordering-sdk/stores/mysql'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeRow, SCOPE } from '../../../src/stores/contract/rows.ts'
import { blocksOf, readPages } from '../../docs/support/pages.ts'
import { during, sqlServer } from '../support/during.ts'
import { makeMysqlPool } from '../support/mysql.ts'
import { describeWith } from '../support/services.ts'

const folder = fileURLToPath(new URL('../../../.tmp/mysql-docs/', import.meta.url))

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
  const shown: Partial<Page> = {}

  beforeAll(async () => {
    const blocks = readPages()
      .flatMap(blocksOf)
      .filter(
        ({ at, info, code }) => at.startsWith('docs/') && info === 'ts' && code.includes('/stores/mysql'),
      )
    await mkdir(folder, { recursive: true })
    for (const [index, { code }] of blocks.entries()) {
      const file = join(folder, `block-${index}.ts`)
      await writeFile(file, code)
      Object.assign(shown, await import(file))
    }
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('the documented MySQL code works', async () => {
    const { openClient, openStore } = shown
    if (!openClient || !openStore) throw new Error('a block is missing')
    const client = openClient(pool())
    for await (const record of client.orders.unresolved()) throw new Error(`it has ${record.slot}`)
    const store = await openStore(pool())
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
    expect((await store.listOpen(SCOPE, { limit: 5 })).rows).toEqual([makeRow(1)])
  })
})
