import {
  type ClientOptions,
  CustomerOrderingClient,
  type Hooks,
  type Order,
  responseInfo,
  type StandardSchemaV1,
  type Transport,
} from 'customer-ordering-sdk'
import { describe, expect, vi } from 'vitest'
import { kyTransport } from '../../../src/http/ky-transport.ts'
import { all, errorOf, throwing } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { anonymousOrder, Lab, order } from '../../support/lab.ts'

type Event = readonly [hook: string, event: Readonly<Record<string, unknown>>]

function watching(): { readonly events: Event[]; readonly hooks: Hooks } {
  const events: Event[] = []
  const tell =
    (hook: string) =>
    (event: object): void =>
      void events.push([hook, event as Event[1]])
  const hooks = {
    onRequest: tell('request'),
    onResponse: tell('response'),
    onRetry: tell('retry'),
    onSettled: tell('settled'),
  }
  return { events, hooks }
}

function watched(lab: Lab, options: ClientOptions = {}) {
  const { events, hooks } = watching()
  return { events, client: lab.client({ hooks, ...options }) }
}

const names = (events: readonly Event[]): string[] => events.map(([hook]) => hook)
const one = (events: readonly Event[], hook: string): Event[1] | undefined =>
  events.find(([name]) => name === hook)?.[1]

const create = (client: CustomerOrderingClient, options?: object): Promise<Order> =>
  client.orders.create(order('r1'), options)

it('events of an order arrive in order, frozen, with the same call id', async (lab) => {
  const { events, client } = watched(lab)
  lab.fault({ type: 'commitThenDrop' })
  lab.fault({ type: 'inProgress' })
  const placed = await create(client)
  const call = {
    callId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    operation: 'orders.create',
    method: 'POST',
    path: '/v1/orders',
    idempotencyKey: responseInfo(placed)?.idempotencyKey,
  }
  const requestId = expect.stringMatching(/^\S+$/)
  expect(events).toEqual([
    ['request', { ...call, attempt: 1 }],
    ['response', { ...call, attempt: 1, outcome: 'failed', failure: 'ECONNRESET', durationMs: 0 }],
    ['retry', { ...call, attempt: 1, reason: 'now', delayMs: 0 }],
    ['request', { ...call, attempt: 2 }],
    ['response', { ...call, attempt: 2, outcome: 'answer', status: 409, requestId, durationMs: 0 }],
    ['retry', { ...call, attempt: 2, reason: 'poll', delayMs: 500, status: 409 }],
    ['request', { ...call, attempt: 3 }],
    ['response', { ...call, attempt: 3, outcome: 'answer', status: 201, requestId, durationMs: 0 }],
    [
      'settled',
      {
        ...call,
        ok: true,
        attempts: 3,
        durationMs: 500,
        status: 201,
        charged: 'yes',
        externalOrderId: 'r1',
        orderId: placed.id,
        remembered: true,
      },
    ],
  ])
  expect(new Set(events.map(([, { callId }]) => callId)).size).toBe(1)
  for (const [, event] of events) expect(Object.isFrozen(event)).toBe(true)
})

it("the last event of a failed order has the error's code and the state of the charge", async (lab) => {
  const { events, client } = watched(lab, { maxRetries: 0 })
  lab.fault({ type: 'status', status: 402, code: 'NO_FUNDS' })
  await errorOf(create(client))
  expect(names(events)).toEqual(['request', 'response', 'settled'])
  const refused = { ok: false, code: 'payment_required', status: 402, charged: 'no', attempts: 1 }
  expect(one(events, 'settled')).toMatchObject({ ...refused, externalOrderId: 'r1' })
})

it('the last event tells of an order whose headers the platform refuses, and the time of its schema', async (lab) => {
  const transport = kyTransport(lab.sandbox.fetch)
  const foreign = new Map([['x-city', 'Köln \u2192']])
  const headers = {
    get: () => null,
    forEach: (each: (value: string, name: string) => void) => foreign.forEach(each),
  }
  const send: Transport['send'] = async (request) => {
    const response = await transport.send(request)
    return { ...response, headers, read: (most) => response.read(most), discard: () => response.discard() }
  }
  const validate = (value: unknown) =>
    new Promise<{ value: unknown }>((resolve) => lab.runtime.setTimer(() => resolve({ value }), 120))
  const schema: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate } }
  const options = { transport: { send }, fetch: undefined, schemas: { order: schema } }
  const { events, client } = watched(lab, options)
  const placed = await create(client)
  expect(one(events, 'settled')).toMatchObject({ ok: true, charged: 'yes', status: 201, durationMs: 120 })
  expect([...(responseInfo(placed)?.headers ?? [])]).toEqual([])
})

