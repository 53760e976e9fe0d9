import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ConfigurationError } from '../../src/errors/classes.ts'
import { apiKeyTag, proxiedTag } from '../../src/identity/keys.ts'
import { createProxy, type ProxyLoss, type ProxyOptions, type ProxyRoute } from '../../src/proxy/index.ts'
import { uuidV5 } from '../../src/uuid-v5.ts'

const API_KEY = 'key-that-stays-here'
const CREATED = { status: 201, headers: { 'content-type': 'application/json' } }
const ORDER = '{"id":"ord_1"}'
const NAMED = { 'idempotency-key': 'k-1', 'content-type': 'application/json' }

const tagOf = (apiKey: string) => apiKeyTag(uuidV5, 'customer-ordering-sdk/proxy', apiKey)

interface Sent {
  readonly url: string
  readonly init: RequestInit
  readonly headers: Headers
}

/**
 * A proxy in front of a service that responds with `respond`, and the requests that reached the
 * service.
 */
function proxyTo(
  respond: (sent: Sent) => Response | Promise<Response> = () => new Response(ORDER, CREATED),
  options: Partial<ProxyOptions> = {},
) {
  const sent: Sent[] = []
  const losses: ProxyLoss[] = []
  const proxy = createProxy({
    baseUrl: 'https://service.example/base/',
    apiKey: API_KEY,
    authorize: () => true,
    fetch: async (input, init = {}) => {
      const seen = { url: String(input), init, headers: new Headers(init.headers) }
      sent.push(seen)
      return await respond(seen)
    },
    onLost: (loss) => losses.push(loss) > 0 && Promise.reject(new Error('the log is down')),
    ...options,
  })
  const ask = async (method: string, path: string, headers = {}, body?: string) =>
    await proxy(new Request(`https://shop.example/api${path}`, { method, headers, body: body ?? null }))
  const order = (headers = {}, body = '{}') => ask('POST', '/v1/orders', { ...NAMED, ...headers }, body)
  return { proxy, sent, losses, ask, order }
}

/** Responds with nothing, until the request is aborted. */
const silent = ({ init }: Sent) =>
  new Promise<Response>((_resolve, reject) => {
    init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
  })

/** An order whose client can leave, and whose body may never end. */
function orderOf(proxy: ReturnType<typeof createProxy>, body: BodyInit = '{}') {
  const left = new AbortController()
  const init = { method: 'POST', headers: NAMED, body, duplex: 'half', signal: left.signal }
  return { pending: proxy(new Request('https://shop.example/api/v1/orders', init)), left }
}

