import { createSandbox, type SandboxPermission } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { caller, manualClock } from './caller.ts'

/** Ids of the rows of a list in the default envelope. */
function idsOf(body: unknown): readonly unknown[] {
  const { data } = body as { data: readonly { id?: string; productId?: string }[] }
  return data.map((row) => row.id ?? row.productId)
}

function withOrders(count: number, options: Parameters<typeof createSandbox>[0] = {}) {
  const sandbox = createSandbox(options)
  for (let i = 1; i <= count; i++) sandbox.addOrder({ id: `o${i}`, amount: 1000 - i })
  return { sandbox, api: caller(sandbox) }
}

describe('every reading endpoint', () => {
  const endpoints: readonly [string, SandboxPermission][] = [
    ['/v1/orders', 'orders:read'],
    ['/v1/orders/o1', 'orders:read'],
    ['/v1/services', 'services:read'],
    ['/v1/services/svc_standard', 'services:read'],
    ['/v1/balance', 'balance:read'],
  ]

  test.each(endpoints)('%s needs an API key', async (path) => {
    const { sandbox } = withOrders(1)
    expect(await caller(sandbox, null).get(path)).toMatchObject({ status: 401 })
    expect(await caller(sandbox, 'wrong').get(path)).toMatchObject({ status: 401 })
  })

  test.each(endpoints)('%s needs the permission %s and no other', async (path, permission) => {
    const { sandbox } = withOrders(1)
    const customer = sandbox.customerId
    const all: SandboxPermission[] = ['orders:write', 'orders:read', 'services:read', 'balance:read']
    const others = sandbox.addApiKey({ customer, permissions: all.filter((name) => name !== permission) })
    const only = sandbox.addApiKey({ customer, permissions: [permission] })
    const refused = await caller(sandbox, others).get(path)
    expect(refused).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
    expect(JSON.stringify(refused.body)).toContain(permission)
    expect(await caller(sandbox, only).get(path)).toMatchObject({ status: 200 })
  })
})

describe('GET /v1/orders', () => {
  test('gives 50 orders, newest first, when not told otherwise', async () => {
    const { api } = withOrders(60)
    const ids = idsOf((await api.get('/v1/orders')).body)
    expect(ids).toHaveLength(50)
    expect(ids.slice(0, 2)).toEqual(['o60', 'o59'])
  })

  test('gives the page that limit and offset name', async () => {
    const { api } = withOrders(10)
    expect(idsOf((await api.get('/v1/orders?limit=3&offset=2')).body)).toEqual(['o8', 'o7', 'o6'])
    expect(idsOf((await api.get('/v1/orders?limit=3&offset=9')).body)).toEqual(['o1'])
    expect(idsOf((await api.get('/v1/orders?offset=10')).body)).toEqual([])
  })

  test('caps limit at 100 by default', async () => {
    const { api } = withOrders(150)
    expect(idsOf((await api.get('/v1/orders?limit=1000')).body)).toHaveLength(100)
  })

  test.each([
    ['limit=0', ['o3']],
    ['limit=-4', ['o3']],
    ['limit=abc', ['o3', 'o2', 'o1']],
    ['limit=1.5', ['o3', 'o2', 'o1']],
    ['limit=', ['o3', 'o2', 'o1']],
    ['offset=-1', ['o3', 'o2', 'o1']],
    ['offset=99999999999999999999', []],
  ])('clamps %s', async (query, expected) => {
    const { api } = withOrders(3)
    const { status, body } = await api.get(`/v1/orders?${query}`)
    expect(status).toBe(200)
    expect(idsOf(body)).toEqual(expected)
  })

  test.each(['limit=0', 'limit=abc', 'offset=-1', 'offset=1e3'])('can refuse %s with 400', async (query) => {
    const { api } = withOrders(3, { behaviour: { invalidPaging: 'refuse' } })
    expect(await api.get(`/v1/orders?${query}`)).toMatchObject({ status: 400 })
    expect(await api.get('/v1/orders?limit=2&offset=0')).toMatchObject({ status: 200 })
  })

  test('shows a customer its own orders only', async () => {
    const { sandbox, api } = withOrders(2)
    sandbox.addOrder({ id: 'theirs', customer: sandbox.organizationId })
    expect(idsOf((await api.get('/v1/orders')).body)).toEqual(['o2', 'o1'])
    expect(idsOf((await caller(sandbox, sandbox.organizationApiKey).get('/v1/orders')).body)).toEqual([
      'theirs',
    ])
  })

  test('narrows to a source system', async () => {
    const { sandbox, api } = withOrders(2)
    sandbox.addOrder({ id: 'web', sourceSystem: 'web' })
    expect(idsOf((await api.get('/v1/orders?sourceSystem=web')).body)).toEqual(['web'])
    expect(idsOf((await api.get('/v1/orders?sourceSystem=none')).body)).toEqual([])
  })
})

