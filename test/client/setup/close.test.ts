import type { CustomerOrderingClient, OrderStore } from 'customer-ordering-sdk'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'
import { describe, expect } from 'vitest'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { all, errorOf } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { Lab, order } from '../../support/lab.ts'

const first = async (items: AsyncIterable<unknown>): Promise<unknown> =>
  await items[Symbol.asyncIterator]().next()

const CALLS: Readonly<Record<string, (client: CustomerOrderingClient) => Promise<unknown>>> = {
  'orders.create': (client) => client.orders.create(order('r1')),
  'orders.retrieve': (client) => client.orders.retrieve('ord_1'),
  'orders.list': (client) => first(client.orders.list()),
  'orders.list(), awaited': (client) => client.orders.list(),
  'orders.waitFor': (client) => client.orders.waitFor('ord_1', { until: () => true }),
  'orders.remembered': (client) => first(client.orders.remembered({ since: 0 })),
  'orders.unresolved': (client) => first(client.orders.unresolved()),
  'orders.recover': (client) => first(client.orders.recover()),
  'orders.recover(), awaited': async (client) => await client.orders.recover(),
  'orders.unresolved(), awaited': async (client) => await client.orders.unresolved(),
  'orders.resolve': (client) => client.orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' }),
  'orders.forget': (client) => client.orders.forget({ externalOrderId: 'r1' }),
  'orders.reconcile': (client) => first(client.orders.reconcile()),
  'services.list': (client) => first(client.services.list()),
  'services.retrieve': (client) => client.services.retrieve('svc_standard'),
  'balance.retrieve': (client) => client.balance.retrieve(),
  request: (client) => client.request({ method: 'GET', path: '/v1/balance' }),
}

/** Earlier calls may have charged the wallet. */
const CHARGED: Readonly<Record<string, string>> = { 'orders.create': 'unknown', 'balance.retrieve': 'no' }

const STORES: Readonly<Record<string, () => OrderStore>> = {
  MemoryStore: () => new MemoryStore(),
  SqliteStore: () => new SqliteStore({ path: ':memory:' }),
}

describe.each(Object.entries(STORES))('a closed client over a %s', (_store, open) => {
  it.each(Object.entries(CALLS))('a closed client rejects %s and sends nothing', async (lab, name, call) => {
    const charged = CHARGED[name]
    const client = lab.client({ store: open() })
    const derived = client.withOptions({ timeout: 1000 })
    const grandchild = derived.withOptions({ maxRetries: 0 })
    await client.close()
    for (const closed of [client, derived, grandchild]) {
      const error = await errorOf(call(closed))
      expect(error).toMatchObject({ code: 'configuration', attempts: 0, ...(charged && { charged }) })
    }
    expect(lab.sandbox.requests).toHaveLength(0)
  })
})

it('closing a client closes neither its parent nor a client with its own store', async (lab) => {
  const client = lab.client()
  const own = client.withOptions({ store: new MemoryStore() })
  await client.withOptions({ timeout: 1000 }).close()
  expect((await client.orders.create(order('r1'))).status).toBe('pending')
  await client.close()
  expect((await own.orders.create(order('r2'))).status).toBe('pending')
})

it('close() ends waitFor() at its next read', async (lab) => {
  const client = lab.client()
  const { id } = await client.orders.create(order('r1'))
  const { ending } = await lab.begin(() => errorOf(client.orders.waitFor(id, { until: () => false })))
  await client.close()
  expect(await ending).toMatchObject({ code: 'configuration' })
})

it('close() retries closing a store that could not be closed, and may be called again at any time', async () => {
  const store = new MemoryStore()
  let closes = 0
  store.close = async () => {
    if (++closes === 1) throw new Error('busy')
  }
  const client = new Lab().client({ store })
  await expect(client.close()).rejects.toThrow('busy')
  await Promise.all([client.close(), client.close()])
  await client.close()
  expect(closes).toBe(2)
})

it('close() lets an order of a derived client finish', async (lab) => {
  const store = new SqliteStore({ path: ':memory:' })
  const client = lab.client({ store })
  lab.fault({ type: 'commitThenDrop' })
  const { ending } = await lab.begin(() => client.withOptions({ timeout: 5000 }).orders.create(order('r1')))
  const twin = client.orders.create(order('r1'))
  await client.close()
  expect((await ending).id).toBe((await twin).id)
  lab.sandbox.expectChargedOnce('r1')
  expect(String(await errorOf(store.get('s', 'i')))).toContain('closed')
})

it('close() ends an iteration at its next step, and lets rows of createMany in progress finish', async (lab) => {
  const client = lab.client({ store: new SqliteStore({ path: ':memory:' }) })
  for (const reference of ['r1', 'r2', 'r3']) await client.orders.create(order(reference))
  const records = client.orders.remembered({ since: 0 })[Symbol.asyncIterator]()
  await records.next()
  const pages = client.orders.list({ limit: 1 })[Symbol.asyncIterator]()
  await pages.next()
  const rows = client.orders
    .createMany([order('r4'), order('r5')], { concurrency: 1 })
    [Symbol.asyncIterator]()
  lab.fault({ type: 'delay', ms: 1000 })
  const { ending: row } = await lab.begin(() => rows.next())
  await client.close()
  expect(await errorOf(records.next())).toMatchObject({ code: 'configuration' })
  expect(await errorOf(pages.next())).toMatchObject({ code: 'configuration' })
  expect((await row).value).toMatchObject({ order: { status: 'pending' } })
  // Do not call recover() as the row's result: an ongoing walk would take every other row from
  // its source.
  expect(await errorOf(rows.next())).toMatchObject({ code: 'configuration', charged: 'unknown' })
  lab.sandbox.expectChargedOnce('r4')
  lab.sandbox.expectNotCharged('r5')
})

it.each(['recover', 'reconcile'] as const)('close() waits for one page of %s()', async (lab, walk) => {
  await lab.dies((orders) => orders.create(order('lost')), { charged: false })
  lab.runtime.jump(60 * 60_000)
  for (let count = 0; count < 300; count++) lab.sandbox.addOrder({})
  const client = lab.client()
  const before = lab.sandbox.requests.length
  lab.fault({ type: 'delay', ms: 1000 }, 1, 'listOrders')
  const step = (): Promise<unknown> =>
    walk === 'recover' ? first(client.orders.recover()) : all(client.orders.reconcile())
  const { ending } = await lab.begin(() => errorOf(step()))
  await client.close()
  expect(await ending).toMatchObject({ code: 'configuration', charged: 'unknown' })
  expect(lab.sandbox.requests.length - before).toBe(1)
})

it('close() waits for resolve() and forget(), which use the store, and lets a read finish', async (lab) => {
  const store = new SqliteStore({ path: ':memory:' })
  const client = lab.client({ store, maxRetries: 0 })
  lab.fault({ type: 'commitThenDrop' })
  await errorOf(client.orders.create(order('r1')))
  const balance = client.balance.retrieve()
  const resolved = client.orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
  await client.close()
  expect((await resolved).state).toBe('rejected')
  expect((await balance).currency).toBe('EUR')
})
