import { createSandbox, type Sandbox, SandboxAssertionError } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { caller, manualClock, scene, settled, validBody } from './caller.ts'

describe('the ledger', () => {
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
  })

  test('charges are found by externalOrderId or Idempotency-Key', async () => {
    const sandbox = createSandbox()
    await caller(sandbox).order('k')
    expect(sandbox.expectChargedOnce('shop-1')).toBe(sandbox.expectChargedOnce('k'))
    sandbox.expectNotCharged('shop-2')
    sandbox.expectCharges(1)
  })
})

describe('its assertions', () => {
  const failing = (check: () => unknown) => {
    try {
      check()
    } catch (error) {
      return error
    }
    return expect.unreachable('should have thrown')
  }

  test('assertions throw an AssertionError with the charges found', async () => {
    const { sandbox, api } = scene()
    await api.order('k1')
    await api.order('k2')
    const [first, second] = sandbox.ledger
    const error = failing(() => sandbox.expectChargedOnce('shop-1'))
    expect(error).toBeInstanceOf(SandboxAssertionError)
    expect(error).toMatchObject({
      name: 'AssertionError',
      code: 'ERR_ASSERTION',
      operator: 'expectChargedOnce',
      generatedMessage: false,
      actual: 2,
      expected: 1,
    })
    expect(error).toHaveProperty(
      'message',
      [
        'expected exactly one charge for "shop-1", found 2:',
        `  ${first?.orderId}: 500 minor units of EUR, key k1, externalOrderId "shop-1"`,
        `  ${second?.orderId}: 500 minor units of EUR, key k2, externalOrderId "shop-1"`,
      ].join('\n'),
    )
  })

  test('assertions list the rest of the ledger if they find nothing', async () => {
    const sandbox = createSandbox()
    expect(failing(() => sandbox.expectChargedOnce('x'))).toHaveProperty(
      'message',
      'expected exactly one charge for "x", found 0.',
    )
    await caller(sandbox).order('k', { ...validBody, metadata: undefined })
    expect(failing(() => sandbox.expectChargedOnce('x'))).toHaveProperty(
      'message',
      `expected exactly one charge for "x", found 0. The ledger has:\n  ${sandbox.ledger[0]?.orderId}: 500 minor units of EUR, key k`,
    )
  })

  test('assertions count charges, and report unexpected ones', async () => {
    const sandbox = createSandbox()
    await caller(sandbox).order('k')
    expect(failing(() => sandbox.expectNotCharged('k'))).toMatchObject({ actual: 1, expected: 0 })
    expect(failing(() => sandbox.expectCharges(2))).toMatchObject({
      actual: 1,
      expected: 2,
      message: expect.stringContaining('expected 2 charges in all, found 1:'),
    })
  })

  test("assertions compare a wallet's balance, and list its charges", async () => {
    const sandbox = createSandbox({ balance: 1200 })
    sandbox.expectBalance(1200)
    await caller(sandbox).order('k')
    sandbox.expectBalance(700)
    sandbox.expectBalance(1200, sandbox.organizationId)
    sandbox.expectBalance(0, sandbox.addCustomer())
    const error = failing(() => sandbox.expectBalance(1200))
    expect(error).toMatchObject({ operator: 'expectBalance', actual: 700, expected: 1200 })
    expect(error).toHaveProperty(
      'message',
      `expected the wallet of cus_personal to hold 1200, found 700 minor units of EUR. Charges:\n  ${sandbox.ledger[0]?.orderId}: 500 minor units of EUR, key k, externalOrderId "shop-1"`,
    )
    expect(failing(() => sandbox.expectBalance(1, sandbox.organizationId))).toHaveProperty(
      'message',
      'expected the wallet of cus_organization to hold 1, found 1200 minor units of EUR. This customer has no charges.',
    )
  })

  test('assertions report that a customer has no wallet or does not exist', () => {
    const sandbox = createSandbox()
    const orphan = sandbox.addCustomer({ id: 'cus_orphan', wallet: null })
    const error = failing(() => sandbox.expectBalance(0, orphan))
    expect(error).toMatchObject({ actual: null, expected: 0 })
    expect(error).toHaveProperty('message', expect.stringContaining('found no wallet'))
    expect(failing(() => sandbox.expectBalance(0, 'cus_nobody'))).toBeInstanceOf(TypeError)
  })

  test.each([
    ['expectChargedOnce', (sandbox: Sandbox) => sandbox.expectChargedOnce('x')],
    ['expectNotCharged', (sandbox: Sandbox) => sandbox.expectNotCharged('k')],
    ['expectCharges', (sandbox: Sandbox) => sandbox.expectCharges(0)],
    ['expectBalance', (sandbox: Sandbox) => sandbox.expectBalance(0)],
  ] as const)('%s: the stack begins with the line of the test', async (operator, check) => {
    const sandbox = createSandbox()
    await caller(sandbox).order('k')
    const error = failing(() => check(sandbox))
    expect(error).toHaveProperty('operator', operator)
    const frames =
      error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => / at /.test(line)) : []
    expect(frames[0]).toContain('ledger.test.ts')
  })

  test('assertions shorten long ledgers', async () => {
    const { sandbox, api } = scene()
    for (let i = 0; i < 12; i++) await api.order(`k${i}`)
    const error = failing(() => sandbox.expectCharges(1))
    expect(error).toHaveProperty(
      'message',
      expect.stringMatching(/1 charge in all, found 12:[\s\S]*and 2 more$/),
    )
  })
})

describe('the request log', () => {
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
})
