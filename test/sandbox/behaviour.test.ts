import { createSandbox, type SandboxBehaviour } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { caller, scene, validBody } from './caller.ts'

const withSwitches = (behaviour: Partial<SandboxBehaviour>) => scene({ behaviour })

describe('list envelopes', () => {
  const row = { id: 'o1', status: 'pending', amount: 250 }
  test.each([
    ['array', [row]],
    ['data', { data: [row] }],
    ['items', { items: [row], total: 2, limit: 1, offset: 1 }],
    ['named', { orders: [row], hasMore: false }],
    ['results', { results: [row], pagination: { total: 2, hasMore: false } }],
  ] as const)('a list has the rows where the envelope `%s` has them', async (listEnvelope, body) => {
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
  test('orders have every field, or only the documented ones', async () => {
    const { sandbox, api } = withSwitches({
      orderFields: ['serviceId', 'target', 'quantity', 'currency', 'metadata', 'sourceSystem', 'createdAt'],
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

  const offset = (quantity: number) => ({ serviceId: 'svc_offset', quantity })
  const fractional = (quantity: number) => ({ serviceId: 'svc_fractional', quantity })
  const requiredFields = ['target', 'metadata', 'externalOrderId'] as const

  type Numbers = readonly number[]
  test.each<[string, Partial<SandboxBehaviour>, sent: object[], statuses: Numbers, amounts: Numbers]>([
    ['cost the price itself', { priceIs: 'perOrder' }, [{}], [201], [250]],
    ['accept steps from zero', { stepFrom: 'zero' }, [offset(10), offset(15)], [201, 422], [400]],
    ['may be fractions', { fractionalQuantity: true }, [fractional(1.5), fractional(1.7)], [201, 422], [180]],
    ['need no target', { requiredFields: [] }, [{ target: undefined }], [201], [500]],
    ['need more fields', { requiredFields }, [{ metadata: undefined }, { metadata: {} }], [400, 400], []],
    ['may have all these fields', { requiredFields }, [{}], [201], [500]],
    ['may have unknown fields', {}, [{ gift: true }], [201], [500]],
    [
      'may have no unknown fields',
      { unknownFields: 'refuse', sourceSystemFrom: 'body' },
      [{ gift: true }, { sourceSystem: 'web' }],
      [400, 201],
      [500],
    ],
  ])('orders %s: %j', async (_, switches, sent, statuses, amounts) => {
    const { sandbox, api } = withSwitches(switches)
    const bodies = sent.map((changes) => ({ ...validBody, ...changes }))
    expect(await api.statuses(...bodies.map((body, index) => [`k${index}`, body] as const))).toEqual(statuses)
    expect(sandbox.ledger.map(({ amount }) => amount)).toEqual(amounts)
  })

  test.each(['metadata', 'body', 'apiKey'] as const)('orders take sourceSystem from %s', async (from) => {
    const { sandbox } = withSwitches({ sourceSystemFrom: from })
    const apiKey = sandbox.addApiKey({ customer: sandbox.customerId, sourceSystem: 'from apiKey' })
    await caller(sandbox, apiKey).order('k', {
      ...validBody,
      sourceSystem: 'from body',
      metadata: { sourceSystem: 'from metadata' },
    })
    expect(sandbox.orders()[0]?.sourceSystem).toBe(`from ${from}`)
  })
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
  const listed = (behaviour: Partial<SandboxBehaviour>, query = '') => {
    const { sandbox, api } = withSwitches({ listEnvelope: 'array', ...behaviour })
    for (const amount of [30, 10, 20, 40, 60, 50]) sandbox.addOrder({ amount })
    return async () =>
      ((await api.get(`/v1/orders${query}`)).body as { amount: number }[]).map(({ amount }) => amount)
  }

  test.each<[string, Partial<SandboxBehaviour>, query: string, amounts: number[]]>([
    ['begin with the newest', { ordering: 'newest' }, '', [50, 60, 40, 20, 10, 30]],
    ['begin with the oldest', { ordering: 'oldest' }, '', [30, 10, 20, 40, 60, 50]],
    ['begin with the cheapest', { ordering: 'amount' }, '', [10, 20, 30, 40, 50, 60]],
    ['ignore offset', { ignoreOffset: true }, '?limit=2&offset=2', [50, 60]],
    ['have short pages', { maxLimit: 2 }, '?limit=4', [50, 60]],
  ])('lists can %s', async (_, behaviour, query, amounts) => {
    expect(await listed(behaviour, query)()).toEqual(amounts)
  })

  test('lists can have a different random order in each request, those of services too', async () => {
    const read = listed({ ordering: 'random' })
    const [first, second] = [await read(), await read()]
    expect(second).not.toEqual(first)
    expect(second.toSorted()).toEqual(first.toSorted())
    const { api } = withSwitches({ ordering: 'random' })
    const services = async () => JSON.stringify((await api.get('/v1/services')).body)
    expect(await services()).not.toBe(await services())
  })

  test('lists can have pages of any size', async () => {
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
