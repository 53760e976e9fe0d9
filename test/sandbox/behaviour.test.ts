import { createSandbox, type SandboxBehaviour } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { caller, scene, validBody } from './caller.ts'

const withSwitches = (behaviour: Partial<SandboxBehaviour>) => {
  const sandbox = createSandbox({ behaviour })
  return { sandbox, api: caller(sandbox) }
}

describe('error shapes', () => {
  const message = 'Order not found.'
  test.each([
    ['bare', { code: 'ORDER_NOT_FOUND', message }],
    ['nested', { error: { code: 'ORDER_NOT_FOUND', message } }],
    ['errors', { errors: [{ code: 'ORDER_NOT_FOUND', message }] }],
    ['flat', { error: 'ORDER_NOT_FOUND', message }],
  ] as const)('%s', async (errorShape, body) => {
    const { api } = withSwitches({ errorShape })
    expect((await api.get('/v1/orders/none')).body).toEqual(body)
  })

  test('the error shape `problem` is application/problem+json with a code', async () => {
    const { api } = withSwitches({ errorShape: 'problem' })
    const { body, headers } = await api.get('/v1/orders/none')
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(body).toEqual({
      type: 'about:blank',
      title: 'ORDER_NOT_FOUND',
      status: 404,
      detail: message,
      code: 'ORDER_NOT_FOUND',
    })
  })

  test('error shapes also apply to statuses that fault rules create', async () => {
    const { sandbox, api } = withSwitches({ errorShape: 'nested' })
    sandbox.faults.add({ action: { type: 'status', status: 503 } })
    expect((await api.get('/v1/balance')).body).toMatchObject({ error: { code: 'SERVICE_UNAVAILABLE' } })
  })
})

describe('list envelopes', () => {
  const row = { id: 'o1', status: 'pending', amount: 250 }
  test.each([
    ['array', [row]],
    ['data', { data: [row] }],
    ['items', { items: [row], total: 2, limit: 1, offset: 1 }],
    ['named', { orders: [row], hasMore: false }],
    ['results', { results: [row], pagination: { total: 2, hasMore: false } }],
  ] as const)('%s', async (listEnvelope, body) => {
    const { sandbox, api } = withSwitches({ listEnvelope, orderFields: [] })
    sandbox.addOrder({ id: 'o1' })
    sandbox.addOrder({ id: 'o2' })
    expect((await api.get('/v1/orders?limit=1&offset=1')).body).toEqual(body)
  })

  test('the list envelope `named` uses the key services, and has hasMore', async () => {
    const { api } = withSwitches({ listEnvelope: 'named' })
    expect((await api.get('/v1/services?limit=1')).body).toMatchObject({
      services: [{ productId: 'svc_standard' }],
      hasMore: true,
    })
  })
})

