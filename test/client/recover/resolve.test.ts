import { describe, expect } from 'vitest'
import { all } from '../../support/all.ts'
import { on } from '../../support/faulty-store.ts'
import { anonymousOrder, failure, Lab, order, told } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'
import { storeOver } from '../../support/store-over.ts'

const BUSY = 2 * 60_000
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
  const process = lab.process()
  lab.fault({ type: 'stall', commit: charged }, 1, 'createOrder')
  const options = idempotencyKey === undefined ? {} : { idempotencyKey }
  await lab.begin(() => process.client.orders.create(request, options))
  process.kill()
  lab.runtime.jump(BUSY)
  return lab.sandbox.ledger[0]?.orderId ?? ''
}

const keys = (lab: Lab): (string | null)[] => [...new Set(lab.posts.map(({ key }) => key))]

describe('resolve(…, { as: "created" })', () => {
  it('resolve() as created reads the order and remembers it', async (lab) => {
    const orderId = await leave(lab, true)
    const record = await lab.client().orders.resolve(NAME, { as: 'created', orderId })
    expect(record).toMatchObject({ state: 'created', order: { id: orderId, amount: 2500 } })
    expect((await lab.create()).id).toBe(orderId)
    expect(lab.posts.length).toBe(1)
  })

  it('resolve() leaves the order open if the id does not exist, and reports a possible charge', async (lab) => {
    await leave(lab, true)
    const before = await lab.row('ref:r1')
    const error = await failure(lab.client().orders.resolve(NAME, { as: 'created', orderId: 'ord_none' }))
    expect(error).toMatchObject({ code: 'not_found', charged: 'unknown' })
    expect(error.message).toMatch(
      /returned 404 .*Check the ids, the API key and baseUrl, then call again\. The wallet may have been charged\./,
    )
    expect(await lab.row('ref:r1')).toEqual(before)
  })

  it('resolve() rejects an id that another reference already has, even if the service does not show it', async () => {
    const lab = new Lab({ preset: 'minimal-answers' })
    const mine = await leave(lab, true)
    const other = await lab.create(order('r2'))
    const resolve = (orderId: string) => lab.client().orders.resolve(NAME, { as: 'created', orderId })
    await expect(resolve(other.id)).rejects.toMatchObject({
      code: 'invalid_request',
      attempts: 1,
      issues: [{ path: 'orderId', message: expect.stringContaining('another reference') }],
      charged: 'unknown',
    })
    expect(await resolve(mine)).toMatchObject({ state: 'created', order: { id: mine } })
  })

  it('resolve() counts its request if the store is too slow to show whether the id is taken', async (lab) => {
    const orderId = await leave(lab, true)
    const { rows, runtime } = lab
    const list = rows.list.bind(rows)
    rows.list = async (...query) => {
      await new Promise<void>((resolve) => runtime.setTimer(resolve, LATE))
      return await list(...query)
    }
    const client = lab.client()
    const resolving = client.orders.resolve(NAME, { as: 'created', orderId }, { totalTimeout: 700 })
    await expect(resolving).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('This call placed no order and changed no record.'),
      charged: 'unknown',
      attempts: 1,
    })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
    await client.close()
    await runtime.advance(10 * LATE)
  })

  it('resolve() rejects an order with another reference, and an order other than the remembered one', async (lab) => {
    await leave(lab, true)
    const other = await lab.create(order('r2'))
    await expect(
      lab.client().orders.resolve(NAME, { as: 'created', orderId: other.id }),
    ).rejects.toMatchObject({
      code: 'invalid_request',
      attempts: 1,
      issues: [{ path: 'orderId' }],
      externalOrderId: 'r1',
      charged: 'unknown',
    })
    await expect(
      lab.client().orders.resolve({ externalOrderId: 'r2' }, { as: 'created', orderId: 'ord_other' }),
    ).rejects.toMatchObject({ code: 'invalid_request', issues: [{ path: 'orderId' }], charged: 'yes' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
  })

  it("resolve() does not change the slot's next order if it began before the store responded", async (lab) => {
    await leave(lab, true, anonymousOrder())
    const [first] = lab.sandbox.ledger
    const idempotencyKey = first?.idempotencyKey ?? ''
    const orderId = first?.orderId ?? ''
    const slow = lab.elsewhere({}, on('update', 'done_unanswered'))
    lab.runtime.auto = false
    const resolving = slow.orders.resolve({ idempotencyKey }, { as: 'created', orderId })
    resolving.catch(() => {})
    await lab.runtime.settle()
    // Another call buys the same again, and its response and process are lost.
    lab.fault({ type: 'stall', commit: true }, 1, 'createOrder')
    const process = lab.process()
    const buying = process.client.orders.create(anonymousOrder())
    buying.catch(() => {})
    await lab.runtime.settle()
    process.kill()
    lab.runtime.auto = true
    expect(await resolving).toMatchObject({ state: 'created', key: idempotencyKey, order: { id: orderId } })
    lab.runtime.jump(BUSY)
    const [recovered] = await all(lab.client().orders.recover())
    expect(recovered).toMatchObject({ outcome: 'created', order: { id: lab.sandbox.ledger[1]?.orderId } })
    expect(lab.sandbox.ledger).toHaveLength(2)
  })

  it("resolve() accepts the person's id if the service returns no references", async () => {
    const lab = new Lab({ preset: 'minimal-answers' })
    const orderId = await leave(lab, true)
    await lab.client().orders.resolve(NAME, { as: 'created', orderId })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', order: { id: orderId } })
  })

  it('resolve() proves a charge despite a refusal, and repeats nothing for a settled order', async (lab) => {
    const orderId = await leave(lab, true)
    await lab.client().orders.resolve(NAME, ABANDONED)
    const resolved = await lab.client().orders.resolve(NAME, { as: 'created', orderId })
    expect(resolved).toMatchObject({ state: 'created' })
    expect(await lab.client().orders.resolve(NAME, { as: 'created', orderId })).toEqual(resolved)
  })

  it('resolve() has one total time for its store calls and the read of the order', async (lab) => {
    const orderId = await leave(lab, true)
    const slow = lab.elsewhere({}, on('get', 'answers_late'))
    lab.fault({ type: 'stall' }, 1, 'retrieveOrder')
    const before = lab.runtime.monotonic()
    const resolving = slow.orders.resolve(NAME, { as: 'created', orderId }, { totalTimeout: LATE + 1000 })
    await expect(resolving).rejects.toMatchObject({ code: 'timeout', deadline: 'total', charged: 'unknown' })
    expect(lab.runtime.monotonic() - before).toBe(LATE + 1000)
  })

  it('resolve() ends with its total time during the search for another record, and changes nothing', async (lab) => {
    const orderId = await leave(lab, true)
    const before = await lab.row('ref:r1')
    const store = storeOver(lab.rows, { list: () => new Promise(() => {}), close: async () => {} })
    const startedAt = lab.runtime.monotonic()
    const resolving = lab
      .client({ store })
      .orders.resolve(NAME, { as: 'created', orderId }, { totalTimeout: 700 })
    await expect(resolving).rejects.toMatchObject({ code: 'timeout', deadline: 'total', charged: 'unknown' })
    expect(lab.runtime.monotonic() - startedAt).toBe(700)
    expect(await lab.row('ref:r1')).toEqual(before)
  })

  it.each([
    ['total time', 'does not answer the write, which it stores later', 'update'],
    ['signal', 'does not answer the write, which it stores later', 'update'],
    ['total time', 'does not answer what became of the record', 'get'],
    ['signal', 'does not answer what became of the record', 'get'],
  ] as const)('resolve() ends within a second after its %s if the store %s', async (ended, _how, hanging) => {
    const lab = new Lab()
    const orderId = await leave(lab, true)
    let silent = true
    const controller = new AbortController()
    const hung = lab.elsewhere({}, (operation, count) => {
      if (operation === 'update' && silent && ended === 'signal') {
        if (hanging === 'get') controller.abort()
        else lab.runtime.setTimer(() => controller.abort(), 700)
      }
      return operation === hanging && silent && (hanging === 'update' || count > 1) ? 'hangs' : undefined
    })
    const before = lab.runtime.monotonic()
    const options = ended === 'signal' ? { signal: controller.signal } : { totalTimeout: 700 }
    const resolving = hung.orders.resolve(NAME, { as: 'created', orderId }, options)
    await expect(resolving).rejects.toMatchObject({ code: 'store', charged: 'unknown' })
    expect(lab.runtime.monotonic() - before).toBeLessThanOrEqual(1700)
    silent = false
    await hung.close()
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', order: { id: orderId } })
  })

  it('resolve() waits for a slow store as long as it has time', async (lab) => {
    const orderId = await leave(lab, true)
    const slow = lab.elsewhere({}, () => 'answers_late')
    const resolving = slow.orders.resolve(NAME, { as: 'created', orderId })
    expect(await resolving).toMatchObject({ state: 'created', order: { id: orderId } })
  })

  it('resolve() may exceed its time briefly to check a write made at the last moment', async (lab) => {
    const orderId = await leave(lab, true)
    const delayed = async <T>(milliseconds: number, result: Promise<T>): Promise<T> => {
      await new Promise<void>((resolve) => void lab.runtime.setTimer(resolve, milliseconds))
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
    const resolving = lab
      .client({ store })
      .orders.resolve(NAME, { as: 'created', orderId }, { totalTimeout: 1000 })
    expect(await resolving).toMatchObject({ state: 'created', order: { id: orderId } })
    expect(lab.runtime.monotonic() - before).toBe(1200)
  })

  it('resolve() fails if the store rejects the write', async (lab) => {
    const orderId = await leave(lab, true)
    const broken = lab.elsewhere({}, on('update', 'rejects'))
    await expect(broken.orders.resolve(NAME, { as: 'created', orderId })).rejects.toMatchObject({
      code: 'store',
      charged: 'unknown',
      message: expect.stringContaining('The wallet may have been charged.'),
    })
  })
})

describe('resolve(…, { as: "abandoned" })', () => {
  it('resolve() ends with its total time or its signal while it reads the record, and changes nothing', async (lab) => {
    await leave(lab, true)
    const before = await lab.row('ref:r1')
    const hung = lab.elsewhere({}, on('get', 'hangs'))
    const startedAt = lab.runtime.monotonic()
    await expect(hung.orders.resolve(NAME, ABANDONED, { totalTimeout: 700 })).rejects.toMatchObject({
      code: 'timeout',
      deadline: 'total',
      charged: 'unknown',
      externalOrderId: 'r1',
    })
    expect(lab.runtime.monotonic() - startedAt).toBe(700)
    const reason = new Error('no longer wanted')
    const resolving = hung.orders.resolve(NAME, ABANDONED, { signal: AbortSignal.abort(reason) })
    await expect(resolving).rejects.toMatchObject({ code: 'aborted', charged: 'unknown', cause: reason })
    expect(await lab.row('ref:r1')).toEqual(before)
  })

  it('after an abandoned order, the next call buys again with the next key', async (lab) => {
    await leave(lab, true)
    const record = await lab.client().orders.resolve(NAME, ABANDONED)
    expect(record).toMatchObject({ state: 'rejected', generation: 1, rejection: { kind: 'abandoned' } })
    // The order's new key was never sent.
    expect(record).not.toHaveProperty('firstSentAt')
    const again = await lab.create()
    expect(again.id).not.toBe(lab.sandbox.ledger[0]?.orderId)
    expect(keys(lab)).toHaveLength(2)
    lab.sandbox.expectCharges(2)
  })

  it('an abandoned order keeps a key that is its own name', async (lab) => {
    await leave(lab, true, anonymousOrder(), 'k1')
    await lab.client().orders.resolve({ idempotencyKey: 'k1' }, ABANDONED)
    await lab.create(anonymousOrder(), { idempotencyKey: 'k1' })
    expect(keys(lab)).toEqual(['k1'])
    lab.sandbox.expectCharges(1)
  })

  it('after an abandoned order, a refusal with the same key still proves nothing', async () => {
    const lab = new Lab({ preset: 'balance-before-key', balance: 2500 })
    lab.fault({ type: 'commitThenDrop' })
    await failure(lab.create(anonymousOrder(), { idempotencyKey: 'k1' }))
    await lab.client().orders.resolve({ idempotencyKey: 'k1' }, ABANDONED)
    const error = await failure(lab.create(anonymousOrder(), { idempotencyKey: 'k1' }))
    expect(error).toMatchObject({ code: 'payment_required', charged: 'unknown' })
    lab.sandbox.expectCharges(1)
  })

  it('after an abandoned anonymous order, the same payload is a new order', async (lab) => {
    await leave(lab, false, anonymousOrder())
    const key = lab.posts[0]?.key ?? ''
    // The key is the order's only name, which unresolved() shows.
    const record = await lab.client().orders.resolve({ idempotencyKey: key }, ABANDONED)
    expect(record).toMatchObject({ slot: expect.stringMatching(/^anon:/), state: 'rejected' })
    await lab.create(anonymousOrder())
    expect(keys(lab)).toHaveLength(2)
    lab.sandbox.expectCharges(1)
  })

  it('resolve() rejects an abandonment if another call has worked on the order since', async (lab) => {
    await leave(lab, false, anonymousOrder())
    const idempotencyKey = lab.posts[0]?.key ?? ''
    const slow = lab.elsewhere({}, on('get', 'answers_late', 1))
    lab.runtime.auto = false
    const resolving = slow.orders.resolve({ idempotencyKey }, ABANDONED)
    resolving.catch(() => {})
    await lab.runtime.advance(1)
    lab.fault({ type: 'commitThenDrop' })
    const doubtful = failure(lab.client({ maxRetries: 0 }).orders.create(anonymousOrder()))
    await lab.runtime.advance(1)
    expect(await doubtful).toMatchObject({ code: 'connection', charged: 'unknown' })
    lab.runtime.auto = true
    await expect(resolving).rejects.toMatchObject({ code: 'store', charged: 'unknown', idempotencyKey })
    // A later read shows that the order is bought.
    expect(await all(lab.client().orders.recover())).toMatchObject([{ outcome: 'created' }])
    lab.sandbox.expectCharges(1)
  })

  it('resolve() does not change the next anonymous order if the store applies a proof late', async (lab) => {
    let broken = true
    const slow = lab.elsewhere(
      {},
      on('update', 'rejects', () => broken),
    )
    const first = await slow.orders.create(anonymousOrder())
    lab.runtime.auto = false
    await lab.runtime.advance(BUSY + 2000)
    lab.runtime.auto = true
    const idempotencyKey = lab.posts[0]?.key ?? ''
    await lab.elsewhere().orders.resolve({ idempotencyKey }, ABANDONED)
    const second = await lab.elsewhere().orders.create(anonymousOrder())
    broken = false
    await lab.runtime.advance(10 * 60_000)
    const known = await all(lab.client().orders.remembered({ since: 0 }))
    expect(first.id).not.toBe(second.id)
    expect(known.map(({ order }) => order?.id)).toEqual([second.id])
  })

  it('resolve() accepts a record with a far-future time as older, because its clock was wrong', async (lab) => {
    lab.runtime.jump(HOUR)
    await leave(lab, false)
    lab.runtime.jump(-HOUR)
    expect(await lab.client().orders.resolve(NAME, ABANDONED)).toMatchObject({ state: 'rejected' })
  })

  it('resolve() rejects a created order, and does nothing for a rejected one', async (lab) => {
    await lab.create()
    await expect(lab.client().orders.resolve(NAME, ABANDONED)).rejects.toMatchObject({
      code: 'invalid_request',
      charged: 'yes',
    })
    lab.drain()
    await failure(lab.create(order('r2')))
    const before = await lab.row('ref:r2')
    await lab.client().orders.resolve({ externalOrderId: 'r2' }, ABANDONED)
    expect(await lab.row('ref:r2')).toEqual(before)
  })

  it('resolve() abandons a key that belongs to another payload', async (lab) => {
    lab.fault({ type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' })
    expect(await failure(lab.create())).toMatchObject({ charged: 'unknown' })
    await lab.client().orders.resolve(NAME, ABANDONED)
    await lab.create()
    expect(keys(lab)).toHaveLength(2)
  })

  it("after an abandoned conflict, a key that is the order's own name is trusted again", async (lab) => {
    lab.fault({ type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' })
    await failure(lab.create(anonymousOrder(), { idempotencyKey: 'k1' }))
    expect(await lab.record('key:k1')).toMatchObject({ foreign: true })
    await lab.client().orders.resolve({ idempotencyKey: 'k1' }, ABANDONED)
    expect(await lab.record('key:k1')).toMatchObject({ foreign: false })
    lab.drain()
    const error = await failure(lab.create(anonymousOrder(), { idempotencyKey: 'k1' }))
    expect(error).toMatchObject({ code: 'payment_required', charged: 'no' })
  })

  it('a late proof of the old charge overrides the abandonment: the reference stands for that order', async (lab) => {
    const process = lab.process()
    lab.fault({ type: 'delay', ms: 1000, when: 'after' })
    const { ending } = await lab.begin(() => told(process.client.orders.create(order('r1'))))
    process.stop()
    lab.runtime.jump(BUSY)
    await lab.client().orders.resolve(NAME, ABANDONED)
    process.wake()
    const { order: placed } = await ending
    expect(await lab.record('ref:r1')).toMatchObject({
      state: 'created',
      generation: 0,
      order: { id: placed?.id },
    })
    expect((await lab.create()).id).toBe(placed?.id)
    lab.sandbox.expectCharges(1)
  })
})

describe('an order that was given up and found after all', () => {
  const other = order('r1', { quantity: 20 })

  it("resolve() names the fields that differ, even if the abandoned order's key has changed", async (lab) => {
    await lab.doubted()
    const { orders } = lab.client()
    const before = await lab.record('ref:r1')
    const abandoned = await orders.resolve(NAME, ABANDONED)
    expect(abandoned).toMatchObject({ state: 'rejected', generation: 1, rejection: { kind: 'abandoned' } })
    expect(abandoned.key).not.toBe(before?.key)
    const orderId = lab.charged()
    await orders.resolve(NAME, { as: 'created', orderId })
    const conflict = { code: 'idempotency_conflict', charged: 'yes', fields: ['quantity'] }
    expect(await failure(orders.create(other))).toMatchObject(conflict)
    expect((await orders.create(order('r1'))).id).toBe(orderId)
  })

  it('resolve() names the field that differs from an order that was in conflict', async (lab) => {
    lab.fault({ type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' })
    const { orders } = lab.client()
    await failure(orders.create(order('r1')))
    await orders.resolve(NAME, ABANDONED)
    const { id: orderId } = lab.sandbox.addOrder({ quantity: 10 })
    await orders.resolve(NAME, { as: 'created', orderId })
    // The fingerprint shows whether the payload differs.
    const conflict = { code: 'idempotency_conflict', fields: ['quantity'] }
    expect(await failure(orders.create(other))).toMatchObject(conflict)
    expect((await orders.create(order('r1'))).id).toBe(orderId)
  })
})

describe('resolve() in either way', () => {
  it('resolve() reads no further rows after it has ended', async (lab) => {
    for (let count = 0; count < 120; count++) await lab.create(order(`r${count}`))
    const { rows, runtime } = lab
    const list = rows.list.bind(rows)
    let pages = 0
    rows.list = async (...query) => {
      pages++
      await new Promise<void>((resolve) => runtime.setTimer(resolve, LATE))
      return await list(...query)
    }
    const client = lab.client()
    const before = runtime.monotonic()
    const resolving = client.orders.resolve({ idempotencyKey: 'nobody' }, ABANDONED, { totalTimeout: 700 })
    await expect(resolving).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringMatching(/^orders\.resolve\(\) could not read the store within .*totalTimeout/),
      idempotencyKey: 'nobody',
    })
    expect(runtime.monotonic() - before).toBe(700)
    await client.close()
    await runtime.advance(10 * LATE)
    expect(pages).toBe(1)
  })

  it('resolve() is rejected while a call works on the order, in any process', async (lab) => {
    const client = lab.client()
    lab.fault({ type: 'delay', ms: 5000, when: 'during' })
    const { ending } = await lab.begin(() => client.orders.create(order('r1')))
    for (const where of [client, lab.process().client]) {
      const resolved = where.orders.resolve(NAME, ABANDONED)
      const message = expect.stringContaining('The wallet may have been charged.')
      await expect(resolved).rejects.toMatchObject({ code: 'unresolved_order', charged: 'unknown', message })
    }
    await ending
    lab.sandbox.expectChargedOnce('r1')
  })

  it('resolve() and forget() are rejected while a call of this process repeats a refused order', async (lab) => {
    await lab.refused()
    const waiting: ((apiKey: string) => void)[] = []
    const client = lab.client({ apiKey: () => new Promise((resolve) => waiting.push(resolve)) })
    const { ending } = await lab.begin(() => client.orders.create(order('r1')))
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected' })
    await expect(client.orders.resolve(NAME, ABANDONED)).rejects.toMatchObject({ code: 'unresolved_order' })
    await expect(client.orders.forget(NAME)).rejects.toMatchObject({
      code: 'invalid_request',
      issues: [{ path: 'externalOrderId' }],
    })
    for (const resolve of waiting) resolve(lab.sandbox.apiKey)
    await ending
    lab.sandbox.expectChargedOnce('r1')
  })

  it('resolve() is rejected if a call begins meanwhile', async (lab) => {
    await leave(lab, true)
    const slow = lab.elsewhere({}, on('update', 'loses'))
    await expect(slow.orders.resolve(NAME, ABANDONED)).rejects.toMatchObject({ code: 'store' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
  })

  it.each([
    [{ externalOrderId: 'nobody' }, 'externalOrderId'],
    [{ idempotencyKey: 'nobody' }, 'idempotencyKey'],
    [{ idempotencyKey: 'with space' }, 'idempotencyKey'],
    [{ externalOrderId: ' ' }, 'externalOrderId'],
  ])('resolve() states which name is invalid: %j', async (name, path) => {
    const lab = new Lab()
    const resolved = lab.client().orders.resolve(name, ABANDONED)
    await expect(resolved).rejects.toMatchObject({ code: 'invalid_request', issues: [{ path }] })
  })
})

describe('forget()', () => {
  it('after forget(), the next order with that name is a new one', async (lab) => {
    await lab.create()
    expect(await lab.client().orders.forget(NAME)).toBe(true)
    expect(await lab.record('ref:r1').catch((error: Error) => error.message)).toMatch('forgotten')
    lab.sandbox.forgetKeys()
    await lab.create()
    lab.sandbox.expectCharges(2)
  })

  it('forget() removes every trace of the order from the store', async (lab) => {
    await lab.create(order('secret-reference', { target: '@secret' }))
    await lab.client().orders.forget({ externalOrderId: 'secret-reference' })
    const { rows } = await lab.rows.list(lab.place('').scope, { limit: 10 })
    expect(JSON.stringify(rows)).not.toMatch(/secret/)
  })

  it('forget() finds an order by its key, even one without a name', async (lab) => {
    await lab.create(anonymousOrder())
    await lab.create()
    for (const { key } of lab.posts)
      expect(await lab.client().orders.forget({ idempotencyKey: key ?? '' })).toBe(true)
  })

  it('forget() returns false if no order with that name is remembered', async (lab) => {
    expect(await lab.client().orders.forget(NAME)).toBe(false)
    await lab.create()
    await lab.client().orders.forget(NAME)
    expect(await lab.client().orders.forget(NAME)).toBe(false)
  })

  it('forget() rejects an unsettled order', async (lab) => {
    await leave(lab, true)
    await expect(lab.client().orders.forget(NAME)).rejects.toMatchObject({
      code: 'invalid_request',
      charged: 'unknown',
    })
    lab.fault({ type: 'cutBody', after: 0 }, 3)
    await failure(lab.create(order('r2')))
    await expect(lab.client().orders.forget({ externalOrderId: 'r2' })).rejects.toMatchObject({
      code: 'invalid_request',
      charged: 'yes',
    })
  })

  it('forget() returns false if the record changed meanwhile, and fails if the outcome is unknown', async (lab) => {
    await lab.create()
    const slow = lab.elsewhere({}, on('update', 'loses'))
    expect(await slow.orders.forget(NAME)).toBe(false)
    for (const fault of ['rejects', 'throws', 'hangs'] as const) {
      const broken = lab.elsewhere({}, on('update', fault))
      await expect(broken.orders.forget(NAME)).rejects.toMatchObject({ code: 'store' })
    }
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created' })
  })

  it.each([
    [
      'the read',
      'get',
      { code: 'timeout', deadline: 'total', message: /^orders\.forget\(\) could not read/ },
    ],
    ['the removal', 'update', { code: 'store', message: /did not confirm the removal of the record/ }],
  ] as const)(
    "forget() ends with the client's total time if the store does not respond to %s",
    async (_what, hangs, told) => {
      const lab = new Lab()
      await lab.create()
      const plan = (operation: string) => (operation === hangs ? ('hangs' as const) : undefined)
      const hung = lab.elsewhere({ totalTimeout: 700 }, plan)
      const before = lab.runtime.monotonic()
      const error = await failure(hung.orders.forget(NAME))
      expect(error).toMatchObject({
        ...told,
        message: expect.stringMatching(told.message),
        charged: 'unknown',
      })
      expect(lab.runtime.monotonic() - before).toBe(700)
      expect(await lab.record('ref:r1')).toMatchObject({ state: 'created' })
    },
  )

  it('forget() does not remove a charge that is proven afterwards', async (lab) => {
    const process = lab.process()
    lab.fault({ type: 'delay', ms: 1000, when: 'after' })
    const { ending } = await lab.begin(() => told(process.client.orders.create(order('r1'))))
    process.stop()
    lab.runtime.jump(BUSY)
    await lab.client().orders.resolve(NAME, ABANDONED)
    await lab.client().orders.forget(NAME)
    process.wake()
    const { order: placed } = await ending
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', order: { id: placed?.id } })
  })
})
