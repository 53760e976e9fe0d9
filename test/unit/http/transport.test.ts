import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type AttemptRequest, type AttemptResult, MAX_ERROR_BYTES } from '../../../src/http/attempt.ts'
import { kyTransport } from '../../../src/http/ky-transport.ts'
import type { Transport } from '../../../src/http/transport.ts'
import type { Runtime } from '../../../src/runtime.ts'
import { attempt as send } from '../../support/attempt.ts'
import { throwing } from '../../support/calls.ts'
import { fakeRuntime } from '../../support/runtime.ts'

const unhandled: unknown[] = []
const onUnhandled = (error: unknown): void => void unhandled.push(error)
beforeEach(() => {
  unhandled.length = 0
  process.on('unhandledRejection', onUnhandled)
})
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', onUnhandled)
  expect(unhandled).toEqual([])
})

const URL_OF_ORDERS = 'https://api.example.com/v1/orders'
const LIMITS = { headers: { authorization: 'Bearer key' }, timeout: 5000, maxBytes: 1000 }

/** One attempt over a transport. */
const over = (transport: Transport, runtime: Runtime = fakeRuntime()): Promise<AttemptResult> =>
  send(URL_OF_ORDERS, LIMITS, { transport, runtime })

/** One attempt with the test's fetch. */
function attempt(
  fetch: (input: Request, init?: RequestInit) => unknown,
  changes: Partial<AttemptRequest> = {},
  runtime: Runtime = fakeRuntime(),
): Promise<AttemptResult> {
  const transport = kyTransport(fetch as typeof globalThis.fetch)
  return send(URL_OF_ORDERS, { ...LIMITS, ...changes }, { transport, runtime })
}

/** A stream whose reads the test controls. */
const streamOf = (source: UnderlyingDefaultSource<unknown>): ReadableStream =>
  new ReadableStream(source, { highWaterMark: 0 })
