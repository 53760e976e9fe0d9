import {
  type CustomerOrderingClient,
  InvalidRequestError,
  InvalidResponseError,
  NotFoundError,
  PermissionDeniedError,
  responseInfo,
  type StandardSchemaV1,
  TimeoutError,
} from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, it } from 'vitest'
import { API_KEY, clientOf, clientOver } from '../../support/client.ts'
import { hang, json, problem } from '../../support/fake-fetch.ts'
import { failure } from '../../support/lab.ts'
import { fakeRuntime } from '../../support/runtime.ts'
import { throwing } from '../../support/throwing.ts'

const order = { id: 'ord_1', status: 'pending', amount: 250 }
const service = {
  productId: 'svc_1',
  amount: 5,
  currency: 'EUR',
  minQuantity: 1,
  maxQuantity: 9,
  stepQuantity: 1,
}
const balance = { amount: 1000, currency: 'EUR' }

type Call = (client: CustomerOrderingClient, options?: object) => Promise<unknown>

/** Every read of a single resource. */
const reads: [name: string, call: Call, path: string, answer: object, permission: string, missing: string][] =
  [
    [
      'orders.retrieve',
      (client, options) => client.orders.retrieve('ord_1', options),
      '/v1/orders/ord_1',
      order,
      'orders:read',
      'order',
    ],
    [
      'services.retrieve',
      (client, options) => client.services.retrieve('svc_1', options),
      '/v1/services/svc_1',
      service,
      'services:read',
      'service',
    ],
    [
      'balance.retrieve',
      (client, options) => client.balance.retrieve(options),
      '/v1/balance',
      balance,
      'balance:read',
      'wallet',
    ],
  ]

/** Those reads and the pages of lists. */
const all: [
  name: string,
  call: Call,
  path: string,
  answer: object,
  permission: string,
  missing: string | undefined,
][] = [
  ...reads,
  [
    'orders.list',
    (client, options) => client.orders.list({}, options),
    '/v1/orders',
    [order],
    'orders:read',
    undefined,
  ],
  [
    'services.list',
    (client, options) => client.services.list({}, options),
    '/v1/services',
    [service],
    'services:read',
    undefined,
  ],
]

describe.each(reads)('%s', (_name, call, path, answer) => {
  it('a read sends one GET without a body, and returns the response', async () => {
    const { client, requests } = clientOver(() => json(answer, 200, { 'x-request-id': 'req_1' }))
    const result = await call(client)
    expect(result).toEqual(answer)
    expect(requests).toHaveLength(1)
    expect(requests[0]).toMatchObject({ method: 'GET', body: '' })
    expect(requests[0]?.url.href).toBe(`https://api.example.com${path}`)
    const headers = requests[0]?.headers
    expect(headers?.get('authorization')).toBe(`Bearer ${API_KEY}`)
    expect(headers?.get('accept')).toBe('application/json')
    expect(headers?.has('content-type')).toBe(false)
    expect(headers?.has('idempotency-key')).toBe(false)
    expect(responseInfo(result)).toMatchObject({ status: 200, requestId: 'req_1', attempts: 1 })
  })

  it('a read keeps undocumented fields', async () => {
    const more = { ...answer, note: 'x', nested: { deep: [1, null] } }
    const { client } = clientOver(() => more)
    expect(await call(client)).toEqual(more)
  })

  it('a read rejects missing amounts, and amounts that JavaScript cannot represent', async () => {
    for (const amount of [2 ** 53, 1.5, '250', null, undefined]) {
      const { client, requests } = clientOver(() => ({ ...answer, amount }))
      const error = await failure(call(client))
      expect(error).toBeInstanceOf(InvalidResponseError)
      expect(error).toMatchObject({ charged: 'no', status: 200, issues: [{ path: 'amount' }] })
      expect(requests).toHaveLength(1)
    }
  })

  it.each(['', 'no json', '[]', 'null', '5', '"text"', '{}', '{"amount":'])(
    'a read rejects the body %j',
    async (body) => {
      const { client } = clientOver(
        () => new Response(body, { headers: { 'content-type': 'application/json' } }),
      )
      const error = await failure(call(client))
      expect(error).toBeInstanceOf(InvalidResponseError)
      expect(error.charged).toBe('no')
    },
  )
})

