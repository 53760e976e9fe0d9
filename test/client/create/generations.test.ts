import type { FaultAction } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import type { ClientOptions } from '../../../src/options.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import {
  abandons,
  buys,
  drain,
  fails,
  fault,
  forgetKeys,
  healed,
  histories,
  IN_DOUBT,
  it,
  jump,
  keysOf,
  LOSES_RESPONSE,
  REFUSED,
  recorded,
  recovers,
  sent,
  times,
  topUp,
  wipe,
} from '../../support/history.ts'
import { failure, Lab, order, told } from '../../support/lab.ts'
import { on } from '../../support/stores.ts'

const MINUTE = 60_000
const REMEMBERS = { preset: 'remembers-refusals' } as const
const ONCE = { maxRetries: 0 } as const

const refused = fails(REFUSED)
const statusOf = (status: number, code: string) => fault({ type: 'status', status, code })

histories([
  [
    'a refused order keeps its key while the service does not remember refusals',
    [drain, fails({ ...REFUSED, attempts: 1 }), topUp, buys()],
    { keys: [0, 0], record: { generation: 0, attempts: 2 } },
  ],
  [
    'a refused order moves to the next key once, in the second call, after the same refusal again',
    [drain, refused, topUp, buys({ info: { attempts: 2 } })],
    { keys: [0, 0, 1], record: { generation: 1, attempts: 3 } },
    REMEMBERS,
  ],
  [
    'an order in doubt under its next key is not sent under its first key again',
    [
      ...[drain, refused, topUp],
      (lab) => void lab.sandbox.faults.add({ action: { type: 'commitThenDrop' }, skip: 1, times: 1 }),
      ...[fails(IN_DOUBT, { by: { maxRetries: 1 } }), buys()],
    ],
    { keys: [0, 0, 1, 1], charges: 1, record: { generation: 1 } },
    REMEMBERS,
  ],
  [
    'one retry is enough to move to the next key',
    [drain, refused, topUp, buys({ by: { maxRetries: 1 } })],
    { keys: [0, 0, 1] },
    REMEMBERS,
  ],
  [
    'the window of a next key begins only once the service checks it',
    [
      ...[drain, refused, statusOf(402, 'PAYMENT_REQUIRED'), statusOf(401, 'NO')],
      fails({ charged: 'no', attempts: 2 }),
      async (lab) => expect(await lab.record('ref:r1')).not.toHaveProperty('firstSentAt'),
    ],
    { keys: [0, 0, 1], record: { generation: 1 } },
  ],
  [
    'the window of a key does not begin with a request that a slow hook held back',
    [
      (lab) =>
        fails({ charged: 'no' }, { by: { hooks: { onRequest: () => lab.runtime.jump(30 * MINUTE) } } })(lab),
      async (lab) => expect(await lab.record('ref:r1')).not.toHaveProperty('firstSentAt'),
    ],
    { keys: [], record: { state: 'rejected' } },
  ],
  [
    'the record has the last refusal, whatever the one before it was',
    [drain, refused, statusOf(404, 'NOT_FOUND'), fails({ code: 'not_found', charged: 'no' })],
    { keys: [0, 0], record: { rejection: { kind: 'refused', status: 404 } } },
  ],
  [
    'a refusal is no refusal once the order is known to exist',
    [
      fault({ type: 'cutBody', after: 0 }, 3),
      fails({ code: 'invalid_response', charged: 'yes' }),
      fault({ type: 'status', status: 402, code: 'PAYMENT_REQUIRED' }),
      fails({ charged: 'yes' }),
      recorded({ state: 'created' }),
      buys(),
    ],
    { charges: 1 },
  ],
  [
    'each later call of a refused order moves to a key that was never sent, however often it is refused',
    [
      drain,
      ...times(4, refused),
      sent(0, 0, 1, 0, 2, 0, 3),
      recorded({ state: 'rejected', generation: 3, attempts: 7 }),
      topUp,
      buys(),
    ],
    { charges: 1 },
    REMEMBERS,
  ],
  [
    'a refused order does not move on after a different refusal',
    [
      ...[drain, refused, topUp, forgetKeys],
      ...[statusOf(422, 'OUT_OF_STOCK'), fails({ status: 422 })],
      ...[statusOf(422, 'TOO_MANY'), fails({ status: 422 })],
      ...[statusOf(404, 'TOO_MANY'), fails({ status: 404 })],
    ],
    { keys: [0, 0, 0, 0] },
    REMEMBERS,
  ],
  [
    'a refused order moves on after a response that says nothing of the order, because the refusal still counts',
    [
      ...[
        drain,
        refused,
        topUp,
        fault({ type: 'status', status: 429 }),
        fails({ status: 429 }, { by: ONCE }),
      ],
      ...[recorded({ rejection: { kind: 'refused', status: 402 } }), buys()],
    ],
    { keys: [0, 0, 0, 1] },
    REMEMBERS,
  ],
  [
    'a refused order does not move on from its first key after the refusal of a later one',
    [
      ...[statusOf(402, 'FIRST'), fails({ status: 402 })],
      ...[statusOf(402, 'FIRST'), statusOf(422, 'LATER'), fails({ status: 422 }), sent(0, 0, 1)],
      ...[statusOf(422, 'LATER'), fails({ status: 422 })],
    ],
    { keys: [0, 0, 1, 0] },
  ],
  [
    'a refused order is charged as unknown once a response proves neither a refusal nor a charge',
    [drain, refused, topUp, fault({ type: 'inProgress' }, 'always'), fails(IN_DOUBT)],
    { record: { state: 'open', generation: 0 } },
    REMEMBERS,
  ],
  [
    'a refused order does not move on if the second call receives the refusal after an attempt in doubt',
    [drain, refused, fault({ type: 'drop' }), fails({ ...REFUSED, ...IN_DOUBT, attempts: 2 })],
    { keys: [0, 0, 0], record: { state: 'open', ambiguous: true, hold: 'refused' } },
    REMEMBERS,
  ],
  [
    "a refused order starts with another key if the clock was set back an hour, which hides the first key's age",
    [drain, refused, topUp, jump(-60 * MINUTE), buys()],
    { keys: [0, 1] },
    REMEMBERS,
  ],
  [
    'without retries, a refused order keeps its first key, and changes it once that key may be forgotten',
    [
      ...[drain, fails(REFUSED, { by: ONCE }), topUp],
      fails({ charged: 'no', attempts: 1 }, { by: ONCE }),
      recorded({ state: 'rejected', generation: 0, attempts: 2 }),
      jump(20 * MINUTE),
      buys({ by: ONCE }),
    ],
    { keys: [0, 0, 1] },
    REMEMBERS,
  ],
  [
    'an order that was refused twice, then bought, is charged once even if its store was lost',
    [drain, refused, refused, topUp, buys(), sent(0, 0, 1, 0), wipe, buys()],
    { charges: 1 },
  ],
  [
    'an order is charged once if a store without its history requests another quantity',
    [
      fails({ charged: 'no' }, { request: order('r1', { quantity: 5000 }) }),
      buys({ by: { store: new MemoryStore() }, request: order('r1', { quantity: 1 }) }),
      ...times(
        3,
        fails({ code: 'idempotency_conflict', ...IN_DOUBT }, { request: order('r1', { quantity: 5 }) }),
      ),
    ],
    { charges: 1 },
  ],
  [
    'recovery does not repeat a refused order whose key was first sent too long ago',
    [
      ...[drain, refused, topUp, jump(15 * MINUTE)],
      ...[LOSES_RESPONSE, fails(IN_DOUBT, { by: ONCE }), jump(12 * MINUTE)],
      // The service remembers a key for 25 minutes from its first use.
      ...[forgetKeys, recovers('created')],
    ],
    { keys: [0, 0], charges: 1 },
  ],
  [
    'after the window of its first key, a refused order starts with an unsent key, and repeats that key',
    [drain, refused, refused, topUp, jump(20 * MINUTE), forgetKeys, LOSES_RESPONSE, buys()],
    { keys: [0, 0, 1, 2, 2], charges: 1 },
  ],
  ...([401, 429] as const).map(
    (status) =>
      [
        `an order keeps its first key after hours in which the service only responded ${status}`,
        [
          fault({ type: 'status', status }, 'always'),
          ...times(3, fails({ status }, { by: ONCE }), jump(60 * MINUTE)),
          ...[healed, buys({ by: ONCE }), wipe, buys()],
        ],
        { charges: 1 },
      ] as const,
  ),
  [
    'an order with random keys draws a new key after a refusal',
    [
      ...[drain, fails(REFUSED, { by: (lab) => lab.unlabelled() }), topUp],
      buys({ by: (lab) => lab.unlabelled() }),
    ],
    { keys: [0, 0, 1] },
    REMEMBERS,
  ],
])

