import { describe, expect, onTestFinished, test } from 'vitest'
import { ConfigurationError } from '../../../src/errors/classes.ts'
import { type Hooks, Reporter } from '../../../src/hooks.ts'
import type { AttemptRequest, AttemptResult, Send } from '../../../src/http/attempt.ts'
import {
  askCredential,
  type Call,
  type CallSettings,
  type Connection,
  type Credentials,
  type Judgement,
  perform,
} from '../../../src/http/call.ts'
import { Deadline, Interruption } from '../../../src/http/deadline.ts'
import { READ_ITEM } from '../../../src/http/request.ts'
import { callSettings } from '../../support/order-context.ts'
import { type FakeRuntime, fakeRuntime } from '../../support/runtime.ts'

const answer = (status: number, body: unknown = {}, headers: Record<string, string> = {}): AttemptResult => ({
  kind: 'answer',
  status,
  headers: new Headers(headers),
  text: JSON.stringify(body),
})
const FAILED = { kind: 'failed', unsent: false } as const
const RESET = { name: 'Error', code: 'ECONNRESET', syscall: 'read' }
const lost: AttemptResult = { ...FAILED, closed: true, detail: RESET }

const settings = callSettings({ maxRetries: 4 })

interface Setting {
  readonly runtime?: FakeRuntime
  readonly credentials?: Credentials
  readonly hooks?: Hooks
  readonly headers?: Record<string, string>
  readonly settings?: Partial<CallSettings>
  readonly call?: Partial<Call<string>>
}

const replay: Judgement<string> = { next: 'retry', pace: 'replay' }
const retry: Judgement<string> = { next: 'retry', pace: 'backoff' }
const literal: Credentials = { rotates: false, get: () => 'key' }

/** A success ends the call, a 4xx stops it, and everything else is retried. */
const judge = (result: AttemptResult): Judgement<string> => {
  if (result.kind === 'answer' && result.status < 300) return { next: 'done', value: result.text }
  if (result.kind === 'answer' && result.status < 500 && result.status !== 429) return { next: 'stop' }
  return { next: 'retry', pace: result.kind === 'failed' && result.closed ? 'now' : 'backoff' }
}

/** One call over a transport that returns these results in turn, then the last one forever. */
function run(
  results: readonly (AttemptResult | ((request: AttemptRequest) => Promise<AttemptResult>))[],
  given: Setting = {},
) {
  const runtime = given.runtime ?? fakeRuntime({ auto: true })
  const requests: AttemptRequest[] = []
  /** The time of each request. */
  const sentAt: number[] = []
  const transport: Send = async (request) => {
    const next = results[Math.min(requests.length, results.length - 1)]
    requests.push(request)
    sentAt.push(runtime.monotonic())
    if (next === undefined) throw new Error('no result')
    return typeof next === 'function' ? await next(request) : next
  }
  const merged = { ...settings, ...given.settings }
  const connection: Connection = {
    baseUrl: 'https://api.example.com/base',
    send: transport,
    mayResend: false,
    credentials: given.credentials ?? literal,
    headers: given.headers ?? {},
    runtime,
    reporter: new Reporter(given.hooks ?? {}, undefined, 'off'),
  }
  const ending = perform<string>(connection, {
    endpoint: { operation: 'orders.create', method: 'POST' },
    path: '/v1/orders',
    ...READ_ITEM,
    attemptsBefore: 0,
    credential: undefined,
    beforeSend: undefined,
    isLate: undefined,
    settings: merged,
    deadline: new Deadline(runtime, merged.totalTimeout, merged.signal),
    callId: 'call_1',
    maxBytes: 1000,
    judge,
    ...given.call,
  })
  return { ending, requests, runtime, sentAt }
}
type Performed = ReturnType<typeof run>

const endOf = async (performed: Performed): Promise<string> => (await performed.ending).end