const never = (): Promise<never> => new Promise(() => {})
const streamless = (text: () => Promise<unknown>) => ({ status: 201, ok: true, headers: new Headers(), text })
/** What every failure of a caller's fetch has in common. */
const FAILED = { kind: 'failed', unsent: false, closed: false }
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe("a caller's fetch", () => {
  test("a caller's fetch gets the complete request once, with a signal, and no redirects", async () => {
    const fetch = vi.fn(async (_input: Request, _init?: RequestInit) => new Response('{}'))
    await attempt(fetch)
    expect(fetch).toHaveBeenCalledOnce()
    const [input = '', init] = fetch.mock.calls[0] ?? []
    const sent = new Request(input, init)
    expect(sent).toMatchObject({ method: 'POST', url: URL_OF_ORDERS, redirect: 'manual' })
    expect([...sent.headers]).toContainEqual(['authorization', 'Bearer key'])
    expect(await sent.text()).toBe('{"a":1}')
    // Pass the body unchanged: a Request's body is a stream, which is sent in chunks or read into
    // memory first.
    expect(init?.body).toBe('{"a":1}')
    expect(init?.signal).toBeInstanceOf(AbortSignal)
    expect(init?.signal?.aborted).toBe(false)
  })

  describe("the caller's fetch and the HTTP cache", () => {
    afterEach(() => void vi.unstubAllGlobals())

    async function cacheOf(changes: Partial<AttemptRequest>): Promise<RequestInit | undefined> {
      const fetch = vi.fn(async (_input: Request, _init?: RequestInit) => new Response('{}'))
      await attempt(fetch, changes)
      return fetch.mock.calls[0]?.[1]
    }

    test.each([
      ['GET', 'no-store'],
      ['HEAD', 'no-store'],
      ['POST', undefined],
    ])('%s is sent with the cache mode %s, because a cached list is no evidence', async (method, mode) => {
      expect((await cacheOf({ method, body: undefined }))?.cache).toBe(mode)
    })

    test('a platform whose Request lacks cache modes gets none, because it may throw', async () => {
      const plain = function (this: object, url: string): void {
        Object.assign(this, { url, headers: new Headers(), clone: () => this })
      }
      vi.stubGlobal('Request', plain)
      expect(await cacheOf({ method: 'GET', body: undefined })).not.toHaveProperty('cache')
    })
  })

  test.each<[name: string, value: unknown]>([
    ['totalTimeout', 1e-9],
    ['timeout', 1e-9],
    ['retry', 9],
    ['prefix', 'https://evil.example.com'],
    ['baseUrl', 'https://evil.example.com'],
    ['searchParams', 'a=1'],
    ['json', { a: 1 }],
    ['onDownloadProgress', 'x'],
    ['onUploadProgress', 'x'],
    ['context', 'x'],
    ['parseJson', () => 'evil'],
    ['throwHttpErrors', true],
    ...['mode', 'credentials', 'cache', 'redirect', 'referrer', 'referrerPolicy', 'integrity'].map(
      (name): [string, unknown] => [name, 'nonsense'],
    ),
    ['signal', AbortSignal.abort()],
    ['window', 'x'],
    ['body', 'evil'],
    ['keepalive', true],
    ['dispatcher', 'x'],
  ])("a caller's fetch is called as usual if every object inherits a property %s", async (name, value) => {
    let inherits: string[] = []
    const descriptor = { value, configurable: true, writable: true, enumerable: true }
    Object.defineProperty(Object.prototype, name, descriptor)
    try {
      const result = await attempt(
        async (input, init) => {
          inherits = [String(input), ...Object.keys(init ?? {}), String(name in (init ?? {}))]
          return new Response('{}', { status: 500 })
        },
        { method: 'GET', headers: {}, body: undefined, signal: undefined },
      )
      expect(result).toMatchObject({ kind: 'answer', status: 500, text: '{}' })
      const own = ['method', 'headers', 'body', 'redirect', 'signal', 'cache']
      expect(inherits).toEqual([URL_OF_ORDERS, ...own, String(own.includes(name))])
    } finally {
      Reflect.deleteProperty(Object.prototype, name)
    }
  })

  const text = async (): Promise<string> => '{}'

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', '{"id":"ord_1"}'],
    ['an object that only has a status', { status: 201, ok: true, json: async () => ({}) }],
    ['an object without headers', { status: 201, text }],
    ['headers as a plain object', { status: 201, headers: { a: 'b' }, text }],
    ['an object without status', { headers: new Headers(), text }],
    ["the standard's network error", Response.error()],
  ] as [string, unknown][])(
    "a caller's fetch that returns %s has failed, and proves nothing",
    async (_what, returned) => {
      const result = await attempt(async () => returned)
      expect(result).toEqual({ ...FAILED, detail: { name: 'TypeError' } })
    },
  )

  test.each<[what: string, text: () => Promise<string>, read: object]>([
    ['whose text fits', async () => 'x'.repeat(1000), { text: 'x'.repeat(1000), problem: undefined }],
    ['whose text is too large', async () => 'x'.repeat(1001), { text: '', problem: 'too_large' }],
    ['whose text is lost', () => Promise.reject(new Error('lost')), { problem: 'cut' }],
  ])('a response may lack a stream, %s', async (_what, text, read) => {
    const result = await attempt(async () => streamless(text))
    expect(result).toMatchObject({ kind: 'answer', status: 201, ...read })
  })

  const FOUND = { type: 'basic', status: 302 }
  const reject = (): Promise<never> => Promise.reject(new Error('x'))
  test.each([
    ['an opaque redirect', { type: 'opaqueredirect', status: 0 }],
    ['a redirect with a body that cannot be let go of', { ...FOUND, body: { cancel: 7 } }],
    ['a redirect with a body that fails to be let go of', { ...FOUND, body: { cancel: reject } }],
  ])("a caller's fetch that returns %s is not followed", async (_what, fields) => {
    const result = await attempt(async () => ({ headers: new Headers(), ...fields }))
    expect(result).toMatchObject({ kind: 'redirect', status: fields.status })
  })

  test("a caller's fetch that throws or rejects has failed, proves nothing, and is named with its place", async () => {
    const fail = (): never => {
      throw new TypeError('Failed to fetch')
    }
    const frames = expect.stringMatching(/^ +at .*transport\.test\.ts:\d+:\d+/)
    for (const fetch of [fail, async () => fail()])
      expect(await attempt(fetch)).toEqual({ ...FAILED, detail: { name: 'TypeError', frames } })
  })

  test.each([
    ['ECONNREFUSED', 'connect', false],
    ['ENOTFOUND', 'getaddrinfo', false],
    ['ECONNRESET', 'read', true],
    ['EPIPE', 'write', true],
    ['UND_ERR_SOCKET', undefined, true],
    ['CERT_HAS_EXPIRED', undefined, false],
  ])(
    "a caller's fetch that fails with %s is named by it, and proves nothing",
    async (code, syscall, closed) => {
      const cause = Object.assign(new Error('secret'), { code, ...(syscall && { syscall }) })
      const result = await attempt(() => Promise.reject(new TypeError('fetch failed', { cause })))
      const detail = { name: 'Error', code, ...(syscall && { syscall }) }
      expect(result).toEqual({ ...FAILED, closed, detail })
    },
  )
})