describe.each(all)('%s, when it fails,', (_name, call, path, answer, permission, missing) => {
  it('a failed read names the permission that a 403 requires', async () => {
    const error = await failure(call(clientOver(() => problem(403)).client))
    expect(error).toBeInstanceOf(PermissionDeniedError)
    expect(error).toMatchObject({
      requiredPermission: permission,
      charged: 'no',
      attempts: 1,
      serverCode: 'E403',
    })
    expect(error.message).toContain(permission)
    expect(error.message).toContain(`GET ${path}`)
    expect(error.message).not.toContain('wallet')
  })

  it('a failed read names what a 404 did not find, if that is documented', async () => {
    const error = await failure(call(clientOver(() => problem(404)).client))
    expect(error).toBeInstanceOf(NotFoundError)
    expect((error as NotFoundError).resource).toBe(missing)
  })

  it.each([408, 425, 429, 500, 502, 503, 504, 599])(
    'a read retries a request that got %i',
    async (status) => {
      const { client, requests } = clientOver((_request, count) => (count < 4 ? problem(status) : answer))
      const result = await call(client)
      expect(requests).toHaveLength(4)
      expect(responseInfo(result)).toMatchObject({ status: 200, attempts: 4 })
    },
  )

  it('a read rejects wrong options before anything is sent', async () => {
    const { client, requests } = clientOver(() => answer)
    await expect((async () => call(client, { timeout: -1 }))()).rejects.toThrow(InvalidRequestError)
    await expect((async () => call(client, { retries: 1 }))()).rejects.toThrow('retries is not known')
    expect(requests).toHaveLength(0)
  })
})

it('identifiers are encoded as one path segment', async () => {
  const { client, requests } = clientOver(({ url }) =>
    url.pathname.includes('orders') ? { ...order, id: 'a/b?c#d e%41' } : { ...service, productId: 'ü' },
  )
  await client.orders.retrieve('a/b?c#d e%41')
  await client.services.retrieve('ü')
  expect(requests.map(({ url }) => url.pathname)).toEqual([
    '/v1/orders/a%2Fb%3Fc%23d%20e%2541',
    '/v1/services/%C3%BC',
  ])
})

/** A schema without a library. `parse` returns the output or throws an issue's message. */
function standard<Output>(
  parse: (value: Record<string, unknown>) => Output | Promise<Output>,
): StandardSchemaV1<unknown, Output> {
  const issue = (error: unknown) => ({ issues: [{ message: (error as Error).message, path: ['status'] }] })
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) => {
        try {
          const output = parse(value as Record<string, unknown>)
          return output instanceof Promise ? output.then((value) => ({ value }), issue) : { value: output }
        } catch (error) {
          return issue(error)
        }
      },
    },
  }
}

const wrong = throwing('is not what was agreed')