it.each<[string, FaultAction]>([
  ...[401, 403, 408, 413, 425, 429, 500].map((status): [string, FaultAction] => [
    `${status}`,
    { type: 'status', status },
  ]),
  ['402 out of a proxy', { type: 'status', status: 402, html: true }],
  ['a reset', { type: 'drop' }],
  ['a redirect', { type: 'status', status: 307, headers: { location: 'https://elsewhere.test/' } }],
  ['another conflict', { type: 'status', status: 409, code: 'BUSY' }],
  ['in progress', { type: 'inProgress' }],
  ['no answer', { type: 'stall' }],
])('an order never moves on because of %s, however often it is received', async (lab, _what, action) => {
  const client = lab.client({ maxRetries: 1, totalTimeout: 60_000 })
  const remove = lab.fault(action, 'always')
  for (let call = 0; call < 3; call++) await failure(client.orders.create(order('r1')))
  remove()
  await client.orders.create(order('r1'))
  expect(new Set(keysOf(lab))).toEqual(new Set([0]))
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', generation: 0 })
  lab.sandbox.expectCharges(1)
})

it('a call that moved to another key and ends in doubt counts its requests once, and keeps that key', async () => {
  const lab = new Lab(REMEMBERS)
  lab.drain()
  await failure(lab.create())
  lab.sandbox.faults.add({
    action: { type: 'status', status: 307, headers: { location: 'https://elsewhere.test/' } },
    skip: 1,
  })
  const error = await failure(lab.create())
  expect(error).toMatchObject({ code: 'invalid_response', charged: 'unknown', attempts: 2 })
  expect(keysOf(lab)).toEqual([0, 0, 1])
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', generation: 1, attempts: 3 })
  lab.topUp()
  await lab.create()
  expect(keysOf(lab)).toEqual([0, 0, 1, 1])
})