describe('what a fetch throws', () => {
  const ring = new Error('ring')
  ring.cause = ring
  const secret = throwing('secret')
  const hostile = new Proxy({}, { get: secret, has: secret, getPrototypeOf: secret })
  const getters = Object.defineProperty(new Error('x'), 'cause', { get: secret })

  test.each([
    ['a text', 'secret'],
    ['a symbol', Symbol('secret')],
    ['an object', { secret: 1 }],
    ['a ring of causes', ring],
    ['a cause that throws when it is looked at', getters],
    ['what throws whenever it is looked at', hostile],
    ['names that are none', { name: 'Bearer secret', code: 'sk live', syscall: 'GET /secret' }],
    ['an array of errors that are none', { errors: [null, 1, 'secret'], code: 'ECONNREFUSED' }],
  ])('a fetch may throw %s', async (_what, thrown) => {
    const result = await attempt(() => Promise.reject(thrown))
    expect(result).toMatchObject({ kind: 'failed', unsent: false })
    expect(JSON.stringify(result)).not.toContain('secret')
  })

  test('a fetch may throw anything, and only names and codes are kept', async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything(), fc.anything(), fc.anything(), async (thrown, code, name) => {
        for (const error of [thrown, { code, name, cause: thrown }]) {
          const result = await attempt(() => Promise.reject(error))
          if (result.kind !== 'failed') throw new Error(result.kind)
          expect(result.unsent).toBe(false)
          expect(result.detail.name).toMatch(/^[A-Za-z]{1,64}$/)
          for (const word of [result.detail.code, result.detail.syscall]) {
            if (word !== undefined) expect(word).toMatch(/^\w{1,64}$/)
          }
        }
      }),
    )
  })
})

describe('a fetch that ignores its signal', () => {
  const cancel = vi.fn()
  test.each([
    ['a response, whose body is cancelled,', () => new Response(streamOf({ cancel })), 1],
    ['a response that cannot be cancelled', () => ({ body: { cancel: 7 } }), 0],
    ['nothing', () => undefined, 0],
    ['a failure', () => Promise.reject(new Error('late')), 0],
  ])('a fetch that ignores its signal may return %s too late', async (_what, finish, cancels) => {
    cancel.mockClear()
    const runtime = fakeRuntime()
    const late = new Promise<void>((resolve) => runtime.setTimer(resolve, 6000))
    const pending = attempt(() => late.then((): unknown => finish()), {}, runtime)
    await runtime.advance(5000)
    expect(await pending).toEqual({ kind: 'timeout' })
    await runtime.advance(1000)
    expect(unhandled).toEqual([])
    expect(cancel).toHaveBeenCalledTimes(cancels)
  })

  test.each([
    ['a body that never comes', { pull: never }],
    ['a body that cannot even be cancelled', { pull: never, cancel: never }],
  ])('a fetch that ignores its signal does not delay the timeout of %s', async (_what, source) => {
    const runtime = fakeRuntime()
    const pending = attempt(async () => new Response(streamOf(source), { status: 201 }), {}, runtime)
    await runtime.advance(5000)
    expect(await pending).toMatchObject({ kind: 'answer', status: 201, problem: 'timeout' })
    expect(runtime.timers).toBe(0)
  })
})

