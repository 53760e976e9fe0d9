import { CustomerOrderingClient, InvalidRequestError, MemoryStore } from 'customer-ordering-sdk'
import { expect, vi } from 'vitest'
import { it } from '../../support/history.ts'
import { failure, order } from '../../support/lab.ts'

const OTHER = 'https://sandbox.example.com'

it('withOptions changes only the given options', async (lab) => {
  const client = lab.client({ defaultHeaders: { 'x-a': '1' } })
  const derived = client.withOptions({ defaultHeaders: { 'x-b': '2' }, maxRetries: 0 })
  expect(derived).toBeInstanceOf(CustomerOrderingClient)
  await derived.balance.retrieve()
  await client.balance.retrieve()
  expect(lab.sandbox.requests.map(({ headers }) => [headers['x-a'], headers['x-b']])).toEqual([
    [undefined, '2'],
    ['1', undefined],
  ])
})

it("withOptions shares the store: one client remembers the other's orders", async (lab) => {
  const client = lab.client()
  const placed = await client.orders.create(order('r1'))
  expect(await client.withOptions({ maxRetries: 1 }).orders.create(order('r1'))).toEqual(placed)
  expect(lab.posts).toHaveLength(1)
  await client.withOptions({ store: new MemoryStore(), account: 'other' }).orders.create(order('r1'))
  expect(lab.posts).toHaveLength(2)
})

it('withOptions shares calls in progress: two clients that place one order send it once', async (lab) => {
  lab.fault({ type: 'delay', ms: 1000 })
  const client = lab.client()
  const calls = [client, client.withOptions({ timeout: 5000 })].map(({ orders }) =>
    orders.create(order('r1')),
  )
  const [one, two] = await Promise.all(calls)
  expect(two).toEqual(one)
  expect(lab.posts).toHaveLength(1)
})

it('withOptions rejects another address without `server`, which would hide remembered orders', async (lab) => {
  const client = lab.client()
  const { baseUrl } = lab.sandbox
  await client.orders.create(order('r1'))
  expect(() => client.withOptions({ baseUrl: OTHER })).toThrow(/option baseUrl .*option server /)
  expect(client.withOptions({ baseUrl: `${baseUrl}/` })).toBeInstanceOf(CustomerOrderingClient)

  // The same service under another label remembers the order. Another service does not.
  await client.withOptions({ baseUrl: OTHER, server: baseUrl }).orders.create(order('r1'))
  expect(lab.posts).toHaveLength(1)
  const apart = client.withOptions({ baseUrl: OTHER, server: OTHER, maxRetries: 0 })
  const error = await failure(apart.orders.create(order('r1')))
  expect(error).toMatchObject({ code: 'connection', attempts: 1 })
  expect(error.idempotencyKey).not.toBe(lab.posts[0]?.key)
})

it("withOptions accepts another address with the first client's label, or with another store", (lab) => {
  const labelled = lab.client({ server: 'production' })
  expect(labelled.withOptions({ baseUrl: OTHER })).toBeInstanceOf(CustomerOrderingClient)
  const own = { baseUrl: OTHER, store: new MemoryStore() }
  expect(lab.client().withOptions(own)).toBeInstanceOf(CustomerOrderingClient)
})

it('hooks and logger are silent by default and at level off', async (lab) => {
  const spies = (['debug', 'info', 'warn', 'error'] as const).map((level) => vi.spyOn(console, level))
  await lab.client().balance.retrieve()
  lab.fault({ type: 'status', status: 400 })
  await expect(lab.client({ logger: console, logLevel: 'off' }).balance.retrieve()).rejects.toThrow()
  for (const spy of spies) {
    expect(spy).not.toHaveBeenCalled()
    spy.mockRestore()
  }
})

it('options of recover() and reconcile() are checked before anything is read', ({ orders }) => {
  expect(() => orders.recover({ takeOver: 'some' } as never)).toThrow(InvalidRequestError)
  expect(() => orders.reconcile({ from: 5 } as never)).toThrow(InvalidRequestError)
  expect(() => orders.reconcile({}, { prefetch: 2 } as never)).toThrow(InvalidRequestError)
})