describe('createProxy', () => {
  it('the proxy forwards an order byte for byte, adds the API key, and sends no cookie', async () => {
    const { order, sent } = proxyTo()
    const body = JSON.stringify({ note: 'ü'.repeat(1000) })
    const dropped = { cookie: 'session=1', 'x-forwarded-for': '10.0.0.1' }
    await order({ authorization: 'Bearer of-the-page', ...dropped }, body)
    const [{ url, init, headers } = { url: '', init: {}, headers: new Headers() }] = sent
    expect([url, init.method, init.redirect, init.cache]).toEqual([
      'https://service.example/base/v1/orders',
      'POST',
      'manual',
      'no-store',
    ])
    expect(new TextDecoder().decode(init.body as ArrayBuffer)).toBe(body)
    expect(Object.fromEntries(headers)).toEqual({
      authorization: `Bearer ${API_KEY}`,
      'content-type': 'application/json',
      'idempotency-key': 'k-1',
    })
  })

  it('the proxy returns only the headers that the client reads, and nothing that a cache may keep', async () => {
    const read = {
      'content-type': 'application/json',
      age: '300',
      'idempotent-replayed': 'true',
      'retry-after': '7',
      'x-request-id': 'r1',
    }
    const headers = {
      ...read,
      'content-type': 'text/html',
      'content-encoding': 'gzip',
      'set-cookie': 'inner=1',
      server: 'inner',
    }
    const response = await proxyTo(() => new Response(ORDER, { status: 201, headers })).order()
    expect(response.status).toBe(201)
    expect(await response.text()).toBe(ORDER)
    expect(Object.fromEntries(response.headers)).toEqual({
      ...read,
      'api-key-tag': tagOf(API_KEY),
      'cache-control': 'no-store',
    })
  })

  it.each<[string, string, ProxyRoute]>([
    ['GET', '/v1/services?limit=2&offset=4', { operation: 'listServices' }],
    ['GET', '/v1/services/svc_1', { operation: 'retrieveService', id: 'svc_1' }],
    ['GET', '/v1/services/50%25%20off', { operation: 'retrieveService', id: '50% off' }],
    ['GET', '/v1/balance', { operation: 'retrieveBalance' }],
    ['GET', '/v1/orders?sourceSystem=shop+1', { operation: 'listOrders' }],
    ['GET', '/v1/orders/ord_1', { operation: 'retrieveOrder', id: 'ord_1' }],
    ['POST', '/v1/orders', { operation: 'createOrder' }],
  ])('the proxy forwards %s %s, and tells authorize which call that is', async (method, path, expected) => {
    const routes: ProxyRoute[] = []
    const { ask, sent } = proxyTo(undefined, { authorize: (_request, route) => routes.push(route) > 0 })
    const named = { 'idempotency-key': 'k-1', 'content-type': 'application/json; charset=utf-8' }
    expect((await ask(method, path, named)).status).toBe(201)
    expect(sent.map(({ url }) => url)).toEqual([`https://service.example/base${path}`])
    expect(routes).toEqual([expected])
  })

  it.each([
    ['DELETE', '/v1/orders/ord_1'],
    ['POST', '/v1/services'],
    ['POST', '/v1/orders/ord_1'],
    ['GET', '/v1/keys'],
    ['GET', '/v2/orders'],
    ['GET', '/v1/orders/a/b'],
    ['GET', '/v1/orders/'],
    ['GET', '/v1/orders/../keys'],
    ['GET', '/v1/orders/%2e%2e/keys'],
    ['GET', '/v1/orders/..%2fkeys'],
    ['GET', '/v1/orders/a%2Fcancel'],
    ['GET', '/v1/orders/a%252fcancel'],
    ['GET', '/v1/orders/%252e%252e'],
    ['GET', '/v1/orders/%0a'],
    ['GET', '/v1/orders/%ff'],
    ['POST', '/v1/services/v1/orders'],
    ['GET', '/api/v1/balance'],
    ['GET', '2/v1/balance'],
    ['HEAD', '/v1/balance'],
    ['OPTIONS', '/v1/orders'],
    ['GET', ''],
  ])('the proxy does not forward %s %s', async (method, path) => {
    const { ask, sent } = proxyTo(undefined, { authorize: () => Promise.reject(new Error('not asked')) })
    expect((await ask(method, path)).status).toBe(404)
    expect(sent).toEqual([])
  })

  it.each([
    ['/orders/', 'https://shop.example/orders/v1/balance', 201],
    ['/', 'https://shop.example/v1/balance', 201],
    ['/a b', 'https://shop.example/a%20b/v1/balance', 201],
    ['/', 'https://shop.example/api/v1/balance', 404],
    ['/shop', 'https://shop.example/x/shop/v1/balance', 404],
    ['/shop', 'https://shop.example/v1/balance', 404],
    ['/shop', 'https://shop.example/SHOP/v1/balance', 404],
  ])('the proxy that is mounted at %s responds to %s with %i', async (mountPath, url, status) => {
    const { proxy } = proxyTo(undefined, { mountPath })
    const response = await proxy(new Request(url))
    expect(response.status).toBe(status)
    if (status === 404)
      expect((await response.json()).message).toContain(
        `below ${mountPath.replace(/\/$/, '')}/v1 (option mountPath)`,
      )
  })

  it.each([
    ['/v1/services?sourceSystem=shop', 'sourceSystem'],
    ['/v1/orders?expand=wallet', 'expand'],
    ['/v1/orders?limit=1&limit=1000', 'limit'],
    ['/v1/orders/ord_1?limit=1', 'limit'],
    ['/v1/balance?customer=eve', 'customer'],
  ])(
    'the proxy rejects %s because of a query parameter that the API document does not show',
    async (path, name) => {
      const { ask, sent } = proxyTo(undefined, { authorize: () => Promise.reject(new Error('not asked')) })
      const response = await ask('GET', path)
      expect([response.status, (await response.json()).message]).toEqual([
        400,
        expect.stringContaining(`: ${name}.`),
      ])
      expect(sent).toEqual([])
    },
  )

  it.each([
    [{ 'content-type': 'text/plain' }],
    [{ 'content-type': 'application/json-patch+json' }],
    [{ 'content-type': '' }],
    [{ 'content-encoding': 'gzip' }],
  ])('the proxy forwards an order only as plain JSON, not with %o', async (headers) => {
    const { order, sent } = proxyTo()
    expect((await order(headers)).status).toBe(415)
    expect(sent).toEqual([])
  })

  it('the handler says what to use for a request of Node, and the page learns nothing', async () => {
    const { proxy } = proxyTo()
    for (const request of [{ headers: {}, url: '/api/v1/orders', method: 'POST' }, { req: {} }, undefined])
      await expect(proxy(request as never)).rejects.toThrow('use createNodeProxy')
  })

  it.each<[string, ProxyOptions['authorize'], number]>([
    ['false', () => false, 401],
    ['a promise of false', async () => false, 401],
    ['what is not exactly true', () => 'yes' as never, 401],
    ['a response of its own', () => new Response(null, { status: 403 }), 403],
  ])('the proxy sends nothing if authorize returns %s', async (_what, authorize, status) => {
    const { order, sent } = proxyTo(undefined, { authorize })
    const response = await order()
    expect([response.status, response.headers.get('api-key-tag')]).toEqual([status, null])
    expect(sent).toEqual([])
  })

  it('the proxy sends nothing if authorize or apiKey fails, and passes on the error', async () => {
    const down = new Error('sessions are down')
    const fails = (): never => {
      throw down
    }
    for (const options of [{ authorize: fails }, { apiKey: fails }]) {
      const { order, sent } = proxyTo(undefined, options)
      await expect(order()).rejects.toBe(down)
      expect(sent).toEqual([])
    }
  })

  it('the proxy rejects an order without an Idempotency-Key, which no form of another site can send', async () => {
    const { ask, sent } = proxyTo()
    const response = await ask('POST', '/v1/orders', {}, '{}')
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'BAD_REQUEST' }])
    expect(sent).toEqual([])
  })

  it('the proxy rejects a body that is larger than its limit, also without a declared length', async () => {
    const { order, sent } = proxyTo(undefined, { maxBodyBytes: 10 })
    expect((await order({}, 'x'.repeat(11))).status).toBe(413)
    expect((await order({ 'content-length': '11' })).status).toBe(413)
    expect(sent).toEqual([])
    expect((await order({}, 'x'.repeat(10))).status).toBe(201)
  })

  it('the proxy accepts the largest body that the client sends', async () => {
    const { order } = proxyTo()
    expect((await order({}, 'x'.repeat(262_144))).status).toBe(201)
    expect((await order({}, 'x'.repeat(262_145))).status).toBe(413)
  })

  it('the proxy rejects a body that ends early', async () => {
    const { proxy, sent } = proxyTo()
    const pull = (controller: ReadableStreamDefaultController) => controller.error(new Error('aborted'))
    expect((await orderOf(proxy, new ReadableStream({ pull })).pending).status).toBe(400)
    expect(sent).toEqual([])
  })

  it("the proxy requests each visitor's key after authorization", async () => {
    const steps: string[] = []
    const { order, sent } = proxyTo(undefined, {
      authorize: () => steps.push('authorize') > 0,
      apiKey: async (request) => `key-of-${request.headers.get('cookie')}-${steps.push('apiKey')}`,
    })
    const response = await order({ cookie: 'ada' })
    expect(sent[0]?.headers.get('authorization')).toBe('Bearer key-of-ada-2')
    expect(steps).toEqual(['authorize', 'apiKey'])
    expect(response.headers.get('api-key-tag')).toBe(tagOf('key-of-ada-2'))
  })

  const failing = (message: string) => () =>
    Promise.reject(new TypeError('fetch failed', { cause: new Error(message) }))
  const status = (code: number) => () =>
    new Response(code === 0 ? null : 'x', {
      status: code,
      headers: { location: 'https://elsewhere.example/' },
    })
  const cut = (code: number) => () =>
    new Response(
      new ReadableStream({ pull: (controller) => controller.error(new Error(`cut off with ${API_KEY}`)) }),
      { status: code },
    )

  it.each([
    ['the connection fails', failing(`reset with ${API_KEY}`), 502, 'fetch failed: reset with [redacted]'],
    ['the service redirects', status(302), 502, 'The service responded with 302.'],
    ['the platform hides a redirect', () => Response.error(), 502, 'The service responded with a redirect.'],
    ['the service responds with 408', status(408), 504, 'The service responded with 408.'],
    ['the service responds with 421', status(421), 504, 'The service responded with 421.'],
    ['a refusal is cut off', cut(402), 502, 'cut off with [redacted]'],
  ])('the proxy leaves the client in doubt if %s', async (_what, respond, code, reason) => {
    const { order, sent, losses } = proxyTo(respond)
    const response = await order()
    expect(response.status).toBe(code)
    expect(await response.json()).toMatchObject({ code: 'SERVICE_LOST' })
    expect(response.headers.get('api-key-tag')).toMatch(/^[0-9a-f]{8}$/)
    expect(sent).toHaveLength(1)
    expect(losses).toEqual([{ method: 'POST', path: '/v1/orders', reason }])
  })

  it('the proxy reports a created order if the body of a 201 is truncated, and 502 for a read', async () => {
    const { order, ask } = proxyTo(cut(201))
    const response = await order()
    expect([response.status, await response.text()]).toEqual([201, ''])
    expect((await ask('GET', '/v1/balance')).status).toBe(502)
  })

  it.each([
    ['removes the API key', 401, '0123456789abcdef'],
    ['removes a short API key', 401, 'pending'],
    ['removes an API key of 16 characters', 201, '0123456789abcdef'],
    ['keeps a text that is a key of fewer than 16 characters by chance', 201, '0123456789abcde'],
  ])('the proxy %s in a response with %i', async (what, status, apiKey) => {
    const bodyOf = (key: string) => JSON.stringify({ status: key, also: btoa(`xyz${key}`) })
    const respond = () => new Response(bodyOf(apiKey), { status, headers: { 'x-request-id': apiKey } })
    const response = await proxyTo(respond, { apiKey }).order()
    expect(response.headers.get('x-request-id')).toBe('[redacted]')
    const text = await response.text()
    expect([text === bodyOf(apiKey), text.includes(apiKey)]).toEqual(Array(2).fill(what.startsWith('keeps')))
    expect(text.includes(btoa(apiKey).slice(0, 8))).toBe(what.startsWith('keeps'))
  })

  it.each([204, 205])('the proxy forwards a response without a body: %s', async (code) => {
    expect((await proxyTo(() => new Response(null, { status: code })).order()).status).toBe(code)
  })

  it('the proxy rejects an order that names another API key, and forwards one with the right key', async () => {
    const { order, sent } = proxyTo()
    const tag = tagOf(API_KEY)
    for (const [expected, status] of [
      [proxiedTag(uuidV5, 'k-1', tag), 201],
      [proxiedTag(uuidV5, 'k-2', tag), 425],
      [proxiedTag(uuidV5, 'k-1', 'f00df00d'), 425],
      [tag, 425],
      ['', 425],
    ] as const) {
      const response = await order({ 'if-api-key-tag': expected })
      expect([response.status, response.headers.get('api-key-tag')]).toEqual([status, tag])
    }
    expect(sent).toHaveLength(1)
    expect(sent[0]?.headers.has('if-api-key-tag')).toBe(false)
  })

  it.each<[string, Record<string, unknown>]>([
    ['baseUrl', { baseUrl: undefined }],
    ['baseUrl', { baseUrl: 'http://service.example' }],
    ['baseUrl', { baseUrl: 'https://service.example/v1' }],
    ['apiKey', { apiKey: undefined }],
    ['apiKey', { apiKey: null }],
    ['apiKey', { apiKey: 'Bearer x' }],
    ['authorize', { authorize: undefined }],
    ['mountPath', { mountPath: 'api' }],
    ['mountPath', { mountPath: '/api/v1' }],
    ['mountPath', { mountPath: '/api?x' }],
    ['maxBodyBytes', { maxBodyBytes: 0 }],
    ['timeout', { timeout: 0 }],
    ['autorize', { autorize: () => true }],
  ])('the proxy rejects the option %s of %o', (name, wrong) => {
    const make = () => proxyTo(undefined, wrong)
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(`option ${name} `)
  })

  it('the proxy accepts http for this machine, and for a private network if permitted', () => {
    for (const options of [
      { baseUrl: new URL('http://127.0.0.1:4010') },
      { baseUrl: 'http://orders.internal', allowInsecureHttp: true },
    ])
      expect(() => proxyTo(undefined, options)).not.toThrow()
  })
})