it('the window of a key goes on if a later call was not checked by the service', async (lab) => {
  await lab.refused()
  const { firstSentAt } = (await lab.record('ref:r1')) ?? {}
  lab.runtime.jump(5 * MINUTE)
  lab.fault({ type: 'status', status: 401 })
  await failure(lab.create())
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', firstSentAt })
})

it('a refusal that a call has waited for is not from before it, whatever the clock of the other call', async () => {
  const lab = new Lab({ preset: 'remembers-refusals' })
  lab.drain()
  lab.fault({ type: 'delay', ms: 5000 }, 1, 'createOrder')
  const slow = lab.ahead(-20_000)
  const { ending } = await lab.begin(() => failure(slow.orders.create(order('r1'))))
  expect(await failure(lab.create())).toMatchObject(REFUSED)
  expect(await ending).toMatchObject({ code: 'payment_required' })
  expect(keysOf(lab)).toEqual([0, 0])
})

it('a refused order stays refused if the next call has no time to send it', async (lab) => {
  await lab.refused()
  const client = lab.elsewhere({ totalTimeout: 1900 }, on('update', 'answers_late', 1))
  expect(await failure(client.orders.create(order('r1')))).toMatchObject({ charged: 'no', attempts: 0 })
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', generation: 0 })
})

it('a refused order that cannot be claimed with its next key stays refused under its key', async () => {
  const lab = new Lab(REMEMBERS)
  lab.drain()
  await failure(lab.create())
  const client = lab.elsewhere({}, on('update', 'rejects', 2))
  expect(await failure(client.orders.create(order('r1')))).toMatchObject(REFUSED)
  expect(keysOf(lab)).toEqual([0, 0])
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', generation: 0 })
})

