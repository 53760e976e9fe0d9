import { createSandbox, type SandboxAssertion, SandboxAssertionError } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { errorOf } from '../support/calls.ts'
import { caller, manualClock, scene, settled, validBody } from './caller.ts'

test('the ledger has every charge with the exact body', async () => {
  const clock = manualClock(1000)
  const sandbox = createSandbox(clock.options)
  const body = `  ${JSON.stringify(validBody)} `
  await caller(sandbox).order('k', body)
  expect(sandbox.ledger).toEqual([
    {
      orderId: sandbox.orders()[0]?.id,
      amount: 500,
      currency: 'EUR',
      customerId: 'cus_personal',
      idempotencyKey: 'k',
      externalOrderId: 'shop-1',
      body,
      at: 1000,
    },
  ])
})

test('the ledger omits a missing externalOrderId', async () => {
  const sandbox = createSandbox()
  await caller(sandbox).order('k', { ...validBody, metadata: { note: 1 } })
  expect(sandbox.ledger[0]).not.toHaveProperty('externalOrderId')
  await caller(sandbox).order('k2', { ...validBody, metadata: undefined })
  expect(sandbox.expectChargedOnce('k2')).not.toHaveProperty('externalOrderId')
  expect(() => sandbox.expectCharges(1)).toThrow(/EUR, key k2$/)
})

describe('its assertions', () => {
  const charge = (key: string): string =>
    `\n  ORDER: 500 minor units of EUR, key ${key}, externalOrderId "shop-1"`
  const [k, l] = [charge('k'), charge('l')]
  const twelve = Array.from({ length: 12 }, (_, index) => `k${index}`)
  const ten = twelve.slice(0, 10).map(charge).join('')
  const spent = `of cus_personal to hold 0, found 999500 minor units of EUR. Charges:${k}`
  const unspent =
    'of cus_organization to hold 1, found 1000000 minor units of EUR. This customer has no charges.'

  type Facts = readonly [actual: number | null, expected: number]
  test.each<[string, keys: string[], operator: SandboxAssertion, args: unknown[], Facts, message: string]>([
    ['charges', ['k', 'l'], 'expectChargedOnce', ['shop-1'], [2, 1], `"shop-1", found 2:${k}${l}`],
    ['that none was made', [], 'expectChargedOnce', ['x'], [0, 1], 'exactly one charge for "x", found 0.'],
    ['other charges', ['k'], 'expectChargedOnce', ['x'], [0, 1], `found 0. The ledger has:${k}`],
    ['an unexpected charge', ['k'], 'expectNotCharged', ['k'], [1, 0], `found 1:${k}`],
    ['that a charge is missing', ['k'], 'expectCharges', [2], [1, 2], `2 charges in all, found 1:${k}`],
    ['many charges in short', twelve, 'expectCharges', [1], [12, 1], `found 12:${ten}\n  and 2 more`],
    ['the charges of a wallet', ['k'], 'expectBalance', [0], [999_500, 0], spent],
    ['an unused wallet', ['k'], 'expectBalance', [1, 'cus_organization'], [1_000_000, 1], unspent],
    ['that there is no wallet', [], 'expectBalance', [0, 'cus_orphan'], [null, 0], 'found no wallet'],
  ])('a failure shows %s, and its line', async (_, keys, operator, args, [actual, expected], message) => {
    const { sandbox, api } = scene()
    sandbox.addCustomer({ id: 'cus_orphan', wallet: null })
    for (const key of keys) await api.order(key)
    const error = await errorOf((async () => Reflect.apply(sandbox[operator], sandbox, args))())
    if (!(error instanceof SandboxAssertionError)) throw new Error('no assertion failed')
    const facts = { name: 'AssertionError', code: 'ERR_ASSERTION', generatedMessage: false }
    expect(error).toMatchObject({ ...facts, operator, actual, expected })
    expect(error.message.replace(/ord_\w+/g, 'ORDER')).toContain(message)
    expect((error.stack ?? '').split('\n').find((line) => / at /.test(line))).toContain('ledger.test.ts')
  })

  test("assertions compare a wallet's balance", async () => {
    const sandbox = createSandbox({ balance: 1200 })
    sandbox.expectBalance(1200)
    await caller(sandbox).order('k')
    sandbox.expectBalance(700)
    sandbox.expectBalance(1200, sandbox.organizationId)
    sandbox.expectBalance(0, sandbox.addCustomer())
    expect(() => sandbox.expectBalance(0, 'cus_nobody')).toThrow(TypeError)
  })
})

test('the request log has every request, without the API key', async () => {
  const { sandbox, api } = scene(manualClock(1000).options)
  await api.order('k', validBody, { headers: { 'x-trace': 't1' } })
  await api.get('/v1/orders?limit=2')
  await caller(sandbox, 'stranger').send('/nowhere', { method: 'PUT', body: 'x' })
  expect(sandbox.requests).toMatchObject([
    {
      operation: 'createOrder',
      method: 'POST',
      path: '/v1/orders',
      idempotencyKey: 'k',
      apiKeyId: 'key_personal',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k', 'x-trace': 't1' },
      body: JSON.stringify(validBody),
      at: 1000,
      status: 201,
      delivery: 'complete',
      charged: true,
    },
    {
      operation: 'listOrders',
      path: '/v1/orders?limit=2',
      idempotencyKey: null,
      status: 200,
      charged: false,
    },
    { operation: null, method: 'PUT', path: '/nowhere', apiKeyId: null, body: 'x', status: 404 },
  ])
  const text = JSON.stringify(sandbox.requests)
  expect(text).not.toContain(sandbox.apiKey)
  expect(text).not.toContain('stranger')
})

test('the request log shows a request in progress', async () => {
  const clock = manualClock()
  const sandbox = createSandbox({ ...clock.options, faults: [{ action: { type: 'delay', ms: 1 } }] })
  const work = caller(sandbox).get('/v1/balance')
  await settled()
  expect(sandbox.requests).toMatchObject([{ path: '/v1/balance', status: 'running' }])
  clock.advance(1)
  await work
  expect(sandbox.requests).toMatchObject([{ path: '/v1/balance', status: 200 }])
})