describe('an order that createProxy cannot send in time', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  })
  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  const parts = ['authorize', 'apiKey', 'body']
  const ends = ['the time is over', 'the client has left']
  it.each(parts.flatMap((part) => ends.map((end) => [part, end])))(
    'the proxy never sends an order if its %s is not ready until %s',
    async (what, when) => {
      const released: (() => void)[] = []
      const held = <T>(value: T) => new Promise<T>((resolve) => released.push(() => resolve(value)))
      const { proxy, sent } = proxyTo(undefined, {
        ...(what === 'authorize' && { authorize: () => held(true) }),
        ...(what === 'apiKey' && { apiKey: () => held(API_KEY) }),
      })
      const start = (controller: ReadableStreamDefaultController) => released.push(() => controller.close())
      const order = orderOf(proxy, what === 'body' ? new ReadableStream({ start }) : undefined)
      await vi.advanceTimersByTimeAsync(0)
      if (when === 'the client has left') order.left.abort()
      else await vi.advanceTimersByTimeAsync(60_000)
      const response = await order.pending
      expect([response.status, await response.json()]).toEqual([
        425,
        { code: 'TOO_LATE', message: expect.stringContaining(' Nothing was sent.') },
      ])
      for (const release of released) release()
      await vi.advanceTimersByTimeAsync(0)
      expect(sent).toEqual([])
      expect(vi.getTimerCount()).toBe(0)
    },
  )

  it.each([
    ['the machine slept', () => vi.setSystemTime(Date.now() + 60_000)],
    ['the clock went back', () => vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000)],
  ])('the proxy checks the time again directly before it sends an order: %s', async (_what, sleep) => {
    const { proxy, sent } = proxyTo(undefined, { authorize: () => sleep() !== undefined })
    const response = await orderOf(proxy).pending
    expect([response.status, response.headers.get('api-key-tag')]).toEqual([425, tagOf(API_KEY)])
    expect(sent).toEqual([])
  })

  it('the proxy ends the request to the service if the client leaves, and reports no loss', async () => {
    const { proxy, sent, losses } = proxyTo(silent)
    const order = orderOf(proxy)
    await vi.waitUntil(() => sent.length > 0)
    order.left.abort()
    expect([(await order.pending).status, sent[0]?.init.signal?.aborted, losses]).toEqual([504, true, []])
  })

  it('the proxy gives the service only the time that is left since it received the order', async () => {
    const { proxy, losses } = proxyTo(silent, {
      authorize: async () => (await vi.advanceTimersByTimeAsync(59_999)) !== undefined,
    })
    const order = orderOf(proxy)
    await vi.advanceTimersByTimeAsync(1)
    expect((await order.pending).status).toBe(504)
    expect(losses).toHaveLength(1)
  })
})
