import {
  type CustomerOrderingClient,
  responseInfo,
  type SettledEvent,
  type Transport,
} from 'customer-ordering-sdk'
import type { FaultAction, Sandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { errorOf } from '../../support/calls.ts'
import { anonymousOrder, Lab, order } from '../../support/lab.ts'

const request = {
  serviceId: 'svc_standard',
  target: '@someone',
  quantity: 2,
  metadata: { externalOrderId: 'ref-1', note: 'ünï 注文' },
}
const create = (client: CustomerOrderingClient, options?: object): Promise<{ id: string }> =>
  client.orders.create(request, options)

/** The requests of orders: their number, and the number of their keys and bodies. */
function posts(sandbox: Sandbox) {
  const sent = sandbox.requests.filter(({ method }) => method === 'POST')
  const keys = new Set(sent.map(({ idempotencyKey }) => idempotencyKey))
  const bodies = new Set(sent.map(({ body }) => body))
  return { keys, bodies, count: sent.length }
}
const ONE_KEY = { keys: { size: 1 }, bodies: { size: 1 } }

/** Faults that one retry with the same key overcomes. */
const healed: [what: string, action: FaultAction][] = [
  ['a refused connection', { type: 'refuseConnection' }],
  ['a reset before the commit', { type: 'drop' }],
  ['a reset after the commit', { type: 'commitThenDrop' }],
  ['a server that dies halfway', { type: 'crash' }],
  ['half a body after the commit', { type: 'cutBody' }],
  ['half a body that ends as if it were whole', { type: 'cutBody', cleanly: true }],
  ['no byte of the body', { type: 'cutBody', after: 0 }],
  ['a body that stalls after the commit', { type: 'stallBody' }],
  ['no answer', { type: 'stall' }],
  ['no answer after the commit', { type: 'stall', commit: true }],
  ['an answer that comes after the time of the attempt', { type: 'delay', ms: 45_000, when: 'after' }],
  ['an earlier request that is still running', { type: 'inProgress' }],
  ['an earlier request that was still running and bought', { type: 'inProgress', commit: true }],
  ['a success with another body', { type: 'bytes', body: '<html>', contentType: 'text/html' }],
  ['a success without a body', { type: 'bytes', body: '' }],
  ['a success of something else', { type: 'status', status: 200, html: true }],
  ['a success that is larger than anything', { type: 'bytes', body: ' '.repeat(2 ** 21) }],
  ...[408, 425, 429, 500, 501, 502, 503, 504, 520].flatMap((status): [string, FaultAction][] => [
    [`status ${status}`, { type: 'status', status }],
    [`status ${status} of a proxy`, { type: 'status', status, html: true }],
  ]),
  ...[408, 500, 502, 503, 504].map((status): [string, FaultAction] => [
    `status ${status} after the commit`,
    { type: 'status', status, commit: true },
  ]),
]

describe.each([
  ['with a reference', request],
  ['without a reference of its own', { serviceId: 'svc_standard', target: '@x', quantity: 1 }],
])('an order %s is placed once in spite of', (_name, wanted) => {
  test.each(healed)('%s', async (_what, action) => {
    const lab = new Lab()
    const { sandbox } = lab
    const client = lab.client()
    sandbox.faults.add({ match: { operation: 'createOrder' }, action })
    const order = await client.orders.create(wanted)
    sandbox.expectCharges(1)
    expect(sandbox.ledger[0]?.orderId).toBe(order.id)
    expect(sandbox.faults.pending()).toEqual([])
    expect(posts(sandbox)).toMatchObject({ ...ONE_KEY, count: 2 })
    expect(responseInfo(order)).toMatchObject({ attempts: 2, status: 201 })
  })
})

test('an order whose first request is still running is polled, and placed once', async () => {
  const lab = new Lab()
  const { sandbox, runtime } = lab
  const client = lab.client()
  sandbox.faults.add({ action: { type: 'delay', ms: 45_000, when: 'during' } })
  const order = await create(client)
  expect(sandbox.expectChargedOnce('ref-1').orderId).toBe(order.id)
  // The first attempt times out after 30 seconds. Later requests poll until the service is done.
  expect(runtime.monotonic()).toBeGreaterThanOrEqual(45_000)
  expect(runtime.monotonic()).toBeLessThan(51_000)
  expect(posts(sandbox)).toMatchObject(ONE_KEY)
})

describe('the request of an order', () => {
  test('a request carries its key from the first attempt, even if it may not be repeated', async () => {
    const lab = new Lab()
    const { sandbox } = lab
    const client = lab.client({ maxRetries: 0 })
    const order = await create(client)
    const [sent] = sandbox.requests
    expect(sent?.idempotencyKey).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    expect(responseInfo(order)?.idempotencyKey).toBe(sent?.idempotencyKey)
  })

  test('a request has the canonical body of the order', async () => {
    const lab = new Lab()
    const { sandbox } = lab
    const client = lab.client()
    await create(client)
    expect(sandbox.requests[0]?.body).toBe(
      '{"metadata":{"externalOrderId":"ref-1","note":"ünï 注文"},"quantity":2,"serviceId":"svc_standard","target":"@someone"}',
    )
  })

  test('a request is the same in another process with another API key of the same account', async () => {
    const first = new Lab()
    const second = new Lab({ apiKey: 'another_key' })
    await create(first.client())
    await create(second.client())
    const [one, two] = [first, second].map(({ sandbox }) => posts(sandbox))
    expect(one).toEqual(two)
  })
})

test.each([0, 1, 2, 4, 7])('maxRetries %i allows that many retries', async (maxRetries) => {
  const lab = new Lab()
  const { sandbox } = lab
  const client = lab.client({ maxRetries })
  sandbox.faults.add({ times: 'always', action: { type: 'status', status: 503 } })
  for (const call of [() => client.balance.retrieve(), () => create(client)]) {
    const before = sandbox.requests.length
    expect(await errorOf(call())).toMatchObject({ code: 'server', status: 503, attempts: maxRetries + 1 })
    expect(sandbox.requests.length - before).toBe(maxRetries + 1)
  }
  sandbox.expectCharges(0)
})

describe('a refusal', () => {
  test.each<[status: number, code: string, more?: object]>([
    [400, 'bad_request'],
    [402, 'payment_required'],
    [404, 'not_found', { resource: 'service_or_customer' }],
    [422, 'order_not_accepted'],
    [401, 'authentication'],
    [403, 'permission_denied', { requiredPermission: 'orders:write' }],
    [413, 'api'],
  ])('a refusal with %i is not retried', async (status, code, more = {}) => {
    const lab = new Lab()
    const { sandbox } = lab
    const client = lab.client()
    sandbox.faults.add({ times: 'always', action: { type: 'status', status } })
    expect(await errorOf(create(client))).toMatchObject({ code, status, charged: 'no', attempts: 1, ...more })
    expect(sandbox.requests).toHaveLength(1)
  })

  test.each([301, 302, 303, 307, 308] as const)(
    'redirect %i is not followed and not retried',
    async (status) => {
      const lab = new Lab()
      const { sandbox } = lab
      const client = lab.client()
      const location = `${sandbox.baseUrl}/v1/elsewhere`
      sandbox.faults.add({ times: 'always', action: { type: 'redirect', location, status } })
      const error = await errorOf(create(client))
      expect(error).toMatchObject({ code: 'invalid_response', status, charged: 'unknown', attempts: 1 })
      expect(String(error)).toContain('Check baseUrl')
      expect(sandbox.requests).toHaveLength(1)
    },
  )
})

test('an error by which Next.js steers the rendering passes through create() unchanged, and the order stays open', async () => {
  const steered = Object.assign(new Error('Dynamic server usage'), { digest: 'DYNAMIC_SERVER_USAGE' })
  const lab = new Lab()
  let calls = 0
  const steering = lab.client({
    fetch: () => {
      calls++
      return Promise.reject(steered)
    },
  })
  await expect(create(steering)).rejects.toBe(steered)
  expect(calls).toBe(1)
  // The error does not prove that nothing was sent.
  expect(await steering.orders.unresolved()).toMatchObject([{ state: 'open', ambiguous: true, attempts: 1 }])
  await expect(Promise.resolve(steering.orders.recover())).rejects.toBe(steered)
  await create(lab.client())
  lab.sandbox.expectChargedOnce('ref-1')
})

describe('the error by which a framework steers the rendering, after the service may have bought the order', () => {
  const steered = Object.assign(new Error('Dynamic server usage'), { digest: 'DYNAMIC_SERVER_USAGE' })

  test('hooks are told the attempt, the key and that the wallet may have been charged', async () => {
    const lab = new Lab()
    const settled: SettledEvent[] = []
    const onSettled = (event: SettledEvent) => settled.push(event)
    const client = lab.client({ fetch: () => Promise.reject(steered), hooks: { onSettled } })
    await expect(create(client)).rejects.toBe(steered)
    const idempotencyKey = expect.any(String)
    expect(settled).toMatchObject([{ ok: false, attempts: 1, charged: 'unknown', idempotencyKey }])
  })

  test('the caller learns the key of an order that was meant to be a duplicate', async () => {
    const lab = new Lab()
    const client = lab.client({ fetch: () => Promise.reject(steered) })
    const error = await errorOf(client.orders.create(anonymousOrder(), { allowDuplicate: true }))
    expect(error).toMatchObject({ charged: 'unknown', idempotencyKey: expect.any(String) })
  })

  test('the caller learns that an order was charged whose response was unreadable', async () => {
    const lab = new Lab()
    lab.fault({ type: 'bytes', body: '<html>', status: 201 })
    let calls = 0
    const fetch: typeof globalThis.fetch = (...request) =>
      calls++ === 0 ? lab.sandbox.fetch(...request) : Promise.reject(steered)
    expect(await errorOf(create(lab.client({ fetch })))).toMatchObject({
      code: 'invalid_response',
      charged: 'yes',
    })
  })
})

test('a signal that fires while a transport begins to send ends the call, even if the transport ignores it', async () => {
  const lab = new Lab()
  const controller = new AbortController()
  const transport: Transport = {
    send: () => {
      controller.abort()
      return new Promise(() => {})
    },
  }
  const client = lab.client({ transport, fetch: undefined })
  const error = await errorOf(client.orders.create(order('r1'), { signal: controller.signal }))
  expect(error).toMatchObject({ code: 'aborted', charged: 'unknown' })
})
