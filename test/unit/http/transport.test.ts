import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type AttemptRequest,
  type AttemptResult,
  MAX_ERROR_BYTES,
  sendOver,
} from '../../../src/http/attempt.ts'
import { kyTransport } from '../../../src/http/ky-transport.ts'
import type { Transport } from '../../../src/http/transport.ts'
import { throwing } from '../../support/calls.ts'
import { type FakeRuntime, fakeRuntime } from '../../support/runtime.ts'

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

const request: AttemptRequest = {
  method: 'POST',
  url: 'https://api.example.com/v1/orders',
  headers: { authorization: 'Bearer key' },
  body: '{"a":1}',
  timeout: 5000,
  maxBytes: 1000,
  signal: undefined,
  isLate: undefined,
}

/** One attempt with the test's fetch. */
function attempt(
  fetch: (input: Request, init?: RequestInit) => unknown,
  changes: Partial<AttemptRequest> = {},
  runtime: FakeRuntime = fakeRuntime(),
): Promise<AttemptResult> {
  return sendOver(kyTransport(fetch as typeof globalThis.fetch), runtime)({ ...request, ...changes })
}

/** A stream whose reads the test controls. */
const streamOf = (source: UnderlyingDefaultSource<unknown>): ReadableStream =>
  new ReadableStream(source, { highWaterMark: 0 })
