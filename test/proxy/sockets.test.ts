import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { CustomerOrderingClient } from '../../src/client.ts'
import { createProxy, type ProxyLoss } from '../../src/proxy/index.ts'
import { createNodeProxy } from '../../src/proxy/node.ts'
import { order } from '../support/lab.ts'
import { listening } from '../support/raw-server.ts'

const HEADERS = { 'x-visitor': 'ada', 'idempotency-key': 'k-1', 'content-type': 'application/json' }

const sandbox = createSandbox()
const service = await serveSandbox(sandbox)
afterAll(() => service.close())

let server: Server
const losses: ProxyLoss[] = []

afterEach(() => {
  server.close()
  server.closeAllConnections()
})

type Handle = (incoming: IncomingMessage, outgoing: ServerResponse) => void

async function listen(handle: Handle): Promise<number> {
  server = createServer(handle)
  return await listening(server)
}

const settings = () => ({
  baseUrl: service.url,
  apiKey: sandbox.apiKey,
  onLost: (loss: ProxyLoss) => losses.push(loss),
})

/** What a framework with Fetch handlers does on Node. */
function fetchStyle(): Handle {
  const proxy = createProxy({ ...settings(), authorize: ({ headers }) => headers.get('x-visitor') === 'ada' })
  return async (incoming, outgoing) => {
    const { method = 'GET', url = '/', headers } = incoming
    const body = method === 'POST' ? { body: Readable.toWeb(incoming), duplex: 'half' } : {}
    const init = { method, headers: headers as HeadersInit, ...body } as RequestInit
    const response = await proxy(new Request(`http://shop.example${url}`, init))
    outgoing
      .writeHead(response.status, Object.fromEntries(response.headers))
      .end(new Uint8Array(await response.arrayBuffer()))
  }
}

const nodeStyle = (): Handle =>
  createNodeProxy({ ...settings(), authorize: ({ headers }) => headers['x-visitor'] === 'ada' })

describe.each([
  ['createProxy', fetchStyle],
  ['createNodeProxy', nodeStyle],
])('%s over real connections', (name, handler) => {
  it(`${name} places an order once while the service drops, truncates and resets responses`, async () => {
    const port = await listen(handler())
    const client = new CustomerOrderingClient({
      baseUrl: `http://127.0.0.1:${port}/api`,
      apiKey: null,
      server: service.url,
      account: 'shop',
      defaultHeaders: { 'x-visitor': 'ada' },
    })
    losses.length = 0
    expect((await client.services.list()).items.length).toBeGreaterThan(0)
    for (const type of ['commitThenDrop', 'cutBody', 'drop'] as const) {
      sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type } })
      const reference = `${name}-${type}`
      const placed = await client.orders.create(order(reference))
      expect(placed.id).toBe(sandbox.expectChargedOnce(reference).orderId)
    }
    expect(losses.map(({ method, path }) => `${method} ${path}`)).toEqual(Array(2).fill('POST /v1/orders'))
    await client.close()
  })

  it.each([
    ['declares 600 MB', { 'content-length': '600000000' }],
    ['declares no length', { 'transfer-encoding': 'chunked' }],
  ])(`${name} refuses a body that %s before it has arrived`, async (_what, length) => {
    const port = await listen(handler())
    const headers = { ...HEADERS, ...length }
    const outgoing = request({ port, method: 'POST', path: '/api/v1/orders', headers })
    outgoing.on('error', () => {})
    outgoing.write(new Uint8Array(300_000))
    const [incoming]: IncomingMessage[] = await once(outgoing, 'response')
    expect([
      incoming?.statusCode,
      sandbox.requests.filter(({ idempotencyKey }) => idempotencyKey === 'k-1'),
    ]).toEqual([413, []])
    outgoing.destroy()
  })
})