it.each<[boolean | undefined, string, header: string | undefined, ClientOptions, before?: number]>([
  [true, 'the response says so', 'true', {}],
  [false, 'the response says so', 'false', {}],
  [undefined, 'another process may have sent the key', undefined, {}],
  [false, 'only this call can have sent the key', undefined, { account: undefined }],
  [undefined, 'it has sent the key twice', undefined, { account: undefined }, 429],
  [undefined, 'an earlier call has sent the key', undefined, { account: undefined }, 402],
  [undefined, 'the response says so of a retry', 'true', {}, 429],
  [true, 'an earlier call may have bought it', undefined, { maxRetries: 0 }, 503],
  [false, 'an earlier call may have bought it, but the response says no', 'false', { maxRetries: 0 }, 503],
])('an order is reported as replayed (%s) if %s', async (lab, replayed, _if, header, options, before) => {
  const fetch: typeof globalThis.fetch = async (...request) => {
    const { body, status } = await lab.sandbox.fetch(...request)
    return new Response(body, {
      status,
      headers: header === undefined ? {} : { 'idempotent-replayed': header },
    })
  }
  const { orders } = lab.client({ fetch, store: new MemoryStore(), ...options })
  if (before !== undefined) lab.fault({ type: 'status', status: before })
  if (before === 402 || before === 503) await failure(orders.create(order('r1')))
  const { info } = await told(orders.create(order('r1')))
  expect(info?.replayed).toBe(replayed)
})

test.each([
  ['in this process', (lab: Lab) => lab.client()],
  ['in another process', (lab: Lab) => lab.elsewhere()],
])(
  'an order does not move on for a call that ran concurrently with the refused one, %s',
  async (_where, second) => {
    const lab = new Lab(REMEMBERS)
    lab.drain()
    lab.fault({ type: 'delay', ms: 3000 })
    const { ending } = await lab.begin(() => failure(lab.create()))
    const beside = await failure(second(lab).orders.create(order('r1')))
    expect((await ending).charged).toBe('no')
    expect(beside).toMatchObject(REFUSED)
    expect(new Set(keysOf(lab)).size).toBe(1)
    await failure(lab.create())
    expect(new Set(keysOf(lab)).size).toBe(2)
  },
)

it('an order does not move on if its key belongs to a concurrent call that was refused', async () => {
  const lab = new Lab(REMEMBERS)
  // All processes share this store.
  Object.defineProperty(lab.rows, 'durability', { value: 'server' })
  lab.drain()
  lab.fault({ type: 'status', status: 413 })
  const noted = { ...order('r1'), metadata: { externalOrderId: 'r1', note: 'another' } }
  expect(await failure(lab.create())).toMatchObject({ status: 413, charged: 'no' })
  lab.runtime.jump(1)
  // The slow call has read the record, but continues only after the other call was refused.
  lab.runtime.auto = false
  const slow = lab.elsewhere({}, on('get', 'answers_late', 1))
  const ending = failure(slow.orders.create(order('r1')))
  await lab.runtime.settle()
  const beside = failure(lab.elsewhere().orders.create(noted))
  await lab.runtime.settle()
  expect(await beside).toMatchObject(REFUSED)
  lab.runtime.auto = true
  expect(await ending).toMatchObject({ code: 'idempotency_conflict', charged: 'unknown' })
  expect(keysOf(lab)).toEqual([0, 0, 0])
  // Only a person knows whether the other payload was bought.
  expect(await failure(lab.create())).toMatchObject({ code: 'idempotency_conflict', charged: 'unknown' })
  expect(keysOf(lab)).toEqual([0, 0, 0, 0])
})

it('an order does not move on for a concurrent call, even if no time passed between the calls', async () => {
  const lab = new Lab(REMEMBERS)
  lab.drain()
  const client = lab.client()
  lab.runtime.auto = false
  const calls = [client.orders.create(order('r1')), client.orders.create(order('r1'))].map(failure)
  for (const error of await Promise.all(calls)) expect(error).toMatchObject({ charged: 'no' })
  expect(keysOf(lab)).toEqual([0, 0])
})