const never = (): Promise<never> => new Promise(() => {})
/** A response without a stream. */
const streamless = (text: () => Promise<unknown>) => ({ status: 201, ok: true, headers: new Headers(), text })
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe("a caller's fetch", () => {
  test("a caller's fetch gets the complete request once, with a signal, and no redirects", async () => {
    const seen: { sent: Request; body: unknown; init: RequestInit | undefined; text: string }[] = []
    await attempt(async (input, init) => {
      const sent = new Request(input, init)
      seen.push({ sent, body: init?.body, init, text: await sent.text() })
      return new Response('{}')
    })
    expect(seen).toHaveLength(1)
    const [{ sent, body, init, text } = {}] = seen
    expect(sent).toMatchObject({ method: 'POST', url: request.url, redirect: 'manual' })
    expect([...(sent?.headers ?? [])]).toContainEqual(['authorization', 'Bearer key'])
    expect(text).toBe('{"a":1}')
    // Pass the body unchanged: a Request's body is a stream, which is sent in chunks or read into
    // memory first.
    expect(body).toBe('{"a":1}')
    expect(init?.signal).toBeInstanceOf(AbortSignal)
    expect(init?.signal?.aborted).toBe(false)
  })

  describe("the caller's fetch and the HTTP cache", () => {
    afterEach(() => void vi.unstubAllGlobals())

    async function cacheOf(changes: Partial<AttemptRequest>): Promise<RequestInit | undefined> {
      let seen: RequestInit | undefined
      await attempt(async (_input, init) => {
        seen = init
        return new Response('{}')
      }, changes)
      return seen
    }

    test.each(['GET', 'HEAD'])(
      '%s is sent with `cache: no-store`, because a cached list is no evidence',
      async (method) => {
        expect(await cacheOf({ method, body: undefined })).toHaveProperty('cache', 'no-store')
      },
    )

    test('a POST sends no cache mode, because no cache responds to it', async () => {
      expect(await cacheOf({})).not.toHaveProperty('cache')
    })

    test('a platform whose Request lacks cache modes gets none, because it may throw', async () => {
      vi.stubGlobal(
        'Request',
        class {
          constructor(url: string) {
            Object.assign(this, { url, headers: new Headers(), clone: () => this })
          }
        },
      )
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
      expect(inherits).toEqual([request.url, ...own, String(own.includes(name))])
    } finally {
      Reflect.deleteProperty(Object.prototype, name)
    }
  })

  const text = (): (() => Promise<string>) => async () => '{}'

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', '{"id":"ord_1"}'],
    ['an object that only has a status', { status: 201, ok: true, json: async () => ({}) }],
    ['an object without headers', { status: 201, text: text() }],
    ['headers as a plain object', { status: 201, headers: { a: 'b' }, text: text() }],
    ['an object without status', { headers: new Headers(), text: text() }],
    ["the standard's network error", Response.error()],
  ] as [string, unknown][])(
    "a caller's fetch that returns %s has failed, and proves nothing",
    async (_what, returned) => {
      const result = await attempt(async () => returned)
      expect(result).toEqual({ kind: 'failed', unsent: false, closed: false, detail: { name: 'TypeError' } })
    },
  )

  test('a response may lack a stream, and its size still counts', async () => {
    const own = (text: string): object => streamless(async () => text)
    expect(await attempt(async () => own('x'.repeat(1000)))).toMatchObject({ text: 'x'.repeat(1000) })
    expect(await attempt(async () => own('x'.repeat(1001)))).toMatchObject({ text: '', problem: 'too_large' })
  })

  test('a response without a stream that is lost is truncated', async () => {
    const own = streamless(() => Promise.reject(new Error('lost')))
    expect(await attempt(async () => own)).toMatchObject({ kind: 'answer', status: 201, problem: 'cut' })
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

  test.each([
    [
      'throws',
      () => {
        throw new TypeError('Failed to fetch')
      },
    ],
    ['rejects', () => Promise.reject(new TypeError('Failed to fetch'))],
  ])(
    "a caller's fetch that %s has failed, proves nothing, and is named with its place",
    async (_how, fetch) => {
      const frames = expect.stringMatching(/^ +at .*transport\.test\.ts:\d+:\d+/)
      expect(await attempt(fetch)).toEqual({
        kind: 'failed',
        unsent: false,
        closed: false,
        detail: { name: 'TypeError', frames },
      })
    },
  )

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
      expect(result).toEqual({
        kind: 'failed',
        unsent: false,
        closed,
        detail: { name: 'Error', code, ...(syscall && { syscall }) },
      })
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
    ['undefined', undefined],
    ['null', null],
    ['a text', 'secret'],
    ['a number', 7],
    ['a symbol', Symbol('secret')],
    ['an object', { secret: 1 }],
    ['a ring of causes', ring],
    ['a cause that throws when it is looked at', getters],
    ['what throws whenever it is looked at', hostile],
    ['names that are none', { name: 'Bearer secret', code: 'sk live', syscall: 'GET /secret' }],
    ['names that are no texts', { name: 1, code: 2, syscall: 3 }],
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
  test.each([
    ['a response', () => Promise.resolve(new Response('{}'))],
    ['a response that cannot be cancelled', () => Promise.resolve({ body: { cancel: 7 } })],
    ['nothing', () => Promise.resolve(undefined)],
    ['a failure', () => Promise.reject(new Error('late'))],
  ])('a fetch that ignores its signal may return %s too late', async (_what, finish) => {
    const runtime = fakeRuntime()
    let release: () => void = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const pending = attempt(() => released.then((): unknown => finish()), {}, runtime)
    await runtime.advance(5000)
    expect(await pending).toEqual({ kind: 'timeout' })
    release()
    await runtime.settle()
    expect(unhandled).toEqual([])
  })

  test('the body of a late response is cancelled', async () => {
    const runtime = fakeRuntime()
    const cancel = vi.fn()
    let release: (response: Response) => void = () => {}
    const late = new Promise((resolve) => {
      release = resolve
    })
    const pending = attempt(() => late, {}, runtime)
    await runtime.advance(5000)
    await pending
    release(new Response(streamOf({ cancel })))
    await runtime.settle()
    expect(cancel).toHaveBeenCalledOnce()
  })

  test.each([
    ['a body that never comes', () => new Response(streamOf({ pull: never }), { status: 201 })],
    [
      'a body that cannot even be cancelled',
      () => new Response(streamOf({ pull: never, cancel: never }), { status: 201 }),
    ],
  ])('a fetch that ignores its signal does not delay the timeout of %s', async (_what, answer) => {
    const runtime = fakeRuntime()
    const pending = attempt(async () => answer(), {}, runtime)
    await runtime.advance(5000)
    expect(await pending).toMatchObject({ kind: 'answer', status: 201, problem: 'timeout' })
    expect(runtime.timers).toBe(0)
  })
})

describe('a caller who gives up at any moment after the answer', () => {
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
    expect(await attempt(async () => ({ ...streamless(never), body }))).toMatchObject({
      kind: 'answer',
      status: 201,
      problem: 'cut',
    })
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
      const response = new Response('{"a":1}', { headers: { 'content-length': length } })
      const result = await attempt(async () => response)
      expect(result).toMatchObject({ kind: 'answer', text: '{"a":1}' })
      expect(result).toHaveProperty('problem', undefined)
    },
  )

  test('a body with the text "interrupted" is an ordinary body', async () => {
    expect(await attempt(async () => new Response('interrupted'))).toMatchObject({ text: 'interrupted' })
  })
})

