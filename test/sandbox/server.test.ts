import { createSandbox, type FaultAction } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { expect, test } from 'vitest'
import { serving } from './serving.ts'

const withFault = (action: FaultAction) => serving({ faults: [{ action }] })

test('a sandbox on a port responds as sandbox.fetch does', async () => {
  const { sandbox, order, get } = await serving()
  const response = await order()
  expect(response.status).toBe(201)
  expect(response.headers.get('x-request-id')).toMatch(/^req_/)
  const created = (await response.json()) as { id: string }
  expect(await (await order()).json()).toEqual(created)
  expect(await (await get(`/v1/orders/${created.id}`)).json()).toEqual(created)
  expect(await (await get('/v1/orders?limit=1')).json()).toEqual({ data: [created] })
  expect(await (await get('/v1/balance')).json()).toEqual({ amount: 999_500, currency: 'EUR' })
  sandbox.expectChargedOnce('shop-1')
})

test("a sandbox on a port serves the base URL's path at the root", async () => {
  const { get } = await serving({ baseUrl: 'https://shop.test/ordering' })
  expect((await get('/v1/balance')).status).toBe(200)
})

test('a sandbox on a port reports every request when its response is sent', async () => {
  const seen: unknown[] = []
  const { order, get } = await serving(
    { faults: [{ action: { type: 'drop' } }] },
    { onRequest: ({ method, path, status }) => seen.push([method, path, status]) },
  )
  await order().catch(() => {})
  await get('/nowhere')
  expect(seen).toEqual([
    ['POST', '/v1/orders', 'dropped'],
    ['GET', '/nowhere', 404],
  ])
})

test('a sandbox cannot start on a used port', async () => {
  const { server } = await serving()
  await expect(serveSandbox(createSandbox(), { port: server.port })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  })
})

test('a sandbox on a port closes with open requests', async () => {
  const { server, order } = await withFault({ type: 'stall' })
  const lost = order().catch((error: unknown) => error)
  await Promise.all([server.close(), server.close()])
  expect(await lost).toBeInstanceOf(TypeError)
})

test('a sandbox on a port accepts pages of any origin if told to', async () => {
  const { server, get } = await serving({}, { cors: true })
  const preflight = await fetch(`${server.url}/v1/orders`, {
    method: 'OPTIONS',
    headers: { 'access-control-request-headers': 'authorization,idempotency-key' },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization,idempotency-key')
  expect((await get('/v1/balance')).headers.get('access-control-allow-origin')).toBe('*')
  const closed = await serving()
  expect((await closed.get('/v1/balance')).headers.get('access-control-allow-origin')).toBeNull()
})

test('a status without a body is sent without one, and without its length', async () => {
  const response = await (await withFault({ type: 'status', status: 204 })).order()
  expect([response.headers.get('content-length'), await response.text()]).toEqual([null, ''])
})

test('a body of more than 1 MiB gets 413', async () => {
  const { order, get } = await serving()
  const response = await order('k', { body: JSON.stringify({ pad: 'x'.repeat(3_000_000) }) })
  expect(response.status).toBe(413)
  expect(await response.json()).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
  expect((await get('/v1/balance')).status).toBe(200)
})
