import { createSandbox, type SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { expect, test } from 'vitest'
import { caller, scene, settled, validBody } from './caller.ts'

const conflict = { status: 409, body: { code: 'IDEMPOTENCY_CONFLICT' } }
const unknownService = { ...validBody, serviceId: 'svc_none' }
const inProgress = { status: 409, body: { code: 'IDEMPOTENCY_IN_PROGRESS' } }

const failing = (commit: boolean, skip = 0): SandboxOptions => ({
  behaviour: { rememberServerErrors: true },
  faults: [{ skip, action: { type: 'status', status: 500, text: 'boom', commit } }],
})
const [refused, unpaid] = [
  ['k', unknownService],
  ['k', { ...validBody, serviceId: 'svc_premium' }],
] as const
const checks = ['auth', 'service', 'balance', 'validation', 'key'] as const
const serviceFirst = { behaviour: { checks } }

/** Orders, or the number of equal ones. */
type Orders = Parameters<ReturnType<typeof caller>['statuses']> | number
test.each<[string, SandboxOptions, Orders, number[], number]>([
  ['a refused key may be used again, even with another payload', {}, [refused, 'k'], [404, 201], 1],
  ['a server error that was charged is replayed if errors are remembered', failing(true), 2, [500, 500], 1],
  ['a server error that was not charged is replayed, too', failing(false), 2, [500, 500], 0],
  ['a server error on a replay overwrites no response', failing(true, 1), 3, [201, 500, 201], 1],
  ['a server error is not remembered by default', { faults: failing(false).faults ?? [] }, 2, [500, 201], 1],
  ['an order that emptied the wallet is replayed', { balance: 500 }, 2, [201, 201], 1],
  [
    'an order that emptied the wallet is refused if the balance is checked before the key',
    { balance: 500, preset: 'balance-before-key' },
    2,
    [201, 402],
    1,
  ],
  ['a service can be checked before validation', serviceFirst, [refused, unpaid], [404, 402], 0],
])('%s', async (_, options, orders, statuses, charges) => {
  const { sandbox, api } = scene(options)
  const sent = typeof orders === 'number' ? Array<'k'>(orders).fill('k') : orders
  expect(await api.statuses(...sent)).toEqual(statuses)
  sandbox.expectCharges(charges)
})

test.each([
  ['one API key by default', {}, 2],
  ['the customer with keyScope customer', { behaviour: { keyScope: 'customer' } }, 1],
] as const)('a key belongs to %s, and never to another customer', async (_, options, charges) => {
  const { sandbox, api } = scene(options)
  const other = caller(sandbox, sandbox.addApiKey({ customer: sandbox.customerId }))
  expect(await api.statuses('k')).toEqual(await other.statuses('k'))
  sandbox.expectCharges(charges)
  await caller(sandbox, sandbox.organizationApiKey).order('k')
  sandbox.expectCharges(charges + 1)
})

test('a key is forgotten after its lifetime', async () => {
  const { clock, sandbox, api } = scene({ behaviour: { keyLifetime: 1000 } })
  await api.order('k')
  clock.advance(999)
  await api.order('k')
  sandbox.expectCharges(1)
  clock.advance(1)
  await api.order('k')
  sandbox.expectCharges(2)
})

test("a key's lifetime can count from a refused first use, or from the latest use", async () => {
  for (const [keyLifetimeFrom, charges] of [
    ['remembered', 1],
    ['firstUse', 2],
    ['lastUse', 1],
  ] as const) {
    const { clock, sandbox, api } = scene({ behaviour: { keyLifetime: 1000, keyLifetimeFrom } })
    expect(await api.order('k', unknownService)).toMatchObject({ status: 404 })
    clock.advance(600)
    expect(await api.order('k')).toMatchObject({ status: 201 })
    clock.advance(600)
    expect(await api.order('k')).toMatchObject({ status: 201 })
    clock.advance(600)
    if (keyLifetimeFrom === 'lastUse') expect(await api.order('k')).toMatchObject({ status: 201 })
    sandbox.expectCharges(charges)
  }
})

test('a refused key can stay bound to its payload', async () => {
  const { sandbox, api } = scene({ balance: 0, behaviour: { refusedKeysChangePayload: false } })
  expect(await api.order('k')).toMatchObject({ status: 402 })
  sandbox.topUp(sandbox.customerId, 10_000)
  expect(await api.order('k', { ...validBody, quantity: 3 })).toMatchObject(conflict)
  expect(await api.order('k')).toMatchObject({ status: 201 })
  sandbox.expectCharges(1)
})

test('a key can be forgotten by a call, except while it is in progress', async () => {
  const { clock, sandbox, api } = scene()
  await api.order('done')
  sandbox.configure({ processingTime: 10 })
  const running = api.order('running')
  await settled()
  sandbox.forgetKeys()
  expect(await api.order('running')).toMatchObject(inProgress)
  const again = api.order('done')
  await settled()
  clock.advance(10)
  await Promise.all([running, again])
  sandbox.expectCharges(3)
})

test('a key does not expire while its request runs', async () => {
  const { clock, sandbox, api } = scene({ behaviour: { processingTime: 200, keyLifetime: 50 } })
  const first = api.order('k')
  await settled()
  clock.advance(100)
  expect(await api.order('k')).toMatchObject(inProgress)
  clock.advance(100)
  expect(await first).toMatchObject({ status: 201 })
  sandbox.expectCharges(1)
})

const respelt = JSON.stringify({
  metadata: validBody.metadata,
  quantity: 2.0,
  target: '@ada',
  serviceId: 'svc_standard',
})

test.each([
  [undefined, 'as JSON by default, whatever the spelling', `  ${respelt}\n`, { ...validBody, quantity: 3 }],
  ['bytes', 'as bytes', JSON.stringify(validBody), respelt],
  [
    'json-without-metadata',
    'without metadata',
    { ...validBody, metadata: { note: 'other' } },
    { ...validBody, target: '@bob' },
  ],
] as const)('with %s, payloads are compared %s', async (payloadEquality, _, same, other) => {
  const { api } = scene(payloadEquality && { behaviour: { payloadEquality } })
  const { body } = await api.order('k')
  expect(await api.order('k', other)).toMatchObject(conflict)
  expect(await api.order('k', same)).toMatchObject({ status: 201, body })
})

test.each([
  [400, { ...validBody, quantity: 'two' }],
  [402, { ...validBody, serviceId: 'svc_premium' }],
  [404, unknownService],
  [422, { ...validBody, serviceId: 'svc_sold_out' }],
])('a refusal with %i is replayed after its cause is gone', async (status, body) => {
  const { sandbox, api } = scene({ preset: 'remembers-refusals' })
  const refused = await api.order('k', body)
  expect(refused.status).toBe(status)
  sandbox.topUp(sandbox.customerId, 100_000_000)
  sandbox.addService({ productId: 'svc_none', amount: 1 })
  sandbox.addService({ productId: 'svc_sold_out', amount: 1 })
  const again = await api.order('k', body)
  expect(again).toMatchObject({ status, body: refused.body })
  expect(again.headers.get('idempotent-replayed')).toBe('true')
  expect(await api.order('k')).toMatchObject(conflict)
  sandbox.expectCharges(0)
})

test('a server error of a read is not remembered', async () => {
  const { api } = scene(failing(false))
  expect(await api.get('/v1/balance')).toMatchObject({ status: 500 })
  expect(await api.get('/v1/balance')).toMatchObject({ status: 200 })
})

test('a 401 is never remembered', async () => {
  const sandbox = createSandbox({ preset: 'remembers-refusals' })
  expect(await caller(sandbox, 'wrong').order('k')).toMatchObject({ status: 401 })
  expect(await caller(sandbox).order('k')).toMatchObject({ status: 201 })
})

test('with the key checked first, a revoked API key still replays', async () => {
  const checks = ['key', 'auth', 'validation', 'service', 'balance'] as const
  const { sandbox, api } = scene({ behaviour: { checks } })
  const { body } = await api.order('k')
  sandbox.revokeApiKey(sandbox.apiKey)
  expect(await api.order('k')).toMatchObject({ status: 201, body })
  expect(await api.order('new')).toMatchObject({ status: 401 })
})

test('with the API key checked last, unknown callers learn about their body first', async () => {
  const checks = ['validation', 'service', 'balance', 'key', 'auth'] as const
  const { sandbox, api } = scene({ behaviour: { checks } })
  const stranger = caller(sandbox, null)
  expect(await stranger.statuses(['k', {}], 'k')).toEqual([400, 401])
  expect(await api.statuses(refused, 'k')).toEqual([404, 201])
})

test('replays can be 200 with a header', async () => {
  const api = caller(createSandbox({ preset: 'rfc9457' }))
  expect((await api.order('k')).headers.get('idempotent-replayed')).toBeNull()
  const again = await api.order('k')
  expect(again.status).toBe(200)
  expect(again.headers.get('idempotent-replayed')).toBe('true')
})

test.each([
  ['original', 'pending'],
  ['current', 'done'],
] as const)('replays show the %s order', async (replayBody, status) => {
  const { sandbox, api } = scene({ behaviour: { replayBody } })
  await api.order('k')
  sandbox.setOrderStatus(sandbox.expectChargedOnce('k').orderId, 'done')
  expect((await api.order('k')).body).toMatchObject({ status })
})

test('replays show the original of an order that was removed', async () => {
  const { sandbox, api } = scene({ behaviour: { replayBody: 'current' } })
  const first = await api.order('k')
  sandbox.removeOrder(sandbox.expectChargedOnce('k').orderId)
  expect((await api.order('k')).body).toEqual(first.body)
})

test.each([
  ['leaves no mark by default', {}, 0],
  ['can leave a mark that stays in progress for a while', { orphanedMarkLifetime: 5000 }, 5000],
  ['leaves a mark no longer than its key', { orphanedMarkLifetime: null, keyLifetime: 60 }, 60],
  ['can leave a permanent mark', { orphanedMarkLifetime: null }, 1e12],
])('a creation that died halfway %s', async (_, behaviour, lasts) => {
  const { clock, sandbox, api } = scene({ behaviour, faults: [{ action: { type: 'crash' } }] })
  await expect(api.order('k')).rejects.toThrow('fetch failed')
  if (lasts > 0) {
    clock.advance(lasts - 1)
    expect(await api.order('k')).toMatchObject(inProgress)
    sandbox.expectCharges(0)
    clock.advance(1)
  }
  const isOver = lasts < 1e12
  expect(await api.order('k')).toMatchObject(isOver ? { status: 201 } : inProgress)
  sandbox.expectCharges(isOver ? 1 : 0)
})
