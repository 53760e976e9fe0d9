import type { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import {
  type PostgresClient,
  type PostgresParameter,
  PostgresStore,
} from 'customer-ordering-sdk/stores/postgres'
import { expect, it, vi } from 'vitest'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { makeRow, SCOPE } from '../../../src/stores/contract/rows.ts'
import { blocksOf, exportsOf, programsOf, readPages } from '../../docs/support/pages.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { during } from '../support/during.ts'
import { callsOf, expectFailure } from '../support/failures.ts'
import { pglite } from '../support/postgres-clients.ts'
import { describeWith } from '../support/services.ts'

/** The functions of docs/guide/stores/postgres.md. */
interface Page {
  openClient(pool: PostgresClient): CustomerOrderingClient
  adapt(sql: {
    unsafe(text: string, parameters?: PostgresParameter[]): Promise<readonly unknown[]>
  }): PostgresClient
  openShop(pool: PostgresClient): Promise<{
    checkOut(connection: PostgresClient, id: string, target: string): Promise<void>
    placeOrders(): Promise<void>
  }>
}

describeWith('clients', 'PostgresStore and a PGlite of its own', () => {
  const directory = temporaryFolder('pglite')
  const database = during(
    () => pglite().PGlite.create(directory),
    async (opened) => opened.closed || (await opened.close()),
  )
  let tables = 0
  const open = () => new PostgresStore({ client: database(), table: `rows_${++tables}` })

  const inside = /its connection is inside a transaction, and a rollback could remove an order/

  it.each(['BEGIN', 'BEGIN; CREATE TABLE theirs (id int)', 'BEGIN ISOLATION LEVEL SERIALIZABLE'])(
    'every call rejects between %s and the end of the transaction',
    async (begin) => {
      const store = open()
      await store.insert(makeRow(1))
      for (const call of [...callsOf(store), () => open().migrate()]) {
        await database().exec(begin)
        await expectFailure(call, inside)
        await database().exec('ROLLBACK')
      }
      expect((await store.list(SCOPE, { limit: 5 })).rows).toEqual([makeRow(1)])
    },
  )

  it("the store rejects PGlite's transaction object", async () => {
    const transaction = database().transaction(async (client) => {
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
    const failed = database().transaction(async () => {
      inserted = store.insert(makeRow(1))
      await new Promise((resolve) => setTimeout(resolve, 20))
      throw new Error('rolled back')
    })
    await expect(failed).rejects.toThrow('rolled back')
    expect(await inserted).toEqual({ inserted: true })
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  })

  it('the documented Postgres code works', async () => {
    const programs = programsOf('docs/', '/stores/postgres')
    const { openClient, adapt, openShop } = await exportsOf<Page>('postgres-docs', programs)
    const pglite = database()
    expect(await openClient(pglite).orders.unresolved()).toEqual([])
    const store = new PostgresStore({
      client: adapt({ unsafe: async (text, parameters) => (await pglite.query(text, parameters)).rows }),
    })
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
    expect((await store.listOpen(SCOPE, { limit: 5 })).rows).toEqual([makeRow(1)])

    const sandbox = createSandbox()
    const server = await serveSandbox(sandbox)
    vi.stubEnv('CUSTOMER_ORDERING_BASE_URL', server.url)
    vi.stubEnv('CUSTOMER_ORDERING_API_KEY', sandbox.apiKey)
    try {
      const tables = readPages()
        .flatMap(blocksOf)
        .find(({ info }) => info === 'sql')
      await pglite.exec(tables?.code ?? '')
      const { checkOut, placeOrders } = await openShop(pglite)
      await checkOut(pglite, 'checkout-1', '@ada')
      await expect(checkOut(pglite, 'checkout-1', '@bob')).rejects.toThrow(/duplicate key/)
      await checkOut(pglite, 'checkout-2', ' ')
      expect(sandbox.requests).toEqual([])
      await placeOrders()
      const { orderId } = sandbox.expectChargedOnce('checkout-1')
      const { rows } = await pglite.query('SELECT id, state, order_id, reason FROM purchases ORDER BY id')
      expect(rows).toEqual([
        { id: 'checkout-1', state: 'ordered', order_id: orderId, reason: '' },
        { id: 'checkout-2', state: 'refused', order_id: '', reason: 'invalid_request' },
      ])
    } finally {
      vi.unstubAllEnvs()
      await server.close()
    }
  })

  it('rows survive closing and reopening the data directory', async () => {
    const store = open()
    await store.insert(makeRow(1))
    await database().close()
    await expect(store.get(SCOPE, 'id')).rejects.toThrow('the client that you passed was closed')
    const client = await pglite().PGlite.create(directory)
    const again = new PostgresStore({ client, table: `rows_${tables}` })
    expect(await again.insert(makeRow(1))).toEqual({ inserted: false, current: makeRow(1) })
    await client.close()
  })
})
