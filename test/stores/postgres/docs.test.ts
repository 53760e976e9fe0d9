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
import { blocksOf, exportsOf, programsAbout, readPages } from '../../docs/support/pages.ts'
import { embedded } from '../support/during.ts'
import { describeWith } from '../support/services.ts'

/** The names and parameters of the page's functions. */
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

describeWith('clients', 'what the documentation shows of PostgresStore', () => {
  const database = embedded()
  it('the documented Postgres code works', async () => {
    const programs = programsAbout('/stores/postgres')
    const { openClient, adapt, openShop } = await exportsOf<Page>('postgres-docs', programs)
    const pglite = database()
    const client = openClient(pglite)
    for await (const record of client.orders.unresolved()) throw new Error(`it has ${record.slot}`)
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
      expect(
        (await pglite.query('SELECT id, state, order_id, reason FROM purchases ORDER BY id')).rows,
      ).toEqual([
        { id: 'checkout-1', state: 'ordered', order_id: orderId, reason: '' },
        { id: 'checkout-2', state: 'refused', order_id: '', reason: 'invalid_request' },
      ])
    } finally {
      vi.unstubAllEnvs()
      await server.close()
    }
  })
})