describe('orders', () => {
  test('orders have every field, or only the documented three', async () => {
    const { sandbox, api } = scene({
      behaviour: {
        orderFields: ['serviceId', 'target', 'quantity', 'currency', 'metadata', 'sourceSystem', 'createdAt'],
      },
    })
    const metadata = { externalOrderId: 'shop-1', sourceSystem: 'web', note: [1, null] }
    const { body } = await api.order('k', { ...validBody, metadata })
    expect(body).toEqual({
      id: sandbox.orders()[0]?.id,
      status: 'pending',
      amount: 500,
      serviceId: 'svc_standard',
      target: '@ada',
      quantity: 2,
      currency: 'EUR',
      metadata,
      sourceSystem: 'web',
      createdAt: '2026-01-01T00:00:00.000Z',
    })
    sandbox.configure({ orderFields: [] })
    expect(Object.keys((await api.order('k2')).body as object)).toEqual(['id', 'status', 'amount'])
  })

  test('an order costs the price itself with priceIs perOrder', async () => {
    const { api } = withSwitches({ priceIs: 'perOrder' })
    expect((await api.order('k')).body).toMatchObject({ amount: 250 })
  })

  test('orders accept steps from zero with stepFrom zero', async () => {
    const { api } = withSwitches({ stepFrom: 'zero' })
    const order = (quantity: number) =>
      api.order(`k${quantity}`, { ...validBody, serviceId: 'svc_offset', quantity })
    expect(await order(10)).toMatchObject({ status: 201 })
    expect(await order(15)).toMatchObject({ status: 422 })
  })

  test('orders may have fractional quantities with fractionalQuantity', async () => {
    const { api } = withSwitches({ fractionalQuantity: true })
    const order = (quantity: number) =>
      api.order(`k${quantity}`, { ...validBody, serviceId: 'svc_fractional', quantity })
    expect(await order(1.5)).toMatchObject({ status: 201, body: { amount: 180 } })
    expect(await order(1.7)).toMatchObject({ status: 422 })
  })

  test('orders require only the fields that requiredFields names', async () => {
    const { target: _, ...withoutTarget } = validBody
    const { metadata: __, ...withoutMetadata } = validBody
    expect(await withSwitches({ requiredFields: [] }).api.order('k', withoutTarget)).toMatchObject({
      status: 201,
    })
    const strict = withSwitches({ requiredFields: ['target', 'metadata', 'externalOrderId'] }).api
    expect(await strict.order('k', withoutMetadata)).toMatchObject({ status: 400 })
    expect(await strict.order('k', { ...validBody, metadata: {} })).toMatchObject({ status: 400 })
    expect(await strict.order('k')).toMatchObject({ status: 201 })
  })

  test('orders may have unknown fields unless the switch rejects them', async () => {
    const gift = { ...validBody, gift: true }
    expect(await withSwitches({}).api.order('k', gift)).toMatchObject({ status: 201 })
    const { api } = withSwitches({ unknownFields: 'refuse', sourceSystemFrom: 'body' })
    expect(await api.order('k', gift)).toMatchObject({ status: 400 })
    expect(await api.order('k', { ...validBody, sourceSystem: 'web' })).toMatchObject({ status: 201 })
  })

  test.each(['metadata', 'body', 'apiKey'] as const)(
    'orders take sourceSystem from %s',
    async (sourceSystemFrom) => {
      const { sandbox } = withSwitches({ sourceSystemFrom })
      const apiKey = sandbox.addApiKey({ customer: sandbox.customerId, sourceSystem: 'from apiKey' })
      await caller(sandbox, apiKey).order('k', {
        ...validBody,
        sourceSystem: 'from body',
        metadata: { sourceSystem: 'from metadata' },
      })
      expect(sandbox.orders()[0]?.sourceSystem).toBe(`from ${sourceSystemFrom}`)
    },
  )
})

test('the stock state has the configured name and values', async () => {
  const { api } = withSwitches({ stockState: { field: 'availability', inStock: 'yes', outOfStock: 'no' } })
  expect((await api.get('/v1/services/svc_standard')).body).toMatchObject({ availability: 'yes' })
  expect((await api.get('/v1/services/svc_sold_out')).body).toMatchObject({ availability: 'no' })
})

test('the request id is in the configured header, or absent', async () => {
  expect((await withSwitches({}).api.get('/v1/balance')).headers.get('x-request-id')).toMatch(/^req_/)
  const { headers } = await withSwitches({ requestIdHeader: 'Trace' }).api.get('/v1/balance')
  expect(headers.get('trace')).toMatch(/^req_/)
  const none = await withSwitches({ requestIdHeader: null }).api.get('/v1/balance')
  expect([...none.headers.keys()]).toEqual(['content-type'])
})

test('keys can be limited to UUIDs', async () => {
  const { api } = withSwitches({ keyFormat: 'uuid' })
  expect(await api.order('key-1')).toMatchObject({ status: 400 })
  expect(await api.order('8c5dc7a1-1d5e-4b0f-9a39-3c1f2f5a9b11')).toMatchObject({ status: 201 })
})

