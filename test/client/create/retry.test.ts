import { responseInfo, type Transport } from 'customer-ordering-sdk'
import type { FaultAction } from 'customer-ordering-sdk/sandbox'
import { describe, expect, vi } from 'vitest'
import { it, keysOf, sameRequest } from '../../support/history.ts'
import { anonymousOrder, failure, Lab, order } from '../../support/lab.ts'

const request = order('ref-1', { metadata: { externalOrderId: 'ref-1', note: 'ünï 注文' } })

it('an order whose response is lost is sent again with its key, and is charged once', async (lab) => {
  lab.fault({ type: 'commitThenDrop' })
  const placed = await lab.orders.create(request)
  expect(placed.id).toBe(lab.charged('ref-1'))
  expect(keysOf(lab)).toEqual([0, 0])
})

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
  ['without a reference of its own', anonymousOrder()],
])('an order %s', (_name, wanted) => {
  it.each(healed)('an order is placed once in spite of %s', async (lab, _what, action) => {
    lab.fault(action, 1, 'createOrder')
    const placed = await lab.create(wanted)
    lab.sandbox.expectCharges(1)
    expect(lab.sandbox.ledger[0]?.orderId).toBe(placed.id)
    expect(lab.sandbox.faults.pending()).toEqual([])
    expect(lab.posts).toHaveLength(2)
    sameRequest(lab)
    expect(responseInfo(placed)).toMatchObject({ attempts: 2, status: 201 })
  })
})

it('an order whose first request is still running is polled, and placed once', async (lab) => {
  lab.fault({ type: 'delay', ms: 45_000, when: 'during' })
  const placed = await lab.create(request)
  expect(placed.id).toBe(lab.charged('ref-1'))
  // The first attempt times out after 30 seconds. Later requests poll until the service is done.
  expect(lab.runtime.monotonic()).toBeGreaterThanOrEqual(45_000)
  expect(lab.runtime.monotonic()).toBeLessThan(51_000)
  sameRequest(lab)
})

it('a request has the canonical body and a derived key, also in another process with another API key', async (lab) => {
  const placed = await lab.client({ maxRetries: 0 }).orders.create(request)
  const other = new Lab({ apiKey: 'another_key' })
  await other.create(request)
  const [sent] = lab.posts
  expect(sent?.key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(responseInfo(placed)?.idempotencyKey).toBe(sent?.key)
  expect(sent?.body).toBe(
    '{"metadata":{"externalOrderId":"ref-1","note":"ünï 注文"},"quantity":10,"serviceId":"svc_standard","target":"@someone"}',
  )
  expect(other.posts[0]).toMatchObject({ key: sent?.key, body: sent?.body })
})

it.each([0, 1, 2, 4, 7])('maxRetries %i allows that many retries', async (lab, maxRetries) => {
  const client = lab.client({ maxRetries })
  lab.fault({ type: 'status', status: 503 }, 'always')
  for (const call of [() => client.balance.retrieve(), () => client.orders.create(request)]) {
    const before = lab.sandbox.requests.length
    expect(await failure(call())).toMatchObject({ code: 'server', status: 503, attempts: maxRetries + 1 })
    expect(lab.sandbox.requests.length - before).toBe(maxRetries + 1)
  }
  lab.sandbox.expectCharges(0)
})

it.each<[status: number, code: string, more?: object]>([
  [400, 'bad_request'],
  [402, 'payment_required'],
  [404, 'not_found', { resource: 'service_or_customer' }],
  [422, 'order_not_accepted'],
  [401, 'authentication'],
  [403, 'permission_denied', { requiredPermission: 'orders:write' }],
  [413, 'api'],
])('a refusal with %i is not retried', async (lab, status, code, more = {}) => {
  lab.fault({ type: 'status', status }, 'always')
  const error = await failure(lab.create(request))
  expect(error).toMatchObject({ code, status, charged: 'no', attempts: 1, ...more })
  expect(lab.posts).toHaveLength(1)
})

it.each([301, 302, 303, 307, 308] as const)(
  'redirect %i is not followed and not retried',
  async (lab, status) => {
    lab.fault(
      { type: 'status', status, headers: { location: `${lab.sandbox.baseUrl}/v1/elsewhere` } },
      'always',
    )
    const error = await failure(lab.create(request))
    expect(error).toMatchObject({ code: 'invalid_response', status, charged: 'unknown', attempts: 1 })
    expect(lab.sandbox.requests).toHaveLength(1)
  },
)

describe('the error by which a framework steers the rendering', () => {
  const steered = Object.assign(new Error('Dynamic server usage'), { digest: 'DYNAMIC_SERVER_USAGE' })

  it('an error that steers the rendering passes through create() and recover(), and the order stays open', async (lab) => {
    const fetch = vi.fn(() => Promise.reject(steered))
    const { orders } = lab.client({ fetch })
    await expect(orders.create(request)).rejects.toBe(steered)
    expect(fetch).toHaveBeenCalledOnce()
    // The error does not prove that nothing was sent.
    expect(await orders.unresolved()).toMatchObject([{ state: 'open', ambiguous: true, attempts: 1 }])
    const idempotencyKey = expect.any(String)
    const create = { operation: 'orders.create', ok: false, attempts: 1, charged: 'unknown', idempotencyKey }
    expect(lab.settled).toMatchObject([create])
    await expect(Promise.resolve(orders.recover())).rejects.toBe(steered)
    const recover = { ...create, operation: 'orders.recover', attempts: 2, recovery: 'still_open' }
    expect(lab.settled).toMatchObject([create, recover])
    await lab.create(request)
    lab.charged('ref-1')
  })

  it('the caller learns the key of an order that was meant to be a duplicate', async (lab) => {
    const client = lab.client({ fetch: () => Promise.reject(steered) })
    const error = await failure(client.orders.create(anonymousOrder(), { allowDuplicate: true }))
    expect(error).toMatchObject({ charged: 'unknown', idempotencyKey: expect.any(String) })
  })

  it('the caller learns that an order was charged whose response was unreadable', async (lab) => {
    lab.fault({ type: 'bytes', body: '<html>', status: 201 })
    let calls = 0
    const fetch: typeof globalThis.fetch = (...request) =>
      calls++ === 0 ? lab.sandbox.fetch(...request) : Promise.reject(steered)
    expect(await failure(lab.client({ fetch }).orders.create(request))).toMatchObject({
      code: 'invalid_response',
      charged: 'yes',
    })
  })
})

it('a signal that fires while a transport begins to send ends the call, even if the transport ignores it', async (lab) => {
  const controller = new AbortController()
  const transport: Transport = {
    send: () => {
      controller.abort()
      return new Promise(() => {})
    },
  }
  const client = lab.client({ transport, fetch: undefined })
  const error = await failure(client.orders.create(order('r1'), { signal: controller.signal }))
  expect(error).toMatchObject({ code: 'aborted', charged: 'unknown' })
})
