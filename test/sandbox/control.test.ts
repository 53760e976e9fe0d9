import { request as httpRequest } from 'node:http'
import type { FaultRule, SandboxOptions } from 'customer-ordering-sdk/sandbox'
import type { SandboxServer, ServeSandboxOptions } from 'customer-ordering-sdk/sandbox/server'
import { describe, expect, test } from 'vitest'
import { orderInit, validBody } from './caller.ts'
import { serving } from './serving.ts'

async function serve(options: SandboxOptions = {}, serverOptions: ServeSandboxOptions = {}) {
  const { sandbox, server } = await serving(options, { control: true, ...serverOptions })
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}/__sandbox${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: JSON.parse(text) as unknown }
  }
  const bodyOf = async (...given: Parameters<typeof call>) => (await call(...given)).body
  const order = (key: string, body: object = validBody) =>
    fetch(`${server.url}/v1/orders`, orderInit(sandbox.apiKey, key, body))
  return { sandbox, server, call, bodyOf, order }
}

const lost: FaultRule = { match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } }

test('the control API adds, lists and removes fault rules while the service runs', async () => {
  const { call, bodyOf, order } = await serve()
  expect(await call('POST', '/faults', lost)).toMatchObject({
    status: 201,
    body: [{ id: 1, rule: lost, matched: 0, acted: 0, spent: false }],
  })
  await expect(order('k')).rejects.toThrow('fetch failed')
  expect(await bodyOf('GET', '/faults')).toEqual([{ id: 1, rule: lost, matched: 1, acted: 1, spent: true }])
  const two = [{ action: { type: 'drop' }, times: 'always' }, { action: { type: 'inProgress' } }]
  expect(await bodyOf('POST', '/faults', two)).toMatchObject([{ id: 2 }, { id: 3 }])
  expect(await bodyOf('DELETE', '/faults/2')).toMatchObject([{ id: 1 }, { id: 3 }])
  expect(await call('DELETE', '/faults/2')).toMatchObject({
    status: 404,
    body: { error: 'there is no fault rule 2; GET /__sandbox/faults lists all' },
  })
  expect((await order('k')).status).toBe(409)
  expect(await call('DELETE', '/faults')).toMatchObject({ status: 200, body: [] })
  expect(await bodyOf('POST', '/faults', lost), 'ids are never used again').toMatchObject([{ id: 4 }])
})

test('the control API shows and changes switches', async () => {
  const { call, bodyOf, sandbox } = await serve()
  expect(await bodyOf('GET', '/behaviour')).toEqual({ preset: 'default', behaviour: sandbox.behaviour })
  const preset = await call('PUT', '/behaviour', { preset: 'rfc9457' })
  expect(preset.body).toMatchObject({ preset: 'rfc9457', behaviour: { errorShape: 'problem' } })
  expect(await bodyOf('PATCH', '/behaviour', { maxLimit: 7 })).toMatchObject({
    preset: null,
    behaviour: { errorShape: 'problem', maxLimit: 7 },
  })
  const mixed = await call('PUT', '/behaviour', { preset: 'forgetful', behaviour: { replayStatus: 200 } })
  expect(mixed.body).toMatchObject({
    behaviour: { keyLifetime: 60_000, replayStatus: 200, errorShape: 'bare' },
  })
  expect(await bodyOf('PUT', '/behaviour', {})).toMatchObject({ preset: 'default' })
})

test('the control API shows requests and charges', async () => {
  const { bodyOf, order, server } = await serve()
  await order('a')
  await order('b', { ...validBody, metadata: { externalOrderId: 'shop-2' } })
  await fetch(`${server.url}/v1/balance`)
  expect(await bodyOf('GET', '/requests')).toMatchObject([
    { number: 1, status: 201, charged: true, body: JSON.stringify(validBody) },
    { number: 2, status: 201 },
    { number: 3, status: 401 },
  ])
  expect(await bodyOf('GET', '/requests?after=1&limit=1')).toMatchObject([{ number: 2 }])
  expect(await bodyOf('GET', '/ledger')).toMatchObject([{ idempotencyKey: 'a' }, { idempotencyKey: 'b' }])
  expect(await bodyOf('GET', '/ledger?reference=shop-2')).toMatchObject([{ idempotencyKey: 'b' }])
  expect(await bodyOf('GET', '/ledger?reference=a')).toMatchObject([{ externalOrderId: 'shop-1' }])
  expect(await bodyOf('GET', '/ledger?reference=none')).toEqual([])
})

