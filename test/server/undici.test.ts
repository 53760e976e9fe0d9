import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { createUndiciFetch, type UndiciFetch, type UndiciFetchOptions } from 'customer-ordering-sdk/undici'
import { Agent, MockAgent, ProxyAgent } from 'undici'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { serveSandbox } from '../../src/sandbox/server.ts'
import { answerText } from '../support/raw-http.ts'
import { attempt } from './support/attempt.ts'
import { rawServer } from './support/raw-server.ts'
import { refusing, unsentOf } from './support/refusing.ts'

function undici(options?: UndiciFetchOptions): UndiciFetch {
  const fetch = createUndiciFetch(options)
  onTestFinished(() => fetch.close())
  return fetch
}

/** A proxy that tunnels, and the addresses that it was asked for. */
async function proxy(): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(String(request.url))
    response.end('{"from":"proxy"}')
  })
  server.on('connect', (request, socket) => {
    asked.push(String(request.url))
    socket.end('HTTP/1.1 502 No\r\n\r\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

describe('the undici transport', () => {
  test('places an order and reads lists', async () => {
    const sandbox = createSandbox()
    const server = await serveSandbox(sandbox)
    onTestFinished(() => server.close())
    const client = new CustomerOrderingClient({
      baseUrl: server.url,
      apiKey: sandbox.apiKey,
      fetch: undici(),
    })
    const request = { serviceId: 'svc_standard', target: '@ada', quantity: 1 }
    const order = await client.orders.create({ ...request, metadata: { externalOrderId: 'r1' } })
    expect(order.id).toBe(sandbox.expectChargedOnce('r1').orderId)
    expect(await client.orders.list().toArray({ max: 9 })).toHaveLength(1)
  })

  test('uses connections again', async () => {
    const server = await rawServer((socket) => socket.write(answerText(200, '{}')))
    const fetch = undici()
    for (let count = 0; count < 10; count++) await attempt(server.url, {}, { fetch })
    expect(server.requests).toHaveLength(10)
    // A second one may be opened while the first is still being tidied up.
    expect(server.connections()).toBeLessThanOrEqual(2)
  })

  test('opens no more connections than it may', async () => {
    const server = await rawServer((socket) => socket.write(answerText(200, '{}')))
    const fetch = undici({ connections: 2 })
    await Promise.all(Array.from({ length: 20 }, () => attempt(server.url, {}, { fetch })))
    expect(server.requests).toHaveLength(20)
    expect(server.connections()).toBe(2)
  })

  test('sends no header but those that were asked for and those of the connection', async () => {
    const server = await rawServer((socket) => socket.write(answerText(200, '{}')))
    await attempt(server.url, { headers: { accept: 'application/json' } }, { fetch: undici() })
    expect(server.requests[0]?.headers.map(([name]) => name).toSorted()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'content-length',
      'content-type',
      'host',
    ])
  })

  test('follows no redirect, even if it is told to', async () => {
    const target = await rawServer((socket) => socket.write(answerText(200, '{}')))
    const server = await rawServer((socket) => socket.write(answerText(307, '', [`location: ${target.url}`])))
    expect((await undici()(server.url, { redirect: 'follow' })).status).toBe(307)
    expect(target.connections()).toBe(0)
  })

  test('waits for what is in flight when it is closed, and sends nothing afterwards', async () => {
    let answer: () => void = () => {}
    const server = await rawServer((socket) => {
      answer = () => socket.write(answerText(200, '{"a":1}'))
    })
    const fetch = createUndiciFetch()
    const pending = attempt(server.url, {}, { fetch })
    await vi.waitFor(() => expect(server.requests).toHaveLength(1))
    const closed = fetch.close()
    answer()
    expect(await pending).toMatchObject({ status: 200, text: '{"a":1}' })
    await closed
    expect(await attempt(server.url, {}, { fetch })).toMatchObject({ kind: 'failed' })
    expect(server.requests).toHaveLength(1)
  })

  test.each<[string, (text: string) => Buffer]>([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['GZip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['gzip, br', (text) => brotliCompressSync(gzipSync(text))],
    ['identity-x', (text) => Buffer.from(text)],
    ['gzip, gzip, gzip, gzip, gzip, gzip', (text) => Buffer.from(text)],
  ])('reads a body with the coding %s', async (coding, encode) => {
    const body = encode('{"id":"ord_ü"}')
    const server = await rawServer((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}\r\ncontent-length: ${body.length}\r\n\r\n`)
      socket.write(body)
    })
    const fetch = undici()
    expect(await attempt(server.url, {}, { fetch })).toMatchObject({ status: 200, text: '{"id":"ord_ü"}' })
    expect(await (await fetch(server.url)).json()).toEqual({ id: 'ord_ü' })
  })
})

describe('what the undici transport may prove', () => {
  const refusedWith = async (fetch: typeof globalThis.fetch): Promise<unknown> =>
    unsentOf(await attempt(await refusing(), {}, { fetch }))

  test('is that nothing was sent, with an agent of its own', async () => {
    expect(await refusedWith(undici())).toBe('unreachable')
    expect(await refusedWith(undici({ connections: 1 }))).toBe('unreachable')
  })

  test.each<[string, (fetch: UndiciFetch) => typeof globalThis.fetch]>([
    ['wrapped', (fetch) => (input, init) => fetch(input, init)],
    ['bound', (fetch) => fetch.bind(undefined)],
    ['a proxy', (fetch) => new Proxy(fetch, {})],
  ])('is nothing once it is %s: whoever does that may have sent the request before', async (_how, wrap) => {
    expect(await refusedWith(wrap(undici()))).toBe(false)
  })

  test('is nothing with a dispatcher of the caller, which may retry', async () => {
    const dispatcher = new Agent()
    onTestFinished(() => dispatcher.close())
    expect(await refusedWith(undici({ dispatcher }))).toBe(false)
  })

  test('is nothing with a proxy', async () => {
    vi.stubEnv('HTTP_PROXY', await refusing())
    vi.stubEnv('NO_PROXY', '')
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(await refusedWith(undici({ proxy: 'environment' }))).toBe(false)
  })

  test.each(['Bun', 'Deno'])('is nothing in %s, where undici is another one', async (runtime) => {
    vi.stubGlobal(runtime, {})
    onTestFinished(() => void vi.unstubAllGlobals())
    expect(await refusedWith(undici())).toBe(false)
  })
})

describe('proxies and dispatchers', () => {
  test('the proxy of the environment is used where it is asked for', async () => {
    const { url, asked } = await proxy()
    const target = await rawServer((socket) => socket.write(answerText(200, '{}')))
    vi.stubEnv('HTTP_PROXY', url)
    vi.stubEnv('NO_PROXY', '')
    onTestFinished(() => void vi.unstubAllEnvs())
    await attempt(target.url, {}, { fetch: undici() })
    expect(asked).toEqual([])
    expect(target.requests).toHaveLength(1)
    await attempt(target.url, {}, { fetch: undici({ proxy: 'environment' }) })
    expect(asked).toHaveLength(1)
    expect(target.requests).toHaveLength(1)
  })

  test('a dispatcher that is handed in sends, and stays open', async () => {
    const { url, asked } = await proxy()
    const dispatcher = new ProxyAgent(url)
    onTestFinished(() => dispatcher.close())
    const fetch = createUndiciFetch({ dispatcher })
    await attempt('http://api.example.test/v1', {}, { fetch })
    await fetch.close()
    await attempt('http://api.example.test/v1', {}, { fetch })
    expect(asked).toHaveLength(2)
  })

  test('a MockAgent answers in tests', async () => {
    const dispatcher = new MockAgent()
    onTestFinished(() => dispatcher.close())
    dispatcher.disableNetConnect()
    dispatcher
      .get('https://api.example.com')
      .intercept({ path: '/v1/balance' })
      .reply(200, { amount: 5, currency: 'EUR' })
    const client = new CustomerOrderingClient({
      baseUrl: 'https://api.example.com',
      apiKey: 'key',
      fetch: createUndiciFetch({ dispatcher }),
    })
    expect(await client.balance.retrieve()).toEqual({ amount: 5, currency: 'EUR' })
  })

  test.each<[string, object]>([
    ['a dispatcher beside a proxy', { dispatcher: new Agent(), proxy: 'environment' }],
    ['a dispatcher beside connections', { dispatcher: new Agent(), connections: 2 }],
    ['a proxy by its address', { proxy: 'http://127.0.0.1:1' }],
    ['no connection', { connections: 0 }],
    ['half a connection', { connections: 1.5 }],
  ])('%s is refused', (_what, options) => {
    expect(() => createUndiciFetch(options)).toThrow(TypeError)
  })
})

describe('as a fetch for others', () => {
  const echo = () =>
    rawServer((socket, { line, headers, body }) =>
      socket.write(answerText(201, JSON.stringify({ line, headers: Object.fromEntries(headers), body }))),
    )

  test.each<[string, (url: string) => Parameters<typeof fetch>, body: string, type: string | undefined]>([
    ['a URL', (url) => [new URL(url)], '', undefined],
    ['a Request', (url) => [new Request(url, { method: 'PUT', body: 'x' })], 'x', 'text/plain;charset=UTF-8'],
    ['a text', (url) => [url, { method: 'put', body: 'ü' }], 'ü', 'text/plain;charset=UTF-8'],
    ['bytes', (url) => [url, { method: 'PUT', body: new Uint8Array([120]) }], 'x', undefined],
    [
      'parameters',
      (url) => [url, { method: 'PUT', body: new URLSearchParams({ a: '1' }) }],
      'a=1',
      'application/x-www-form-urlencoded;charset=UTF-8',
    ],
    [
      'Headers',
      (url) => [url, { method: 'PUT', body: 'x', headers: new Headers({ 'Content-Type': 'text/x' }) }],
      'x',
      'text/x',
    ],
    [
      'a stream',
      (url) => [url, { method: 'PUT', body: new Blob(['x']).stream(), duplex: 'half' }],
      'x',
      undefined,
    ],
  ])('it sends %s', async (_what, call, body, type) => {
    const server = await echo()
    const response = await undici()(...call(`${server.url}/p?q=1#part`))
    const seen = (await response.json()) as { line: string; body: string; headers: Record<string, string> }
    expect(seen.line).toBe(`${body === '' ? 'GET' : 'PUT'} /p?q=1 HTTP/1.1`)
    expect(seen.body).toBe(body)
    expect(seen.headers['content-type']).toBe(type)
  })

  test('its answers are read like any other', async () => {
    const server = await rawServer((socket) =>
      socket.write(answerText(200, '{"a":1}', ['x-own: 1', 'set-cookie: a=1', 'set-cookie: b=2'])),
    )
    const fetch = undici()
    const response = await fetch(server.url)
    expect(response).toMatchObject({ ok: true, status: 200, redirected: false, url: `${server.url}/` })
    expect(response.headers.get('x-own')).toBe('1')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(response.bodyUsed).toBe(false)
    const copy = response.clone()
    expect(copy.status).toBe(200)
    expect(await copy.text()).toBe('{"a":1}')
    expect(await response.text()).toBe('{"a":1}')
    expect(response.bodyUsed).toBe(true)
    expect(new TextDecoder().decode(await (await fetch(server.url)).arrayBuffer())).toBe('{"a":1}')
    expect(new TextDecoder().decode(await (await fetch(server.url)).bytes())).toBe('{"a":1}')
    expect(await (await fetch(server.url)).blob()).toMatchObject({ size: 7 })
    const chunks = []
    for await (const chunk of (await fetch(server.url)).body ?? []) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe('{"a":1}')
  })

  test('an answer without a body has none', async () => {
    const server = await rawServer((socket) => socket.write('HTTP/1.1 204 No\r\n\r\n'))
    const response = await undici()(server.url)
    expect(response.body).toBeNull()
    expect(await response.text()).toBe('')
  })

  test('it rejects as fetch does', async () => {
    const fetch = undici()
    await expect(fetch(await refusing())).rejects.toMatchObject({
      name: 'TypeError',
      message: 'fetch failed',
      cause: { code: 'ECONNREFUSED' },
    })
    const reason = new Error('enough')
    const server = await rawServer(() => {})
    await expect(fetch(server.url, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const controller = new AbortController()
    const pending = fetch(server.url, { signal: controller.signal })
    await vi.waitFor(() => expect(server.requests).toHaveLength(1))
    controller.abort(reason)
    await expect(pending).rejects.toBe(reason)
    for (const url of ['ftp://127.0.0.1', 'http://a:b@127.0.0.1', 'none'])
      await expect(fetch(url)).rejects.toThrow(TypeError)
  })
})
