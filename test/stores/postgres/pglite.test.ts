import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { expect, it } from 'vitest'
import { makeRow, SCOPE } from '../../../src/stores/contract/rows.ts'
import { during } from '../support/during.ts'
import { pglite } from '../support/postgres-clients.ts'
import { describeWith } from '../support/services.ts'

describeWith('clients', 'PostgresStore and a PGlite of its own', () => {
  const started = during(
    async () => {
      const directory = await mkdtemp(join(tmpdir(), 'pglite-'))
      return { directory, database: await pglite().PGlite.create(directory) }
    },
    async ({ directory, database }) => {
      if (!database.closed) await database.close()
      await rm(directory, { recursive: true, force: true })
    },
  )
  let tables = 0
  const open = () => new PostgresStore({ client: started().database, table: `rows_${++tables}` })

  const inside = /its connection is inside a transaction, and a rollback could remove an order/

  it("the store rejects PGlite's transaction object", async () => {
    const transaction = started().database.transaction(async (client) => {
      const store = new PostgresStore({ client, table: 'inside' })
      await expect(store.insert(makeRow(1))).rejects.toThrow(inside)
    })
    // The rejected call makes the transaction fail, so nothing in it can be committed.
    await expect(transaction).rejects.toThrow('rolled back')
  })

  it('the store waits for another transaction to end, and is not rolled back with it', async () => {
    const store = open()
    await store.migrate()
    let inserted: Promise<unknown> | undefined
    const failed = started().database.transaction(async () => {
      inserted = store.insert(makeRow(1))
      await new Promise((resolve) => setTimeout(resolve, 20))
      throw new Error('rolled back')
    })
    await expect(failed).rejects.toThrow('rolled back')
    expect(await inserted).toEqual({ inserted: true })
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  })

  it('rows survive closing and reopening the data directory', async () => {
    const { directory, database } = started()
    const store = open()
    await store.insert(makeRow(1))
    await database.close()
    await expect(store.get(SCOPE, 'id')).rejects.toThrow('the client that you passed was closed')
    const client = await pglite().PGlite.create(directory)
    const again = new PostgresStore({ client, table: `rows_${tables}` })
    expect(await again.insert(makeRow(1))).toEqual({ inserted: false, current: makeRow(1) })
    await client.close()
  })
})
