import { sandboxHandlers } from 'customer-ordering-sdk/msw'
import { createSandbox, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { setupServer } from 'msw/node'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { until, validBody } from './caller.ts'

const sandbox = createSandbox()
const server = setupServer(...sandboxHandlers(sandbox))
beforeAll(() => server.listen({ onUnhandledFrame: 'error' }))
afterEach(() => {
  server.resetHandlers()
  sandbox.reset()
})
afterAll(() => server.close())

const order = (baseUrl = sandbox.baseUrl, init: RequestInit = {}, at: Sandbox = sandbox) =>
  fetch(`${baseUrl}/v1/orders`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${at.apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': 'k',
    },
    body: JSON.stringify(validBody),
    ...init,
  })

describe('msw handlers', () => {
  test('msw handlers respond to the global fetch from the sandbox', async () => {
    const response = await order()
    expect(response.status).toBe(201)
    expect(await response.json()).toMatchObject({ amount: 500 })
    expect((await order()).status).toBe(201)
    sandbox.expectChargedOnce('shop-1')
  })

  test('msw handlers respond to unknown paths of the API', async () => {
    expect((await fetch(`${sandbox.baseUrl}/nowhere?x=1`)).status).toBe(404)
  })

  test('msw handlers accept another base URL', async () => {
    server.use(...sandboxHandlers(sandbox, { baseUrl: 'https://api.example.com/shop/' }))
    expect((await order('https://api.example.com/shop')).status).toBe(201)
    expect((await fetch('https://api.example.com/shop/v1/services?limit=1')).status).toBe(401)
    expect(sandbox.requests.map(({ path }) => path)).toEqual(['/v1/orders', '/v1/services?limit=1'])
  })

  test('msw handlers keep the base path on both sides', async () => {
    const other = createSandbox({ baseUrl: 'https://inner.test/base' })
    server.use(...sandboxHandlers(other, { baseUrl: 'https://outer.test/v1' }))
    expect((await order('https://outer.test/v1', {}, other)).status).toBe(201)
    other.expectCharges(1)
  })

  test.each([
    ['drop', 0],
    ['commitThenDrop', 1],
    ['refuseConnection', 0],
  ] as const)('%s is a failed fetch', async (type, charges) => {
    sandbox.faults.add({ action: { type } })
    await expect(order()).rejects.toThrow(TypeError)
    sandbox.expectCharges(charges)
  })

  test('cutBody truncates the body', async () => {
    sandbox.faults.add({ action: { type: 'cutBody' } })
    const response = await order()
    expect(response.status).toBe(201)
    await expect(response.text()).rejects.toThrow()
    sandbox.expectCharges(1)
  })

  test("stall ends with the caller's signal", async () => {
    sandbox.faults.add({ action: { type: 'stall' } })
    const controller = new AbortController()
    const work = order(sandbox.baseUrl, { signal: controller.signal }).catch((error: unknown) => error)
    await until(() => sandbox.requests.length === 1)
    controller.abort(new Error('enough'))
    expect(await work).toMatchObject({ message: 'enough' })
  })
})
