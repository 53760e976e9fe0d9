import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { type PostgresOutbox, PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { beforeAll, expect, it } from 'vitest'
import type { OrderStore, StoredRow } from '../../../src/idempotency/store.ts'
import { describeWith, HOOK_TIMEOUT } from '../support/postgres.ts'
import { type PGliteDatabase, pglite } from '../support/postgres-clients.ts'

describeWith('clients', 'orders written in a transaction of the caller', () => {
  let database: PGliteDatabase | undefined
  const open = (): PGliteDatabase => {
    if (database === undefined) throw new Error('not started')
    return database
  }

  beforeAll(async () => {
    database = await pglite().PGlite.create()
    await database.exec('CREATE TABLE checkouts (id text PRIMARY KEY)')
    return () => database?.close()
  }, HOOK_TIMEOUT)

  const request = (externalOrderId: string) => ({
    serviceId: 'svc_standard',
    target: '@ada',
    quantity: 2,
    metadata: { externalOrderId },
  })

  const sandbox = createSandbox()
  const clientWith = (store: OrderStore) =>
    new CustomerOrderingClient({
      baseUrl: sandbox.baseUrl,
      apiKey: sandbox.apiKey,
      fetch: sandbox.fetch,
      account: 'shop-eu',
      store,
    })

  /** The row that the client writes before it sends, taken from a store that takes it and then fails. */
  async function intentOf(externalOrderId: string): Promise<StoredRow> {
    let written: StoredRow | undefined
    const refuse = () => Promise.reject(new Error('never'))
    const spy: OrderStore = {
      durability: 'server',
      get: async () => undefined,
      insert: (row) => {
        // The first is the order; the second would keep it from being placed.
        written ??= row
        return refuse()
      },
      update: refuse,
      listOpen: refuse,
      list: refuse,
      prune: async () => 0,
      close: async () => {},
    }
    await expect(clientWith(spy).orders.create(request(externalOrderId))).rejects.toMatchObject({
      code: 'store',
    })
    if (written === undefined) throw new Error('nothing was written')
    return written
  }

  it('are sent by recover() after the commit, once, and never after a rollback', async () => {
    const store = new PostgresStore({ client: open() })
    await store.migrate()
    for (const [reference, fails] of [
      ['shop-1', false],
      ['shop-2', true],
    ] as const) {
      const row = await intentOf(reference)
      await open()
        .transaction(async (transaction) => {
          await transaction.query('INSERT INTO checkouts VALUES ($1)', [reference])
          expect(await store.within(transaction).insert(row)).toEqual({ inserted: true })
          if (fails) throw new Error('the checkout failed')
        })
        .catch(() => {})
    }
    const [first, second] = [clientWith(store), clientWith(new PostgresStore({ client: open() }))]
    const recover = async (client: CustomerOrderingClient): Promise<string[]> => {
      const seen: string[] = []
      for await (const { outcome, record } of client.orders.recover({ takeOver: true }))
        seen.push(`${outcome} ${record.externalOrderId}`)
      return seen
    }
    expect(await recover(first)).toEqual(['created shop-1'])
    expect(await recover(second)).toEqual([])
    sandbox.expectChargedOnce('shop-1')
    expect(() => sandbox.expectChargedOnce('shop-2')).toThrow()
    expect((await open().query('SELECT id FROM checkouts')).rows).toEqual([{ id: 'shop-1' }])
    // Whoever orders the same afterwards gets that order.
    const order = await second.orders.create(request('shop-1'))
    expect(order.id).toBeTruthy()
    sandbox.expectChargedOnce('shop-1')
  })

  it('cannot be placed by a client, which would send them before the commit', async () => {
    await open().transaction(async (transaction) => {
      const outbox: PostgresOutbox = new PostgresStore({ client: open() }).within(transaction)
      // @ts-expect-error It is no whole store.
      expect(() => clientWith(outbox)).toThrow(/store/)
    })
  })
})
