import type { Order, OrderName } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import type { RequestOptions } from '../../../src/call-options.ts'
import type { CustomerOrderingClient } from '../../../src/client.ts'
import { all, throwing } from '../../support/calls.ts'
import { it, keysOf } from '../../support/history.ts'
import { anonymousOrder, failure, Lab, order, told } from '../../support/lab.ts'
import { faultyStore, on, storeOver } from '../../support/stores.ts'

const BUSY = 2 * 60_000
/** A claim of two minutes is over under every clock that is wrong by at most five minutes. */
const SURELY_OVER = BUSY + 5 * 60_000 + 1
const HOUR = 60 * 60_000
/** Delay of a store that responds late. */
const LATE = 2000
const NAME = { externalOrderId: 'r1' }
const ABANDONED = { as: 'abandoned' } as const

/**
 * An order whose process died with the request in flight, and whose claim has expired. Returns the
 * id of its charge.
 */
async function leave(
  lab: Lab,
  charged: boolean,
  request = order('r1'),
  idempotencyKey?: string,
): Promise<string> {
  const options = idempotencyKey === undefined ? {} : { idempotencyKey }
  await lab.dies((orders) => orders.create(request, options), { charged })
  lab.runtime.jump(SURELY_OVER)
  return lab.sandbox.ledger[0]?.orderId ?? ''
}

const resolve = (
  lab: Lab,
  decision: typeof ABANDONED | string,
  {
    by = lab.client(),
    name = NAME,
    ...options
  }: RequestOptions & { by?: CustomerOrderingClient; name?: OrderName } = {},
) =>
  by.orders.resolve(
    name,
    typeof decision === 'string' ? { as: 'created', orderId: decision } : decision,
    options,
  )
const rejects = async (resolving: Promise<unknown>, error: object): Promise<void> =>
  expect(await failure(resolving)).toMatchObject(error)
const UNKNOWN = { charged: 'unknown' } as const
const OUT_OF_TIME = { code: 'timeout', deadline: 'total', ...UNKNOWN } as const

/** A client. After it has read an order or the list for the first time, something happens. */
const after = (lab: Lab, meanwhile: () => Promise<unknown>): CustomerOrderingClient => {
  let isRead = false
  const fetch: typeof globalThis.fetch = async (...request) => {
    const response = await lab.sandbox.fetch(...request)
    if (!isRead && response.status === 200) {
      isRead = true
      await meanwhile()
    }
    return response
  }
  return lab.client({ fetch })
}

/** A call is paused, and proves its charge after something happened. Returns the id of its order. */
async function provenLate(lab: Lab, meanwhile: () => Promise<unknown>): Promise<string | undefined> {
  const process = lab.process()
  lab.fault({ type: 'delay', ms: 1000, when: 'after' })
  const { ending } = await lab.begin(() => told(process.client.orders.create(order('r1'))))
  process.stop()
  lab.runtime.jump(SURELY_OVER)
  await meanwhile()
  process.wake()
  return (await ending).order?.id
}

it('resolve() as created reads the order and remembers it', async (lab) => {
  const orderId = await leave(lab, true)
  const order1 = { id: orderId, amount: 2500 }
  expect(await resolve(lab, orderId)).toMatchObject({ state: 'created', order: order1 })
  expect((await lab.create()).id).toBe(orderId)
  expect(lab.posts.length).toBe(1)
})

it('resolve() leaves the order open if the id does not exist, and reports a possible charge', async (lab) => {
  await leave(lab, true)
  const before = await lab.row('ref:r1')
  await rejects(resolve(lab, 'ord_none'), { code: 'not_found', ...UNKNOWN })
  expect(await lab.row('ref:r1')).toEqual(before)
})

it('resolve() costs one GET and a handful of store calls, however many orders are remembered', async (lab) => {
  for (let count = 0; count < 120; count++) await lab.create(order(`other-${count}`))
  await leave(lab, true)
  const id = lab.charged()
  const list = throwing('resolve() read every record')
  const store = { ...faultyStore(lab.rows, lab.runtime), list, listOpen: list }
  const requests = lab.sandbox.requests.length
  await resolve(lab, id, { by: lab.client({ store }) })
  expect(lab.sandbox.requests.slice(requests).map(({ method }) => method)).toEqual(['GET'])
  expect(store.calls).toEqual(['get', 'update'])
})