test('the control API shows, saves, loads and resets the complete state', async () => {
  const { call, order, sandbox } = await serve()
  await order('k')
  const saved = await call('GET', '/state')
  expect(saved.body).toEqual(sandbox.dump())
  expect((await call('POST', '/reset')).status).toBe(200)
  sandbox.expectCharges(0)
  expect((await call('PUT', '/state', saved.body)).status).toBe(200)
  expect(sandbox.dump()).toEqual(saved.body)
  expect((await order('k')).status).toBe(201)
  sandbox.expectChargedOnce('k')
})

test('the control API tops up wallets, forgets keys and sets the status of orders', async () => {
  const { call, bodyOf, order, sandbox } = await serve()
  expect(await bodyOf('POST', '/top-up', { customer: 'cus_personal', amount: 5 })).toMatchObject({
    wallet: { amount: 1_000_005 },
  })
  await order('k')
  expect((await call('POST', '/forget-keys')).status).toBe(200)
  await order('k')
  sandbox.expectCharges(2)
  const { orderId } = sandbox.ledger[0] ?? expect.unreachable()
  expect(await bodyOf('PUT', `/orders/${orderId}/status`, { status: 'done' })).toMatchObject({
    id: orderId,
    status: 'done',
  })
})

test('the control API returns what the live page shows, with long bodies cut', async () => {
  const { bodyOf, order, sandbox } = await serve({ behaviour: { statuses: [{ status: 'new', after: 0 }] } })
  await order('k', { ...validBody, note: 'x'.repeat(5000) })
  expect(await bodyOf('GET', '/page')).toMatchObject({
    overview: {
      preset: null,
      behaviour: sandbox.behaviour,
      customers: [{ id: 'cus_personal', wallet: { amount: 999_500 } }, { id: 'cus_organization' }],
      apiKeys: [{ id: 'key_personal' }, { id: 'key_organization' }],
      orders: { total: 1, newest: [{ status: 'new', quantity: 2 }] },
      keys: { total: 1, newest: [{ key: 'k', scope: 'key_personal', answer: 'order' }] },
      ledger: { total: 1, newest: [{ idempotencyKey: 'k' }] },
      faults: [],
    },
    requests: [{ number: 1, status: 201, charged: true, body: expect.stringMatching(/^.{2000}…$/s) }],
  })
})

test.each<[status: number, call: string, body: unknown, reason: string]>([
  [400, 'POST /faults', '[{', 'not valid JSON: Expected property name'],
  [400, 'POST /faults', [lost, {}], '$[1]: the field "action" is missing'],
  [400, 'PUT /behaviour', { preset: 'strict' }, 'unknown preset "strict"; known: default'],
  [400, 'PUT /behaviour', { behaviour: 7 }, 'behaviour: expected an object'],
  [400, 'PATCH /behaviour', { maxLimits: 1 }, 'behaviour: unknown field "maxLimits"'],
  [400, 'PATCH /behaviour', ['rfc9457'], 'behaviour: expected an object'],
  [400, 'PUT /state', { version: 1 }, 'state: the field "random" is missing'],
  [400, 'POST /top-up', { customer: 'nobody', amount: 1 }, 'there is no customer "nobody"'],
  [400, 'POST /top-up', { customer: 'cus_personal', amount: 1.5 }, '$.amount: expected an integer'],
  [400, 'PUT /orders/none/status', { status: 'done' }, 'there is no order "none"'],
  [400, 'PUT /orders/none/status', { status: '' }, '$.status: expected a status'],
  [405, 'GET /orders/%ff/status', undefined, 'this path does not support GET; use PUT'],
  [400, 'PUT /orders/%ff/status', {}, 'the path has invalid percent-encoding'],
  [400, 'GET /requests?after=x', undefined, 'after: expected a whole number of at most 15 digits, got "x"'],
  [400, 'GET /ledger?refrence=a', undefined, 'of GET /ledger; known: reference'],
  [400, 'GET /requests?from=1', undefined, 'of GET /requests; known: after, limit'],
  [400, 'GET /faults?id=1', undefined, 'query: unknown parameter "id" of GET /faults; known: none'],
  [405, 'DELETE /state', undefined, 'this path does not support DELETE; use GET, PUT'],
  [404, 'GET /nowhere', undefined, 'the control API has no path "/nowhere"'],
])('the API responds %i to %s %j with a reason and changes nothing', async (status, target, body, reason) => {
  const { call, sandbox } = await serve()
  const before = [sandbox.dump(), sandbox.behaviour, sandbox.faults.list()]
  const [method = '', path = ''] = target.split(' ')
  const answer = await call(method, path, body)
  expect(answer).toMatchObject({ status, body: { error: expect.stringContaining(reason) } })
  expect([sandbox.dump(), sandbox.behaviour, sandbox.faults.list()]).toEqual(before)
  if (status === 405) expect(answer.headers.get('allow')).toMatch(/^[A-Z]+(, [A-Z]+)*$/)
})