test('a request sends no content type, key or authorization that it lacks, nor polluted ones', async () => {
  onTestFinished(() => {
    delete (Object.prototype as { idempotencyKey?: string }).idempotencyKey
  })
  Object.assign(Object.prototype, { idempotencyKey: 'polluted' })
  const { ending, requests } = run([answer(404)], { credentials: { rotates: false, get: () => null } })
  await ending
  // The key must be absent, not undefined, which some platforms send as text.
  expect(requests.map(({ headers }) => headers)).toStrictEqual([{ accept: 'application/json' }])
  expect(requests[0]?.url).toBe('https://api.example.com/base/v1/orders')
})

test("a request has the client's headers, overridden by the call's, overridden by its own", async () => {
  const { ending, requests } = run([answer(200)], {
    headers: { a: 'client', b: 'client', authorization: 'client', accept: 'client' },
    settings: { headers: { b: 'call', c: 'call', 'idempotency-key': 'call' } },
    call: { idempotencyKey: 'idem_1' },
  })
  await ending
  expect(requests[0]?.headers).toEqual({
    a: 'client',
    b: 'call',
    c: 'call',
    accept: 'application/json',
    'idempotency-key': 'idem_1',
    authorization: 'Bearer key',
  })
})

describe('how a call ends', () => {
  test("a call ends with the judge's own error after one attempt", async () => {
    const error = new ConfigurationError('x')
    const performed = run([answer(400)], { call: { judge: () => ({ next: 'stop', error }) } })
    expect(await performed.ending).toMatchObject({ end: 'stopped', error })
    expect(performed.requests).toHaveLength(1)
  })

  test('a call ends if the next attempt would begin after the deadline', async () => {
    const performed = run([answer(503, {}, { 'retry-after': '120' })])
    expect(await performed.ending).toMatchObject({ end: 'deadline', trail: { last: { status: 503 } } })
    expect(performed.requests).toHaveLength(1)
    expect(performed.runtime.monotonic()).toBe(0)
  })

  test('a call ends before a send if the signal has fired or the time is over', async () => {
    for (const [changes, end] of [
      [{ signal: AbortSignal.abort() }, 'aborted'],
      [{ totalTimeout: 0 }, 'deadline'],
    ] as const) {
      let asked = 0
      const credentials: Credentials = { rotates: true, get: () => `k${++asked}` }
      const { ending, requests } = run([answer(200)], { settings: changes, credentials })
      expect(await ending).toMatchObject({ end, trail: { attempts: 0, counts: { retries: 0 } } })
      expect([asked, requests]).toEqual([0, []])
    }
  })

  const bodyAborted: AttemptResult = { ...answer(201), problem: 'aborted' } as AttemptResult
  test.each<[when: string, AttemptResult, Judgement<string>, end: string]>([
    ['before a response that would be repeated', { kind: 'aborted' }, replay, 'aborted'],
    ['before a response that would not be', { kind: 'aborted' }, { next: 'stop' }, 'aborted'],
    ['during a body that would be requested again', bodyAborted, replay, 'aborted'],
    ['during a body that would not be', bodyAborted, { next: 'stop' }, 'aborted'],
    ['after the judge found a value', bodyAborted, { next: 'done', value: 'x' }, 'done'],
  ])(
    'a call ends when the signal fires, whatever the judge decides, unless it has a value: %s',
    async (_when, result, judgement, end) => {
      const performed = run([result], { call: { judge: () => judgement } })
      expect(await endOf(performed)).toBe(end)
      expect(performed.requests).toHaveLength(1)
    },
  )

  test('a call knows whether the last attempt had its full time', async () => {
    const cut = async (settings: Partial<CallSettings>): Promise<boolean> =>
      (await run([{ kind: 'timeout' }], { settings: { maxRetries: 0, ...settings } }).ending).trail
        .cutByDeadline
    expect(await cut({ timeout: 1000, totalTimeout: 5000 })).toBe(false)
    expect(await cut({ timeout: 5000, totalTimeout: 1000 })).toBe(true)
    expect(await cut({ timeout: 5000, totalTimeout: 5000 })).toBe(true)
  })
})

test('the wait after a closed socket is zero, then a random part of the backoff', async () => {
  const { ending, sentAt } = run([lost, lost, answer(500), answer(200)])
  expect((await ending).end).toBe('done')
  const [, first, ...waits] = sentAt.map((at, index) => at - (sentAt[index - 1] ?? 0))
  expect(first).toBe(0)
  for (const [index, most] of [500, 1000].entries()) {
    expect(waits[index]).toBeGreaterThan(0)
    expect(waits[index]).toBeLessThan(most)
  }
})