describe("the caller's schemas", () => {
  const answers = ({ url }: { url: URL }) => {
    if (url.pathname === '/v1/orders') return [order]
    if (url.pathname === '/v1/services') return [service]
    return url.pathname.includes('orders') ? order : url.pathname.includes('services') ? service : balance
  }
  const upper = { order: { upper: 'PENDING' }, service: { id: 'svc_1' }, balance: { euros: 10 } }

  it.each(['sync', 'async'])("the caller's schemas decide what is returned, %s", async (when) => {
    const asynchronous = when === 'async'
    const maybe = <T>(value: T): T | Promise<T> => (asynchronous ? Promise.resolve(value) : value)
    const { client } = clientOver(answers, {
      schemas: {
        order: standard((row) => maybe({ upper: String(row['status']).toUpperCase() })),
        service: standard((row) => maybe({ id: row['productId'] })),
        balance: standard((row) => maybe({ euros: Number(row['amount']) / 100 })),
      },
    })
    const found = await client.orders.retrieve('ord_1')
    expect(found).toEqual(upper.order)
    expect(responseInfo(found)).toMatchObject({ status: 200 })
    expect(await client.services.retrieve('svc_1')).toEqual(upper.service)
    expect(await client.balance.retrieve()).toEqual(upper.balance)
    expect((await client.orders.list()).items).toEqual([upper.order])
    expect((await client.services.list()).items).toEqual([upper.service])
    expect(await client.orders.waitFor('ord_1', { until: (seen) => seen.upper === 'PENDING' })).toEqual(
      upper.order,
    )
  })

  it.each([standard(wrong), standard(async () => wrong())])(
    "errors of the caller's schemas name the field",
    async (schema) => {
      const { client } = clientOver(answers, { schemas: { order: schema, service: schema, balance: schema } })
      const message = 'is not what was agreed'
      for (const [pending, path] of [
        [client.orders.retrieve('ord_1'), 'status'],
        [client.balance.retrieve(), 'status'],
        [client.orders.list(), '[0].status'],
        [client.services.list(), '[0].status'],
      ] as const) {
        expect(await failure(pending)).toMatchObject({
          code: 'invalid_response',
          issues: [{ path, message }],
        })
      }
    },
  )

  it.each([
    [undefined, '[0]'],
    [[], '[0]'],
    [[2, 'a'], '[0][2].a'],
    [['a', { key: 'b' }], '[0].a.b'],
  ])("errors of the caller's schemas name the place %j within a list's row", async (path, shown) => {
    const issue = { message: 'no', ...(path === undefined ? {} : { path }) }
    const schema: StandardSchemaV1 = {
      '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [issue] }) },
    }
    const { client } = clientOver(answers, { schemas: { order: schema } })
    expect(await failure(client.orders.list())).toMatchObject({ issues: [{ path: shown }] })
  })

  it("the caller's schemas run after the documented check", async () => {
    const { client } = clientOver(() => ({ ...order, amount: 0.5 }), {
      schemas: { order: standard(() => ({})) },
    })
    expect(await failure(client.orders.retrieve('ord_1'))).toMatchObject({ issues: [{ path: 'amount' }] })
  })

  it('a throwing schema counts as an issue', async () => {
    const broken: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate: wrong } }
    const { client } = clientOver(() => order, { schemas: { order: broken } })
    expect((await failure(client.orders.retrieve('ord_1'))).message).toContain('it made the schema throw')
  })

  it('a schema without a result is not a failure, even for a charged order', async () => {
    const nothing: StandardSchemaV1 = {
      '~standard': { version: 1, vendor: 'test', validate: () => ({}) as StandardSchemaV1.Result<unknown> },
    }
    const { client } = clientOver(() => json(order, 201), { schemas: { order: nothing } })
    const request = { serviceId: 'svc_1', target: '@x', quantity: 1, metadata: { externalOrderId: 'e1' } }
    await expect(client.orders.create(request)).resolves.toBeUndefined()
  })

  it('a schema that rejects a created order leaves it reported as charged', async () => {
    const { client, requests } = clientOver(() => json(order, 201), { schemas: { order: standard(wrong) } })
    const request = { serviceId: 'svc_1', target: '@x', quantity: 1, metadata: { externalOrderId: 'e1' } }
    const error = await failure(client.orders.create(request))
    expect(error).toBeInstanceOf(InvalidResponseError)
    expect(error).toMatchObject({
      charged: 'yes',
      orderId: 'ord_1',
      externalOrderId: 'e1',
      status: 201,
      attempts: 1,
    })
    expect(error.idempotencyKey).toBe(requests[0]?.headers.get('idempotency-key'))
    expect(error.message).toContain('The wallet was charged')
    expect(error.message).toMatch(/Check schemas\.order, then read the order with orders\.retrieve\(\)\.$/)
    expect(await client.withOptions({ schemas: {} }).orders.create(request)).toEqual(order)
    expect(requests).toHaveLength(1)
  })
})

