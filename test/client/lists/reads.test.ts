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
import type { FaultAction } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test, vi } from 'vitest'
import { throwing } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { failure, Lab, order } from '../../support/lab.ts'

const ORDER = { id: 'ord_1', status: 'pending', amount: 250 }
const SERVICE = { productId: 'svc_standard', amount: 250, currency: 'EUR' }
const BALANCE = { amount: 1_000_000, currency: 'EUR' }

type Call = (client: CustomerOrderingClient, options?: object) => Promise<unknown>
type Read = [name: string, path: string, expected: object, call: Call, missing?: string]

/** Every read of a single resource, with the resource that a 404 did not find. */
const reads: Read[] = [
  ['orders.retrieve', '/v1/orders/ord_1', ORDER, ({ orders }, it) => orders.retrieve('ord_1', it), 'order'],
  [
    'services.retrieve',
    '/v1/services/svc_standard',
    SERVICE,
    ({ services }, it) => services.retrieve('svc_standard', it),
    'service',
  ],
  ['balance.retrieve', '/v1/balance', BALANCE, ({ balance }, it) => balance.retrieve(it), 'wallet'],
]

const all: Read[] = [
  ...reads,
  ['orders.list', '/v1/orders', [ORDER], ({ orders }, it) => orders.list({}, it)],
  ['services.list', '/v1/services', [SERVICE], ({ services }, it) => services.list({}, it)],
]

/** Adds the order to the service, which responds to its next requests with these faults. */
function serving(lab: Lab, ...faults: readonly FaultAction[]): CustomerOrderingClient {
  lab.sandbox.addOrder(ORDER)
  for (const fault of faults) lab.fault(fault)
  return lab.client()
}
const refused = (status: number): FaultAction => ({ type: 'status', status, code: `E${status}` })

describe.each(reads)('%s', (_name, path, expected, call) => {
  it('a read sends one GET without a body, and returns the response with undocumented fields', async (lab) => {
    const more = { note: 'x', nested: { deep: [1, null] } }
    const result = await call(serving(lab, { type: 'transformBody', patch: more }))
    expect(result).toMatchObject({ ...expected, ...more })
    expect(lab.sandbox.requests).toMatchObject([{ method: 'GET', body: '', path }])
    const { headers, apiKeyId } = lab.sandbox.requests[0] ?? {}
    expect(apiKeyId).toEqual(expect.any(String))
    expect(headers).toMatchObject({ accept: 'application/json' })
    for (const absent of ['content-type', 'idempotency-key']) expect(headers).not.toHaveProperty(absent)
    expect(responseInfo(result)).toMatchObject({ status: 200, requestId: expect.any(String), attempts: 1 })
  })

  it('a read rejects missing amounts, and amounts that JavaScript cannot represent', async (lab) => {
    const client = serving(lab)
    for (const amount of [2 ** 53, 1.5, '250', null, undefined]) {
      lab.fault({ type: 'transformBody', transform: (body) => ({ ...(body as object), amount }) })
      const error = await failure(call(client))
      expect(error).toBeInstanceOf(InvalidResponseError)
      expect(error).toMatchObject({ charged: 'no', status: 200, attempts: 1, issues: [{ path: 'amount' }] })
    }
  })

  it('a read rejects a body that is not its resource', async (lab) => {
    const client = serving(lab)
    for (const body of ['', 'no json', '[]', 'null', '5', '"text"', '{}', '{"amount":']) {
      const remove = lab.fault({ type: 'bytes', body, status: 200 }, 'always')
      const error = await failure(call(client))
      expect(error).toBeInstanceOf(InvalidResponseError)
      expect(error.charged).toBe('no')
      remove()
    }
  })
})

