/** What the example's proxy forwards, and what it rejects. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createSite } from '../server/site.ts'

const API_KEY = 'key-that-stays-here'
const PAGE = { 'sec-fetch-site': 'same-origin', origin: 'https://shop.example' }
const READING = { 'sec-fetch-site': 'same-origin' }
const dist = fileURLToPath(new URL('../dist', import.meta.url))

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

describe('the proxy', () => {
  /** The requests that the simulated service received. */
  const seen: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []
  let service: Server
  let site: Server
  let signedIn = true

  before(async () => {
    service = createServer(async (incoming, response) => {
      const { method = '', url = '', headers } = incoming
      if (url.includes('limit=12')) {
        incoming.socket.destroy()
        return
      }
      if (url.includes('limit=13')) {
        response.writeHead(200, { 'content-type': 'application/json' }).write('{"data":')
        setImmediate(() => response.destroy())
        return
      }
      const [, status] = /status-(\d+)/.exec(url) ?? []
      if (status !== undefined) {
        response.writeHead(Number(status)).end('as it came')
        return
      }
      seen.push({ method, url, headers, body: await text(incoming) })
      response
        .writeHead(201, {
          'content-type': 'application/json',
          'retry-after': '7',
          'x-request-id': 'r1',
          'idempotent-replayed': 'true',
          'set-cookie': 'inner=1',
          server: 'inner',
        })
        .end('{"id":"ord_1"}')
    }).listen(0, '127.0.0.1')
    await once(service, 'listening')
    site = createSite(dist, {
      baseUrl: `http://127.0.0.1:${(service.address() as AddressInfo).port}/base/`,
      origins: () => ['https://shop.example'],
      apiKeyFor: () => (signedIn ? API_KEY : undefined),
    }).listen(0, '127.0.0.1')
    await once(site, 'listening')
  })
  after(() => {
    for (const server of [site, service]) {
      server?.close()
      server?.closeAllConnections()
    }
  })

  async function ask(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = PAGE,
    body = '',
  ): Promise<Answer> {
    const { port } = site.address() as AddressInfo
    const outgoing = request({ host: '127.0.0.1', port, method, path, headers })
    outgoing.end(body)
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: await text(incoming) }
  }

  test('the proxy adds the API key, and forwards body and Idempotency-Key unchanged', async () => {
    const body = JSON.stringify({ serviceId: 'a', note: 'ü'.repeat(100_000) })
    const answer = await ask(
      'POST',
      '/api/v1/orders',
      {
        ...PAGE,
        'content-type': 'application/json',
        'idempotency-key': 'k-1',
        authorization: 'Bearer of-the-page',
        cookie: 'session=1',
        'x-forwarded-for': '10.0.0.1',
      },
      body,
    )
    const asked = seen.at(-1)
    assert.deepEqual([asked?.method, asked?.url, asked?.body === body], ['POST', '/base/v1/orders', true])
    assert.equal(asked?.headers['idempotency-key'], 'k-1')
    assert.equal(asked?.headers.authorization, `Bearer ${API_KEY}`)
    assert.equal(asked?.headers.cookie, undefined)
    assert.equal(asked?.headers['x-forwarded-for'], undefined)
    assert.deepEqual([answer.status, answer.body], [201, '{"id":"ord_1"}'])
    const { 'retry-after': wait, 'x-request-id': id, 'idempotent-replayed': replayed } = answer.headers
    assert.deepEqual([wait, id, replayed], ['7', 'r1', 'true'])
    assert.deepEqual([answer.headers['set-cookie'], answer.headers['server']], [undefined, undefined])
    assert.equal(JSON.stringify(answer).includes(API_KEY), false)
  })

  test('the proxy forwards the calls of the API, and no others', async () => {
    for (const [method, path] of [
      ['GET', '/v1/services?limit=2&offset=4'],
      ['GET', '/v1/services/svc_1'],
      ['GET', '/v1/balance'],
      ['GET', '/v1/orders'],
      ['GET', '/v1/orders/ord_1'],
    ] as const) {
      for (const headers of [PAGE, READING])
        assert.equal((await ask(method, `/api${path}`, headers)).status, 201)
      assert.equal(seen.at(-1)?.url, `/base${path}`)
    }
    const before = seen.length
    for (const [method, path] of [
      ['DELETE', '/v1/orders/ord_1'],
      ['POST', '/v1/services'],
      ['GET', '/v1/keys'],
      ['GET', '/v2/orders'],
      ['GET', '/v1/orders/a/b'],
      ['GET', '/v1/orders/../keys'],
      ['GET', '/v1/orders/%2e%2e/keys'],
      ['GET', '/v1/orders/..%2fkeys'],
      ['GET', '//elsewhere.example/v1/orders/a/b'],
      ['GET', ''],
      ['GET', '//'],
      ['TRACE', '/v1/balance'],
      ['POST', '/v1/services/v1/orders'],
    ] as const)
      assert.equal((await ask(method, `/api/${path.slice(1)}`)).status, 404, path)
    assert.equal(seen.length, before)
  })

  test('the proxy rejects other sites, and visitors without a key', async () => {
    const before = seen.length
    const { origin } = PAGE
    for (const headers of [
      {},
      { origin },
      { origin, 'sec-fetch-site': 'cross-site' },
      { origin, 'sec-fetch-site': 'same-site' },
      { ...PAGE, origin: 'https://shop.example.evil' },
      { ...PAGE, origin: 'null' },
    ])
      for (const [method, path] of [
        ['POST', '/api/v1/orders'],
        ['GET', '/api/v1/balance'],
      ] as const)
        assert.equal((await ask(method, path, headers, '')).status, 403)
    assert.equal((await ask('POST', '/api/v1/orders', READING, '{}')).status, 403)
    signedIn = false
    const answer = await ask('POST', '/api/v1/orders', PAGE, '{}')
    const page = await ask('GET', '/')
    signedIn = true
    assert.deepEqual([page.status, page.body], [401, ''])
    assert.match(page.headers['www-authenticate'] ?? '', /^Basic/)
    assert.deepEqual([answer.status, JSON.parse(answer.body).code], [401, 'UNAUTHENTICATED'])
    assert.equal(seen.length, before)
  })

  test('the proxy makes no statement about the order if no response came', async () => {
    const { status, body } = await ask('GET', '/api/v1/orders?limit=12')
    assert.deepEqual([status, JSON.parse(body).code], [502, 'SERVICE_LOST'])
  })

  test('the proxy responds 504 instead of a status that makes browsers repeat a request', async () => {
    for (const repeated of ['408', '421']) {
      const { status, body } = await ask('GET', `/api/v1/orders?sourceSystem=status-${repeated}`)
      assert.deepEqual([status, JSON.parse(body).code], [504, 'SERVICE_LOST'])
    }
  })

  test('the proxy never forwards half a response', async () => {
    assert.equal((await ask('GET', '/api/v1/orders?limit=13')).status, 502)
  })

  test('the site serves the page with strict headers, and no files outside its folder', async () => {
    const page = await ask('GET', '/?from=mail')
    assert.equal(page.status, 200)
    assert.match(
      String(page.headers['content-security-policy']),
      /script-src 'self'.*require-trusted-types-for 'script'/,
    )
    assert.equal(page.headers['x-content-type-options'], 'nosniff')
    const [, script = ''] = /src="(\/assets\/[^"]+\.js)"/.exec(page.body) ?? []
    const code = await ask('GET', script)
    assert.equal(code.headers['content-type'], 'text/javascript; charset=utf-8')
    assert.match(code.headers['cache-control'] ?? '', /immutable/)
    for (const path of ['/../package.json', '/%2e%2e/package.json', '/server/main.ts', '/assets/', '//'])
      assert.equal((await ask('GET', path)).status, 404, path)
    assert.equal((await ask('POST', '/')).status, 405)
  })
})
