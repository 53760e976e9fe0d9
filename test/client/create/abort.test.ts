import { getEventListeners } from 'node:events'
import {
  type ClientOptions,
  type CustomerOrderingClient,
  CustomerOrderingError,
  MemoryStore,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import type { FaultAction } from 'customer-ordering-sdk/sandbox'
import { describe, expect, it } from 'vitest'
import { errorOf } from '../../support/calls.ts'
import { anonymousOrder, Lab, order } from '../../support/lab.ts'
import { fakeRuntime } from '../../support/runtime.ts'

const never: StandardSchemaV1 = {
  '~standard': { version: 1, vendor: 'test', validate: () => new Promise<never>(() => {}) },
}

type Call = (client: CustomerOrderingClient, options: { signal: AbortSignal }) => Promise<unknown>

/** Every call that takes a signal and sends. */
const calls: Record<string, Call> = {
  'orders.retrieve': ({ orders }, options) => orders.retrieve('ord_1', options),
  'services.retrieve': ({ services }, options) => services.retrieve('svc_standard', options),
  'balance.retrieve': ({ balance }, options) => balance.retrieve(options),
  'list() awaited': ({ services }, options) => services.list({}, options),
  'list() iterated': async ({ services }, options) => {
    for await (const item of services.list({}, options)) expect(item).toBeDefined()
  },
  'orders.waitFor': ({ orders }, options) => orders.waitFor('ord_1', { until: () => true, ...options }),
  request: (client, options) => client.request({ method: 'GET', path: '/v1/balance' }, options),
  'request that may charge': (client, options) => client.request({ ...POST, idempotencyKey: 'k1' }, options),
  'orders.create': ({ orders }, options) => orders.create(anonymousOrder(), options),
}
const POST = { method: 'POST', path: '/v1/orders', body: anonymousOrder() } as const
const callOf = (name: string): Call => calls[name] ?? (() => Promise.resolve())

const SLOW_DOWN = (seconds: string) =>
  ({ type: 'status', status: 429, headers: { 'retry-after': seconds } }) as const

/** Everything that a call may wait for when its signal fires. */
const waits: [what: string, fault: FaultAction | undefined, options?: ClientOptions][] = [
  ['the API key', undefined, { apiKey: () => new Promise(() => {}) }],
  ['the answer', { type: 'stall' }],
  ['the body', { type: 'stallBody' }],
  ['a backoff', { type: 'status', status: 503 }],
  ['a wait that the service asked for', SLOW_DOWN('60')],
  ['a fetch that ignores its signal', undefined, { fetch: () => new Promise(() => {}) }],
]

/** A service with an order to read. Its time stands still unless `auto` is true. */
function serviceWith(fault?: FaultAction, auto = false): Lab {
  const lab = new Lab({}, fakeRuntime({ auto }))
  lab.sandbox.addOrder({ id: 'ord_1' })
  if (fault !== undefined) lab.fault(fault, 'always')
  return lab
}

/** The call has left no listener on its signal, and no timer. */
function leavesNothing(signal: AbortSignal, { runtime }: Lab): void {
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  expect(runtime.timers).toBe(0)
}

/** Runs a call until it waits, then fires its signal. The call must end with this error. */
async function abortAt(lab: Lab, start: (signal: AbortSignal) => Promise<unknown>, like: object = {}) {
  const controller = new AbortController()
  const { signal } = controller
  const cause = new Error('the caller is gone')
  const ended = errorOf(start(signal))
  expect(await Promise.race([ended, lab.runtime.settle()])).toBeUndefined()
  expect(getEventListeners(signal, 'abort').length).toBeGreaterThan(0)
  controller.abort(cause)
  const error = await ended
  expect(error).toBeInstanceOf(CustomerOrderingError)
  expect(error).toMatchObject({ code: 'aborted', cause, ...like })
  leavesNothing(signal, lab)
}

describe.each(Object.entries(calls))('%s', (_name, call) => {
  it.each(waits)(
    'the call ends immediately when its signal fires while it waits for %s',
    async (_what, fault, options) => {
      const lab = serviceWith(fault)
      await abortAt(lab, (signal) => call(lab.client(options), { signal }))
    },
  )

  it('the call sends nothing if its signal has already fired', async () => {
    const lab = serviceWith()
    const signal = AbortSignal.abort(new Error('early'))
    const sentNothing = { code: 'aborted', attempts: 0, charged: 'no', cause: signal.reason }
    await expect(call(lab.client(), { signal })).rejects.toMatchObject(sentNothing)
    expect(lab.sandbox.requests).toHaveLength(0)
    leavesNothing(signal, lab)
  })

  it('the call ends as aborted if its signal fires while a hook hears of the response', async () => {
    const lab = serviceWith({ type: 'status', status: 503 })
    const controller = new AbortController()
    const hooks = { onResponse: () => controller.abort() }
    const ended = errorOf(call(lab.client({ hooks }), { signal: controller.signal }))
    expect(await ended).toMatchObject({ code: 'aborted', attempts: 1 })
  })

  it('a call leaves no listener and no timer behind, whether it succeeds, retries or fails', async () => {
    const { signal } = new AbortController()
    for (const status of [undefined, 429, 400]) {
      const lab = serviceWith(undefined, true)
      if (status !== undefined) lab.fault({ ...SLOW_DOWN('1'), status })
      const called = call(lab.client(), { signal })
      if (status === 400) await expect(called).rejects.toMatchObject({ code: 'bad_request' })
      else await called
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
      // Old records are removed in the background after an order.
      await lab.runtime.settle()
      leavesNothing(signal, lab)
    }
  })
})

it.each(['orders.retrieve', 'services.retrieve', 'balance.retrieve', 'list() awaited', 'orders.waitFor'])(
  "an abort of %s ends the wait for a caller's schema that never resolves",
  async (name) => {
    const lab = serviceWith()
    const client = lab.client({ schemas: { order: never, service: never, balance: never } })
    await abortAt(lab, (signal) => callOf(name)(client, { signal }), { attempts: 1 })
  },
)

it("totalTimeout ends the wait for a caller's schema that never resolves", async () => {
  const lab = serviceWith(undefined, true)
  const client = lab.client({ schemas: { balance: never }, totalTimeout: 700 })
  const late = { code: 'timeout', deadline: 'total', attempts: 1 }
  await expect(client.balance.retrieve()).rejects.toMatchObject(late)
  expect(lab.runtime.monotonic()).toBe(700)
  expect(lab.runtime.timers).toBe(0)
})

it('an abort of orders.waitFor ends the wait between two polls', async () => {
  const lab = serviceWith()
  const waits = (signal: AbortSignal) => lab.orders.waitFor('ord_1', { until: () => false, signal })
  await abortAt(lab, waits, { attempts: 1, orderId: 'ord_1', charged: 'no' })
  expect(lab.sandbox.requests).toHaveLength(1)
})

it('an abort or a timeout of orders.waitFor ends the wait for an `until` that never resolves', async () => {
  const lab = serviceWith()
  const until = (): Promise<boolean> => new Promise(() => {})
  const { orders } = lab
  await abortAt(lab, (signal) => orders.waitFor('ord_1', { until, signal }), { orderId: 'ord_1' })
  lab.runtime.auto = true
  const late = { code: 'timeout', deadline: 'total', attempts: 1 }
  await expect(orders.waitFor('ord_1', { until, timeout: 5000 })).rejects.toMatchObject(late)
  expect(lab.runtime.timers).toBe(0)
})

it("an abort of orders.create during a caller's schema reports the order as charged", async () => {
  const lab = serviceWith()
  const { orders } = lab.client({ schemas: { order: never } })
  const names = { orderId: expect.any(String), externalOrderId: 'r1', idempotencyKey: expect.any(String) }
  const facts = { charged: 'yes', ...names }
  await abortAt(lab, (signal) => orders.create(order('r1'), { signal }), { attempts: 1, ...facts })
  lab.runtime.auto = true
  const late = orders.create(order('r1'), { totalTimeout: 900 })
  const message = expect.stringContaining('schemas.order did not finish within totalTimeout.')
  await expect(late).rejects.toMatchObject({ code: 'timeout', attempts: 0, message, ...facts })
  expect(lab.runtime.timers).toBe(0)
  lab.charged()
})

it.each([
  ['balance.retrieve', 'no'],
  ['request', 'no'],
  ['request that may charge', 'unknown'],
  ['orders.create', 'unknown'],
])('an abort ends the request itself of %s, and reports charged %s', async (name, charged) => {
  const lab = serviceWith()
  const sent: AbortSignal[] = []
  const fetch = (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    sent.push(new Request(input, init).signal)
    return new Promise(() => {})
  }
  const client = lab.client({ fetch })
  await abortAt(lab, (signal) => callOf(name)(client, { signal }), { charged, attempts: 1 })
  expect(sent.map(({ aborted }) => aborted)).toEqual([true])
})

it.each(['get', 'insert'] as const)(
  'an abort of orders.create ends the wait for a store whose %s hangs',
  async (method) => {
    const lab = serviceWith(undefined, true)
    const store = new MemoryStore()
    Object.defineProperty(store, method, { value: () => new Promise(() => {}) })
    const controller = new AbortController()
    const { signal } = controller
    const placing = lab.client({ store }).orders.create(anonymousOrder(), { signal })
    controller.abort(new Error('gone'))
    await expect(placing).rejects.toMatchObject({ code: expect.stringMatching(/^(aborted|store)$/) })
    expect(lab.runtime.monotonic()).toBeLessThanOrEqual(1000)
    expect(lab.posts).toHaveLength(0)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  },
)