describe('orders.waitFor', () => {
  /** A service whose order changes its status with each poll, up to the last one. */
  const through = (...statuses: string[]) =>
    clientOver((_request, count) => {
      const status = statuses[Math.min(count, statuses.length) - 1] ?? ''
      return /^\d+$/.test(status) ? problem(Number(status)) : { ...order, status }
    })

  it('waitFor returns the order as soon as it matches', async () => {
    const { client, runtime, requests } = through('pending')
    const found = await client.orders.waitFor('ord_1', { until: ({ status }) => status === 'pending' })
    expect(found).toEqual({ ...order, status: 'pending' })
    expect(responseInfo(found)).toMatchObject({ status: 200, attempts: 1, durationMs: 0 })
    expect(runtime.monotonic()).toBe(0)
    expect(requests[0]?.url.pathname).toBe('/v1/orders/ord_1')
  })

  it('waitFor polls after a second, then less and less often, and sooner after a status change', async () => {
    const looks: number[] = []
    const runtime = fakeRuntime({ auto: true })
    const { client } = clientOver(
      (_request, count) => {
        looks.push(runtime.monotonic())
        return { ...order, status: count < 9 ? 'pending' : count < 11 ? 'running' : 'done' }
      },
      {},
      runtime,
    )
    await client.orders.waitFor('ord_1', { until: ({ status }) => status === 'done', timeout: 600_000 })
    const waits = looks.slice(1).map((at, i) => at - (looks[i] ?? 0))
    const steps = [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 1000, 2000]
    expect(waits).toHaveLength(steps.length)
    for (const [i, step] of steps.entries()) {
      expect(waits[i]).toBeGreaterThanOrEqual(step / 2)
      expect(waits[i]).toBeLessThanOrEqual(step)
    }
    expect(new Set(waits).size).toBe(waits.length)
  })

  it('waitFor counts the attempts of all polls', async () => {
    const { client } = through('pending', '503', 'pending', 'done')
    const found = await client.orders.waitFor('ord_1', { until: ({ status }) => status === 'done' })
    expect(responseInfo(found)?.attempts).toBe(4)
  })

  it('waitFor treats a 404 as lag in the first ten seconds, and as final after that', async () => {
    const late = through('404', '404', '404', 'done')
    expect(await late.client.orders.waitFor('ord_1', { until: () => true })).toMatchObject({ status: 'done' })
    const never = through('404')
    const error = await failure(never.client.orders.waitFor('ord_1', { until: () => true }))
    expect(error).toBeInstanceOf(NotFoundError)
    expect(error).toMatchObject({ resource: 'order' })
    expect(never.runtime.monotonic()).toBeGreaterThanOrEqual(10_000)
    expect(never.runtime.monotonic()).toBeLessThan(20_000)
  })

  it('waitFor ends with any other error of a poll', async () => {
    expect(
      await failure(through('pending', '401').client.orders.waitFor('ord_1', { until: () => false })),
    ).toMatchObject({ code: 'authentication' })
  })

  it('waitFor ends in a TimeoutError after its timeout, with a last poll shortly before', async () => {
    const looks: number[] = []
    const runtime = fakeRuntime({ auto: true })
    const { client } = clientOver(
      () => {
        looks.push(runtime.monotonic())
        return order
      },
      {},
      runtime,
    )
    const error = await failure(client.orders.waitFor('ord_1', { until: () => false, timeout: 40_000 }))
    expect(error).toBeInstanceOf(TimeoutError)
    expect(error).toMatchObject({
      deadline: 'total',
      charged: 'no',
      orderId: 'ord_1',
      attempts: looks.length,
    })
    expect(error.message).toContain('40000 ms')
    expect(runtime.monotonic()).toBe(40_000)
    expect(looks.at(-1)).toBe(39_000)
    expect(runtime.timers).toBe(0)
  })

  it('waitFor has a default timeout of 120 seconds', async () => {
    const { client, runtime } = through('pending')
    expect(await failure(client.orders.waitFor('ord_1', { until: () => false }))).toMatchObject({
      code: 'timeout',
    })
    expect(runtime.monotonic()).toBe(120_000)
  })

  it('waitFor ends in the same TimeoutError if the time runs out during a poll', async () => {
    const { client, runtime } = clientOver((_request, count) => (count === 1 ? order : hang))
    const error = await failure(client.orders.waitFor('ord_1', { until: () => false, timeout: 20_000 }))
    expect(error).toMatchObject({
      code: 'timeout',
      deadline: 'total',
      message: expect.stringContaining('20000 ms'),
    })
    expect(error.cause).toBeInstanceOf(TimeoutError)
    expect(runtime.monotonic()).toBeLessThan(20_010)
  })

  it('waitFor awaits an async `until`, and passes on its error', async () => {
    const { client } = through('pending', 'done')
    const found = await client.orders.waitFor('ord_1', { until: async ({ status }) => status === 'done' })
    expect(found.status).toBe('done')
    const mine = new NotFoundError('mine')
    const thrown = client.orders.waitFor('ord_1', {
      until: () => {
        throw mine
      },
    })
    await expect(thrown).rejects.toBe(mine)
  })

  it.each([
    undefined,
    {},
    { until: 'done' },
    { until: () => true, timeout: 0 },
    { until: () => true, till: 1 },
  ])('waitFor rejects the options %j', async (options) => {
    const { client, requests } = through('done')
    await expect(client.orders.waitFor('ord_1', options as never)).rejects.toThrow(InvalidRequestError)
    expect(requests).toHaveLength(0)
  })
})

