import {
  type ClientOptions,
  type CustomerOrderingClient,
  type Hooks,
  MemoryStore,
  responseInfo,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import type { SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { all, errorOf, throwing } from '../../support/calls.ts'
import { Lab } from '../../support/lab.ts'
import { storeOver } from '../../support/stores.ts'

type Event = readonly [hook: string, event: Readonly<Record<string, unknown>>]

/** Hooks that record their events. */
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

/** A client whose events are recorded. */
function watched(options: ClientOptions = {}, sandbox: SandboxOptions = {}) {
  const { events, hooks } = watching()
  const lab = new Lab(sandbox)
  const connect = (more: ClientOptions = {}) => lab.client({ hooks, ...options, ...more })
  return { events, sandbox: lab.sandbox, runtime: lab.runtime, client: connect(), connect }
}

const names = (events: readonly Event[]): string[] => events.map(([hook]) => hook)
const one = (events: readonly Event[], hook: string): Event[1] | undefined =>
  events.find(([name]) => name === hook)?.[1]

const nameless = { serviceId: 'svc_standard', target: '@x', quantity: 1 }
const request = { ...nameless, metadata: { externalOrderId: 'ref-1' } }
const create = (client: CustomerOrderingClient, options?: object): Promise<unknown> =>
  client.orders.create(request, options)

test('events of an order arrive in order, frozen, with the same call id', async () => {
  const { events, client, sandbox } = watched()
  sandbox.faults.add({ action: { type: 'commitThenDrop' } })
  sandbox.faults.add({ action: { type: 'inProgress' } })
  const order = await client.orders.create(request)
  const call = {
    callId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    operation: 'orders.create',
    method: 'POST',
    path: '/v1/orders',
    idempotencyKey: responseInfo(order)?.idempotencyKey,
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
        externalOrderId: 'ref-1',
        orderId: order.id,
        remembered: true,
      },
    ],
  ])
  expect(new Set(events.map(([, { callId }]) => callId)).size).toBe(1)
  for (const [, event] of events) expect(Object.isFrozen(event)).toBe(true)
})

test("the last event of a failed order has the error's code and the state of the charge", async () => {
  const { events, client, sandbox } = watched({ maxRetries: 0 })
  sandbox.faults.add({ action: { type: 'status', status: 402, code: 'NO_FUNDS' } })
  await errorOf(create(client))
  expect(names(events)).toEqual(['request', 'response', 'settled'])
  const refused = { ok: false, code: 'payment_required', status: 402, charged: 'no', attempts: 1 }
  expect(one(events, 'settled')).toMatchObject({ ...refused, externalOrderId: 'ref-1' })
})

test('an order that sends nothing has only the last event', async () => {
  const { events, client } = watched()
  await create(client)
  events.length = 0
  await create(client)
  expect(names(events)).toEqual(['settled'])
  const known = { ok: true, attempts: 0, charged: 'yes', externalOrderId: 'ref-1' }
  expect(one(events, 'settled')).toMatchObject(known)
})

