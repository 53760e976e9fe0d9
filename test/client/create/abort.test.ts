import { getEventListeners } from 'node:events'
import {
  type ClientOptions,
  CustomerOrderingError,
  MemoryStore,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import { describe, expect, it } from 'vitest'
import { clientOver } from '../../support/client.ts'
import { type Answer, hang, json, problem } from '../../support/fake-fetch.ts'
import { type FakeRuntime, fakeRuntime } from '../../support/runtime.ts'

const order = { id: 'ord_1', status: 'pending', amount: 250 }
const service = {
  productId: 'svc_1',
  amount: 5,
  currency: 'EUR',
  minQuantity: 1,
  maxQuantity: 9,
  stepQuantity: 1,
}

/** Responds to every endpoint that the calls read. */
const good = ({ method, url }: { method: string; url: URL }): Answer => {
  if (method === 'POST') return json(order, 201)
  if (url.pathname === '/v1/balance') return { amount: 1, currency: 'EUR' }
  if (url.pathname === '/v1/services') return url.searchParams.has('offset') ? [] : [service]
  return url.pathname.includes('services') ? service : order
}

const never: StandardSchemaV1 = {
  '~standard': { version: 1, vendor: 'test', validate: () => new Promise<never>(() => {}) },
}

type Options = { signal: AbortSignal }
type Client = ReturnType<typeof clientOver>['client']

/** Every call that takes a signal and sends. */
const calls: Record<string, (client: Client, options: Options) => Promise<unknown>> = {
  'orders.retrieve': (client, options) => client.orders.retrieve('ord_1', options),
  'services.retrieve': (client, options) => client.services.retrieve('svc_1', options),
  'balance.retrieve': (client, options) => client.balance.retrieve(options),
  'list() awaited': (client, options) => client.services.list({}, options),
  'list() iterated': async (client, options) => {
    for await (const item of client.services.list({}, options)) expect(item).toBeDefined()
  },
  'orders.waitFor': (client, options) => client.orders.waitFor('ord_1', { until: () => true, ...options }),
  request: (client, options) => client.request({ method: 'GET', path: '/v1/balance' }, options),
  'request that may charge': (client, options) =>
    client.request({ method: 'POST', path: '/v1/orders', body: {} }, options),
  'orders.create': (client, options) =>
    client.orders.create({ serviceId: 'svc_1', target: '@x', quantity: 1 }, options),
}

const stalled = (): Response =>
  new Response(
    new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{"amount":')) }),
    { status: 200 },
  )

/** Everything that a call may wait for when its signal fires. */
const waits: [
  what: string,
  answer: (request: Parameters<typeof good>[0], count: number) => Answer,
  options?: ClientOptions,
][] = [
  ['the API key', good, { apiKey: () => new Promise(() => {}) }],
  ['the answer', () => hang],
  ['the body', stalled],
  ['a backoff', () => problem(503)],
  ['a wait that the service asked for', () => problem(429, 'slow', { 'retry-after': '60' })],
  ['a fetch that ignores its signal', good, { fetch: () => new Promise(() => {}) }],
]

/** Runs a call until it waits, fires its signal, and returns the result. */
async function abortAt(
  runtime: FakeRuntime,
  start: (signal: AbortSignal) => Promise<unknown>,
): Promise<{ error: unknown; reason: Error; signal: AbortSignal; listenersBefore: number }> {
  const controller = new AbortController()
  const { signal } = controller
  const reason = new Error('the caller is gone')
  let settled = false
  const ended = start(signal).then(
    () => 'succeeded',
    (error: unknown) => error,
  )
  void ended.then(() => {
    settled = true
  })
  await runtime.settle()
  expect(settled).toBe(false)
  const listenersBefore = getEventListeners(signal, 'abort').length
  controller.abort(reason)
  return { error: await ended, reason, signal, listenersBefore }
}

describe.each(Object.entries(calls))('%s', (name, call) => {
  // Skip the backoff for a POST without a key, which is not repeated after a 503.
  const its = waits.filter(([what]) => name !== 'request that may charge' || what !== 'a backoff')

  it.each(its)(
    'the call ends immediately when its signal fires while it waits for %s',
    async (_what, answer, options = {}) => {
      const runtime = fakeRuntime()
      const { client } = clientOver(answer, options, runtime)
      const { error, reason, signal, listenersBefore } = await abortAt(runtime, (own) =>
        call(client, { signal: own }),
      )
      expect(error).toBeInstanceOf(CustomerOrderingError)
      expect(error).toMatchObject({ code: 'aborted', cause: reason })
      expect(listenersBefore).toBeGreaterThan(0)
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
      expect(runtime.timers).toBe(0)
    },
  )

  it('the call sends nothing if its signal has already fired', async () => {
    const { client, requests, runtime } = clientOver(good)
    const signal = AbortSignal.abort(new Error('early'))
    const pending = call(client, { signal })
    await expect(pending).rejects.toMatchObject({
      code: 'aborted',
      attempts: 0,
      charged: 'no',
      cause: signal.reason,
    })
    expect(requests).toHaveLength(0)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    expect(runtime.timers).toBe(0)
  })

  it('a successful call leaves no listener and no timer behind, even after a retry', async () => {
    const { signal } = new AbortController()
    for (const failures of [0, 1]) {
      const { client, runtime } = clientOver((request, count) =>
        count <= failures ? problem(429, 'slow', { 'retry-after': '1' }) : good(request),
      )
      await call(client, { signal })
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
      // Old records are removed in the background after an order.
      await runtime.settle()
      expect(runtime.timers).toBe(0)
    }
  })

  it('a failed call leaves no listener and no timer behind', async () => {
    const { signal } = new AbortController()
    const { client, runtime } = clientOver(() => problem(400))
    await expect(call(client, { signal })).rejects.toMatchObject({ code: 'bad_request' })
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    expect(runtime.timers).toBe(0)
  })
})

describe('an abort', () => {
  it.each([
    ['orders.retrieve'],
    ['services.retrieve'],
    ['balance.retrieve'],
    ['list() awaited'],
    ['orders.waitFor'],
  ] as const)("an abort of %s ends the wait for a caller's schema that never resolves", async (name) => {
    const runtime = fakeRuntime()
    const { client } = clientOver(
      good,
      { schemas: { order: never, service: never, balance: never } },
      runtime,
    )
    const { error, reason, signal } = await abortAt(
      runtime,
      (own) => calls[name]?.(client, { signal: own }) ?? Promise.resolve(),
    )
    expect(error).toMatchObject({ code: 'aborted', cause: reason, attempts: 1 })
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    expect(runtime.timers).toBe(0)
  })

  it("totalTimeout ends the wait for a caller's schema that never resolves", async () => {
    const { client, runtime } = clientOver(good, { schemas: { balance: never }, totalTimeout: 700 })
    await expect(client.balance.retrieve()).rejects.toMatchObject({
      code: 'timeout',
      deadline: 'total',
      attempts: 1,
    })
    expect(runtime.monotonic()).toBe(700)
    expect(runtime.timers).toBe(0)
  })

  it('an abort of orders.waitFor ends the wait between two polls', async () => {
    const runtime = fakeRuntime()
    const { client, requests } = clientOver(good, {}, runtime)
    const { error, reason, signal } = await abortAt(runtime, (own) =>
      client.orders.waitFor('ord_1', { until: () => false, signal: own }),
    )
    expect(error).toMatchObject({
      code: 'aborted',
      cause: reason,
      attempts: 1,
      orderId: 'ord_1',
      charged: 'no',
    })
    expect(requests).toHaveLength(1)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    expect(runtime.timers).toBe(0)
  })

  it('an abort or a timeout of orders.waitFor ends the wait for an `until` that never resolves', async () => {
    const runtime = fakeRuntime()
    const until = (): Promise<boolean> => new Promise(() => {})
    const { client } = clientOver(good, {}, runtime)
    const { error, reason, signal } = await abortAt(runtime, (own) =>
      client.orders.waitFor('ord_1', { until, signal: own }),
    )
    expect(error).toMatchObject({ code: 'aborted', cause: reason, orderId: 'ord_1' })
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    runtime.auto = true
    const late = client.orders.waitFor('ord_1', { until, timeout: 5000 })
    await expect(late).rejects.toMatchObject({ code: 'timeout', deadline: 'total', attempts: 1 })
    expect(runtime.timers).toBe(0)
  })

  it("an abort of orders.create during a caller's schema reports the order as charged", async () => {
    const runtime = fakeRuntime()
    const { client } = clientOver(good, { schemas: { order: never } }, runtime)
    const request = { serviceId: 'svc_1', target: '@x', quantity: 1, metadata: { externalOrderId: 'e1' } }
    const { error, reason, signal } = await abortAt(runtime, (own) =>
      client.orders.create(request, { signal: own }),
    )
    const facts = {
      charged: 'yes',
      orderId: 'ord_1',
      externalOrderId: 'e1',
      idempotencyKey: expect.any(String),
    }
    expect(error).toMatchObject({ code: 'aborted', cause: reason, attempts: 1, ...facts })
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    runtime.auto = true
    const late = client.orders.create(request, { totalTimeout: 900 })
    const message = expect.stringContaining('schemas.order did not finish within totalTimeout.')
    await expect(late).rejects.toMatchObject({ code: 'timeout', attempts: 0, message, ...facts })
    expect(runtime.timers).toBe(0)
  })

  it('an abort ends the request itself', async () => {
    const runtime = fakeRuntime()
    const { client, aborted } = clientOver(() => hang, {}, runtime)
    await abortAt(runtime, (signal) => client.balance.retrieve({ signal }))
    await runtime.settle()
    expect(aborted()).toBe(1)
  })

  it('an aborted create request reports an unknown charge, and an aborted read reports none', async () => {
    for (const [name, charged] of [
      ['balance.retrieve', 'no'],
      ['request', 'no'],
      ['request that may charge', 'unknown'],
      ['orders.create', 'unknown'],
    ] as const) {
      const runtime = fakeRuntime()
      const { client } = clientOver(() => hang, {}, runtime)
      const { error } = await abortAt(
        runtime,
        (signal) => calls[name]?.(client, { signal }) ?? Promise.resolve(),
      )
      expect(error).toMatchObject({ code: 'aborted', charged, attempts: 1 })
    }
  })

  it.each(['get', 'insert'] as const)(
    'an abort of orders.create ends the wait for a store whose %s hangs',
    async (method) => {
      const runtime = fakeRuntime({ auto: true })
      const store = new MemoryStore()
      Object.defineProperty(store, method, { value: () => new Promise(() => {}) })
      const { client, requests } = clientOver(good, { store }, runtime)
      const controller = new AbortController()
      const reason = new Error('gone')
      const { signal } = controller
      const placing = client.orders.create({ serviceId: 'svc_1', target: '@x', quantity: 1 }, { signal })
      controller.abort(reason)
      await expect(placing).rejects.toMatchObject({ code: expect.stringMatching(/^(aborted|store)$/) })
      expect(runtime.monotonic()).toBeLessThan(2000)
      expect(requests).toHaveLength(0)
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    },
  )
})
