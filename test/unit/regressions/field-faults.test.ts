import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Reporter } from '../../../src/hooks.ts'
import { sendOver } from '../../../src/http/attempt.ts'
import { perform } from '../../../src/http/call.ts'
import { Deadline } from '../../../src/http/deadline.ts'
import { failureOf } from '../../../src/http/failure.ts'
import { kyTransport } from '../../../src/http/ky-transport.ts'
import { ADDRESS_ONLY } from '../../../src/http/read.ts'
import { decide, noCounts, parseRetryAfter } from '../../../src/http/retry.ts'
import { platformRuntime } from '../../../src/runtime.ts'
import { fakeRuntime } from '../../support/runtime.ts'

/**
 * Faults that other clients shipped (the issue is named), or that this one had before its first release. Each of these
 * tests failed, or would have failed, with the code as it was.
 */
const request = { method: 'GET', url: 'https://api.example.com/', headers: {}, timeout: 1000, maxBytes: 1000 }

describe('other clients', () => {
  test('turned a long Retry-After into a hot loop, because timers hold 31 bits (Azure/azure-sdk-for-js #39130)', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    let fired = false
    platformRuntime.setTimer(() => {
      fired = true
    }, 2 ** 31)
    vi.advanceTimersByTime(24 * 24 * 3600 * 1000)
    expect(fired).toBe(false)
  })

  test('slept less than told when told to sleep for more than a minute (openai/openai-python #3799)', () => {
    const retryAfter = parseRetryAfter('90', 0)
    const situation = { pace: 'backoff', counts: noCounts, maxRetries: 1, random: 0, retryAfter } as const
    expect(decide({ ...situation, remaining: 120_000 })).toMatchObject({ wait: 90_000 })
    expect(decide({ ...situation, remaining: 60_000 })).toEqual({ stop: 'deadline' })
  })

  test('left a listener on a signal that serves many calls (openai/openai-node #1811)', async () => {
    const { signal } = new AbortController()
    const removed = vi.spyOn(signal, 'removeEventListener')
    const added = vi.spyOn(signal, 'addEventListener')
    const transport = sendOver(
      kyTransport(async () => new Response('{}')),
      fakeRuntime(),
    )
    for (let call = 0; call < 100; call++) await transport({ ...request, signal })
    expect(removed.mock.calls.length).toBe(added.mock.calls.length)
  })

  test('stopped forwarding an abort once the headers were there (anthropics/anthropic-sdk-typescript #937)', async () => {
    const controller = new AbortController()
    const body = new ReadableStream({ pull: () => controller.abort() }, { highWaterMark: 0 })
    const transport = sendOver(
      kyTransport(async () => new Response(body)),
      fakeRuntime(),
    )
    const result = await transport({ ...request, signal: controller.signal })
    expect(result).toMatchObject({ kind: 'answer', problem: 'aborted' })
  })

  test('sent a key that a polluted Object.prototype held', async () => {
    onTestFinished(() => {
      delete (Object.prototype as { idempotencyKey?: string }).idempotencyKey
    })
    const sent: unknown[] = []
    const runtime = fakeRuntime()
    const connection = {
      baseUrl: 'https://api.example.com',
      send: async ({ headers }: { headers: object }) => {
        sent.push(headers)
        return { kind: 'timeout' } as const
      },
      credentials: { rotates: false, get: () => null },
      headers: {},
      runtime,
      reporter: new Reporter({}, undefined, 'off'),
    }
    Object.assign(Object.prototype, { idempotencyKey: 'polluted' })
    await perform<never>(connection, {
      endpoint: { operation: 'balance.retrieve', method: 'GET' },
      path: '/v1/balance',
      ...ADDRESS_ONLY,
      attemptsBefore: 0,
      credential: undefined,
      beforeSend: undefined,
      isLate: undefined,
      settings: { signal: undefined, timeout: 1000, totalTimeout: 1000, maxRetries: 0, headers: {} },
      deadline: new Deadline(runtime, 1000, undefined),
      callId: 'call_1',
      maxBytes: 1000,
      judge: () => ({ next: 'stop' }),
    })
    expect(sent).toEqual([{ accept: 'application/json' }])
  })
})

describe('this client', () => {
  test('cut a message of the server before it looked for the API key, so that half of one stayed', () => {
    const secret = 'sk_live_0123456789abcdefghij'
    const error = failureOf(
      {
        kind: 'answer',
        status: 401,
        headers: new Headers(),
        text: JSON.stringify({ message: 'x'.repeat(485) + secret }),
      },
      { endpoint: { operation: 'x', method: 'GET' }, path: '/', attempts: 1, secrets: [secret], now: 0 },
    )
    expect(error.serverMessage).toBe(`${'x'.repeat(485)}[redacted]`)
  })

  test('took a Retry-After of more than twelve digits for none, and called at once', () => {
    expect(parseRetryAfter('1000000000000', 0)).toBe(1e15)
  })

  test('believed a length that says nothing about a compressed body whose encoding the browser hides', async () => {
    // CORS lets a page see content-length, but not content-encoding.
    const headers = { 'content-length': '20' }
    const fetch = async (): Promise<Response> => new Response('x'.repeat(1_000_000), { headers })
    const result = await sendOver(kyTransport(fetch), fakeRuntime())(request)
    expect(result).toMatchObject({ kind: 'answer', problem: 'too_large' })
  })

  test('lost a 201 whose body could not be read as a stream, although the order was charged', async () => {
    const response = {
      status: 201,
      ok: true,
      headers: new Headers(),
      body: undefined,
      text: async () => '{}',
    }
    const fetch = (async () => response) as unknown as typeof globalThis.fetch
    const result = await sendOver(kyTransport(fetch), fakeRuntime())(request)
    expect(result).toMatchObject({ kind: 'answer', status: 201, text: '{}' })
  })
})