test('an attempt leaves no timer and no listener, however it ends', async () => {
  const ends: (() => unknown)[] = [
    async () => new Response('{}'),
    async () => new Response('', { status: 302 }),
    async () => new Response('x'.repeat(5000)),
    () => Promise.reject(new Error('x')),
    throwing('x'),
    async () => undefined,
  ]
  for (const end of ends) {
    const runtime = fakeRuntime()
    const { signal } = new AbortController()
    await attempt(end, { signal }, runtime)
    expect([runtime.timers, getEventListeners(signal, 'abort')]).toEqual([0, []])
  }
})

test('a fetch that is patched after the client was created is used', async () => {
  const original = globalThis.fetch
  const transport = sendOver(kyTransport(), fakeRuntime())
  try {
    globalThis.fetch = async () => new Response('patched')
    expect(await transport(request)).toMatchObject({ text: 'patched' })
  } finally {
    globalThis.fetch = original
  }
})

test('the length of a compressed body is ignored if the browser hides its encoding', async () => {
  // CORS lets a page see content-length, but not content-encoding.
  const headers = { 'content-length': '20' }
  const response = new Response('x'.repeat(1_000_000), { headers })
  expect(await attempt(async () => response)).toMatchObject({ kind: 'answer', problem: 'too_large' })
})

describe('a transport of the application', () => {
  const over = (transport: Transport): Promise<AttemptResult> => sendOver(transport, fakeRuntime())(request)
  const refused = Object.assign(new Error('secret'), { code: 'ECONNREFUSED', syscall: 'connect' })
  const reject = (): Promise<never> => Promise.reject(refused)

  test.each<[string, Transport, unsent: unknown]>([
    ['without whyUnsent', { send: reject }, false],
    ['with whyUnsent', { send: reject, whyUnsent: () => 'unreachable' }, 'unreachable'],
    ['with a throwing whyUnsent', { send: reject, whyUnsent: throwing('secret') }, false],
  ])('a failure of a custom transport %s proves what whyUnsent returns', async (_what, transport, unsent) => {
    const detail = { name: 'Error', code: 'ECONNREFUSED', syscall: 'connect' }
    expect(await over(transport)).toEqual({ kind: 'failed', unsent, closed: false, detail })
  })

  const throws = (): never => {
    throw refused
  }
  test.each([
    ['rejects', reject],
    ['throws', throws],
  ])(
    "a custom transport's error proves nothing once the response has begun, if its read %s",
    async (_how, read) => {
      const send = async () => ({ status: 201, headers: new Headers(), read, discard: () => {} })
      expect(await over({ send, whyUnsent: () => 'unreachable' })).toMatchObject({
        kind: 'answer',
        status: 201,
        problem: 'cut',
      })
    },
  )

  test.each([Number.NaN, 201.5, '201', undefined])(
    'a custom transport that returns the status %o has failed, which proves nothing',
    async (status) => {
      const discard = vi.fn()
      const read = vi.fn()
      const response = { status: status as number, headers: new Headers(), read, discard }
      const result = await over({ send: async () => response, whyUnsent: () => 'unreachable' })
      expect(result).toMatchObject({ kind: 'failed', unsent: false, detail: { name: 'TypeError' } })
      expect([read, discard].map(({ mock }) => mock.calls.length)).toEqual([0, 1])
    },
  )

  test("a custom transport's endless body does not keep the caller waiting", async () => {
    const runtime = fakeRuntime()
    const send = async () => ({ status: 201, headers: new Headers(), read: never, discard: () => {} })
    const pending = sendOver({ send }, runtime)(request)
    await runtime.advance(5200)
    expect(await pending).toMatchObject({ kind: 'answer', status: 201, text: '', problem: 'timeout' })
    expect(runtime.timers).toBe(0)
  })

  test("a custom transport's body is read up to the limit of its status, and not for a redirect", async () => {
    const read = vi.fn(async () => ({ text: '{}', problem: undefined }))
    const discard = vi.fn()
    const send = (status: number) => async () => ({ status, headers: new Headers(), read, discard })
    expect(await over({ send: send(200) })).toMatchObject({ kind: 'answer', status: 200, text: '{}' })
    expect(await over({ send: send(500) })).toMatchObject({ kind: 'answer', status: 500 })
    for (const status of [0, 307])
      expect(await over({ send: send(status) })).toMatchObject({ kind: 'redirect', status })
    expect(read.mock.calls).toEqual([[request.maxBytes], [MAX_ERROR_BYTES]])
    expect(discard).toHaveBeenCalledTimes(2)
  })
})
