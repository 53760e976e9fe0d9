import { sandboxHandlers } from 'customer-ordering-sdk/msw'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { setupServer } from 'msw/node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { orderInit } from './caller.ts'

const sandbox = createSandbox({ baseUrl: 'https://inner.test/base' })
const server = setupServer(...sandboxHandlers(sandbox, { baseUrl: 'https://outer.test/ordering/' }))
beforeAll(() => server.listen({ onUnhandledFrame: 'error' }))
afterAll(() => server.close())

test('msw handlers accept another base URL, keep the base path on both sides, and respond to unknown paths', async () => {
  const order = await fetch('https://outer.test/ordering/v1/orders', orderInit(sandbox.apiKey))
  const read = await fetch('https://outer.test/ordering/v1/services?limit=1')
  const unknown = await fetch('https://outer.test/ordering/nowhere?x=1')
  expect([order, read, unknown].map(({ status }) => status)).toEqual([201, 401, 404])
  const paths = sandbox.requests.map(({ path }) => path)
  expect(paths).toEqual(['/v1/orders', '/v1/services?limit=1', '/nowhere?x=1'])
  sandbox.expectCharges(1)
})