test('events of concurrent orders have different call ids', async () => {
  const { events, client } = watched()
  const named = ['a', 'b', 'c'].map((externalOrderId) => ({ ...nameless, metadata: { externalOrderId } }))
  await Promise.all(named.map((one) => client.orders.create(one)))
  const calls = new Set(events.map(([, { callId }]) => callId))
  expect(calls.size).toBe(3)
  for (const call of calls) {
    const its = events.filter(([, { callId }]) => callId === call)
    expect(names(its)).toEqual(['request', 'response', 'settled'])
  }
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

  test.each(reads)(
    'events of reads name %s and its path %s, without a query',
    async (operation, path, call) => {
      const { events, client } = watched()
      await call(client)
      expect(names(events)).toEqual(['request', 'response', 'settled'])
      for (const [, event] of events) expect(event).toMatchObject({ operation, path, method: 'GET' })
      expect(JSON.stringify(events)).not.toContain('secret')
      expect(one(events, 'settled')).not.toHaveProperty('charged')
    },
  )

  test('each page of a list has its own events', async () => {
    const { events, client } = watched()
    const ids: string[] = []
    for await (const { productId } of client.services.list({ limit: 3 })) ids.push(productId)
    expect(ids.length).toBeGreaterThan(3)
    const settled = events.filter(([hook]) => hook === 'settled')
    expect(settled.length).toBeGreaterThan(1)
    expect(new Set(settled.map(([, { callId }]) => callId)).size).toBe(settled.length)
  })

  test('a read without an available API key still has its last event', async () => {
    const { events, client } = watched({ apiKey: throwing('vault is down') })
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

test('the last event of an order takes no facts from an error of another package', async () => {
  const { events, hooks } = watching()
  const lab = new Lab()
  const { runtime } = lab
  const connect = (options: ClientOptions = {}) => lab.client({ hooks, ...options })
  const foreign = Object.assign(new Error('no entropy'), { code: 'no_entropy', charged: 'no', status: 500 })
  // The first id is the call's own.
  const ids = [runtime.randomId()]
  runtime.randomId = () => {
    const id = ids.shift()
    if (id === undefined) throw foreign
    return id
  }
  const nameless = { serviceId: 'svc_standard', target: '@x', quantity: 1 }
  expect(await errorOf(connect().orders.create(nameless))).toBe(foreign)
  expect(names(events)).toEqual(['settled'])
  expect(one(events, 'settled')).toMatchObject({ ok: false, attempts: 0 })
  for (const fact of ['code', 'charged', 'status']) expect(one(events, 'settled')).not.toHaveProperty(fact)
})

test('an abort by a throwing hook is reported like any other abort', async () => {
  const controller = new AbortController()
  const { events, hooks } = watching()
  const lab = new Lab()
  const client = lab.client({ hooks: { ...hooks, onRequest: () => controller.abort('by a hook') } })
  const error = await errorOf(create(client, { signal: controller.signal }))
  expect(error).toMatchObject({ code: 'aborted', cause: 'by a hook' })
  expect(names(events)).toEqual(['response', 'settled'])
})

test('attempt numbers continue when a call moves to another key', async () => {
  const { events, client, sandbox } = watched({}, { preset: 'remembers-refusals' })
  sandbox.setBalance(sandbox.customerId, 0)
  await errorOf(create(client))
  sandbox.topUp(sandbox.customerId, 1_000_000)
  events.length = 0
  await create(client)
  const sent = events.filter(([hook]) => hook === 'request').map(([, event]) => event)
  expect(sent.map(({ attempt }) => attempt)).toEqual([1, 2])
  expect(new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2)
  expect(one(events, 'settled')).toMatchObject({ ok: true, attempts: 2 })
})

test('events of recover() name it as the operation of its requests', async () => {
  const { events, client, sandbox } = watched({ maxRetries: 0 })
  sandbox.faults.add({ action: { type: 'commitThenDrop' } })
  await errorOf(create(client))
  events.length = 0
  for await (const { outcome } of client.orders.recover()) expect(outcome).toBe('created')
  expect(names(events)).toEqual(['request', 'response', 'settled'])
  for (const [, { operation }] of events) expect(operation).toBe('orders.recover')
  const orderId = sandbox.ledger[0]?.orderId
  expect(one(events, 'settled')).toMatchObject({ ok: true, recovery: 'created', charged: 'yes', orderId })
  expect(new Set(events.map(([, { callId }]) => callId)).size).toBe(1)
})

test('recover() has a last event even if the store fails after the request', async () => {
  const { events, hooks } = watching()
  const rows = new MemoryStore()
  let gone = false
  const store = storeOver(rows, {
    get: (...given) => (gone ? Promise.reject(new Error('gone')) : rows.get(...given)),
    update: (...given) => (gone ? Promise.reject(new Error('gone')) : rows.update(...given)),
  })
  const lab = new Lab()
  const { sandbox } = lab
  const client = lab.client({ hooks, maxRetries: 0, store })
  sandbox.faults.add({ action: { type: 'commitThenDrop' } })
  await errorOf(create(client))
  events.length = 0
  const when = (): boolean => {
    gone = true
    return gone
  }
  sandbox.faults.add({ match: { when }, action: { type: 'drop' } })
  expect(await client.orders.recover()).toMatchObject({ stillOpen: 1 })
  expect(names(events)).toEqual(['request', 'response', 'settled'])
  const told = { ok: false, charged: 'unknown', recovery: 'still_open' }
  expect(one(events, 'settled')).toMatchObject(told)
  expect(new Set(events.map(([, { callId }]) => callId)).size).toBe(1)
})

test('an order that schemas.order rejects ends in a failure, after the schema has run', async () => {
  const { events, connect } = watched()
  const validate = async () => ({ issues: [{ message: 'is not liked' }] })
  const order: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate } }
  const error = await errorOf(connect({ schemas: { order } }).orders.create(request))
  expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes' })
  const told = { ok: false, code: 'invalid_response', charged: 'yes', status: 201, remembered: true }
  expect(one(events, 'settled')).toMatchObject({ ...told, externalOrderId: 'ref-1' })
  expect(names(events)).toEqual(['request', 'response', 'settled'])
})

test('a recovery that needs a person logs one warning, however many orders it found', async () => {
  const lines: unknown[][] = []
  const log =
    (level: string) =>
    (...line: unknown[]): void =>
      void lines.push([level, ...line])
  const logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  const lab = new Lab()
  const { sandbox, runtime } = lab
  const client = lab.client({ logger, maxRetries: 0, logLevel: 'info' })
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'cutBody' }, times: 'always' })
  for (const key of ['first', 'second'])
    await errorOf(client.orders.create(nameless, { idempotencyKey: key }))
  runtime.jump(60 * 60 * 1000)
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
