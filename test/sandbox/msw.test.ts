import { CustomerOrderingClient, responseInfo } from 'customer-ordering-sdk'
import { sandboxHandlers } from 'customer-ordering-sdk/msw'
import { createSandbox, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { orderInit } from './caller.ts'

const sandbox = createSandbox()
const server = setupServer(...sandboxHandlers(sandbox))
beforeAll(() => server.listen({ onUnhandledFrame: 'error' }))
afterEach(() => {
  server.resetHandlers()
  sandbox.reset()
})
afterAll(() => server.close())

const order = (baseUrl = sandbox.baseUrl, at: Sandbox = sandbox) =>
  fetch(`${baseUrl}/v1/orders`, orderInit(at.apiKey))

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
  expect((await order('https://outer.test/v1', other)).status).toBe(201)
  other.expectCharges(1)
})

test('behind msw, the client repeats an order with its key after a network failure, which proves nothing', async () => {
  const client = new CustomerOrderingClient({ ...sandbox, account: 'shop', fetch }, { random: () => 0 })
  server.use(http.post(`${sandbox.baseUrl}/v1/orders`, () => HttpResponse.error(), { once: true }))
  sandbox.faults.add({ action: { type: 'commitThenDrop' } })
  const metadata = { externalOrderId: 'r1' }
  const placed = await client.orders.create({
    serviceId: 'svc_standard',
    target: '@a',
    quantity: 1,
    metadata,
  })
  expect(placed.id).toBe(sandbox.expectChargedOnce('r1').orderId)
  expect(responseInfo(placed)).toMatchObject({ attempts: 3, status: 201 })
})
