import {
  type CustomerOrderingClient,
  InvalidRequestError,
  InvalidResponseError,
  NotFoundError,
  type Page,
  responseInfo,
  type StandardSchemaV1,
  TimeoutError,
} from 'customer-ordering-sdk'
import { describe, expect, it } from 'vitest'
import { throwing } from '../../support/calls.ts'
import { API_KEY, clientOver, hang, json, problem } from '../../support/client.ts'
import { failure, Lab } from '../../support/lab.ts'
import { fakeRuntime } from '../../support/runtime.ts'

const order = { id: 'ord_1', status: 'pending', amount: 250 }
const quantities = { minQuantity: 1, maxQuantity: 9, stepQuantity: 1 }
const service = { productId: 'svc_1', amount: 5, currency: 'EUR', ...quantities }
const balance = { amount: 1000, currency: 'EUR' }

type Call = (client: CustomerOrderingClient, options?: object) => Promise<unknown>
type Read = [name: string, path: string, answer: object, call: Call, missing?: string]

/** Every read of a single resource, with the resource that a 404 did not find. */
const reads: Read[] = [
  ['orders.retrieve', '/v1/orders/ord_1', order, ({ orders }, it) => orders.retrieve('ord_1', it), 'order'],
  [
    'services.retrieve',
    '/v1/services/svc_1',
    service,
    ({ services }, it) => services.retrieve('svc_1', it),
    'service',
  ],
  ['balance.retrieve', '/v1/balance', balance, (client, it) => client.balance.retrieve(it), 'wallet'],
]

/** Those reads and the pages of lists. */
const all: Read[] = [
  ...reads,
  ['orders.list', '/v1/orders', [order], ({ orders }, it) => orders.list({}, it)],
  ['services.list', '/v1/services', [service], ({ services }, it) => services.list({}, it)],
]

