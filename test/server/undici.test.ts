import { createServer } from 'node:http'
import { createSecureServer } from 'node:http2'
import { inspect } from 'node:util'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import {
  ConfigurationError,
  ConnectionError,
  CustomerOrderingClient,
  type Transport,
} from 'customer-ordering-sdk'
import {
  type UndiciTransport,
  type UndiciTransportOptions,
  undiciTransport,
} from 'customer-ordering-sdk/undici'
import * as undiciModule from 'undici'
import { Agent, type Dispatcher, interceptors, MockAgent, ProxyAgent } from 'undici'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { attempt } from '../support/attempt.ts'
import { TRUSTED } from '../support/certificates.ts'
import { answerText, listening, rawServer, responding } from '../support/raw-server.ts'
import { refusing, serving, trustAuthority, unsentOf } from './addresses.ts'

function undici(options?: UndiciTransportOptions): UndiciTransport {
  const transport = undiciTransport(options)
  onTestFinished(() => transport.close())
  return transport
}

function encoded(coding: string, body: Buffer) {
  const head = `HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}\r\ncontent-length: ${body.length}\r\n\r\n`
  return responding(Buffer.concat([Buffer.from(head), body]))
}

function ending<Own extends Dispatcher>(dispatcher: Own): Own {
  onTestFinished(() => dispatcher.close())
  return dispatcher
}

const responsive = () => responding(answerText(200, '{}'))

function proxyIs(url: string): void {
  vi.stubEnv('HTTP_PROXY', url)
  vi.stubEnv('NO_PROXY', '')
  onTestFinished(() => void vi.unstubAllEnvs())
}

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
  return { url: `http://${await serving(server)}`, asked }
}

test("a read bypasses the cache of the caller's dispatcher", async () => {
  let balance = 1
  const server = createServer((_request, response) => {
    response.setHeader('cache-control', 'public, max-age=600')
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ amount: balance++, currency: 'EUR' }))
  })
  const baseUrl = `http://${await serving(server)}`
  const transport = undici({ dispatcher: ending(new Agent().compose(interceptors.cache())) })
  const client = new CustomerOrderingClient({ baseUrl, apiKey: 'key', transport })
  const first = await client.balance.retrieve()
  const second = await client.balance.retrieve()
  expect([first.amount, second.amount]).toEqual([1, 2])
})

test('the undici transport opens no more connections than configured', async () => {
  const server = await responsive()
  const transport = undici({ connections: 2 })
  await Promise.all(Array.from({ length: 20 }, () => attempt(server.url, {}, { transport })))
  expect(server.requests).toHaveLength(20)
  expect(server.connections()).toBe(2)
})

test('the undici transport speaks HTTP/1.1 to a service that prefers HTTP/2, which may resend requests', async () => {
  trustAuthority()
  const server = createSecureServer({ ...TRUSTED, allowHTTP1: true }, (request, response) => {
    response.end(request.httpVersion)
  })
  const port = await listening(server)
  onTestFinished(() => void server.close())
  const dispatcher = new Agent({ allowH2: true })
  onTestFinished(() => dispatcher.destroy())
  const over = (transport: Transport) => attempt(`https://127.0.0.1:${port}`, {}, { transport })
  expect(await over(undici())).toMatchObject({ text: '1.1' })
  expect(await over(undici({ dispatcher }))).toMatchObject({ text: '2.0' })
})

test('the undici transport waits for requests in flight when it is closed, then sends nothing', async () => {
  let answer: () => void = () => {}
  const server = await rawServer((socket) => {
    answer = () => socket.write(answerText(200, '{"a":1}'))
  })
  const transport = undiciTransport()
  const pending = attempt(server.url, {}, { transport })
  await vi.waitFor(() => expect(server.requests).toHaveLength(1))
  const closed = transport.close()
  answer()
  expect(await pending).toMatchObject({ status: 200, text: '{"a":1}' })
  await closed
  expect(unsentOf(await attempt(server.url, {}, { transport }))).toBe('transport_closed')
  expect(server.requests).toHaveLength(1)
})