test('without the option, the control API is absent, and requests to it are not logged', async () => {
  const off = await serve({}, { control: false })
  expect(off.server.control).toBe(false)
  expect((await fetch(off.server.url)).status).toBe(404)
  expect(await off.call('GET', '/faults')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
  const on = await serve()
  await on.call('GET', '/faults')
  await fetch(on.server.url)
  expect(on.sandbox.requests).toEqual([])
})

test('the control API logs its changes', async () => {
  const notices: string[] = []
  const { call } = await serve({}, { onNotice: (notice) => notices.push(notice) })
  await call('GET', '/faults')
  await call('POST', '/faults', lost)
  await call('POST', '/faults', 'x')
  expect(notices).toEqual(['POST /__sandbox/faults 201', 'POST /__sandbox/faults 400'])
})

describe('requests from other origins', () => {
  /** fetch does not allow a test to set these headers. */
  const send = (server: SandboxServer, method: string, path: string, headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest(
        { port: server.port, host: '127.0.0.1', method, path, headers },
        (response) => {
          response.resume()
          resolve(response.statusCode)
        },
      )
      request.on('error', reject)
      request.end()
    })

  test.each(['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '192.168.0.7:4010'])(
    'the host name %j gives no access to the control API',
    async (host) => {
      const { server } = await serve()
      for (const path of ['/', '/__sandbox/state', '/__sandbox/page', '/__sandbox/page.js'])
        expect(await send(server, 'GET', path, { host })).toBe(403)
    },
  )

  test.each([
    ...['localhost', 'localhost:4010', 'shop.localhost:4010', '127.0.0.1:4010', '127.1.2.3'],
    ...['[::1]:4010'],
  ])('a request to the host %s is accepted', async (host) => {
    const { server } = await serve()
    expect(await send(server, 'GET', '/__sandbox/faults', { host })).toBe(200)
  })

  test.each(['https://evil.example', 'null', 'http://localhost:3000'])(
    'a page of %s cannot change anything',
    async (origin) => {
      const { server, sandbox } = await serve({}, { cors: true })
      const host = `localhost:${server.port}`
      expect(await send(server, 'POST', '/__sandbox/reset', { host, origin })).toBe(403)
      expect(await send(server, 'DELETE', '/__sandbox/faults', { host, origin })).toBe(403)
      expect(await send(server, 'POST', '/__sandbox/forget-keys', { host, origin: `http://${host}` })).toBe(
        200,
      )
      expect(sandbox.requests).toEqual([])
    },
  )

  test('another page cannot read responses of the control API, even if the service has CORS', async () => {
    const { server, call } = await serve({}, { cors: true })
    expect((await call('GET', '/state')).headers.get('access-control-allow-origin')).toBeNull()
    expect((await fetch(`${server.url}/v1/balance`)).headers.get('access-control-allow-origin')).toBe('*')
  })
})

test('the live page is one document, style, script and picture, under a strict policy', async () => {
  const { server } = await serve()
  const page = await fetch(server.url)
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'self'; object-src 'none'/)
  expect(page.headers.get('x-content-type-options')).toBe('nosniff')
  const html = await page.text()
  expect(html).not.toMatch(/<style|<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|javascript:|https?:\/\//)
  const files = new Set([...html.matchAll(/(?:src|href)="(\/[^"]*)"/g)].map(([, path]) => path))
  expect([...files]).toEqual(['/__sandbox/icon.svg', '/__sandbox/page.css', '/__sandbox/page.js'])
  const types = { svg: 'image/svg+xml', css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' }
  for (const [end, type] of Object.entries(types)) {
    const path = [...files].find((file) => file?.endsWith(`.${end}`))
    const file = await fetch(server.url + path)
    expect([file.status, file.headers.get('content-type')]).toEqual([200, type])
  }
})

test("the live page's script loads nothing from other origins", async () => {
  const { server } = await serve()
  const script = await (await fetch(`${server.url}/__sandbox/page.js`)).text()
  expect(() => new Function(script)).not.toThrow()
  expect(script).not.toMatch(/\bimport\b|\brequire\b|__vite|__name|innerHTML/)
  const head = await fetch(`${server.url}/`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})