it('resolve() adopts an order that this store did not place, so that it is never bought again', async (lab) => {
  const { id } = lab.sandbox.addOrder({ quantity: 7, metadata: { externalOrderId: 'r1' } })
  const adopted = await resolve(lab, id)
  expect(adopted).toMatchObject({ slot: 'ref:r1', state: 'created', attempts: 0, order: { id } })
  expect(await resolve(lab, id)).toEqual(adopted)
  // The record has no payload, so every payload with the reference is this order.
  for (const quantity of [10, 20])
    expect((await lab.create(order('r1', { quantity }), { idempotencyKey: `k${quantity}` })).id).toBe(id)
  expect(await all(lab.orders.reconcile())).toMatchObject([{ kind: 'matched' }])
  expect(lab.posts).toEqual([])
  await rejects(resolve(lab, 'ord_other'), { code: 'invalid_request', charged: 'yes' })
})

it('resolve() adopts an order only under its own reference, and none under a key', async (lab) => {
  const { id } = lab.sandbox.addOrder({ metadata: { externalOrderId: 'r2' } })
  const message = expect.stringContaining("despite: ['externalOrderId']")
  await rejects(resolve(lab, id), { code: 'invalid_request', issues: [{ path: 'orderId' }], message })
  await rejects(resolve(lab, id, { name: { idempotencyKey: 'k1' } }), { code: 'invalid_request' })
  expect(await all(lab.orders.remembered({ since: 0 }))).toEqual([])
  const adopted = { as: 'created', orderId: id, despite: ['externalOrderId'] } as const
  await lab.orders.resolve(NAME, adopted)
  expect(await all(lab.orders.reconcile())).toMatchObject([{ kind: 'matched' }])
  // Its key is unknown, and no error or event may have an empty one.
  const error = await failure(lab.orders.resolve(NAME, { as: 'abandoned' }))
  expect(error.supportReference).toEqual({ orderId: id, ...NAME })
})

it('resolve() names every field that differs, and accepts the order despite exactly these', async (lab) => {
  await leave(lab, false)
  const metadata = { externalOrderId: 'r1' }
  const { id } = lab.sandbox.addOrder({
    serviceId: 'svc_standard',
    target: '@other',
    quantity: 9,
    metadata,
  })
  const message = expect.stringContaining("despite: ['quantity', 'target']")
  await rejects(resolve(lab, id), { code: 'invalid_request', ...UNKNOWN, attempts: 1, message })
  const { orders } = lab
  const created = { as: 'created', orderId: id } as const
  await rejects(orders.resolve(NAME, { ...created, despite: ['target'] }), { code: 'invalid_request' })
  const resolved = await orders.resolve(NAME, { ...created, despite: ['target', 'quantity'] })
  expect(resolved).toMatchObject({ state: 'created', order: { id } })
})

it('resolve() rejects an order with another reference, and an order other than the remembered one', async (lab) => {
  await leave(lab, true)
  const other = await lab.create(order('r2'))
  const wrong = { code: 'invalid_request', issues: [{ path: 'orderId' }] }
  await rejects(resolve(lab, other.id), { ...wrong, attempts: 1, ...NAME, ...UNKNOWN })
  const name = { externalOrderId: 'r2' }
  await rejects(resolve(lab, 'ord_other', { name }), { ...wrong, charged: 'yes' })
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
})

it("resolve() does not change the slot's next order if it began before the store responded", async (lab) => {
  await leave(lab, true, anonymousOrder())
  const { orderId = '', idempotencyKey } = lab.sandbox.ledger[0] ?? {}
  const name = { idempotencyKey: idempotencyKey ?? '' }
  const by = lab.elsewhere({}, on('update', 'done_unanswered'))
  lab.runtime.auto = false
  const resolving = resolve(lab, orderId, { by, name })
  resolving.catch(() => {})
  await lab.runtime.settle()
  // Another call buys the same again, and its response and process are lost.
  lab.fault({ type: 'stall', commit: true }, 1, 'createOrder')
  const process = lab.process()
  process.client.orders.create(anonymousOrder()).catch(() => {})
  await lab.runtime.settle()
  process.kill()
  lab.runtime.auto = true
  expect(await resolving).toMatchObject({ state: 'created', key: idempotencyKey, order: { id: orderId } })
  lab.runtime.jump(BUSY)
  const [recovered] = await all(lab.orders.recover())
  expect(recovered).toMatchObject({ outcome: 'created', order: { id: lab.sandbox.ledger[1]?.orderId } })
  expect(lab.sandbox.ledger).toHaveLength(2)
})