test('the undici transport may be closed again', async () => {
  const transport = undiciTransport()
  await Promise.all([transport.close(), transport.close()])
  await transport.close()
  const proxied = undiciTransport({ proxy: 'environment' })
  await Promise.all([proxied.close(), proxied.close()])
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
])('the undici transport reads a body with the coding %s', async (coding, encode) => {
  const text = '{"id":"ord_ü"}'
  const server = await encoded(coding, encode(text))
  expect(await attempt(server.url, {}, { transport: undici() })).toMatchObject({ status: 200, text })
})

test.each<[string, string, (text: string) => Buffer]>([
  ['alone', 'deflate', deflateRawSync],
  ['in gzip', 'deflate, gzip', (text) => gzipSync(deflateRawSync(text))],
])('a deflated body without the header of the format is read, %s', async (_where, coding, encode) => {
  const text = JSON.stringify(Array.from({ length: 20_000 }, (_, index) => index))
  const server = await encoded(coding, encode(text))
  expect(await attempt(server.url)).toMatchObject({ status: 200, text })
  expect(await attempt(server.url, {}, { transport: undici() })).toMatchObject({ status: 200, text })
})

describe('evidence of the undici transport', () => {
  const refusedWith = async (transport: Transport): Promise<unknown> =>
    unsentOf(await attempt(await refusing(), {}, { transport }))

  test('with its own agent, the transport can prove that nothing was sent', async () => {
    expect(await refusedWith(undici())).toBe('unreachable')
    expect(await refusedWith(undici({ connections: 1 }))).toBe('unreachable')
  })

  test('a wrapped transport proves nothing, because the wrapper may have sent the request before', async () => {
    const transport = undici()
    expect(await refusedWith({ send: (request) => transport.send(request) })).toBe(false)
  })

  test("with the caller's dispatcher, which may retry, the transport proves nothing", async () => {
    expect(await refusedWith(undici({ dispatcher: ending(new Agent()) }))).toBe(false)
  })

  test('with a proxy, the transport proves nothing', async () => {
    proxyIs(await refusing())
    expect(await refusedWith(undici({ proxy: 'environment' }))).toBe(false)
  })

  test.each(['Bun', 'Deno'])('in %s, with another undici, the transport proves nothing', async (runtime) => {
    vi.stubGlobal(runtime, {})
    onTestFinished(() => void vi.unstubAllGlobals())
    expect(await refusedWith(undici())).toBe(false)
  })
})