it('a call sends the first key again even if another call was refused with the next key meanwhile', async () => {
  const lab = new Lab(REMEMBERS)
  await lab.refused()
  lab.drain()
  lab.runtime.jump(1000)
  const stopped = lab.process()
  const get = lab.rows.get.bind(lab.rows)
  lab.rows.get = async (scope, id) => {
    lab.rows.get = get
    const row = await get(scope, id)
    stopped.stop()
    return row
  }
  // This call has received a refusal of the first key, and pauses while another call's second key
  // is refused.
  const { ending } = await lab.begin(() => failure(stopped.client.orders.create(order('r1'))))
  await failure(lab.create())
  expect(keysOf(lab)).toEqual([0, 0, 1])
  stopped.wake()
  expect(await ending).toMatchObject(REFUSED)
  expect(keysOf(lab)).toEqual([0, 0, 1, 0])
})

it('an order does not move on for a call whose slow read preceded the refusal', async () => {
  const lab = new Lab(REMEMBERS)
  lab.drain()
  lab.fault({ type: 'delay', ms: 500 })
  const { ending } = await lab.begin(() => failure(lab.create()))
  // Returns the row after two seconds, as it is then.
  const get = lab.rows.get.bind(lab.rows)
  lab.rows.get = async (scope, id) => {
    lab.rows.get = get
    await new Promise<void>((resolve) => lab.runtime.setTimer(resolve, 2000))
    return await get(scope, id)
  }
  await Promise.all([ending, failure(lab.elsewhere().orders.create(order('r1')))])
  expect(new Set(keysOf(lab)).size).toBe(1)
})

describe('a key that the caller gave', () => {
  const { metadata: _metadata, ...bare } = order('r1')
  const mine = { idempotencyKey: 'mine' }
  const SPENT = { code: 'invalid_request', charged: 'no', attempts: 0 } as const
  const OTHER_KEY = { code: 'idempotency_conflict', local: true, charged: 'no', attempts: 0 } as const
  const under = (idempotencyKey: string) => ({ by: ONCE, idempotencyKey })
  histories([
    [
      'a key that the caller gave never changes, however often it is refused',
      [
        drain,
        ...times(3, fails(REFUSED, mine), fails(REFUSED, { request: bare, idempotencyKey: 'also-mine' })),
      ],
      { keys: [0, 1, 0, 1, 0, 1] },
      REMEMBERS,
    ],
    [
      'a given key is not sent after its window, and another given key needs forget() first',
      [
        ...[drain, fails(REFUSED, mine), topUp, jump(20 * MINUTE)],
        fails({ ...SPENT, ...mine }, mine),
        fails(OTHER_KEY, { idempotencyKey: 'another' }),
        (lab) => lab.orders.forget({ externalOrderId: 'r1' }),
        ...[sent(0), buys({ idempotencyKey: 'another' })],
      ],
      { charges: 1 },
    ],
    [
      'a given key is not sent again after the order was abandoned, because a refusal would prove nothing',
      [LOSES_RESPONSE, fails(IN_DOUBT, under('a')), abandons(), fails(OTHER_KEY, under('a'))],
      { keys: [0] },
      { preset: 'balance-before-key', balance: 2500 },
    ],
  ])

  it('a random key of this package is kept if the caller passes it back', async () => {
    const lab = new Lab(REMEMBERS)
    const client = lab.unlabelled()
    lab.drain()
    const named = await failure(client.orders.create(order('r1')))
    const duplicate = await failure(client.orders.create(bare, { allowDuplicate: true }))
    for (let call = 0; call < 2; call++) {
      await failure(client.orders.create(order('r1'), { idempotencyKey: named.idempotencyKey as string }))
      await failure(client.orders.create(bare, { idempotencyKey: duplicate.idempotencyKey as string }))
    }
    expect(keysOf(lab)).toEqual([0, 1, 0, 1, 0, 1])
  })
})