test('the wait is at least what the service requires, in seconds or as a date', async () => {
  const runtime = fakeRuntime({ auto: true })
  runtime.jump(500)
  const date = new Date(Math.ceil((runtime.now() + 20_000) / 1000) * 1000).toUTCString()
  const { ending, sentAt } = run(
    [answer(429, {}, { 'retry-after': '10' }), answer(503, {}, { 'retry-after': date }), answer(200)],
    { runtime },
  )
  expect((await ending).end).toBe('done')
  expect(sentAt[1]).toBe(10_000)
  expect(sentAt[2]).toBe(20_500)
})

describe('the API key', () => {
  const rotating = (...keys: string[]): Credentials & { readonly asked: () => number } => {
    let count = 0
    return { rotates: true, get: () => keys[count++ % keys.length] ?? '', asked: () => count }
  }
  const used = ({ requests }: Performed): unknown[] => requests.map(({ headers }) => headers['authorization'])

  test.each([
    ['k1', ['Bearer k1', 'Bearer k2'], ['k1', 'k2']],
    [null, [undefined, 'Bearer k2'], ['k2']],
  ])(
    'the API key %j, already requested, is used for the first attempt only',
    async (credential, sent, secrets) => {
      const credentials = rotating('k2')
      const performed = run([answer(500), answer(200)], { credentials, call: { credential } })
      const { trail } = await performed.ending
      expect(used(performed)).toEqual(sent)
      expect([...trail.secrets]).toEqual(secrets)
      expect(credentials.asked()).toBe(1)
    },
  )

  test('after a 401, the API key is requested once more, immediately', async () => {
    // Its timers never fire.
    const runtime = fakeRuntime()
    const performed = run([answer(401), answer(200)], { runtime, credentials: rotating('old', 'new') })
    expect(await endOf(performed)).toBe('done')
    expect(used(performed)).toEqual(['Bearer old', 'Bearer new'])
    expect(performed.sentAt).toEqual([0, 0])
  })

  test('the API key is requested before each other attempt if the call continues after a 401', async () => {
    const performed = run([answer(401), answer(200)], {
      credentials: rotating('old', 'new'),
      call: { judge: (_result, { attempts }) => (attempts > 1 ? { next: 'done', value: '' } : retry) },
    })
    expect(await endOf(performed)).toBe('done')
    expect(performed.sentAt[1]).toBeGreaterThan(0)
  })

  test.each([
    ['a 401 if it is a literal', 401, { credentials: literal }],
    ['a 401 if no retries are wanted', 401, { credentials: rotating('a', 'b'), settings: { maxRetries: 0 } }],
    ['a 403', 403, { credentials: rotating('a', 'b') }],
  ] as const)('is not asked for again after %s', async (_why, status, given) => {
    const performed = run([answer(status)], given)
    expect(await endOf(performed)).toBe('stopped')
    expect(performed.requests).toHaveLength(1)
  })

  test('a missing API key is distinct from a failure to obtain one', async () => {
    const deadline = new Deadline(fakeRuntime(), 1000, undefined)
    const ask = (get: Credentials['get']): unknown => askCredential({ rotates: true, get }, deadline)
    expect(await ask(() => 'k')).toBe('k')
    expect(await ask(async () => 'k')).toBe('k')
    expect(await ask(() => null)).toBeNull()
    for (const thrown of [undefined, null, 'text', new Interruption('aborted')]) {
      expect(await ask(() => Promise.reject(thrown))).toEqual({ error: thrown })
    }
  })
})

test('the check before a send gets the API key that would be sent, and can stop the request', async () => {
  const seen: unknown[] = []
  const credentials: Credentials = { rotates: true, get: () => `k${seen.length + 1}` }
  const beforeSend = async (credential: string | null) => seen.push(credential) < 2
  const performed = run([answer(500)], { credentials, call: { beforeSend } })
  expect(await performed.ending).toMatchObject({ end: 'stopped', trail: { attempts: 1 } })
  expect(seen).toEqual(['k1', 'k2'])
  expect(performed.requests).toHaveLength(1)
})

