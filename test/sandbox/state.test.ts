import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox, type Sandbox, type SandboxState } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { caller, manualClock, scene, settled, validBody } from './caller.ts'

const copyOf = (state: SandboxState): SandboxState => JSON.parse(JSON.stringify(state))

test('a copy of a sandbox is a valid set of client options', async () => {
  const sandbox = createSandbox()
  const { baseUrl, apiKey, fetch } = sandbox
  expect({ ...sandbox }).toStrictEqual({ baseUrl, apiKey, fetch })
  const { amount } = await new CustomerOrderingClient({ ...sandbox }).balance.retrieve()
  expect(amount).toBe(1_000_000)
})

test('a sandbox does not depend on additions to Object.prototype', () => {
  const added = { value: 1, writable: true, set: 1 }
  let shown: string | undefined
  try {
    Object.assign(Object.prototype, added)
    shown = createSandbox({ apiKey: 'k' }).apiKey
  } finally {
    for (const name of Object.keys(added)) Reflect.deleteProperty(Object.prototype, name)
  }
  expect(shown).toBe('k')
})

describe('dump and load', () => {
  test('dump and load copy everything to another sandbox, with keys and wallets', async () => {
    const first = createSandbox({ seed: 5 })
    const created = await caller(first).order('k')
    const second = createSandbox({ seed: 6 })
    second.load(copyOf(first.dump()))
    expect(second.apiKey).toBe(first.apiKey)
    expect(second.organizationApiKey).toBe(first.organizationApiKey)
    expect(await caller(second).order('k')).toMatchObject({ status: 201, body: created.body })
    expect(second.ledger).toEqual(first.ledger)
    expect(second.dump()).toEqual(first.dump())
    expect((await caller(second).order('next')).body).toEqual({
      ...((await caller(first).order('next')).body as object),
      createdAt: expect.any(String),
    })
  })

  test('a dump is independent of later changes', async () => {
    const sandbox = createSandbox()
    const before = sandbox.dump()
    await caller(sandbox).order('k')
    expect(before.ledger).toEqual([])
    sandbox.load(before)
    sandbox.expectCharges(0)
    expect(sandbox.customer(sandbox.customerId).wallet?.amount).toBe(1_000_000)
  })

  test('load turns requests in progress into orphans and cuts their connections', async () => {
    const { clock, sandbox, api } = scene({ behaviour: { processingTime: 100, orphanedMarkLifetime: 1000 } })
    const lost = api.order('k').catch((error: unknown) => error)
    await settled()
    const state = copyOf(sandbox.dump())
    expect(state.keys).toMatchObject([{ key: 'k', answer: null, orphanedAt: clock.now() }])
    sandbox.load(state)
    clock.advance(100)
    expect(await lost).toMatchObject({ message: 'fetch failed' })
    sandbox.expectCharges(0)
    expect(await api.order('k')).toMatchObject({ body: { code: 'IDEMPOTENCY_IN_PROGRESS' } })
    clock.advance(1000)
    const again = api.order('k')
    await settled()
    clock.advance(100)
    expect(await again).toMatchObject({ status: 201 })
  })

  test('dump and load include remembered refusals and faults', async () => {
    const first = createSandbox({ preset: 'remembers-refusals' })
    const refused = { ...validBody, serviceId: 'svc_none' }
    await caller(first).order('refused', refused)
    first.faults.add({ action: { type: 'status', status: 503, text: 'down' } })
    await caller(first).order('failed')
    const second = createSandbox({ preset: 'remembers-refusals' })
    second.load(copyOf(first.dump()))
    expect(await caller(second).order('refused', refused)).toMatchObject({ status: 404 })
    expect(await caller(second).order('failed')).toMatchObject({ status: 503, body: 'down' })
  })

  const broken = (changes: object) => ({ ...createSandbox().dump(), ...changes })
  const poor = { id: 'c', type: 'personal', wallet: { amount: 1.5, currency: 'EUR' } }
  const mark = { scope: 's', key: 'k', payload: '', startedAt: 0, orphanedAt: null, answer: { kind: 'x' } }

  test.each<[string, unknown, string]>([
    ['nothing', null, 'state: expected an object, got null'],
    ['another version', broken({ version: 2 }), 'state.version: expected 1'],
    ['a missing table', broken({ orders: undefined }), 'state: the field "orders" is missing'],
    ['an unknown customer', broken({ customers: [] }), 'state.apiKeys[0].customerId: there is no customer'],
    ['an amount that is no integer', broken({ customers: [poor] }), 'state.customers[0].wallet.amount: '],
    ['a key with an odd answer', broken({ keys: [mark] }), 'state.keys[0].answer: '],
  ])('load rejects %s and changes nothing', async (_, state, message) => {
    const sandbox = createSandbox()
    expect(() => sandbox.load(JSON.parse(JSON.stringify(state)))).toThrow(message)
    expect(sandbox.services()).toHaveLength(7)
  })
})