it('an order that sends nothing has only the last event', async (lab) => {
  const { events, client } = watched(lab)
  await create(client)
  events.length = 0
  await create(client)
  expect(names(events)).toEqual(['settled'])
  const known = { ok: true, attempts: 0, charged: 'yes', externalOrderId: 'r1' }
  expect(one(events, 'settled')).toMatchObject(known)
})

describe('the events of reads', () => {
  const reads: [operation: string, path: string, (client: CustomerOrderingClient) => Promise<unknown>][] = [
    ['balance.retrieve', '/v1/balance', (client) => client.balance.retrieve()],
    ['services.list', '/v1/services', (client) => client.services.list({ limit: 3 })],
    ['services.retrieve', '/v1/services/svc_standard', (client) => client.services.retrieve('svc_standard')],
    ['orders.list', '/v1/orders', (client) => client.orders.list({ sourceSystem: 'secret' })],
    ['orders.retrieve', '/v1/orders/no%20order', (client) => errorOf(client.orders.retrieve('no order'))],
    [
      'request',
      '/v1/balance',
      (client) => client.request({ method: 'GET', path: '/v1/balance', query: { q: 'secret' } }),
    ],
  ]

  it.each(reads)('events name %s and its path %s, without a query', async (lab, operation, path, call) => {
    const { events, client } = watched(lab)
    await call(client)
    expect(names(events)).toEqual(['request', 'response', 'settled'])
    for (const [, event] of events) expect(event).toMatchObject({ operation, path, method: 'GET' })
    expect(JSON.stringify(events)).not.toContain('secret')
    expect(one(events, 'settled')).not.toHaveProperty('charged')
  })

  it('each page of a list has its own events', async (lab) => {
    const { events, client } = watched(lab)
    const ids: string[] = []
    for await (const { productId } of client.services.list({ limit: 3 })) ids.push(productId)
    expect(ids.length).toBeGreaterThan(3)
    const settled = events.filter(([hook]) => hook === 'settled')
    expect(settled.length).toBeGreaterThan(1)
    expect(new Set(settled.map(([, { callId }]) => callId)).size).toBe(settled.length)
  })

  it('a read without an available API key still has its last event', async (lab) => {
    const { events, client } = watched(lab, { apiKey: throwing('vault is down') })
    await errorOf(client.balance.retrieve())
    expect(events).toEqual([
      ['settled', expect.objectContaining({ ok: false, code: 'configuration', attempts: 0 })],
    ])
    events.length = 0
    await errorOf(create(client))
    expect(events).toEqual([
      ['settled', expect.objectContaining({ ok: false, code: 'configuration', attempts: 0, charged: 'no' })],
    ])
  })
})

it('the last event of an order takes no facts from an error of another package', async (lab) => {
  const foreign = Object.assign(new Error('no entropy'), { code: 'no_entropy', charged: 'no', status: 500 })
  const ids = [lab.runtime.randomId()]
  lab.runtime.randomId = () => {
    const id = ids.shift()
    if (id === undefined) throw foreign
    return id
  }
  const { events, client } = watched(lab)
  expect(await errorOf(client.orders.create(anonymousOrder()))).toBe(foreign)
  expect(names(events)).toEqual(['settled'])
  expect(one(events, 'settled')).toMatchObject({ ok: false, attempts: 0 })
  for (const fact of ['code', 'charged', 'status']) expect(one(events, 'settled')).not.toHaveProperty(fact)
})

it('an abort by a hook is reported like any other abort, and sends nothing', async (lab) => {
  const controller = new AbortController()
  const { events, hooks } = watching()
  const client = lab.client({ hooks: { ...hooks, onRequest: () => controller.abort('by a hook') } })
  const error = await errorOf(create(client, { signal: controller.signal }))
  expect(error).toMatchObject({ code: 'aborted', cause: 'by a hook', charged: 'no' })
  expect(lab.sandbox.requests).toEqual([])
  expect(names(events)).toEqual(['response', 'settled'])
})

it.each([
  ['the deadline of the call', 'monotonic', { code: 'timeout', deadline: 'total' }],
  ['the window of the key by the clock', 'now', { code: 'connection' }],
] as const)('no request leaves if a hook returns only after %s', async (lab, _what, clock, error) => {
  let blocked = 0
  const runtime = { ...lab.runtime, [clock]: () => lab.runtime[clock]() + blocked * 30 * 60_000 }
  const hooks = { onRequest: () => void blocked++ }
  const { orders, balance } = new CustomerOrderingClient({ ...lab.options, hooks }, runtime)
  expect(await errorOf(orders.create(order('r1')))).toMatchObject({ ...error, charged: 'no' })
  if (clock === 'monotonic') expect(await errorOf(balance.retrieve())).toMatchObject(error)
  expect(lab.sandbox.requests).toEqual([])
})