describe.each(all)('%s, when it fails,', (name, _path, expected, call, missing) => {
  it('a failed read names the permission that a 403 requires', async (lab) => {
    const requiredPermission = name.replace(/\..*/, ':read')
    const facts = { requiredPermission, charged: 'no', attempts: 1, serverCode: 'E403' }
    const error = await failure(call(serving(lab, refused(403))))
    expect(error).toMatchObject({ code: 'permission_denied', ...facts })
  })

  it('a failed read names what a 404 did not find, if that is documented', async (lab) => {
    const error = await failure(call(serving(lab, refused(404))))
    expect(error).toBeInstanceOf(NotFoundError)
    expect((error as NotFoundError).resource).toBe(missing)
  })

  it.each([408, 425, 429, 500, 502, 503, 504, 599])('a read is tried again after %i', async (lab, status) => {
    const fault = refused(status)
    const result = await call(serving(lab, fault, fault, fault))
    expect(lab.sandbox.requests).toHaveLength(4)
    expect(responseInfo(result)).toMatchObject({ status: 200, attempts: 4 })
  })

  it('a read rejects wrong options before anything is sent', async (lab) => {
    const client = lab.client()
    await expect((async () => call(client, { timeout: -1 }))()).rejects.toThrow(InvalidRequestError)
    const wrong = { issues: [{ path: 'retries' }] }
    await expect((async () => call(client, { retries: 1 }))()).rejects.toMatchObject(wrong)
    expect(lab.sandbox.requests).toHaveLength(0)
  })

  it('JSON that ends too early, in a body that ends as if it were whole, is requested again', async (lab) => {
    const found = await call(serving(lab, { type: 'cutBody', cleanly: true }))
    const shown = Array.isArray(expected) ? (found as Page<unknown>).items.slice(0, 1) : found
    expect(shown).toMatchObject(expected)
    expect(lab.sandbox.requests).toHaveLength(2)
  })
})

it('identifiers are encoded as one path segment', async (lab) => {
  const { orders, services } = lab.client({ maxRetries: 0 })
  lab.fault(refused(404), 2)
  await failure(orders.retrieve('a/b?c#d e%41'))
  await failure(services.retrieve('ü'))
  expect(lab.sandbox.requests.map(({ path }) => path)).toEqual([
    '/v1/orders/a%2Fb%3Fc%23d%20e%2541',
    '/v1/services/%C3%BC',
  ])
})

type Validate = StandardSchemaV1['~standard']['validate']

const schemaOf = (validate: Validate): StandardSchemaV1 => ({
  '~standard': { version: 1, vendor: 'test', validate },
})