test.each<[string, () => unknown, milliseconds: number]>([
  ['whose body never comes', () => new Response(streamOf({ pull: never }), { status: 201 }), 0],
  ['without a stream, whose text never comes', () => streamless(never), 100],
])('an aborted caller does not wait for a response %s', async (_what, answer, milliseconds) => {
  // A few microtask turns, including ky's own, lie between the response and the first read of its
  // body.
  for (let turns = 0; turns < 40; turns++) {
    const runtime = fakeRuntime()
    const controller = new AbortController()
    let ended: AttemptResult | undefined
    const fetch = async (): Promise<unknown> => {
      void (async () => {
        for (let turn = 0; turn < turns; turn++) await undefined
        controller.abort()
      })()
      return answer()
    }
    void attempt(fetch, { signal: controller.signal }, runtime).then((result) => {
      ended = result
    })
    await runtime.settle()
    await runtime.advance(milliseconds)
    const how = ended?.kind === 'answer' ? ended.problem : ended?.kind
    expect([turns, how]).toEqual([turns, 'aborted'])
    expect([runtime.timers, getEventListeners(controller.signal, 'abort')]).toEqual([0, []])
  }
})

describe('a body', () => {
  const taken = new Response('{}').body
  taken?.getReader()
  test.each([
    ['somebody else is reading', taken],
    ['fails', streamOf({ start: (controller) => controller.error(new Error('lost')) })],
    ['has a text instead of bytes', streamOf({ start: (controller) => controller.enqueue('text') })],
    ['has nothing', streamOf({ start: (controller) => controller.enqueue(undefined) })],
    ['throws when it is read', streamOf({ pull: throwing('x') })],
  ])('a body that %s is truncated, because the status is known', async (_what, body) => {
    const result = await attempt(async () => ({ ...streamless(never), body }))
    expect(result).toMatchObject({ kind: 'answer', status: 201, problem: 'cut' })
  })

  test('a body keeps what arrived before it broke', async () => {
    let pulls = 0
    const body = streamOf({
      pull(controller) {
        if (++pulls > 1) controller.error(new Error('lost'))
        else controller.enqueue(bytes('{"id":'))
      },
    })
    expect(await attempt(async () => new Response(body))).toMatchObject({ text: '{"id":', problem: 'cut' })
  })

  test('a body that is too large is cancelled after the maximum number of bytes', async () => {
    let sent = 0
    const cancel = vi.fn()
    const pull = (controller: ReadableStreamDefaultController): void => {
      controller.enqueue(bytes('x'.repeat(100)))
      sent += 100
    }
    const body = streamOf({ pull, cancel })
    expect(await attempt(async () => new Response(body))).toMatchObject({ problem: 'too_large' })
    expect(cancel).toHaveBeenCalledOnce()
    expect(sent).toBe(1100)
  })

  test.each(['', '-1', 'x', '1e1', '99999999999'])(
    'a body with the length %j is read as it arrives',
    async (length) => {
      const response = new Response('interrupted', { headers: { 'content-length': length } })
      const result = await attempt(async () => response)
      expect(result).toMatchObject({ kind: 'answer', text: 'interrupted' })
      expect(result).toHaveProperty('problem', undefined)
    },
  )

  test('the length of a compressed body is ignored if the browser hides its encoding', async () => {
    // CORS lets a page see content-length, but not content-encoding.
    const response = new Response('x'.repeat(1_000_000), { headers: { 'content-length': '20' } })
    expect(await attempt(async () => response)).toMatchObject({ kind: 'answer', problem: 'too_large' })
  })
})

test('a fetch that is patched after the client was created is used', async () => {
  const original = globalThis.fetch
  const transport = kyTransport()
  try {
    globalThis.fetch = async () => new Response('patched')
    expect(await over(transport)).toMatchObject({ text: 'patched' })
  } finally {
    globalThis.fetch = original
  }
})

