import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { makeRow, nextVersion, SCOPE } from '../../../src/stores/contract/rows.ts'
import { type PGliteDatabase, pglite } from '../support/postgres-clients.ts'
import { describeWith } from '../support/services.ts'
import { HOOK_TIMEOUT } from '../support/sql-server.ts'

describeWith('clients', 'PostgresStore and a PGlite of its own', () => {
  let directory = ''
  let opened: PGliteDatabase | undefined
  const database = (): PGliteDatabase => {
    if (opened === undefined) throw new Error('not started')
    return opened
  }
  let table = ''
  let tables = 0

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pglite-'))
    opened = await pglite().PGlite.create(directory)
  }, HOOK_TIMEOUT)
  afterAll(async () => {
    await opened?.close()
    await rm(directory, { recursive: true, force: true })
  })
  beforeEach(() => {
    table = `rows_${++tables}`
  })

  const inside = /its connection is inside a transaction, and a rollback could remove an order/

  it('the store rejects calls between BEGIN and the end of a transaction', async () => {
    const store = new PostgresStore({ client: database(), table })
    await store.insert(makeRow(1))
    for (const begin of [
      'BEGIN',
      'BEGIN; CREATE TABLE theirs (id int)',
      'BEGIN ISOLATION LEVEL SERIALIZABLE',
    ]) {
      await database().exec(begin)
      await expect(store.insert(makeRow(2))).rejects.toThrow(inside)
      await expect(store.update(nextVersion(makeRow(1)), 1)).rejects.toThrow(inside)
      await expect(store.get(SCOPE, makeRow(1).id)).rejects.toThrow(inside)
      await expect(new PostgresStore({ client: database(), table: 'another' }).migrate()).rejects.toThrow(
        inside,
      )
      await database().exec('ROLLBACK')
    }
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    expect(await store.get(SCOPE, makeRow(2).id)).toBeUndefined()
  })

  it("the store rejects PGlite's transaction object", async () => {
    const transaction = database().transaction(async (client) => {
      const store = new PostgresStore({ client, table })
      await expect(store.insert(makeRow(1))).rejects.toThrow(inside)
    })
    // The rejected call makes the transaction fail, so nothing in it can be committed.
    await expect(transaction).rejects.toThrow('rolled back')
  })

  it('the store waits for another transaction to end, and is not rolled back with it', async () => {
    const store = new PostgresStore({ client: database(), table })
    await store.migrate()
    let inserted: Promise<unknown> | undefined
    const failed = database().transaction(async () => {
      inserted = store.insert(makeRow(1))
      await new Promise((resolve) => setTimeout(resolve, 20))
      throw new Error('rolled back')
    })
    await expect(failed).rejects.toThrow('rolled back')
    expect(await inserted).toEqual({ inserted: true })
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  })

  it('rows survive closing and reopening the data directory', async () => {
    await new PostgresStore({ client: database(), table }).insert(makeRow(1))
    await database().close()
    await expect(new PostgresStore({ client: database(), table }).get(SCOPE, 'id')).rejects.toThrow(
      'the client that you passed was closed',
    )
    opened = await pglite().PGlite.create(directory)
    const again = new PostgresStore({ client: database(), table })
    expect(await again.insert(makeRow(1))).toEqual({ inserted: false, current: makeRow(1) })
  })
})
