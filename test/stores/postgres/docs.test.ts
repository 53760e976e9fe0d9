import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CustomerOrderingClient, StoredRow } from 'customer-ordering-sdk'
import {
  type PostgresClient,
  type PostgresParameter,
  PostgresStore,
} from 'customer-ordering-sdk/stores/postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeRow, SCOPE } from '../../../src/stores/contract/rows.ts'
import { blocksOf, readPages } from '../../docs/support/pages.ts'
import { describeWith, HOOK_TIMEOUT } from '../support/postgres.ts'
import { type PGliteDatabase, pglite } from '../support/postgres-clients.ts'

const folder = fileURLToPath(new URL('../../../.tmp/postgres-docs/', import.meta.url))

/** What the functions of the page are called, and take. */
interface Page {
  openClient(pool: PostgresClient): CustomerOrderingClient
  adapt(sql: {
    unsafe(text: string, parameters?: PostgresParameter[]): Promise<readonly unknown[]>
  }): PostgresClient
  checkOut(connection: PostgresClient, store: PostgresStore, row: StoredRow): Promise<void>
}

describeWith('clients', 'what docs/stores.md shows of PostgresStore', () => {
  let database: PGliteDatabase | undefined
  const shown: Partial<Page> = {}

  beforeAll(async () => {
    database = await pglite().PGlite.create()
    const blocks = readPages()
      .flatMap(blocksOf)
      .filter(
        ({ at, info, code }) =>
          at.startsWith('docs/stores.md') && info === 'ts' && code.includes('/stores/postgres'),
      )
    await mkdir(folder, { recursive: true })
    for (const [index, { code }] of blocks.entries()) {
      const file = join(folder, `block-${index}.ts`)
      await writeFile(file, code)
      Object.assign(shown, await import(file))
    }
  }, HOOK_TIMEOUT)
  afterAll(async () => {
    await database?.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('works', async () => {
    const { openClient, adapt, checkOut } = shown
    if (database === undefined || !openClient || !adapt || !checkOut) throw new Error('a block is missing')
    const pglite = database
    const client = openClient(pglite)
    for await (const record of client.orders.unresolved()) throw new Error(`it has ${record.slot}`)
    const store = new PostgresStore({
      client: adapt({ unsafe: async (text, parameters) => (await pglite.query(text, parameters)).rows }),
    })
    await pglite.exec('CREATE TABLE checkouts (id text PRIMARY KEY)')
    await store.migrate()
    await checkOut(pglite, store, makeRow(1))
    await expect(checkOut(pglite, store, makeRow(2))).rejects.toThrow(/duplicate key/)
    await pglite.exec('DELETE FROM checkouts')
    await expect(checkOut(pglite, store, makeRow(1))).rejects.toThrow('this was ordered before')
    expect((await store.listOpen(SCOPE, { limit: 5 })).rows).toEqual([makeRow(1)])
    expect((await pglite.query('SELECT id FROM checkouts')).rows).toEqual([])
  })
})
