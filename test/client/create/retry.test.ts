import { type CustomerOrderingClient, responseInfo } from 'customer-ordering-sdk'
import type { FaultAction, Sandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { errorOf, service } from '../../support/service.ts'

const request = {
  serviceId: 'svc_standard',
  target: '@someone',
  quantity: 2,
  metadata: { externalOrderId: 'ref-1', note: 'ünï 注文' },
}
const create = (client: CustomerOrderingClient, options?: object): Promise<{ id: string }> =>
  client.orders.create(request, options)

/** What went over the wire for orders: everything must carry one key and one body. */
function posts(sandbox: Sandbox): { keys: Set<unknown>; bodies: Set<string>; count: number } {
  const sent = sandbox.requests.filter(({ method }) => method === 'POST')
  return {
    keys: new Set(sent.map(({ idempotencyKey }) => idempotencyKey)),
    bodies: new Set(sent.map(({ body }) => body)),
    count: sent.length,
  }
}

/** Everything that a repetition with the same key can heal: what happens, and how many requests that makes. */
const healed: [what: string, action: FaultAction, requests: number][] = [
  ['a refused connection', { type: 'refuseConnection' }, 2],
  ['a reset before the commit', { type: 'drop' }, 2],
  ['a reset after the commit', { type: 'commitThenDrop' }, 2],
  ['a server that dies halfway', { type: 'crash' }, 2],
  ['half a body after the commit', { type: 'cutBody' }, 2],
  ['half a body that ends as if it were whole', { type: 'cutBody', cleanly: true }, 2],
  ['no byte of the body', { type: 'cutBody', after: 0 }, 2],
  ['a body that stalls after the commit', { type: 'stallBody' }, 2],
  ['no answer', { type: 'stall' }, 2],
  ['no answer after the commit', { type: 'stall', commit: true }, 2],
  ['an answer that comes after the time of the attempt', { type: 'delay', ms: 45_000, when: 'after' }, 2],
  ['an earlier request that is still running', { type: 'inProgress' }, 2],
  ['an earlier request that was still running and bought', { type: 'inProgress', commit: true }, 2],
  [
    'a success with another body',
    { type: 'bytes', body: '<html>Welcome</html>', contentType: 'text/html' },
    2,
  ],
  ['a success without a body', { type: 'bytes', body: '' }, 2],
  ['a success of something else', { type: 'status', status: 200, html: true }, 2],
  ['a success that is larger than anything', { type: 'hugeBody', bytes: 2 ** 21 }, 2],
  ...[408, 425, 429, 500, 501, 502, 503, 504, 520].flatMap((status): [string, FaultAction, number][] => [
    [`status ${status}`, { type: 'status', status }, 2],
    [`status ${status} of a proxy`, { type: 'status', status, html: true }, 2],
  ]),
  ...[408, 500, 502, 503, 504].map((status): [string, FaultAction, number] => [
    `status ${status} after the commit`,
    { type: 'status', status, commit: true },
    2,
  ]),
]

describe('an order is placed once in spite of', () => {
  test.each(healed)('%s', async (_what, action, requests) => {
    const { sandbox, client } = service()
    sandbox.faults.add({ match: { operation: 'createOrder' }, action })
    const order = await create(client)
    expect(sandbox.expectChargedOnce('ref-1').orderId).toBe(order.id)
    expect(sandbox.faults.pending()).toEqual([])
    expect(posts(sandbox)).toMatchObject({ keys: { size: 1 }, bodies: { size: 1 }, count: requests })
    expect(responseInfo(order)).toMatchObject({ attempts: requests, status: 201 })
  })

  test.each(healed)('%s, without a reference of its own', async (_what, action) => {
    const { sandbox, client } = service()
    sandbox.faults.add({ match: { operation: 'createOrder' }, action })
    const order = await client.orders.create({ serviceId: 'svc_standard', target: '@x', quantity: 1 })
    sandbox.expectCharges(1)
    expect(sandbox.ledger[0]?.orderId).toBe(order.id)
    expect(posts(sandbox)).toMatchObject({ keys: { size: 1 }, bodies: { size: 1 } })
  })
})

test('an order whose first request is still running is waited for, and placed once', async () => {
  const { sandbox, client, runtime } = service()
  sandbox.faults.add({ action: { type: 'delay', ms: 45_000, when: 'during' } })
  const order = await create(client)
  expect(sandbox.expectChargedOnce('ref-1').orderId).toBe(order.id)
  // The first attempt is given up after 30 seconds; the rest is asking until the service is done.
  expect(runtime.monotonic()).toBeGreaterThanOrEqual(45_000)
  expect(runtime.monotonic()).toBeLessThan(51_000)
  expect(posts(sandbox)).toMatchObject({ keys: { size: 1 }, bodies: { size: 1 } })
})

describe('the request of an order', () => {
  test('carries its key from the first attempt on, also if it may not be repeated', async () => {
    const { sandbox, client } = service({ maxRetries: 0 })
    const order = await create(client)
    const [sent] = sandbox.requests
    expect(sent?.idempotencyKey).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    expect(responseInfo(order)?.idempotencyKey).toBe(sent?.idempotencyKey)
  })

  test('has the canonical body of what was asked for', async () => {
    const { sandbox, client } = service()
    await create(client)
    expect(sandbox.requests[0]?.body).toBe(
      '{"metadata":{"externalOrderId":"ref-1","note":"ünï 注文"},"quantity":2,"serviceId":"svc_standard","target":"@someone"}',
    )
  })

  test('is the same in another process with another API key of the same account', async () => {
    const first = service()
    const second = service({}, { apiKey: 'another_key' })
    await create(first.client)
    await create(second.client)
    const [one, two] = [first, second].map(({ sandbox }) => posts(sandbox))
    expect(one).toEqual(two)
  })
})

describe('maxRetries', () => {
  test.each([0, 1, 2, 4, 7])('%i allows that many retries', async (maxRetries) => {
    const { sandbox, client } = service({ maxRetries })
    sandbox.faults.add({ times: 'always', action: { type: 'status', status: 503 } })
    for (const call of [() => client.balance.retrieve(), () => create(client)]) {
      const before = sandbox.requests.length
      expect(await errorOf(call())).toMatchObject({ code: 'server', status: 503, attempts: maxRetries + 1 })
      expect(sandbox.requests.length - before).toBe(maxRetries + 1)
    }
    sandbox.expectCharges(0)
  })

  test('is 4 unless somebody says otherwise, for the client or for a call', async () => {
    const { sandbox, client, connect } = service()
    sandbox.faults.add({ times: 'always', action: { type: 'drop' } })
    expect(await errorOf(client.balance.retrieve())).toMatchObject({ attempts: 5 })
    expect(await errorOf(client.balance.retrieve({ maxRetries: 1 }))).toMatchObject({ attempts: 2 })
    expect(await errorOf(connect({ maxRetries: 2 }).balance.retrieve())).toMatchObject({ attempts: 3 })
  })

  test('0 does not end the wait for an earlier request with the same key', async () => {
    const { sandbox, client } = service({ maxRetries: 0 })
    sandbox.faults.add({ times: 6, action: { type: 'inProgress' } })
    expect(responseInfo(await create(client))).toMatchObject({ attempts: 7 })
    sandbox.expectChargedOnce('ref-1')
  })

  test.each<[string, FaultAction]>([
    ['is cut', { type: 'cutBody' }],
    ['stalls', { type: 'stallBody' }],
    ['is something else', { type: 'bytes', body: '[]' }],
  ])('0 does not keep an order from being read whose answer %s, at most twice', async (_how, action) => {
    const { sandbox, client } = service({ maxRetries: 0 })
    sandbox.faults.add({ times: 2, action })
    expect(responseInfo(await create(client))).toMatchObject({ attempts: 3 })
    sandbox.expectChargedOnce('ref-1')
  })
})

describe('waits', () => {
  test('are none after a socket that closed, and lengthen with full jitter then', async () => {
    const { sandbox, client, sentAt } = service()
    sandbox.faults.add({ times: 4, action: { type: 'drop' } })
    await create(client)
    const waits = sentAt.map((at, index) => at - (sentAt[index - 1] ?? 0)).slice(1)
    expect(waits[0]).toBe(0)
    for (const [index, wait] of waits.slice(1).entries()) {
      expect(wait).toBeGreaterThan(0)
      expect(wait).toBeLessThan(500 * 2 ** index)
    }
  })

  test('for an earlier request have their own pace: half a second, then up to five', async () => {
    const { sandbox, client, sentAt } = service()
    sandbox.faults.add({ times: 8, action: { type: 'inProgress' } })
    await create(client)
    const waits = sentAt.map((at, index) => at - (sentAt[index - 1] ?? 0)).slice(1)
    expect(waits[0]).toBe(500)
    for (const [index, wait] of waits.slice(1).entries()) {
      const step = Math.min(5000, 1000 * 2 ** index)
      expect(wait).toBeGreaterThanOrEqual(step / 2)
      expect(wait).toBeLessThan(step)
    }
  })

  test.each([
    ['in seconds', () => '30'],
    ['as a date', (now: number) => new Date(now + 30_000).toUTCString()],
  ])('are as long as the service asks, %s', async (_how, value) => {
    for (const status of [429, 503] as const) {
      const { sandbox, client, sentAt, runtime } = service()
      const header = value(Math.ceil(runtime.now() / 1000) * 1000)
      sandbox.faults.add({ action: { type: 'retryAfter', value: header, status } })
      await create(client)
      expect(sentAt[1]).toBeGreaterThanOrEqual(30_000)
      expect(sentAt[1]).toBeLessThan(31_000)
    }
  })

  test.each(['garbage', '-5', '', '1e9'])('are our own if the service asks for %j', async (value) => {
    const { sandbox, client, sentAt } = service()
    sandbox.faults.add({ action: { type: 'retryAfter', value } })
    await create(client)
    expect(sentAt[1]).toBeLessThan(250)
  })

  test.each(['121', '999999999999999999999', 'Fri, 31 Dec 9999 23:59:59 GMT'])(
    'that reach past the deadline (%s) end the call at once, and it says so',
    async (value) => {
      for (const status of [429, 503] as const) {
        const { sandbox, client, runtime } = service()
        sandbox.faults.add({ times: 'always', action: { type: 'retryAfter', value, status } })
        const error = await errorOf(client.balance.retrieve())
        expect(error).toMatchObject({
          code: status === 429 ? 'rate_limit' : 'server',
          status,
          attempts: 1,
          retryAfter: expect.any(Number),
        })
        expect(String(error)).toMatch(/asked to wait \d+ ms, which reaches past the call's deadline/)
        expect(runtime.monotonic()).toBe(0)
      }
    },
  )

  test('end a call whose every try fails within its total time', async () => {
    const { sandbox, client, runtime } = service({ maxRetries: 100, totalTimeout: 20_000 })
    sandbox.faults.add({ times: 'always', action: { type: 'status', status: 502 } })
    const error = await errorOf(create(client))
    expect(error).toMatchObject({ code: 'server', status: 502, charged: 'unknown' })
    expect(String(error)).toContain('No time was left for another try.')
    expect(runtime.monotonic()).toBeLessThanOrEqual(20_000)
    expect(sandbox.requests.length).toBeGreaterThan(3)
  })
})

describe('an API key from a function', () => {
  const sentKeys = ({ requests }: Sandbox): unknown[] => requests.map(({ apiKeyId }) => apiKeyId)

  test('is asked for on every attempt', async () => {
    let asked = 0
    const first = service()
    const apiKey = (): string => {
      asked++
      return first.sandbox.apiKey
    }
    first.sandbox.faults.add({ times: 3, action: { type: 'status', status: 500 } })
    await first.connect({ apiKey }).balance.retrieve()
    expect(asked).toBe(4)
    await first.connect({ apiKey: async () => apiKey() }).balance.retrieve()
    expect(asked).toBe(5)
  })

  test.each([
    ['a read', (client: CustomerOrderingClient) => client.balance.retrieve()],
    ['an order', create],
  ])('that was rotated is tried once more after a 401 to %s', async (_what, call) => {
    const { sandbox, connect } = service()
    const keys = ['outdated_key', sandbox.apiKey]
    const client = connect({ apiKey: () => keys.shift() ?? sandbox.apiKey })
    await expect(call(client)).resolves.toBeDefined()
    expect(sentKeys(sandbox)).toEqual([null, 'key_personal'])
    expect(posts(sandbox).keys.size).toBeLessThanOrEqual(1)
  })

  test.each([
    ['with maxRetries 0', { apiKey: () => 'outdated_key', maxRetries: 0 }],
    ['if it is no function', { apiKey: 'outdated_key' }],
  ])('is not tried again after a 401 %s', async (_why, options) => {
    const { sandbox, connect } = service()
    const client = connect(options)
    expect(await errorOf(client.balance.retrieve())).toMatchObject({ code: 'authentication', attempts: 1 })
    expect(await errorOf(create(client))).toMatchObject({
      code: 'authentication',
      charged: 'no',
      attempts: 1,
    })
    expect(sandbox.requests).toHaveLength(2)
  })
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
  ])('with %i is heard once and not repeated', async (status, code, more = {}) => {
    const { sandbox, client } = service()
    sandbox.faults.add({ times: 'always', action: { type: 'status', status } })
    expect(await errorOf(create(client))).toMatchObject({ code, status, charged: 'no', attempts: 1, ...more })
    expect(sandbox.requests).toHaveLength(1)
  })

  test('without a recognisable body is not believed, and not repeated either', async () => {
    const { sandbox, client } = service()
    sandbox.faults.add({ times: 'always', action: { type: 'status', status: 402, html: true } })
    expect(await errorOf(create(client))).toMatchObject({ code: 'payment_required', charged: 'unknown' })
    expect(sandbox.requests).toHaveLength(1)
  })

  test('409 with an unknown code is repeated, because it may pass', async () => {
    const { sandbox, client } = service()
    sandbox.faults.add({ action: { type: 'status', status: 409, code: 'BUSY' } })
    await create(client)
    sandbox.expectChargedOnce('ref-1')
    expect(sandbox.requests).toHaveLength(2)
  })

  test('409 IDEMPOTENCY_CONFLICT is never repeated', async () => {
    const { sandbox, client } = service()
    sandbox.faults.add({
      times: 'always',
      action: { type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' },
    })
    expect(await errorOf(create(client))).toMatchObject({
      code: 'idempotency_conflict',
      local: false,
      attempts: 1,
    })
    expect(sandbox.requests).toHaveLength(1)
  })

  test.each([301, 302, 303, 307, 308] as const)(
    'by redirect %i is not followed and not repeated',
    async (status) => {
      const { sandbox, client } = service()
      const location = `${sandbox.baseUrl}/v1/elsewhere`
      sandbox.faults.add({ times: 'always', action: { type: 'redirect', location, status } })
      const error = await errorOf(create(client))
      expect(error).toMatchObject({ code: 'invalid_response', status, charged: 'unknown', attempts: 1 })
      expect(String(error)).toContain('Check baseUrl')
      expect(sandbox.requests).toHaveLength(1)
    },
  )
})