describe('a transport of the application', () => {
  const refused = Object.assign(new Error('secret'), { code: 'ECONNREFUSED', syscall: 'connect' })
  const throws = (): never => {
    throw refused
  }
  const reject = async (): Promise<never> => throws()
  const response = { status: 201, headers: new Headers(), read: never, discard: reject }

  test.each<[string, Transport, unsent: unknown]>([
    ['without whyUnsent', { send: reject }, false],
    ['with whyUnsent', { send: reject, whyUnsent: () => 'unreachable' }, 'unreachable'],
    ['with a throwing whyUnsent', { send: reject, whyUnsent: throwing('secret') }, false],
    ['with a whyUnsent that returns no reason', { send: reject, whyUnsent: () => true as never }, false],
  ])('a failure of a custom transport %s proves what whyUnsent returns', async (_what, transport, unsent) => {
    const detail = { name: 'Error', code: 'ECONNREFUSED', syscall: 'connect' }
    expect(await over(transport)).toEqual({ ...FAILED, unsent, detail })
  })

  test('a response that has come while the thread was blocked for longer than the timeout counts', async () => {
    let time = 0
    const send: Transport['send'] = async () => {
      time = 1_000_000
      return { ...response, read: async () => ({ text: '{}', problem: undefined }) }
    }
    const runtime = { ...fakeRuntime(), setTimer: () => () => {}, monotonic: () => time }
    expect(await over({ send }, runtime)).toMatchObject({ status: 201, text: '{}' })
  })

  test('a custom transport that returns a lazy thenable sends once', async () => {
    const send = vi.fn(async () => ({ ...response, read: async () => ({ text: '', problem: undefined }) }))
    // biome-ignore lint/suspicious/noThenProperty: query builders return such objects
    const lazy = { then: (...args: Parameters<Promise<object>['then']>) => send().then(...args) }
    expect(await over({ send: () => lazy as ReturnType<Transport['send']> })).toMatchObject({ status: 201 })
    expect(send).toHaveBeenCalledOnce()
  })

  test("a custom transport's error proves nothing once the response has begun", async () => {
    const others = ['{}', {}, undefined, { text: '{}', problem: null }].map((body) => async () => body)
    for (const read of [reject, throws, ...others]) {
      const send = async () => ({ ...response, read: read as typeof reject })
      const result = await over({ send, whyUnsent: () => 'unreachable' })
      expect(result).toMatchObject({ kind: 'answer', status: 201, problem: 'cut' })
    }
  })

  test.each<object>([
    ...[Number.NaN, 201.5, '201', undefined].map((status) => ({ status })),
    ...[{ 'request-id': 'r' }, undefined].map((headers) => ({ headers })),
  ])('a custom transport that returns a response with %o has failed, which proves nothing', async (wrong) => {
    const own = { read: vi.fn(), discard: vi.fn() }
    const send = async () => ({ ...response, ...own, ...wrong })
    const result = await over({ send, whyUnsent: () => 'unreachable' })
    expect(result).toMatchObject({ kind: 'failed', unsent: false, detail: { name: 'TypeError' } })
    expect([own.read, own.discard].map(({ mock }) => mock.calls.length)).toEqual([0, 1])
  })

  test("a custom transport's endless body does not keep the caller waiting", async () => {
    const runtime = fakeRuntime()
    const pending = over({ send: async () => response }, runtime)
    await runtime.advance(5200)
    expect(await pending).toMatchObject({ kind: 'answer', status: 201, text: '', problem: 'timeout' })
    expect(runtime.timers).toBe(0)
  })

  test("a custom transport's body is read up to the limit of its status, and not for a redirect", async () => {
    const own = { read: vi.fn(async () => ({ text: '{}', problem: undefined })), discard: vi.fn() }
    for (const [status, kind] of [
      [200, { kind: 'answer', text: '{}' }],
      [500, { kind: 'answer' }],
      [0, { kind: 'redirect' }],
      [307, { kind: 'redirect' }],
    ] as const)
      expect(await over({ send: async () => ({ ...response, ...own, status }) })).toMatchObject({
        status,
        ...kind,
      })
    expect(own.read.mock.calls).toEqual([[LIMITS.maxBytes], [MAX_ERROR_BYTES]])
    expect(own.discard).toHaveBeenCalledTimes(2)
  })
})