test('reset restores state, switches, faults and log', async () => {
  const clock = manualClock()
  const sandbox = createSandbox({
    ...clock.options,
    preset: 'rfc9457',
    faults: [{ action: { type: 'status', status: 500 } }],
  })
  const beginning = sandbox.dump()
  const run = async () => {
    const answers = [await caller(sandbox).order('k'), await caller(sandbox).order('k')]
    return answers.map(({ status, body, headers }) => [status, body, [...headers]])
  }
  const first = await run()
  sandbox.configure('minimal-answers')
  sandbox.addService({ productId: 'extra', amount: 1 })
  sandbox.faults.add({ action: { type: 'drop' } })
  sandbox.reset()
  expect(sandbox.dump()).toEqual(beginning)
  expect(sandbox.requests).toEqual([])
  expect(await run()).toEqual(first)
  expect(first.map(([status]) => status)).toEqual([500, 201])
})

describe('determinism', () => {
  const run = async (seed: number) => {
    const { sandbox, api } = scene({
      seed,
      behaviour: { ordering: 'random' },
      faults: [{ times: Infinity, probability: 0.3, action: { type: 'status', status: 500 } }],
    })
    for (let i = 0; i < 20; i++) await api.order(`k${i}`)
    const { body } = await api.get('/v1/orders')
    return JSON.stringify([sandbox.apiKey, body, sandbox.dump(), sandbox.requests])
  }

  test('the same seed gives the same run, and another seed another run', async () => {
    const first = await run(42)
    expect(await run(42)).toBe(first)
    expect(await run(43)).not.toBe(first)
  })

  test('reads do not change the ids of later orders', async () => {
    const [quiet, busy] = [createSandbox(), createSandbox()]
    await caller(busy).get('/v1/balance')
    await caller(quiet).order('k')
    await caller(busy).order('k')
    expect(busy.orders()[0]?.id).toBe(quiet.orders()[0]?.id)
  })
})

describe('preparing a sandbox', () => {
  test('API keys and ids can be configured', () => {
    const sandbox = createSandbox({ apiKey: 'mine', organizationApiKey: 'ours' })
    expect([sandbox.apiKey, sandbox.organizationApiKey]).toEqual(['mine', 'ours'])
    expect(sandbox.addCustomer({ id: 'ada', type: 'organization' })).toEqual({
      id: 'ada',
      type: 'organization',
      wallet: { amount: 0, currency: 'EUR' },
    })
    expect(sandbox.addApiKey({ customer: 'ada', secret: 'hers' })).toBe('hers')
  })

  test('the catalogue can be configured', () => {
    const sandbox = createSandbox({ services: [{ productId: 'only', amount: 3 }] })
    expect(sandbox.services()).toEqual([
      {
        productId: 'only',
        amount: 3,
        currency: 'EUR',
        minQuantity: 1,
        maxQuantity: 1000,
        stepQuantity: 1,
        stock: null,
        published: true,
      },
    ])
  })

  test('a customer without a wallet gets one by a top-up', () => {
    const sandbox = createSandbox({ currency: 'CHF' })
    const customer = sandbox.addCustomer({ wallet: null })
    sandbox.topUp(customer, 5)
    expect(sandbox.customer(customer).wallet).toEqual({ amount: 5, currency: 'CHF' })
  })

  const service = { productId: 'x', amount: 1, stepQuantity: 0 }
  const key = { customer: 'cus_personal', secret: 'a b' }
  const misspelt = { customer: 'cus_personal', permission: ['orders:read'] }
  test.each([
    ['an unknown customer', (sandbox) => sandbox.addApiKey({ customer: 'none' }), 'customers() lists all'],
    ['no API key', ({ addApiKey }) => Reflect.apply(addApiKey, null, []), 'apiKey: expected an object'],
    ['no customer', ({ topUp }) => Reflect.apply(topUp, null, []), 'there is no customer undefined'],
    ['misspelt permissions', ({ addApiKey }) => addApiKey(misspelt), 'apiKey: unknown field "permission"'],
    ['a misspelt wallet', ({ addCustomer }) => addCustomer(JSON.parse('{"walet":0}')), 'field "walet"'],
    ['an unknown API key', (sandbox) => sandbox.revokeApiKey('none'), 'apiKeys() lists all'],
    ['an unknown order', (sandbox) => sandbox.setOrderStatus('none', 'x'), 'orders() lists all'],
    ['a negative balance', (sandbox) => sandbox.topUp('cus_personal', -1_000_001), 'customer.wallet.amount'],
    ['a step of zero', (sandbox) => sandbox.addService(service), 'service.stepQuantity'],
    ['an API key with a space', (sandbox) => sandbox.addApiKey(key), 'apiKey.secret'],
    ['an order of -1', (sandbox) => sandbox.addOrder({ amount: -1 }), 'order.amount'],
    ['too large a balance', (sandbox) => sandbox.setBalance('cus_personal', 2 ** 53), 'wallet.amount'],
  ] satisfies [string, (sandbox: Sandbox) => unknown, string][])('a sandbox refuses %s', (_, act, reason) => {
    const sandbox = createSandbox()
    const before = sandbox.dump()
    expect(() => act(sandbox)).toThrow(reason)
    expect(sandbox.dump()).toEqual({ ...before, random: expect.anything() })
  })
})