describe('lists', () => {
  const listed = async (behaviour: Partial<SandboxBehaviour>, query = '') => {
    const { sandbox, api } = withSwitches({ listEnvelope: 'array', ...behaviour })
    for (const amount of [30, 10, 20, 40, 60, 50]) sandbox.addOrder({ amount })
    const read = async () =>
      ((await api.get(`/v1/orders${query}`)).body as { amount: number }[]).map(({ amount }) => amount)
    return { read, first: await read() }
  }

  test.each([
    ['newest', [50, 60, 40, 20, 10, 30]],
    ['oldest', [30, 10, 20, 40, 60, 50]],
    ['amount', [10, 20, 30, 40, 50, 60]],
  ] as const)('lists can be sorted by %s', async (ordering, expected) => {
    expect((await listed({ ordering })).first).toEqual(expected)
  })

  test('lists can have a different random order in each request', async () => {
    const { read, first } = await listed({ ordering: 'random' })
    const second = await read()
    expect(second).not.toEqual(first)
    expect(second.toSorted()).toEqual(first.toSorted())
  })

  test('lists of services can be random too', async () => {
    const { api } = withSwitches({ ordering: 'random', listEnvelope: 'array' })
    const once = JSON.stringify((await api.get('/v1/services')).body)
    expect(JSON.stringify((await api.get('/v1/services')).body)).not.toBe(once)
  })

  test('lists can ignore offset', async () => {
    expect((await listed({ ignoreOffset: true }, '?limit=2&offset=2')).first).toEqual([50, 60])
  })

  test('lists can limit pages to any size, or not at all', async () => {
    expect((await listed({ maxLimit: 2 }, '?limit=4')).first).toHaveLength(2)
    const { sandbox, api } = withSwitches({ maxLimit: null, listEnvelope: 'array' })
    for (let i = 0; i < 150; i++) sandbox.addOrder()
    expect((await api.get('/v1/orders?limit=1000')).body).toHaveLength(150)
  })
})

test('new orders can be missing from reads for a while', async () => {
  const { clock, sandbox, api } = scene({ behaviour: { readLag: 1000, listEnvelope: 'array' } })
  await api.order('k')
  const { orderId } = sandbox.expectChargedOnce('k')
  clock.advance(999)
  expect(await api.get(`/v1/orders/${orderId}`)).toMatchObject({ status: 404 })
  expect((await api.get('/v1/orders')).body).toEqual([])
  clock.advance(1)
  expect(await api.get(`/v1/orders/${orderId}`)).toMatchObject({ status: 200 })
  expect((await api.get('/v1/orders')).body).toHaveLength(1)
})

test('a preset can be applied on top of the current switches', () => {
  const sandbox = createSandbox({ preset: 'rfc9457', behaviour: { maxLimit: 7 } })
  sandbox.configure('minimal-answers')
  expect(sandbox.behaviour).toMatchObject({ errorShape: 'flat', maxLimit: 7, replayStatus: 200 })
})

// Parsed from JSON, because the compiler would reject them.
test.each([
  ['{"errorShape":"round"}', 'behaviour.errorShape: expected "bare" or'],
  ['{"eror":1}', 'behaviour: unknown field "eror"; known: priceIs'],
  ['{"checks":["auth"]}', 'behaviour.checks: expected each of auth'],
  ['{"keyLifetime":-1}', 'behaviour.keyLifetime: expected a number from 0, got -1'],
  ['{"rememberedRefusals":[409]}', 'behaviour.rememberedRefusals[0]: expected 400 or 402'],
  ['{"replayHeader":"yes"}', 'behaviour.replayHeader: expected true or false, got "yes"'],
  ['{"maxLimit":0}', 'behaviour.maxLimit: expected an integer from 1, got 0'],
  ['"nope"', 'unknown preset "nope"'],
])('a misspelt switch is rejected: %s', (json, message) => {
  const sandbox = createSandbox()
  expect(() => sandbox.configure(JSON.parse(json))).toThrow(message)
  expect(sandbox.behaviour).toEqual(createSandbox().behaviour)
})
