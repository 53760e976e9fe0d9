import {
  type ClientOptions,
  CustomerOrderingClient,
  InvalidRequestError,
  MemoryStore,
} from 'customer-ordering-sdk'
import { describe, expect, it, vi } from 'vitest'
import { BASE_URL, clientOver, json, problem } from '../../support/client.ts'
import { Lab } from '../../support/lab.ts'
import { fakeRuntime } from '../../support/runtime.ts'

const balance = { amount: 1000, currency: 'EUR' }
const order = { id: 'ord_1', status: 'pending', amount: 250 }
const request = { serviceId: 'svc_standard', target: '@x', quantity: 2 }
const named = { ...request, metadata: { externalOrderId: 'e1' } }

it('withOptions changes only the given options', async () => {
  const { client, requests } = clientOver(() => balance, { defaultHeaders: { 'x-a': '1' } })
  const derived = client.withOptions({ defaultHeaders: { 'x-b': '2' }, maxRetries: 0 })
  expect(derived).toBeInstanceOf(CustomerOrderingClient)
  await derived.balance.retrieve()
  await client.balance.retrieve()
  expect(requests.map(({ headers }) => [headers.get('x-a'), headers.get('x-b')])).toEqual([
    [null, '2'],
    ['1', null],
  ])
})

it("withOptions shares the store: one client remembers the other's orders", async () => {
  const { client, requests } = clientOver(() => json(order, 201))
  await client.orders.create(named)
  expect(await client.withOptions({ maxRetries: 1 }).orders.create(named)).toEqual(order)
  expect(requests).toHaveLength(1)
  const apart = client.withOptions({ store: new MemoryStore(), account: 'other' })
  await apart.orders.create(named)
  expect(requests).toHaveLength(2)
})

it('withOptions shares calls in progress: two clients that place one order send it once', async () => {
  let answer: (response: Response) => void = () => {}
  const { client, requests } = clientOver(
    () => new Promise<Response>((resolve) => (answer = resolve)),
    {},
    fakeRuntime(),
  )
  const both = [client, client.withOptions({ timeout: 5000 })].map(({ orders }) => orders.create(named))
  while (requests.length === 0) await new Promise((resolve) => setImmediate(resolve))
  answer(json(order, 201))
  expect(await Promise.all(both)).toEqual([order, order])
  expect(requests).toHaveLength(1)
})

describe('withOptions with another address', () => {
  const elsewhere = 'https://sandbox.example.com'

  it('withOptions rejects another address without `server`, which would hide remembered orders', async () => {
    const { client, requests } = clientOver(() => json(order, 201), { account: 'shop' })
    await client.orders.create(named)
    expect(() => client.withOptions({ baseUrl: elsewhere })).toThrow(
      /^Client option baseUrl cannot change unless the option server is set/,
    )
    expect(client.withOptions({ baseUrl: `${BASE_URL}/` })).toBeInstanceOf(CustomerOrderingClient)

    // The same service under another label remembers the order. Another service does not.
    await client.withOptions({ baseUrl: elsewhere, server: BASE_URL }).orders.create(named)
    expect(requests).toHaveLength(1)
    await client.withOptions({ baseUrl: elsewhere, server: elsewhere }).orders.create(named)
    expect(requests).toHaveLength(2)
    expect(requests[1]?.headers.get('idempotency-key')).not.toBe(requests[0]?.headers.get('idempotency-key'))
  })

  it("withOptions accepts another address with the first client's label, or with another store", () => {
    const labelled = clientOver(() => balance, { server: 'production' }).client
    expect(labelled.withOptions({ baseUrl: elsewhere })).toBeInstanceOf(CustomerOrderingClient)
    const { client } = clientOver(() => balance)
    const own = { baseUrl: elsewhere, store: new MemoryStore() }
    expect(client.withOptions(own)).toBeInstanceOf(CustomerOrderingClient)
  })
})

it('hooks and logger are silent by default and at level off', async () => {
  const spies = (['debug', 'info', 'warn', 'error'] as const).map((level) => vi.spyOn(console, level))
  await clientOver(() => balance).client.balance.retrieve()
  const off = clientOver(() => problem(400), { logger: console, logLevel: 'off' })
  await expect(off.client.balance.retrieve()).rejects.toThrow()
  for (const spy of spies) {
    expect(spy).not.toHaveBeenCalled()
    spy.mockRestore()
  }
})

it('account and server determine the key of an order with a reference', async () => {
  const key = async (options: ClientOptions): Promise<string | null | undefined> => {
    const { client, requests } = clientOver(() => json(order, 201), options)
    await client.orders.create(named)
    return requests[0]?.headers.get('idempotency-key')
  }
  const derived = await key({ account: 'shop' })
  expect(await key({ account: 'shop', apiKey: 'another' })).toBe(derived)
  expect(await key({ account: 'shop', server: BASE_URL })).toBe(derived)
  expect(await key({ account: 'shop', baseUrl: 'https://API.example.com:443/' })).toBe(derived)
  const others = [{ account: 'other' }, { account: 'shop', server: 'x' }, {}]
  expect(new Set([derived, ...(await Promise.all(others.map(key)))]).size).toBe(4)
})

it('options of recover() and reconcile() are checked before anything is read', () => {
  const { orders } = new Lab().client()
  expect(() => orders.recover({ takeOver: 'some' } as never)).toThrow(InvalidRequestError)
  expect(() => orders.reconcile({ from: 5 } as never)).toThrow(InvalidRequestError)
})