describe('GET /v1/orders/{orderId}', () => {
  test('gives an order just created', async () => {
    const sandbox = createSandbox()
    const api = caller(sandbox)
    const created = await api.order('k')
    const { orderId } = sandbox.expectChargedOnce('k')
    expect(await api.get(`/v1/orders/${orderId}`)).toMatchObject({ status: 200, body: created.body })
  })

  test('does not tell an order of somebody else from none', async () => {
    const { sandbox, api } = withOrders(0)
    sandbox.addOrder({ id: 'theirs', customer: sandbox.organizationId })
    const theirs = await api.get('/v1/orders/theirs')
    expect(theirs).toMatchObject({ status: 404, body: { code: 'ORDER_NOT_FOUND' } })
    expect((await api.get('/v1/orders/none')).body).toEqual(theirs.body)
  })

  test('decodes the identifier', async () => {
    const { sandbox, api } = withOrders(0)
    sandbox.addOrder({ id: 'a/b?c' })
    expect(await api.get(`/v1/orders/${encodeURIComponent('a/b?c')}`)).toMatchObject({ status: 200 })
  })

  test('follows the statuses in time until one is set by hand', async () => {
    const clock = manualClock()
    const { sandbox, api } = withOrders(1, {
      ...clock,
      behaviour: {
        statuses: [
          { status: 'received', after: 0 },
          { status: 'done', after: 1000 },
        ],
      },
    })
    const status = async () => (await api.get('/v1/orders/o1')).body
    expect(await status()).toMatchObject({ status: 'received' })
    clock.advance(1000)
    expect(await status()).toMatchObject({ status: 'done' })
    sandbox.setOrderStatus('o1', 'cancelled')
    expect(await status()).toMatchObject({ status: 'cancelled' })
  })
})

describe('services', () => {
  test('are listed when published, with every documented field', async () => {
    const { body } = await caller(createSandbox()).get('/v1/services')
    expect(idsOf(body)).toEqual([
      'svc_standard',
      'svc_bulk',
      'svc_offset',
      'svc_fractional',
      'svc_sold_out',
      'svc_premium',
    ])
    expect((body as { data: unknown[] }).data[3]).toEqual({
      productId: 'svc_fractional',
      amount: 120,
      currency: 'EUR',
      minQuantity: 0.5,
      maxQuantity: 50,
      stepQuantity: 0.5,
      stockState: 'in_stock',
    })
  })

  test('are paged like orders', async () => {
    const { body } = await caller(createSandbox()).get('/v1/services?limit=2&offset=1')
    expect(idsOf(body)).toEqual(['svc_bulk', 'svc_offset'])
  })

  test('can be retrieved one by one', async () => {
    const api = caller(createSandbox())
    expect(await api.get('/v1/services/svc_sold_out')).toMatchObject({
      status: 200,
      body: { productId: 'svc_sold_out', stockState: 'out_of_stock' },
    })
  })

  test.each(['none', 'svc_draft'])('%s is not found', async (id) => {
    expect(await caller(createSandbox()).get(`/v1/services/${id}`)).toMatchObject({
      status: 404,
      body: { code: 'SERVICE_NOT_FOUND' },
    })
  })
})

describe('GET /v1/balance', () => {
  test('gives the wallet of the key’s customer', async () => {
    const sandbox = createSandbox({ currency: 'USD', balance: 7 })
    sandbox.setBalance(sandbox.organizationId, 9)
    expect((await caller(sandbox).get('/v1/balance')).body).toEqual({ amount: 7, currency: 'USD' })
    expect((await caller(sandbox, sandbox.organizationApiKey).get('/v1/balance')).body).toEqual({
      amount: 9,
      currency: 'USD',
    })
  })

  test('is 404 for a customer without a wallet', async () => {
    const sandbox = createSandbox()
    const apiKey = sandbox.addApiKey({ customer: sandbox.addCustomer({ wallet: null }) })
    expect(await caller(sandbox, apiKey).get('/v1/balance')).toMatchObject({
      status: 404,
      body: { code: 'WALLET_NOT_FOUND' },
    })
  })
})