it.each(['default', 'minimal-answers', 'rfc9457', 'strict-gateway', 'remembers-refusals'] as const)(
  'reads of a sandbox work with its switches set to %s',
  async (preset) => {
    const sandbox = createSandbox({ preset })
    const client = clientOf(sandbox)
    const created = sandbox.addOrder({ status: 'done', amount: 700 })
    expect(await client.orders.retrieve(created.id)).toMatchObject({
      id: created.id,
      status: 'done',
      amount: 700,
    })
    expect(await client.balance.retrieve()).toEqual({ amount: 1_000_000, currency: 'EUR' })
    expect(await client.services.retrieve('svc_standard')).toMatchObject({ productId: 'svc_standard' })
    const listed = await client.services.list().toArray({ max: 100 })
    expect(listed.map(({ productId }) => productId)).toEqual(
      sandbox
        .services()
        .filter(({ published }) => published)
        .map(({ productId }) => productId),
    )
    expect((await client.orders.list().toArray({ max: 10 })).map(({ id }) => id)).toEqual([created.id])
    const error = await failure(client.orders.retrieve('ord_none'))
    expect(error).toMatchObject({ code: 'not_found', resource: 'order', status: 404 })
  },
)

describe('JSON that ends too early, in a body that ends as if it were whole', () => {
  const cut = (body: object): Response => new Response(JSON.stringify(body).slice(0, -3))

  it.each(reads)('JSON that ends too early is requested again by %s', async (_name, call, _path, answer) => {
    const { client, requests } = clientOver((_request, count) => (count === 1 ? cut(answer) : answer))
    expect(await call(client)).toEqual(answer)
    expect(requests).toHaveLength(2)
  })

  it('JSON that ends too early is requested again for a page of a list', async () => {
    const { client, requests } = clientOver((_request, count) => (count === 1 ? cut([order]) : [order]))
    expect(await client.orders.list({ limit: 1 })).toMatchObject({ items: [order] })
    expect(requests).toHaveLength(2)
  })

  it.each([0, 2])(
    'JSON that ends too early ends in an error that names it, with %s retries',
    async (maxRetries) => {
      const { client, requests } = clientOver(() => cut(balance))
      const error = await client.balance.retrieve({ maxRetries }).catch((caught: unknown) => caught)
      expect(error).toBeInstanceOf(InvalidResponseError)
      expect(error).toMatchObject({
        attempts: maxRetries + 1,
        status: 200,
        issues: [{ message: 'is not JSON' }],
      })
      expect(requests).toHaveLength(maxRetries + 1)
    },
  )

  it("a proxy's page is not taken for truncated JSON, and is not requested again", async () => {
    const { client, requests } = clientOver(() => new Response('<html>'))
    await expect(client.balance.retrieve()).rejects.toBeInstanceOf(InvalidResponseError)
    expect(requests).toHaveLength(1)
  })

  it('truncated JSON does not repeat a request that must not run twice', async () => {
    const { client, requests } = clientOver(() => cut(balance))
    const pending = client.request({ method: 'POST', path: '/v1/refunds', body: {} })
    await expect(pending).rejects.toMatchObject({ code: 'invalid_response', charged: 'unknown' })
    expect(requests).toHaveLength(1)
  })
})
