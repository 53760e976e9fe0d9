import { getEventListeners } from 'node:events'
import {
  type ClientOptions,
  CustomerOrderingError,
  MemoryStore,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import { describe, expect, it } from 'vitest'
import { errorOf } from '../../support/calls.ts'
import { type Answer, clientOver, hang, json, problem } from '../../support/client.ts'
import { type FakeRuntime, fakeRuntime } from '../../support/runtime.ts'

const order = { id: 'ord_1', status: 'pending', amount: 250 }
const quantities = { minQuantity: 1, maxQuantity: 9, stepQuantity: 1 }
const service = { productId: 'svc_1', amount: 5, currency: 'EUR', ...quantities }
const anonymous = { serviceId: 'svc_1', target: '@x', quantity: 1 }

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
  'orders.create': (client, options) => client.orders.create(anonymous, options),
}
const callOf = (name: string) => calls[name] ?? (() => Promise.resolve())

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

/** The call has left no listener on its signal, and no timer. */
function leavesNothing(signal: AbortSignal, runtime: FakeRuntime): void {
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  expect(runtime.timers).toBe(0)
}

/** Runs a call until it waits, then fires its signal. The call must end with this error. */
async function abortAt(
  runtime: FakeRuntime,
  start: (signal: AbortSignal) => Promise<unknown>,
  like: object = {},
): Promise<void> {
  const controller = new AbortController()
  const { signal } = controller
  const cause = new Error('the caller is gone')
  const ended = errorOf(start(signal))
  expect(await Promise.race([ended, runtime.settle()])).toBeUndefined()
  expect(getEventListeners(signal, 'abort').length).toBeGreaterThan(0)
  controller.abort(cause)
  const error = await ended
  expect(error).toBeInstanceOf(CustomerOrderingError)
  expect(error).toMatchObject({ code: 'aborted', cause, ...like })
  leavesNothing(signal, runtime)
}

describe.each(Object.entries(calls))('%s', (name, call) => {
  // Skip the backoff for a POST without a key, which is not repeated after a 503.
  const its = waits.filter(([what]) => name !== 'request that may charge' || what !== 'a backoff')

  it.each(its)(
    'the call ends immediately when its signal fires while it waits for %s',
    async (_what, answer, options = {}) => {
      const runtime = fakeRuntime()
      const { client } = clientOver(answer, options, runtime)
      await abortAt(runtime, (signal) => call(client, { signal }))
    },
  )

  it('the call sends nothing if its signal has already fired', async () => {
    const { client, requests, runtime } = clientOver(good)
    const signal = AbortSignal.abort(new Error('early'))
    const sentNothing = { code: 'aborted', attempts: 0, charged: 'no', cause: signal.reason }
    await expect(call(client, { signal })).rejects.toMatchObject(sentNothing)
    expect(requests).toHaveLength(0)
    leavesNothing(signal, runtime)
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
      leavesNothing(signal, runtime)
    }
  })

  it('a failed call leaves no listener and no timer behind', async () => {
    const { signal } = new AbortController()
    const { client, runtime } = clientOver(() => problem(400))
    await expect(call(client, { signal })).rejects.toMatchObject({ code: 'bad_request' })
    leavesNothing(signal, runtime)
  })
})

describe('an abort', () => {
  it.each(['orders.retrieve', 'services.retrieve', 'balance.retrieve', 'list() awaited', 'orders.waitFor'])(
    "an abort of %s ends the wait for a caller's schema that never resolves",
    async (name) => {
      const runtime = fakeRuntime()
      const schemas = { order: never, service: never, balance: never }
      const { client } = clientOver(good, { schemas }, runtime)
      await abortAt(runtime, (signal) => callOf(name)(client, { signal }), { attempts: 1 })
    },
  )

  it("totalTimeout ends the wait for a caller's schema that never resolves", async () => {
    const { client, runtime } = clientOver(good, { schemas: { balance: never }, totalTimeout: 700 })
    const late = { code: 'timeout', deadline: 'total', attempts: 1 }
    await expect(client.balance.retrieve()).rejects.toMatchObject(late)
    expect(runtime.monotonic()).toBe(700)
    expect(runtime.timers).toBe(0)
  })

  it('an abort of orders.waitFor ends the wait between two polls', async () => {
    const runtime = fakeRuntime()
    const { client, requests } = clientOver(good, {}, runtime)
    const waits = (signal: AbortSignal) => client.orders.waitFor('ord_1', { until: () => false, signal })
    await abortAt(runtime, waits, { attempts: 1, orderId: 'ord_1', charged: 'no' })
    expect(requests).toHaveLength(1)
  })

  it('an abort or a timeout of orders.waitFor ends the wait for an `until` that never resolves', async () => {
    const runtime = fakeRuntime()
    const until = (): Promise<boolean> => new Promise(() => {})
    const { client } = clientOver(good, {}, runtime)
    const waits = (signal: AbortSignal) => client.orders.waitFor('ord_1', { until, signal })
    await abortAt(runtime, waits, { orderId: 'ord_1' })
    runtime.auto = true
    const late = client.orders.waitFor('ord_1', { until, timeout: 5000 })
    await expect(late).rejects.toMatchObject({ code: 'timeout', deadline: 'total', attempts: 1 })
    expect(runtime.timers).toBe(0)
  })

  it("an abort of orders.create during a caller's schema reports the order as charged", async () => {
    const runtime = fakeRuntime()
    const { client } = clientOver(good, { schemas: { order: never } }, runtime)
    const request = { ...anonymous, metadata: { externalOrderId: 'e1' } }
    const names = { orderId: 'ord_1', externalOrderId: 'e1', idempotencyKey: expect.any(String) }
    const facts = { charged: 'yes', ...names }
    await abortAt(runtime, (signal) => client.orders.create(request, { signal }), { attempts: 1, ...facts })
    runtime.auto = true
    const late = client.orders.create(request, { totalTimeout: 900 })
    const message = expect.stringContaining('schemas.order did not finish within totalTimeout.')
    await expect(late).rejects.toMatchObject({ code: 'timeout', attempts: 0, message, ...facts })
    expect(runtime.timers).toBe(0)
  })

  it.each([
    ['balance.retrieve', 'no'],
    ['request', 'no'],
    ['request that may charge', 'unknown'],
    ['orders.create', 'unknown'],
  ])('an abort ends the request itself of %s, and reports charged %s', async (name, charged) => {
    const runtime = fakeRuntime()
    const { client, aborted } = clientOver(() => hang, {}, runtime)
    await abortAt(runtime, (signal) => callOf(name)(client, { signal }), { charged, attempts: 1 })
    await runtime.settle()
    expect(aborted()).toBe(1)
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
      const placing = client.orders.create(anonymous, { signal })
      controller.abort(reason)
      await expect(placing).rejects.toMatchObject({ code: expect.stringMatching(/^(aborted|store)$/) })
      expect(runtime.monotonic()).toBeLessThan(2000)
      expect(requests).toHaveLength(0)
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    },
  )
})