describe.each(reads)('%s', (_name, path, answer, call) => {
  it('a read sends one GET without a body, and returns the response', async () => {
    const { client, requests } = clientOver(() => json(answer, 200, { 'x-request-id': 'req_1' }))
    const result = await call(client)
    expect(result).toEqual(answer)
    expect(requests).toMatchObject([{ method: 'GET', body: '' }])
    expect(requests[0]?.url.href).toBe(`https://api.example.com${path}`)
    const headers = Object.fromEntries(requests[0]?.headers ?? [])
    expect(headers).toMatchObject({ authorization: `Bearer ${API_KEY}`, accept: 'application/json' })
    for (const absent of ['content-type', 'idempotency-key']) expect(headers).not.toHaveProperty(absent)
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

describe.each(all)('%s, when it fails,', (name, _path, answer, call, missing) => {
  it('a failed read names the permission that a 403 requires', async () => {
    const error = await failure(call(clientOver(() => problem(403)).client))
    const requiredPermission = name.replace(/\..*/, ':read')
    expect(error).toMatchObject({ code: 'permission_denied', requiredPermission, charged: 'no' })
    expect(error).toMatchObject({ attempts: 1, serverCode: 'E403' })
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
    await expect((async () => call(client, { retries: 1 }))()).rejects.toMatchObject({
      issues: [{ path: 'retries' }],
    })
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
  const request = { serviceId: 'svc_1', target: '@x', quantity: 1, metadata: { externalOrderId: 'e1' } }
  const schemaOf = (validate: StandardSchemaV1['~standard']['validate']): StandardSchemaV1 => ({
    '~standard': { version: 1, vendor: 'test', validate },
  })
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
    const { client } = clientOver(answers, { schemas: { order: schemaOf(() => ({ issues: [issue] })) } })
    expect(await failure(client.orders.list())).toMatchObject({ issues: [{ path: shown }] })
  })

  it("the caller's schemas run after the documented check", async () => {
    const { client } = clientOver(() => ({ ...order, amount: 0.5 }), {
      schemas: { order: standard(() => ({})) },
    })
    expect(await failure(client.orders.retrieve('ord_1'))).toMatchObject({ issues: [{ path: 'amount' }] })
  })

  it('a throwing schema counts as an issue', async () => {
    const { client } = clientOver(() => order, { schemas: { order: schemaOf(wrong) } })
    expect(await failure(client.orders.retrieve('ord_1'))).toMatchObject({ issues: [{ path: '' }] })
  })

  it('a schema without a result is not a failure, even for a charged order', async () => {
    const nothing = schemaOf(() => ({}) as StandardSchemaV1.Result<unknown>)
    const { client } = clientOver(() => json(order, 201), { schemas: { order: nothing } })
    await expect(client.orders.create(request)).resolves.toBeUndefined()
  })

  it('a schema that rejects a created order leaves it reported as charged', async () => {
    const { client, requests } = clientOver(() => json(order, 201), { schemas: { order: standard(wrong) } })
    const error = await failure(client.orders.create(request))
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes', status: 201, attempts: 1 })
    const idempotencyKey = requests[0]?.headers.get('idempotency-key')
    expect(error).toMatchObject({ orderId: 'ord_1', externalOrderId: 'e1', idempotencyKey })
    expect(await client.withOptions({ schemas: {} }).orders.create(request)).toEqual(order)
    expect(requests).toHaveLength(1)
  })
})

describe('orders.waitFor', () => {
  /** A service whose order changes its status with each poll, up to the last one. */
  const through = (...statuses: string[]) => {
    const polls: number[] = []
    const runtime = fakeRuntime({ auto: true })
    const over = clientOver(
      (_request, count) => {
        polls.push(runtime.monotonic())
        const status = statuses[Math.min(count, statuses.length) - 1] ?? ''
        return /^\d+$/.test(status) ? problem(Number(status)) : { ...order, status }
      },
      {},
      runtime,
    )
    const waitFor = (options: Parameters<typeof over.client.orders.waitFor>[1]) =>
      over.client.orders.waitFor('ord_1', options)
    return { ...over, polls, waitFor }
  }
  const isDone = ({ status }: { status: string }): boolean => status === 'done'
  const never = { until: () => false }

  it('waitFor returns the order as soon as it matches', async () => {
    const { waitFor, runtime, requests } = through('pending')
    const found = await waitFor({ until: ({ status }) => status === 'pending' })
    expect(found).toEqual({ ...order, status: 'pending' })
    expect(responseInfo(found)).toMatchObject({ status: 200, attempts: 1, durationMs: 0 })
    expect(runtime.monotonic()).toBe(0)
    expect(requests[0]?.url.pathname).toBe('/v1/orders/ord_1')
  })

  it('waitFor polls after a second, then less and less often, and sooner after a status change', async () => {
    const { waitFor, polls } = through(...Array(8).fill('pending'), 'running', 'running', 'done')
    await waitFor({ until: isDone, timeout: 600_000 })
    const waits = polls.slice(1).map((at, i) => at - (polls[i] ?? 0))
    const steps = [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 1000, 2000]
    expect(waits).toHaveLength(steps.length)
    for (const [i, step] of steps.entries()) {
      expect(waits[i]).toBeGreaterThanOrEqual(step / 2)
      expect(waits[i]).toBeLessThanOrEqual(step)
    }
    expect(new Set(waits).size).toBe(waits.length)
  })

  it('waitFor counts the attempts of all polls', async () => {
    const found = await through('pending', '503', 'pending', 'done').waitFor({ until: isDone })
    expect(responseInfo(found)?.attempts).toBe(4)
  })

  it('waitFor treats a 404 as lag in the first ten seconds, and as final after that', async () => {
    const until = (): boolean => true
    const late = through('404', '404', '404', 'done')
    expect(await late.waitFor({ until })).toMatchObject({ status: 'done' })
    const lost = through('404')
    expect(await failure(lost.waitFor({ until }))).toMatchObject({ code: 'not_found', resource: 'order' })
    expect(lost.runtime.monotonic()).toBeGreaterThanOrEqual(10_000)
    expect(lost.runtime.monotonic()).toBeLessThan(20_000)
  })

  it('waitFor ends with any other error of a poll', async () => {
    const error = await failure(through('pending', '401').waitFor(never))
    expect(error).toMatchObject({ code: 'authentication' })
  })

  it('waitFor ends in a TimeoutError after its timeout, with a last poll shortly before', async () => {
    const { waitFor, polls, runtime } = through('pending')
    const error = await failure(waitFor({ ...never, timeout: 40_000 }))
    const facts = { charged: 'no', orderId: 'ord_1', attempts: polls.length }
    expect(error).toMatchObject({ code: 'timeout', deadline: 'total', ...facts })
    expect(runtime.monotonic()).toBe(40_000)
    expect(polls.at(-1)).toBe(39_000)
    expect(runtime.timers).toBe(0)
  })

  it('waitFor has a default timeout of 120 seconds', async () => {
    const { waitFor, runtime } = through('pending')
    expect(await failure(waitFor(never))).toMatchObject({ code: 'timeout' })
    expect(runtime.monotonic()).toBe(120_000)
  })

  it('waitFor ends in the same TimeoutError if the time runs out during a poll', async () => {
    const { client, runtime } = clientOver((_request, count) => (count === 1 ? order : hang))
    const error = await failure(client.orders.waitFor('ord_1', { ...never, timeout: 20_000 }))
    const message = expect.stringContaining('20000 ms')
    expect(error).toMatchObject({ code: 'timeout', deadline: 'total', message })
    expect(error.cause).toBeInstanceOf(TimeoutError)
    expect(runtime.monotonic()).toBeLessThan(20_010)
  })

  it('waitFor awaits an async `until`, and passes on its error', async () => {
    const { waitFor } = through('pending', 'done')
    expect((await waitFor({ until: async (found) => isDone(found) })).status).toBe('done')
    const mine = new NotFoundError('mine')
    const until = (): never => {
      throw mine
    }
    await expect(waitFor({ until })).rejects.toBe(mine)
  })

  it.each([
    undefined,
    {},
    { until: 'done' },
    { until: () => true, timeout: 0 },
    { until: () => true, till: 1 },
  ])('waitFor rejects the options %j', async (options) => {
    const { waitFor, requests } = through('done')
    await expect(waitFor(options as never)).rejects.toThrow(InvalidRequestError)
    expect(requests).toHaveLength(0)
  })
})

it.each(['default', 'minimal-answers', 'rfc9457', 'strict-gateway', 'remembers-refusals'] as const)(
  'reads of a sandbox work with its switches set to %s',
  async (preset) => {
    const lab = new Lab({ preset })
    const { sandbox } = lab
    const client = lab.client()
    const { id } = sandbox.addOrder({ status: 'done', amount: 700 })
    expect(await client.orders.retrieve(id)).toMatchObject({ id, status: 'done', amount: 700 })
    expect(await client.balance.retrieve()).toEqual({ amount: 1_000_000, currency: 'EUR' })
    expect(await client.services.retrieve('svc_standard')).toMatchObject({ productId: 'svc_standard' })
    const listed = await client.services.list().toArray({ max: 100 })
    const published = sandbox.services().filter((one) => one.published)
    expect(listed.map(({ productId }) => productId)).toEqual(published.map(({ productId }) => productId))
    expect((await client.orders.list().toArray({ max: 10 })).map((found) => found.id)).toEqual([id])
    const error = await failure(client.orders.retrieve('ord_none'))
    expect(error).toMatchObject({ code: 'not_found', resource: 'order', status: 404 })
  },
)

describe('JSON that ends too early, in a body that ends as if it were whole', () => {
  const cut = (body: object): Response => new Response(JSON.stringify(body).slice(0, -3))

  it.each(all)('JSON that ends too early is requested again by %s', async (_name, _path, answer, call) => {
    const { client, requests } = clientOver((_request, count) => (count === 1 ? cut(answer) : answer))
    const found = await call(client)
    expect(Array.isArray(answer) ? (found as Page<unknown>).items : found).toEqual(answer)
    expect(requests).toHaveLength(2)
  })

  it.each([0, 2])(
    'JSON that ends too early ends in an error that names it, with %s retries',
    async (maxRetries) => {
      const { client, requests } = clientOver(() => cut(balance))
      const error = await failure(client.balance.retrieve({ maxRetries }))
      const issues = [{ message: 'is not JSON' }]
      expect(error).toMatchObject({ code: 'invalid_response', attempts: maxRetries + 1, status: 200, issues })
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

it('an error by which Next.js steers the rendering passes unchanged through a read', async () => {
  const steered = Object.assign(new Error('Dynamic server usage'), { digest: 'DYNAMIC_SERVER_USAGE' })
  let calls = 0
  const settled: unknown[] = []
  const fetch = (): Promise<Response> => {
    calls++
    return Promise.reject(steered)
  }
  const hooks = { onSettled: ({ ok }: { readonly ok: boolean }) => void settled.push(ok) }
  const { client } = clientOver(() => hang, { fetch, hooks })
  for (const [, , , call] of all) {
    calls = 0
    await expect(call(client)).rejects.toBe(steered)
    expect(calls).toBe(1)
  }
  expect(settled).toEqual(all.map(() => false))
})