describe("the caller's schemas", () => {
  type Row = Record<string, unknown>
  const upper = { order: { upper: 'PENDING' }, service: { id: 'svc_standard' }, balance: { euros: 10_000 } }

  it.each(['sync', 'async'])("the caller's schemas decide what is returned, %s", async (lab, when) => {
    serving(lab)
    const standard = <Output>(parse: (row: Row) => Output): StandardSchemaV1<unknown, Output> => {
      const validate = (row: unknown) => ({ value: parse(row as Row) })
      const later = async (row: unknown) => validate(row)
      return { '~standard': { version: 1, vendor: 'test', validate: when === 'async' ? later : validate } }
    }
    const client = lab.client({
      schemas: {
        order: standard((row) => ({ upper: String(row['status']).toUpperCase() })),
        service: standard((row) => ({ id: row['productId'] })),
        balance: standard((row) => ({ euros: Number(row['amount']) / 100 })),
      },
    })
    const found = await client.orders.retrieve('ord_1')
    expect(found).toEqual(upper.order)
    expect(responseInfo(found)).toMatchObject({ status: 200 })
    expect(await client.services.retrieve('svc_standard')).toEqual(upper.service)
    expect(await client.balance.retrieve()).toEqual(upper.balance)
    expect((await client.orders.list()).items).toEqual([upper.order])
    expect((await client.services.list()).items[0]).toEqual(upper.service)
    const until = (seen: object): boolean => 'upper' in seen && seen.upper === 'PENDING'
    expect(await client.orders.waitFor('ord_1', { until })).toEqual(upper.order)
  })

  const issue = { message: 'is not what was agreed', path: ['status'] }
  it.each<[string, Validate]>([
    ['sync', () => ({ issues: [issue] })],
    ['async', async () => ({ issues: [issue] })],
  ])("errors of the caller's schemas name the field, %s", async (lab, _when, validate) => {
    serving(lab)
    const schema = schemaOf(validate)
    const { orders, services, balance } = lab.client({
      schemas: { order: schema, service: schema, balance: schema },
    })
    const { message } = issue
    for (const [pending, path] of [
      [orders.retrieve('ord_1'), 'status'],
      [balance.retrieve(), 'status'],
      [orders.list(), '[0].status'],
      [services.list(), '[0].status'],
    ] as const)
      expect(await failure(pending)).toMatchObject({ code: 'invalid_response', issues: [{ path, message }] })
  })

  it.each([
    [undefined, '[0]'],
    [[], '[0]'],
    [[2, 'a'], '[0][2].a'],
    [['a', { key: 'b' }], '[0].a.b'],
  ])("errors of the caller's schemas name the place %j within a list's row", async (lab, path, shown) => {
    serving(lab)
    const schema = schemaOf(() => ({ issues: [{ message: 'no', ...(path === undefined ? {} : { path }) }] }))
    const { orders } = lab.client({ schemas: { order: schema } })
    expect(await failure(orders.list())).toMatchObject({ issues: [{ path: shown }] })
  })

  it.each<[string, string, Validate]>([
    ["the documented check precedes the caller's schemas", 'amount', () => ({ value: {} })],
    ['a throwing schema counts as an issue', '', throwing('no')],
  ])('%s', async (lab, _what, path, validate) => {
    serving(lab, ...(path === '' ? [] : [{ type: 'transformBody', patch: { amount: 0.5 } } as const]))
    const { orders } = lab.client({ schemas: { order: schemaOf(validate) } })
    expect(await failure(orders.retrieve('ord_1'))).toMatchObject({ issues: [{ path }] })
  })

  it('a schema without a result is not a failure, even for a charged order', async (lab) => {
    const nothing = schemaOf(() => ({}) as StandardSchemaV1.Result<unknown>)
    await expect(
      lab.client({ schemas: { order: nothing } }).orders.create(order('r1')),
    ).resolves.toBeUndefined()
  })

  it('a schema that rejects a created order leaves it reported as charged', async (lab) => {
    const client = lab.client({ schemas: { order: schemaOf(() => ({ issues: [issue] })) } })
    const error = await failure(client.orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes', status: 201, attempts: 1 })
    const names = { orderId: lab.charged(), externalOrderId: 'r1', idempotencyKey: lab.posts[0]?.key }
    expect(error).toMatchObject(names)
    expect(await client.withOptions({ schemas: {} }).orders.create(order('r1'))).toHaveProperty('status')
    expect(lab.posts).toHaveLength(1)
  })
})

describe('orders.waitFor', () => {
  /** A service whose order changes its status with each poll, up to the last one. */
  function through(...statuses: string[]) {
    const lab = new Lab()
    const begun = lab.runtime.now()
    serving(lab)
    const current = (): string => statuses[Math.min(lab.sandbox.requests.length, statuses.length) - 1] ?? ''
    const transform = (body: unknown) => ({ ...(body as object), status: current() })
    lab.fault({ type: 'transformBody', transform }, 'always')
    for (const status of new Set(statuses.filter((status) => /^\d+$/.test(status)))) {
      const match = { when: () => current() === status }
      lab.sandbox.faults.add({ match, action: refused(Number(status)), times: 'always' })
    }
    const { orders } = lab
    const waitFor = (options: Parameters<typeof orders.waitFor>[1]) => orders.waitFor('ord_1', options)
    const polls = () => lab.sandbox.requests.map(({ at }) => at - begun)
    return { lab, runtime: lab.runtime, polls, waitFor }
  }
  const isDone = ({ status }: { status: string }): boolean => status === 'done'
  const never = { until: () => false }

  it('waitFor returns the order as soon as it matches', async () => {
    const { waitFor, polls } = through('pending')
    const found = await waitFor({ until: ({ status }) => status === 'pending' })
    expect(found).toMatchObject(ORDER)
    expect(responseInfo(found)).toMatchObject({ status: 200, attempts: 1, durationMs: 0 })
    expect(polls()).toEqual([0])
  })

  it('waitFor polls after a second, then less and less often', async () => {
    const { waitFor, polls } = through(...Array(8).fill('pending'), 'done')
    await waitFor({ until: isDone, timeout: 600_000 })
    const waits = polls().flatMap((at, i, every) => (i === 0 ? [] : [at - (every[i - 1] ?? 0)]))
    const steps = [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]
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
    expect(await through('404', '404', '404', 'done').waitFor({ until })).toMatchObject({ status: 'done' })
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
    const facts = { charged: 'no', orderId: 'ord_1', attempts: polls().length }
    expect(error).toMatchObject({ code: 'timeout', deadline: 'total', ...facts })
    const reason = new DOMException('over', 'TimeoutError')
    const own = through('pending').waitFor({ ...never, signal: AbortSignal.abort(reason) })
    expect((await failure(own)).cause).toBe(reason)
    expect(runtime.monotonic()).toBe(40_000)
    expect(polls().at(-1)).toBe(39_000)
    expect(runtime.timers).toBe(0)
  })

  it('waitFor has a default timeout of 120 seconds', async () => {
    const { waitFor, runtime } = through('pending')
    expect(await failure(waitFor(never))).toMatchObject({ code: 'timeout' })
    expect(runtime.monotonic()).toBe(120_000)
  })

  it('waitFor ends in the same TimeoutError if the time runs out during a poll', async () => {
    const { lab, waitFor, runtime } = through()
    lab.sandbox.faults.add({ action: { type: 'stall' }, skip: 1, times: 'always' })
    const error = await failure(waitFor({ ...never, timeout: 20_000 }))
    const message = expect.stringContaining('in time')
    expect(error).toMatchObject({ code: 'timeout', deadline: 'total', message })
    expect(error.cause).toBeInstanceOf(TimeoutError)
    expect(runtime.monotonic()).toBeLessThan(20_010)
  })

  it('the TimeoutError of waitFor says nothing of a 404 that polls before and after have overcome', async () => {
    const { waitFor } = through('404', 'pending')
    const error = await failure(waitFor({ ...never, timeout: 5000 }))
    const message = expect.stringContaining('the order did not meet the condition')
    expect(error).toMatchObject({ message })
    expect(error.cause).toBeUndefined()
    const later = through('pending', '404')
    expect(await failure(later.waitFor({ ...never, timeout: 5000 }))).toMatchObject({ message })
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

  it.each<[object | undefined]>([
    [undefined],
    [{}],
    [{ until: 'done' }],
    [{ until: () => true, timeout: 0 }],
    [{ until: () => true, till: 1 }],
  ])('waitFor rejects the options %j', async (lab, options) => {
    await expect(lab.orders.waitFor('ord_1', options as never)).rejects.toThrow(InvalidRequestError)
    expect(lab.sandbox.requests).toHaveLength(0)
  })
})

test.each(['default', 'minimal-answers', 'rfc9457', 'strict-gateway', 'remembers-refusals'] as const)(
  'reads of a sandbox work with its switches set to %s',
  async (preset) => {
    const lab = new Lab({ preset })
    const { sandbox } = lab
    const client = lab.client()
    const { id } = sandbox.addOrder({ status: 'done', amount: 700 })
    expect(await client.orders.retrieve(id)).toMatchObject({ id, status: 'done', amount: 700 })
    expect(await client.balance.retrieve()).toEqual(BALANCE)
    expect(await client.services.retrieve('svc_standard')).toMatchObject({ productId: 'svc_standard' })
    const listed = await client.services.list().toArray({ max: 100 })
    const published = sandbox.services().filter((one) => one.published)
    expect(listed.map(({ productId }) => productId)).toEqual(published.map(({ productId }) => productId))
    expect((await client.orders.list().toArray({ max: 10 })).map((found) => found.id)).toEqual([id])
    const error = await failure(client.orders.retrieve('ord_none'))
    expect(error).toMatchObject({ code: 'not_found', resource: 'order', status: 404 })
  },
)

describe('JSON that always ends too early', () => {
  const cut = { type: 'cutBody', cleanly: true } as const

  it.each([0, 2])('JSON that ends too early is named as such, with %s retries', async (lab, maxRetries) => {
    lab.fault(cut, 'always')
    const error = await failure(lab.client().balance.retrieve({ maxRetries }))
    const issues = [{ message: 'is not JSON' }]
    expect(error).toMatchObject({ code: 'invalid_response', attempts: maxRetries + 1, status: 200, issues })
    expect(lab.sandbox.requests).toHaveLength(maxRetries + 1)
  })

  it("a proxy's page is not taken for truncated JSON, and is not requested again", async (lab) => {
    lab.fault({ type: 'bytes', body: '<html>' })
    await expect(lab.client().balance.retrieve()).rejects.toBeInstanceOf(InvalidResponseError)
    expect(lab.sandbox.requests).toHaveLength(1)
  })

  it('truncated JSON does not repeat a request that must not run twice', async (lab) => {
    lab.fault({ type: 'bytes', body: '{"amount":', commit: false })
    const pending = lab.client().request({ method: 'POST', path: '/v1/orders', body: {} })
    await expect(pending).rejects.toMatchObject({ code: 'invalid_response', charged: 'unknown' })
    expect(lab.sandbox.requests).toHaveLength(1)
  })
})

it('an error by which Next.js steers the rendering passes unchanged through a read', async (lab) => {
  const steered = Object.assign(new Error('Dynamic server usage'), { digest: 'DYNAMIC_SERVER_USAGE' })
  for (const [, , , call] of all) {
    const fetch = vi.fn(() => Promise.reject(steered))
    await expect(call(lab.client({ fetch }))).rejects.toBe(steered)
    expect(fetch).toHaveBeenCalledOnce()
  }
  expect(lab.settled.map(({ ok }) => ok)).toEqual(all.map(() => false))
})