describe('createNodeProxy', () => {
  async function raw(port: number, head: string): Promise<string> {
    const socket = connect(port, '127.0.0.1')
    socket.write(`${head} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n`)
    return (await text(socket)).split('\r\n')[0] ?? ''
  }

  it('the proxy for Node responds to requests that no Fetch Request can hold', async () => {
    const failed: unknown[] = []
    const proxy = createNodeProxy({ ...settings(), authorize: () => true })
    const port = await listen((incoming, outgoing) => {
      proxy(incoming, outgoing).catch((error) => failed.push(error))
    })
    for (const head of [
      ...['TRACE /api/v1/balance', 'TRACE /', 'OPTIONS *'],
      ...['GET http://shop.example/api/v1/balance', 'GET //elsewhere.example/api/v1/balance'],
      ...['GET /api//v1/balance'],
    ])
      expect(await raw(port, head), head).toBe('HTTP/1.1 404 Not Found')
    expect(await raw(port, 'GET /api/v1/balance')).toBe('HTTP/1.1 200 OK')
    expect(failed).toEqual([])
  })

  it.each([
    ['a length', 'Content-Length: 5000000\r\n\r\n', ''],
    ['chunks', 'Transfer-Encoding: chunked\r\n\r\n4c4b40\r\n', '\r\n0\r\n\r\n'],
  ])('the proxy for Node skips a huge body with %s and serves the next request', async (_, before, after) => {
    const socket = connect(await listen(nodeStyle()), '127.0.0.1')
    const head = Object.entries({ host: 'a', ...HEADERS }).map((header) => `${header.join(': ')}\r\n`)
    socket.write(`POST /api/v1/orders HTTP/1.1\r\n${head.join('')}${before}`)
    socket.write(new Uint8Array(5_000_000))
    socket.write(`${after}GET /api/v1/balance HTTP/1.1\r\n${head.join('')}Connection: close\r\n\r\n`)
    expect((await text(socket)).match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200'])
  })

  it.each(['before the proxy received it', 'before, over HTTP/2', 'while authorize decided'])(
    'the proxy for Node never sends an order whose client left %s',
    async (when) => {
      const sent: unknown[] = []
      let handled: Promise<void> | undefined
      const port = await listen((incoming, response) => {
        const leave = async () => outgoing.destroy() && (await once(response, 'close')) !== undefined
        const early = when.startsWith('before')
        const proxy = createNodeProxy({
          ...settings(),
          authorize: () => early || leave(),
          fetch: async (input) => new Response(null, { status: sent.push(input) && 201 }),
        })
        handled = buffer(incoming).then(async (body) => {
          if (early) await leave()
          // A response over HTTP/2 shows only by its stream that the client left.
          const stream = { destroyed: { value: undefined }, stream: { value: { destroyed: true } } }
          const reply: typeof response = when.endsWith('2') ? Object.create(response, stream) : response
          await proxy(Object.assign(incoming, { body }), reply)
          expect([reply.statusCode, sent]).toEqual([425, []])
        })
      })
      const outgoing = request({ port, method: 'POST', path: '/api/v1/orders', headers: HEADERS })
      outgoing.on('error', () => {}).end('{}')
      await new Promise((resolve) => outgoing.on('close', resolve))
      await handled
    },
  )

  it('the proxy for Node responds to an order whose body never ends', async () => {
    const proxy = createNodeProxy({ ...settings(), authorize: () => true, timeout: 1 })
    const headers = { ...HEADERS, 'content-length': '2' }
    const outgoing = request({ port: await listen(proxy), method: 'POST', path: '/api/v1/orders', headers })
    outgoing.on('error', () => {})
    outgoing.write('{')
    const [incoming]: IncomingMessage[] = await once(outgoing, 'response')
    expect(incoming?.statusCode).toBe(425)
    outgoing.destroy()
  })

  const CANONICAL = '{"metadata":{"10":1e+21,"2":"ü","externalOrderId":"r"},"quantity":1}'

  it.each<[string, (bytes: Buffer) => unknown, number]>([
    ['JSON', (bytes) => JSON.parse(bytes.toString()), 201],
    ['bytes', (bytes) => bytes, 201],
    ['a string', (bytes) => bytes.toString(), 201],
    ['JSON that cannot be written', () => ({ target: '\ud800' }), 400],
    ['too much JSON', () => ({ target: 'x'.repeat(300_000) }), 413],
    ['too many bytes', () => new Uint8Array(300_000), 413],
    ['nothing', () => undefined, 500],
  ])('the proxy for Node forwards the same bytes after a parser that leaves %s', async (_, parse, status) => {
    const bodies: string[] = []
    const failed: unknown[] = []
    const proxy = createNodeProxy({
      ...settings(),
      authorize: () => true,
      fetch: async (_input, init) => {
        bodies.push(await new Response(init?.body ?? null).text())
        return new Response('{"id":"ord_1"}', { status: 201 })
      },
    })
    const port = await listen(async (incoming, outgoing) => {
      const bytes = await buffer(incoming)
      const parsed = Object.assign(incoming, { body: parse(bytes) })
      await proxy(parsed, outgoing).catch((error) => failed.push(String(error)))
    })
    const init = { method: 'POST', headers: HEADERS, body: CANONICAL }
    expect((await fetch(`http://127.0.0.1:${port}/api/v1/orders`, init)).status).toBe(status)
    expect(bodies).toEqual(status === 201 ? [CANONICAL] : [])
    expect(failed).toEqual(status === 500 ? [expect.stringContaining('Mount the proxy first')] : [])
  })

  it('the proxy for Node gives the error of authorize to next, or responds with 500 and rejects', async () => {
    const down = new Error('sessions are down')
    const proxy = createNodeProxy({ ...settings(), authorize: () => Promise.reject(down) })
    const failed: unknown[] = []
    for (const next of [true, false]) {
      const port = await listen((incoming, outgoing) => {
        const handled = next
          ? proxy(incoming, outgoing, (error) => failed.push(error) && outgoing.writeHead(503).end())
          : proxy(incoming, outgoing)
        handled.catch((error) => failed.push(error))
      })
      expect((await fetch(`http://127.0.0.1:${port}/api/v1/balance`)).status).toBe(next ? 503 : 500)
      server.close()
    }
    expect(failed).toEqual([down, down])
  })

  it('the proxy for Node keeps earlier headers, and each cookie of a response of authorize', async () => {
    const cookies = ['a=1', 'b=2']
    const refusal = () =>
      new Response('no', {
        status: 403,
        headers: cookies.map((each): [string, string] => ['set-cookie', each]),
      })
    const proxy = createNodeProxy({ ...settings(), authorize: refusal })
    const port = await listen((incoming, outgoing) => {
      outgoing.setHeader('vary', 'origin')
      void proxy(incoming, outgoing)
    })
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/balance`)
    expect([response.status, await response.text()]).toEqual([403, 'no'])
    expect(response.headers.get('vary')).toBe('origin')
    expect(response.headers.getSetCookie()).toEqual(cookies)
  })

  it('the handler for Node says what to use for a Fetch request', async () => {
    const proxy = createNodeProxy({ ...settings(), authorize: () => true })
    const failed: unknown[] = []
    await proxy(new Request('https://shop.example') as never, {} as never, (error) => failed.push(error))
    expect(String(failed)).toContain('use createProxy')
  })
})