it('resolve() proves a charge despite a refusal, and repeats nothing for a settled order', async (lab) => {
  const orderId = await leave(lab, true)
  await resolve(lab, ABANDONED)
  const resolved = await resolve(lab, orderId)
  expect(resolved).toMatchObject({ state: 'created' })
  expect(await resolve(lab, orderId)).toEqual(resolved)
})

it('resolve() ends with its total time during the read of the order, and changes nothing', async (lab) => {
  const orderId = await leave(lab, true)
  const row = await lab.row('ref:r1')
  lab.fault({ type: 'stall' }, 1, 'retrieveOrder')
  const by = lab.elsewhere({}, on('get', 'answers_late'))
  const before = lab.runtime.monotonic()
  await rejects(resolve(lab, orderId, { by, totalTimeout: LATE + 1000 }), OUT_OF_TIME)
  expect(lab.runtime.monotonic() - before).toBe(LATE + 1000)
  expect(await lab.row('ref:r1')).toEqual(row)
})

const K1 = { idempotencyKey: 'k1' }
it.each<[string, (orders: Lab['orders']) => Promise<unknown>, object]>([
  ['resolve()', (orders) => orders.resolve(NAME, { as: 'created', orderId: 'ord_1' }), NAME],
  ['forget()', (orders) => orders.forget(NAME), {}],
  ['remembered() of a reference', (orders) => all(orders.remembered(NAME)), NAME],
  ['remembered() of a key', (orders) => all(orders.remembered(K1)), K1],
])("%s ends with the client's total time if the store cannot be read", async (lab, _what, call, names) => {
  await lab.create()
  const row = await lab.row('ref:r1')
  const hung = lab.elsewhere({ totalTimeout: 700 }, on('get', 'hangs'))
  const before = lab.runtime.monotonic()
  await rejects(call(hung.orders), { ...OUT_OF_TIME, ...names })
  expect(lab.runtime.monotonic() - before).toBe(700)
  expect(await lab.row('ref:r1')).toEqual(row)
})

it.each([['total time'], ['signal']] as const)(
  'resolve() ends within a second after its %s if the store does not answer the write',
  async (lab, ended) => {
    const orderId = await leave(lab, true)
    let silent = true
    const controller = new AbortController()
    const hung = lab.elsewhere({}, (operation) => {
      if (operation !== 'update' || !silent) return undefined
      if (ended === 'signal') lab.runtime.setTimer(() => controller.abort(), 700)
      return 'hangs'
    })
    const before = lab.runtime.monotonic()
    const options = ended === 'signal' ? { signal: controller.signal } : { totalTimeout: 700 }
    await rejects(resolve(lab, orderId, { by: hung, ...options }), { code: 'store', charged: 'yes', orderId })
    expect(lab.runtime.monotonic() - before).toBeLessThanOrEqual(1700)
    silent = false
    await hung.close()
    expect(await resolve(lab, orderId)).toMatchObject({ state: 'created', order: { id: orderId } })
  },
)

it('resolve() may exceed its time briefly to check a write made at the last moment', async (lab) => {
  const orderId = await leave(lab, true)
  const delayed = async <T>(milliseconds: number, result: Promise<T>): Promise<T> => {
    await new Promise<void>((done) => void lab.runtime.setTimer(done, milliseconds))
    return await result
  }
  let updated = false
  const store = storeOver(lab.rows, {
    get: (scope, id) => delayed(updated ? 300 : 0, lab.rows.get(scope, id)),
    update: (row, version) => {
      updated = true
      return delayed(900, lab.rows.update(row, version))
    },
    close: async () => {},
  })
  const before = lab.runtime.monotonic()
  const resolving = resolve(lab, orderId, { by: lab.client({ store }), totalTimeout: 1000 })
  expect(await resolving).toMatchObject({ state: 'created', order: { id: orderId } })
  expect(lab.runtime.monotonic() - before).toBe(900)
})