describe('proxies and dispatchers', () => {
  test('the proxy of the environment is used if requested', async () => {
    const { url, asked } = await proxy()
    const target = await responsive()
    proxyIs(url)
    await attempt(target.url, {}, { transport: undici() })
    expect(asked).toEqual([])
    expect(target.requests).toHaveLength(1)
    await attempt(target.url, {}, { transport: undici({ proxy: 'environment' }) })
    expect(asked).toHaveLength(1)
    expect(target.requests).toHaveLength(1)
  })

  test("the caller's dispatcher sends, and stays open", async () => {
    const { url, asked } = await proxy()
    const transport = undiciTransport({ dispatcher: ending(new ProxyAgent(url)) })
    await attempt('http://api.example.test/v1', {}, { transport })
    await transport.close()
    await attempt('http://api.example.test/v1', {}, { transport })
    expect(asked).toHaveLength(2)
  })

  test('a MockAgent responds in tests', async () => {
    const dispatcher = ending(new MockAgent())
    dispatcher.disableNetConnect()
    dispatcher
      .get('https://api.example.com')
      .intercept({ path: '/v1/balance' })
      .reply(200, { amount: 5, currency: 'EUR' })
    const client = new CustomerOrderingClient({
      baseUrl: 'https://api.example.com',
      apiKey: 'key',
      transport: undiciTransport({ dispatcher }),
    })
    expect(await client.balance.retrieve()).toEqual({ amount: 5, currency: 'EUR' })
  })

  const METHODS = 'option dispatcher must be an object with the functions dispatch, request'
  const DECIDES = 'cannot be combined with the option dispatcher; configure it in the dispatcher'
  const PROXY = "option proxy must be 'environment'; pass a dispatcher for any other proxy"
  const own = new Agent()
  const COUNT = 'option connections must be a safe integer of at least 1'
  test.each<[string, unknown, problem: string]>([
    ['a misspelled name', { proxi: 'environment' }, 'option proxi is not known (did you mean proxy?)'],
    ['an unknown name', { http2: undefined }, 'option http2 is not known'],
    ['no object', 'http://127.0.0.1:1', 'options must be an object literal'],
    ['null', null, 'options must be an object literal'],
    ['a dispatcher itself', own, 'options must be an object literal'],
    ['a dispatcher beside a proxy', { dispatcher: own, proxy: 'environment' }, `option proxy ${DECIDES}`],
    ['a dispatcher beside connections', { dispatcher: own, connections: 2 }, `option connections ${DECIDES}`],
    ['a dispatcher that is none', { dispatcher: {} }, METHODS],
    ['the module as a dispatcher', { dispatcher: undiciModule }, METHODS],
    ['the address of a proxy as a dispatcher', { dispatcher: 'http://127.0.0.1:1' }, METHODS],
    ['no dispatcher', { dispatcher: null }, METHODS],
    ['a proxy by its address', { proxy: 'http://user:secret@127.0.0.1:1' }, PROXY],
    ['no connection', { connections: 0 }, COUNT],
    ['half a connection', { connections: 1.5 }, COUNT],
    ['a text of connections', { connections: '2' }, COUNT],
  ])('undiciTransport rejects %s', (_what, options, problem) => {
    const make = () => undiciTransport(options as UndiciTransportOptions)
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(`undiciTransport ${problem}.`)
  })

  test('an undefined option counts as absent', async () => {
    await undiciTransport({ dispatcher: undefined, proxy: undefined, connections: undefined }).close()
    await undiciTransport(undefined).close()
  })

  test.each<[string, unknown]>([
    ['dispatcher', new Agent()],
    ['connections', 'two'],
    ['query', { a: '1' }],
    ['upgrade', 'h2c'],
    ['maxRedirections', 2],
    ['onInfo', 'none'],
    ['throwOnError', true],
  ])('no option comes from a polluted prototype: %s', async (name, value) => {
    const server = await responsive()
    const polluted = Object.prototype as unknown as Record<string, unknown>
    polluted[name] = value
    onTestFinished(() => {
      delete polluted[name]
    })
    const result = await attempt(`${server.url}/v1`, {}, { transport: undici({ connections: 2 }) })
    delete polluted[name]
    expect(result).toMatchObject({ kind: 'answer', text: '{}' })
    expect(server.requests).toMatchObject([{ line: 'POST /v1 HTTP/1.1' }])
  })

  const VARIABLES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY']
  test.each(VARIABLES)('an invalid address in %s is rejected, and not shown', (name) => {
    for (const variable of VARIABLES) vi.stubEnv(variable, undefined)
    onTestFinished(() => void vi.unstubAllEnvs())
    const addresses = ['http://me:secret@bad host:1', 'me:secret@proxy.example:3128', 'proxy.example']
    for (const address of addresses) {
      vi.stubEnv(name, address)
      const make = () => undiciTransport({ proxy: 'environment' })
      expect(make).toThrow(ConfigurationError)
      expect(make).toThrow('option proxy cannot use the address in HTTP_PROXY')
      expect(make).toThrow(
        expect.toSatisfy((error) => !inspect(error, { showHidden: true, depth: 9 }).includes('secret')),
      )
    }
  })
})