test.each([
  ['aborted', async (controller: AbortController): Promise<void> => controller.abort()],
  ['deadline', async (_: AbortController, runtime: FakeRuntime): Promise<void> => runtime.advance(120_000)],
] as const)('a check before a send that outlasts the call ends it (%s)', async (end, finish) => {
  const runtime = fakeRuntime()
  const controller = new AbortController()
  const asked: string[] = []
  const performed = run([answer(200)], {
    runtime,
    settings: { signal: controller.signal },
    hooks: { onRequest: ({ operation }) => void asked.push(operation) },
    call: { beforeSend: async () => finish(controller, runtime).then(() => end === 'deadline') },
  })
  const trail = { attempts: 0, counts: { retries: 0 }, cutByDeadline: false, last: undefined }
  expect(await performed.ending).toMatchObject({ end, trail })
  expect([performed.requests, asked]).toEqual([[], []])
})

describe('events', () => {
  /** All events of a call, as name and fields. */
  async function eventsOf(results: AttemptResult[], given: Setting = {}): Promise<[string, object][]> {
    const events: [string, object][] = []
    const tell = (name: string) => (event: object) => {
      expect(Object.isFrozen(event)).toBe(true)
      events.push([name, event])
    }
    const hooks = { onRequest: tell('request'), onResponse: tell('response'), onRetry: tell('retry') }
    await run(results, { ...given, hooks }).ending
    return events
  }
  const call = { callId: 'call_1', operation: 'orders.create', method: 'POST', path: '/v1/orders' }

  test('events arrive in order, with the facts known at that time', async () => {
    const events = await eventsOf(
      [answer(429, {}, { 'retry-after': '2', 'x-request-id': 'req_1' }), lost, answer(200)],
      { call: { query: '?secret=1', body: '{"secret":1}', idempotencyKey: 'idem_1' } },
    )
    const base = { ...call, idempotencyKey: 'idem_1' }
    const answered = { outcome: 'answer', durationMs: 0 }
    expect(events).toEqual([
      ['request', { ...base, attempt: 1 }],
      ['response', { ...base, attempt: 1, ...answered, status: 429, requestId: 'req_1' }],
      ['retry', { ...base, attempt: 1, reason: 'backoff', delayMs: 2000, status: 429, retryAfter: 2000 }],
      ['request', { ...base, attempt: 2 }],
      ['response', { ...base, attempt: 2, outcome: 'failed', failure: 'ECONNRESET', durationMs: 0 }],
      ['retry', { ...base, attempt: 2, reason: 'now', delayMs: expect.any(Number) }],
      ['request', { ...base, attempt: 3 }],
      ['response', { ...base, attempt: 3, ...answered, status: 200 }],
    ])
  })

  test('events of requests have their duration', async () => {
    const runtime = fakeRuntime({ auto: true })
    const durations: number[] = []
    const hooks: Hooks = { onResponse: ({ durationMs }) => void durations.push(durationMs) }
    const slow = async () => {
      await new Promise<void>((resolve) => runtime.setTimer(resolve, 1234))
      return answer(200)
    }
    await run([slow], { runtime, hooks }).ending
    expect(durations).toEqual([1234])
  })

  test.each<[string, AttemptResult, object]>([
    // A failure without a code is named by its name.
    ['failed', { ...FAILED, closed: false, detail: { name: 'TypeError' } }, { failure: 'TypeError' }],
    ['redirect', { kind: 'redirect', status: 307, headers: new Headers() }, { status: 307 }],
    ['timeout', { kind: 'timeout' }, {}],
    ['aborted', { kind: 'aborted' }, {}],
  ])('events name the outcome %s', async (outcome, result, fields) => {
    const events = await eventsOf([result], { settings: { maxRetries: 0 } })
    expect(events[1]).toEqual(['response', { ...call, attempt: 1, outcome, durationMs: 0, ...fields }])
    expect(events).toHaveLength(2)
  })
})