it.each(['rejects', 'loses'] as const)(
  'resolve() fails if the store %s the write, as when a call begins meanwhile',
  async (lab, fault) => {
    const orderId = await leave(lab, true)
    for (const decision of [orderId, ABANDONED])
      await rejects(resolve(lab, decision, { by: lab.elsewhere({}, on('update', fault)) }), { code: 'store' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
  },
)

describe('resolve(…, { as: "abandoned" })', () => {
  it('resolve() ends with its signal while it reads the record, and changes nothing', async (lab) => {
    await leave(lab, true)
    const before = await lab.row('ref:r1')
    const by = lab.elsewhere({}, on('get', 'hangs'))
    const cause = new Error('no longer wanted')
    const resolving = resolve(lab, ABANDONED, { by, signal: AbortSignal.abort(cause) })
    await rejects(resolving, { code: 'aborted', ...UNKNOWN, cause })
    expect(await lab.row('ref:r1')).toEqual(before)
  })

  it('after an abandoned order, the next call buys again with the next key', async (lab) => {
    await leave(lab, true)
    const record = await resolve(lab, ABANDONED)
    expect(record).toMatchObject({ state: 'rejected', generation: 1, rejection: { kind: 'abandoned' } })
    expect(record).not.toHaveProperty('firstSentAt')
    const again = await lab.create()
    expect(again.id).not.toBe(lab.sandbox.ledger[0]?.orderId)
    expect(keysOf(lab)).toEqual([0, 1])
    lab.sandbox.expectCharges(2)
  })

  it('an abandoned order keeps a key that is its own name', async (lab) => {
    await leave(lab, true, anonymousOrder(), 'k1')
    await resolve(lab, ABANDONED, { name: K1 })
    await lab.create(anonymousOrder(), K1)
    expect(lab.posts.map(({ key }) => key)).toEqual(['k1', 'k1'])
    lab.sandbox.expectCharges(1)
  })

  it.each([
    ['failed', false],
    ['died', true],
  ])(
    'after an abandoned order whose call %s, a refusal with the same key proves nothing',
    async (_how, dies) => {
      const lab = new Lab({ preset: 'balance-before-key', balance: 2500 })
      if (dies) await leave(lab, true, anonymousOrder(), 'k1')
      else {
        lab.fault({ type: 'commitThenDrop' })
        await failure(lab.create(anonymousOrder(), K1))
      }
      await resolve(lab, ABANDONED, { name: K1 })
      await rejects(lab.create(anonymousOrder(), K1), { code: 'payment_required', ...UNKNOWN })
      lab.sandbox.expectCharges(1)
    },
  )

  it('after an abandoned anonymous order, the same payload is a new order', async (lab) => {
    await leave(lab, false, anonymousOrder())
    // The key is the order's only name, which unresolved() shows.
    const record = await resolve(lab, ABANDONED, { name: { idempotencyKey: lab.posts[0]?.key ?? '' } })
    expect(record).toMatchObject({ slot: expect.stringMatching(/^anon:/), state: 'rejected' })
    await lab.create(anonymousOrder())
    expect(keysOf(lab)).toEqual([0, 1])
    lab.sandbox.expectCharges(1)
  })

  it('resolve() rejects an abandonment if another call has worked on the order since', async (lab) => {
    await leave(lab, false, anonymousOrder())
    const idempotencyKey = lab.posts[0]?.key ?? ''
    const by = lab.elsewhere({}, on('get', 'answers_late', 1))
    lab.runtime.auto = false
    const resolving = resolve(lab, ABANDONED, { by, name: { idempotencyKey } })
    resolving.catch(() => {})
    await lab.runtime.advance(1)
    lab.fault({ type: 'commitThenDrop' })
    const doubtful = failure(lab.client({ maxRetries: 0 }).orders.create(anonymousOrder()))
    await lab.runtime.advance(1)
    expect(await doubtful).toMatchObject({ code: 'connection', charged: 'unknown' })
    lab.runtime.auto = true
    await rejects(resolving, { code: 'store', ...UNKNOWN, idempotencyKey })
    // A later read shows that the order is bought.
    expect(await all(lab.orders.recover())).toMatchObject([{ outcome: 'created' }])
    lab.sandbox.expectCharges(1)
  })

  it.each<readonly [how: string, overtake: (lab: Lab) => Promise<unknown>]>([
    ['create()', (lab) => failure(lab.elsewhere({ maxRetries: 0 }).orders.create(order('r1')))],
    ['recover() with takeOver', (lab) => all(lab.elsewhere().orders.recover({ takeOver: true }))],
  ])(
    'an order cannot be abandoned while a call may send it whose claim %s took over',
    async (lab, _how, overtake) => {
      const asleep = { type: 'status', status: 429, headers: { 'retry-after': '60' } } as const
      lab.fault(asleep, 2, 'createOrder')
      const slow = lab.process()
      const { ending } = await lab.begin(() => slow.client.orders.create(order('r1')))
      slow.stop()
      await overtake(lab)
      const { orders } = lab.elsewhere()
      await expect(orders.resolve(NAME, ABANDONED)).rejects.toMatchObject({
        code: 'unresolved_order',
        charged: 'unknown',
      })
      const { id } = await orders.create(order('r1'))
      slow.wake()
      expect((await ending).id).toBe(id)
      expect(lab.charged()).toBe(id)
    },
  )

  it.each([
    ['whose clock is slow', -240, 0, 0],
    ['whose clock is slow, by a person whose clock is slow', -285, 0, -140],
    ['whose clock is slow, by a call whose clock is fast', -285, 140, 0],
    ['whose clock is slow, and a call whose clock was fast, and is marked so', -100, 40, 0],
  ])(
    'an order cannot be abandoned beside a call that was taken over, %s',
    async (lab, _what, slow, fast, person) => {
      lab.fault({ type: 'status', status: 429, headers: { 'retry-after': '18' } }, 1, 'createOrder')
      lab.fault({ type: 'drop' }, 1, 'createOrder')
      const at = (seconds: number, maxRetries = 4) => lab.ahead(seconds * 1000, { maxRetries })
      const { ending } = await lab.begin(() => at(slow).orders.create(order('r1')))
      await failure(at(fast, 0).orders.create(order('r1')))
      if (fast === 40) await told(at(0).orders.create(order('r1')))
      const decided = await told(resolve(lab, ABANDONED, { by: at(person) }) as never)
      expect(decided.error).toMatchObject({ code: 'unresolved_order' })
      await told(at(0).orders.create(order('r1')))
      const { id } = await ending
      expect(lab.charged()).toBe(id)
    },
  )

  it('an order may be abandoned once the calls are over whose claims were taken over', async (lab) => {
    await leave(lab, false)
    lab.fault({ type: 'drop' }, 1, 'createOrder')
    await all(lab.elsewhere().orders.recover())
    expect(await lab.elsewhere().orders.resolve(NAME, ABANDONED)).toMatchObject({ state: 'rejected' })
  })

  it('an order cannot be abandoned while a call may run under a clock that is wrong by five minutes', async (lab) => {
    await lab.dies((orders) => orders.create(order('r1')))
    const busy = { code: 'unresolved_order', ...UNKNOWN }
    const by = () => lab.elsewhere()
    lab.runtime.jump(SURELY_OVER - 1)
    await rejects(resolve(lab, ABANDONED, { by: by() }), busy)
    lab.runtime.jump(2 - 2 * SURELY_OVER)
    // The clock that wrote the record is ahead of this one.
    await rejects(resolve(lab, ABANDONED, { by: by() }), busy)
    lab.runtime.jump(2 * SURELY_OVER - 1)
    expect(await resolve(lab, ABANDONED, { by: by() })).toMatchObject({ state: 'rejected' })
  })

  it('resolve() accepts a record with a far-future time as older, because its clock was wrong', async (lab) => {
    lab.runtime.jump(HOUR)
    await leave(lab, false)
    lab.runtime.jump(-HOUR)
    expect(await resolve(lab, ABANDONED)).toMatchObject({ state: 'rejected' })
  })

  it('resolve() rejects a created order, and does nothing for a rejected one', async (lab) => {
    await lab.create()
    await rejects(resolve(lab, ABANDONED), { code: 'invalid_request', charged: 'yes' })
    lab.drain()
    await failure(lab.create(order('r2')))
    const before = await lab.row('ref:r2')
    await resolve(lab, ABANDONED, { name: { externalOrderId: 'r2' } })
    expect(await lab.row('ref:r2')).toEqual(before)
  })

  it('a late proof of the old charge overrides the abandonment: the reference stands for that order', async (lab) => {
    const id = await provenLate(lab, () => resolve(lab, ABANDONED))
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', generation: 0, order: { id } })
    expect((await lab.create()).id).toBe(id)
    lab.sandbox.expectCharges(1)
  })
})

it.each<[string, (lab: Lab, orderId: string, by: CustomerOrderingClient) => Promise<unknown>]>([
  [
    'recover() reads the list',
    async (_lab, id, by) =>
      expect(await all(by.orders.recover())).toMatchObject([{ outcome: 'created', order: { id } }]),
  ],
  [
    'another person confirms it',
    async (lab, id, by) =>
      await rejects(resolve(lab, id, { by }), { code: 'store', charged: 'yes', orderId: id }),
  ],
])(
  'an order that is abandoned and bought again with another payload while %s stays open',
  async (lab, _what, find) => {
    await lab.doubted()
    lab.runtime.jump(HOUR)
    const again = order('r1', { quantity: 20 })
    const by = after(lab, async () => {
      await resolve(lab, ABANDONED)
      await lab.doubted('commitThenDrop', again)
    })
    await find(lab, lab.charged(), by)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', generation: 1 })
    lab.runtime.jump(BUSY)
    expect(await lab.create(again)).toMatchObject({ quantity: 20 })
    lab.sandbox.expectCharges(2)
  },
)

it('resolve() is confirmed if another person has abandoned and confirmed the same order meanwhile', async (lab) => {
  await lab.doubted()
  lab.runtime.jump(HOUR)
  const id = lab.charged()
  const by = after(lab, async () => {
    await resolve(lab, ABANDONED)
    await resolve(lab, id)
  })
  expect(await resolve(lab, id, { by })).toMatchObject({ state: 'created', order: { id } })
})

it('resolve() does not overwrite a later order that has the same key', async (lab) => {
  const id = await leave(lab, true, anonymousOrder(), 'k1')
  const by = after(lab, async () => {
    await resolve(lab, ABANDONED, { name: K1 })
    await rejects(lab.create(anonymousOrder({ quantity: 20 }), K1), { code: 'idempotency_conflict' })
  })
  await rejects(resolve(lab, id, { by, name: K1 }), { code: 'store', charged: 'yes', orderId: id })
  expect(await lab.record('key:k1')).toMatchObject({ state: 'open', hold: 'conflict' })
})

it('an order that recover() finds is remembered with its own payload, not with a refused one', async (lab) => {
  await lab.doubted()
  lab.runtime.jump(HOUR)
  const by = after(lab, async () => {
    await resolve(lab, ABANDONED)
    lab.drain()
    await rejects(lab.create(order('r1', { quantity: 20 })), { code: 'payment_required' })
  })
  await all(by.orders.recover())
  expect((await lab.create()).id).toBe(lab.charged())
  await rejects(lab.create(order('r1', { quantity: 20 })), { code: 'idempotency_conflict', charged: 'yes' })
})

it.each<[string, (lab: Lab) => Promise<string>]>([
  [
    "resolve() names the fields that differ, even if the abandoned order's key has changed",
    async (lab) => {
      await lab.doubted()
      const before = await lab.record('ref:r1')
      expect((await resolve(lab, ABANDONED)).key).not.toBe(before?.key)
      return lab.charged()
    },
  ],
  [
    'resolve() names the field that differs from an order that was in conflict',
    async (lab) => {
      lab.fault({ type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' })
      await failure(lab.create())
      await resolve(lab, ABANDONED)
      return lab.sandbox.addOrder({ quantity: 10 }).id
    },
  ],
])('%s', async (lab, _what, giveUp) => {
  const orderId = await giveUp(lab)
  await resolve(lab, orderId)
  const conflict = { code: 'idempotency_conflict', charged: 'yes', fields: ['quantity'] }
  await rejects(lab.create(order('r1', { quantity: 20 })), conflict)
  expect((await lab.create()).id).toBe(orderId)
})

it('resolve() is rejected if another call stores another order while it reads this one', async (lab) => {
  await lab.doubted('drop')
  const { id: orderId } = lab.sandbox.addOrder({ quantity: 10, metadata: { externalOrderId: 'r1' } })
  let other: Promise<Order> | undefined
  const slow: typeof fetch = async (...request) => {
    const response = await lab.sandbox.fetch(...request)
    other ??= lab.elsewhere().orders.create(order('r1'))
    await other
    return response
  }
  const resolved = lab.client({ fetch: slow }).orders.resolve(NAME, { as: 'created', orderId })
  await rejects(resolved, { code: 'store', charged: 'yes' })
  expect(await lab.record('ref:r1')).toMatchObject({ order: { id: (await other)?.id } })
})

it('resolve() is rejected while a call works on the order, in any process', async (lab) => {
  const client = lab.client()
  lab.fault({ type: 'delay', ms: 5000, when: 'during' })
  const { ending } = await lab.begin(() => client.orders.create(order('r1')))
  for (const by of [client, lab.process().client])
    await rejects(resolve(lab, ABANDONED, { by }), { code: 'unresolved_order', ...UNKNOWN })
  await ending
  lab.charged()
})

it.each([
  [{ externalOrderId: 'nobody' }, 'externalOrderId'],
  [{ idempotencyKey: 'nobody' }, 'idempotencyKey'],
  [{ idempotencyKey: 'with space' }, 'idempotencyKey'],
  [{ externalOrderId: ' ' }, 'externalOrderId'],
  [{ externalOrderId: 'r1\r' }, 'externalOrderId'],
])('resolve() states which name is invalid: %j', async (lab, name, path) => {
  const resolved = resolve(lab, ABANDONED, { name })
  await rejects(resolved, { code: 'invalid_request', issues: [{ path }] })
})

describe('forget()', () => {
  const forget = (lab: Lab, name: OrderName = NAME, by = lab.client()) => by.orders.forget(name)

  it('after forget(), the next order with that name is a new one', async (lab) => {
    await lab.create()
    expect(await forget(lab)).toBe(true)
    expect(await lab.record('ref:r1')).toBeUndefined()
    lab.sandbox.forgetKeys()
    await lab.create()
    lab.sandbox.expectCharges(2)
  })

  it('forget() removes every trace of the order from the store', async (lab) => {
    await lab.create(order('secret-reference', { target: '@secret' }))
    await forget(lab, { externalOrderId: 'secret-reference' })
    const { rows } = await lab.rows.list(lab.place('').scope, { limit: 10 })
    expect(JSON.stringify(rows)).not.toMatch(/secret/)
  })

  it('forget() finds an order by its key, even one without a name', async (lab) => {
    await lab.create(anonymousOrder())
    await lab.create()
    for (const { key } of lab.posts) expect(await forget(lab, { idempotencyKey: key ?? '' })).toBe(true)
  })

  it('forget() returns false if no order with that name is remembered', async (lab) => {
    expect(await forget(lab)).toBe(false)
    await lab.create()
    await forget(lab)
    expect(await forget(lab)).toBe(false)
  })

  it('forget() rejects an unsettled order', async (lab) => {
    await leave(lab, true)
    await rejects(forget(lab), { code: 'invalid_request', ...UNKNOWN })
    lab.fault({ type: 'cutBody', after: 0 }, 3)
    await failure(lab.create(order('r2')))
    await rejects(forget(lab, { externalOrderId: 'r2' }), { code: 'invalid_request', charged: 'yes' })
  })

  it('forget() returns false if the record changed meanwhile, and fails if the outcome is unknown', async (lab) => {
    await lab.create()
    expect(await forget(lab, NAME, lab.elsewhere({}, on('update', 'loses')))).toBe(false)
    for (const fault of ['rejects', 'throws', 'hangs'] as const)
      await rejects(forget(lab, NAME, lab.elsewhere({}, on('update', fault))), { code: 'store' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created' })
  })

  it("forget() ends with the client's total time if the store does not respond to the removal", async (lab) => {
    await lab.create()
    const hung = lab.elsewhere({ totalTimeout: 700 }, on('update', 'hangs'))
    const before = lab.runtime.monotonic()
    await rejects(forget(lab, NAME, hung), { code: 'store', ...UNKNOWN })
    expect(lab.runtime.monotonic() - before).toBe(700)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created' })
  })

  it('forget() does not remove a charge that is proven afterwards', async (lab) => {
    const id = await provenLate(lab, async () => {
      await resolve(lab, ABANDONED)
      await forget(lab)
    })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', order: { id } })
  })
})