describe('a transport that is closed', () => {
  const REQUEST = { serviceId: 'svc_standard', target: '@ada', quantity: 1 }
  const clientOver = (baseUrl: string, transport: Transport) =>
    new CustomerOrderingClient({ baseUrl, apiKey: 'key', account: 'shop', transport })

  test('a closed transport ends an order as not charged, without a retry, and explains what to do', async () => {
    const server = await responsive()
    const transport = undiciTransport()
    await transport.close()
    const client = clientOver(server.url, transport)
    const placing = client.orders.create({ ...REQUEST, metadata: { externalOrderId: 'r1' } })
    await expect(placing).rejects.toThrow(ConnectionError)
    const cause = { code: 'UND_ERR_CLOSED' }
    await expect(placing).rejects.toMatchObject({ charged: 'no', attempts: 1, cause })
    expect(await client.orders.remembered({ externalOrderId: 'r1' })).toMatchObject([
      { state: 'rejected', ambiguous: false },
    ])
    const raw = client.request({ method: 'POST', path: '/v1/orders', body: REQUEST })
    await expect(raw).rejects.toMatchObject({ charged: 'no', attempts: 1 })
    await expect(client.balance.retrieve()).rejects.toMatchObject({ attempts: 1 })
    expect(server.requests).toEqual([])
  })

  test('a closed transport leaves an order in doubt that was sent before', async () => {
    const transport = undiciTransport()
    const server = await rawServer((socket) => {
      void transport.close()
      socket.destroy()
    })
    const placing = clientOver(server.url, transport).orders.create(REQUEST)
    await expect(placing).rejects.toMatchObject({ charged: 'unknown', attempts: 2 })
    expect(server.requests).toHaveLength(1)
  })

  test.each<[string, (agent: Agent) => Promise<void>, code: string]>([
    ['closed', (agent) => agent.close(), 'UND_ERR_CLOSED'],
    ['destroyed', (agent) => agent.destroy(), 'UND_ERR_DESTROYED'],
  ])('a closed transport may be a dispatcher that its owner has %s', async (_how, end, code) => {
    const server = await responsive()
    const agent = new Agent()
    const composed = agent.compose((dispatch) => (options, handler) => dispatch(options, handler))
    const transports = [agent, composed].map((dispatcher) => undici({ dispatcher }))
    for (const transport of transports)
      expect(await attempt(server.url, {}, { transport })).toMatchObject({ kind: 'answer' })
    await end(agent)
    for (const transport of transports) {
      const result = await attempt(server.url, {}, { transport })
      expect(result).toMatchObject({ unsent: 'transport_closed', detail: { code } })
    }
    expect(server.requests).toHaveLength(2)
  })

  test.each<[string, UndiciTransportOptions['dispatcher']]>([
    ['a dispatcher', new Agent()],
    ['a dispatcher with interceptors', new Agent().compose(interceptors.retry())],
  ])('if %s is destroyed during the request, the transport proves nothing', async (_what, dispatcher) => {
    const server = await rawServer(() => void dispatcher?.destroy())
    const result = await attempt(server.url, {}, { transport: undici({ dispatcher }) })
    expect(result).toMatchObject({ kind: 'failed', unsent: false, detail: { code: 'UND_ERR_DESTROYED' } })
    expect(server.requests).toHaveLength(1)
  })

  test('the error code alone proves nothing', async () => {
    const closed = Object.assign(new Error('closed'), { code: 'UND_ERR_CLOSED' })
    class Retrying extends Agent {
      override dispatch(): boolean {
        throw closed
      }
    }
    const transport = undici({ dispatcher: ending(new Retrying()) })
    const result = await attempt('http://127.0.0.1:1', {}, { transport })
    expect(result).toMatchObject({ kind: 'failed', unsent: false, detail: { code: 'UND_ERR_CLOSED' } })
  })

  test('a closed wrapper proves nothing, because it may have sent the request before', async () => {
    const transport = undiciTransport()
    await transport.close()
    const wrapped: Transport = { send: (request) => transport.send(request) }
    expect(unsentOf(await attempt('http://127.0.0.1:1', {}, { transport: wrapped }))).toBe(false)
  })
})