it('a repeated refusal does not change the key if a hook returns only after the deadline of the call', async () => {
  const lab = new Lab({ preset: 'remembers-refusals' })
  await lab.refused()
  let blocked = 0
  const runtime = { ...lab.runtime, monotonic: () => lab.runtime.monotonic() + blocked * 30 * 60_000 }
  const { orders } = new CustomerOrderingClient(
    { ...lab.options, hooks: { onResponse: () => void blocked++ } },
    runtime,
  )
  expect(await errorOf(orders.create(order('r1')))).toMatchObject({ code: 'payment_required', charged: 'no' })
  expect(await lab.record('ref:r1')).toMatchObject({
    generation: 0,
    rejection: { kind: 'refused', status: 402 },
  })
})

it('attempt numbers continue when a call moves to another key', async () => {
  const lab = new Lab({ preset: 'remembers-refusals' })
  await lab.refused()
  const { events, client } = watched(lab)
  await create(client)
  const sent = events.filter(([hook]) => hook === 'request').map(([, event]) => event)
  expect(sent.map(({ attempt }) => attempt)).toEqual([1, 2])
  expect(new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2)
  expect(one(events, 'settled')).toMatchObject({ ok: true, attempts: 2 })
})

it('events of recover() name it as the operation of its requests', async (lab) => {
  const { events, client } = watched(lab)
  await lab.doubted()
  expect(await client.orders.recover()).toMatchObject({ created: 1 })
  expect(names(events)).toEqual(['request', 'response', 'settled'])
  for (const [, { operation }] of events) expect(operation).toBe('orders.recover')
  const told = { ok: true, recovery: 'created', charged: 'yes', orderId: lab.charged() }
  expect(one(events, 'settled')).toMatchObject(told)
  expect(new Set(events.map(([, { callId }]) => callId)).size).toBe(1)
})

it('recover() has a last event even if the store fails after the request', async (lab) => {
  await lab.doubted()
  const { events, hooks } = watching()
  const gone = () => (lab.posts.length > 1 ? 'rejects' : undefined)
  const client = lab.elsewhere({ hooks, maxRetries: 0 }, gone)
  lab.fault({ type: 'drop' })
  expect(await client.orders.recover()).toMatchObject({ stillOpen: 1 })
  expect(names(events)).toEqual(['request', 'response', 'settled'])
  const told = { ok: false, charged: 'unknown', recovery: 'still_open' }
  expect(one(events, 'settled')).toMatchObject(told)
  expect(new Set(events.map(([, { callId }]) => callId)).size).toBe(1)
})

it('an order that schemas.order rejects ends in a failure, after the schema has run', async (lab) => {
  const validate = async () => ({ issues: [{ message: 'is not liked' }] })
  const schema: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate } }
  const { events, client } = watched(lab, { schemas: { order: schema } })
  const error = await errorOf(create(client))
  expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes' })
  const told = { ok: false, code: 'invalid_response', charged: 'yes', status: 201, remembered: true }
  expect(one(events, 'settled')).toMatchObject({ ...told, externalOrderId: 'r1' })
  expect(names(events)).toEqual(['request', 'response', 'settled'])
})

it('an unreadable record is named by its row, and its event has no empty key', async (lab) => {
  await lab.doubted('drop')
  await lab.tamper('ref:r1', { key: undefined })
  const warn = vi.fn()
  const logger = { ...console, warn }
  await lab.client({ logger }).orders.recover()
  expect(lab.settled.at(-1)).toMatchObject({ recovery: 'needs_attention' })
  expect(lab.settled.at(-1)).not.toHaveProperty('idempotencyKey')
  const references = [expect.stringMatching(/^row:/)]
  expect(warn).toHaveBeenLastCalledWith(expect.any(String), { orders: 1, references })
})

it('a recovery that needs a person logs one warning, however many orders it found', async (lab) => {
  const lines: unknown[][] = []
  const log =
    (level: string) =>
    (...line: unknown[]): void =>
      void lines.push([level, ...line])
  const logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  const client = lab.client({ logger, maxRetries: 0, logLevel: 'info' })
  lab.fault({ type: 'cutBody' }, 'always', 'createOrder')
  for (const key of ['first', 'second'])
    await errorOf(client.orders.create(anonymousOrder(), { idempotencyKey: key }))
  lab.runtime.jump(60 * 60 * 1000)
  lines.length = 0
  expect(await all(client.orders.recover())).toMatchObject([
    { outcome: 'needs_attention', record: { state: 'created' } },
    { outcome: 'needs_attention', record: { state: 'created' } },
  ])
  expect(lines).toMatchObject([
    ['info', expect.any(String), { recovery: 'needs_attention', charged: 'yes' }],
    ['info', expect.any(String), { recovery: 'needs_attention', charged: 'yes' }],
    ['warn', 'customer-ordering-sdk: orders need attention', { orders: 2, references: ['first', 'second'] }],
  ])
})
