import { ConflictError, IdempotencyConflictError, IdempotencyInProgressError } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { all } from '../../support/all.ts'
import { failure, Lab, order, told } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'

const keysOf = (lab: Lab): readonly (string | null)[] => [...new Set(lab.posts.map(({ key }) => key))]

describe('IDEMPOTENCY_CONFLICT', () => {
  /** The service knows the key of r1 with another quantity. The store is empty. */
  async function foreign(): Promise<Lab> {
    const lab = new Lab()
    await lab.create(order('r1', { quantity: 20 }))
    lab.wipe()
    return lab
  }

  it('a conflict is never retried, and reports that another payload may have been bought', async () => {
    const lab = await foreign()
    const error = await failure(lab.create())

    expect(error).toBeInstanceOf(IdempotencyConflictError)
    expect(error).toBeInstanceOf(ConflictError)
    expect(error).toMatchObject({ local: false, charged: 'unknown', attempts: 1, status: 409 })
    expect(error.serverCode).toBe('IDEMPOTENCY_CONFLICT')
    expect(lab.posts).toHaveLength(2)
    expect(await lab.record('ref:r1')).toMatchObject({
      state: 'rejected',
      generation: 0,
      foreign: true,
      rejection: { kind: 'conflict', status: 409, code: 'IDEMPOTENCY_CONFLICT' },
    })
  })

  it('a conflict never leads to another key, however often it is received', async () => {
    const lab = await foreign()
    for (let call = 0; call < 4; call++) {
      const error = await failure(lab.create())
      expect(error).toMatchObject({ code: 'idempotency_conflict', charged: 'unknown' })
    }
    expect(keysOf(lab)).toHaveLength(1)
    lab.sandbox.expectCharges(1)
  })

  it('a conflict ends when the caller requests the payload that owns the key', async () => {
    const lab = await foreign()
    await failure(lab.create())
    const placed = await lab.create(order('r1', { quantity: 20 }))
    expect(placed.id).toBe(lab.charged())
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', generation: 0 })
  })

  it('after a conflict, a later refusal under the key does not prove that nothing was bought', async () => {
    const lab = await foreign()
    await failure(lab.create())
    lab.fault({ type: 'status', status: 402 })
    expect(await failure(lab.create())).toMatchObject({ code: 'payment_required', charged: 'unknown' })
    const aborted = await failure(lab.create(order('r1'), { signal: AbortSignal.abort() }))
    expect(aborted).toMatchObject({ code: 'aborted', charged: 'unknown' })
  })

  it('a conflict does not accept a new key from the caller for this order', async () => {
    const lab = await foreign()
    await failure(lab.create())
    const error = await failure(lab.create(order('r1'), { idempotencyKey: 'mine' }))
    expect(error).toMatchObject({
      code: 'idempotency_conflict',
      local: true,
      charged: 'unknown',
      attempts: 0,
    })
    lab.sandbox.expectCharges(1)
  })

  it('a conflict stays listed, is never removed, and is not bought again with its reference', async () => {
    const lab = await foreign()
    const client = lab.client()
    await failure(client.orders.create(order('r1')))
    expect(await all(client.orders.unresolved())).toMatchObject([
      { state: 'rejected', externalOrderId: 'r1' },
    ])
    // The service shows no references in its list, so the order cannot be looked up.
    lab.sandbox.configure({ orderFields: [] })
    for (let week = 0; week < 2; week++) {
      lab.runtime.jump(8 * 24 * 60 * 60_000)
      lab.sandbox.forgetKeys()
      expect(await all(client.orders.recover())).toMatchObject([
        { outcome: 'needs_attention', reason: 'conflict', record: { state: 'rejected' } },
      ])
      await lab.runtime.settle()
    }
    expect(await failure(client.orders.create(order('r1')))).toMatchObject({
      code: 'unresolved_order',
      charged: 'unknown',
    })
    await expect(client.orders.forget({ externalOrderId: 'r1' })).rejects.toMatchObject({
      charged: 'unknown',
    })
    lab.sandbox.expectCharges(1)
    await client.orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
    expect(await all(client.orders.unresolved())).toEqual([])
  })

  it('recovery reports a conflict of an enqueued order, each time', async () => {
    const lab = await foreign()
    lab.sandbox.configure({ orderFields: [] })
    await lab.client().orders.enqueue(order('r1'))
    for (let round = 0; round < 2; round++)
      expect(await all(lab.client().orders.recover())).toMatchObject([
        { outcome: 'needs_attention', reason: 'conflict' },
      ])
    lab.sandbox.expectCharges(1)
  })

  it('a conflict ends when a person abandons the order', async () => {
    const lab = await foreign()
    await failure(lab.create())
    await lab.client().orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
    await lab.create()
    expect(keysOf(lab)).toHaveLength(2)
    lab.sandbox.expectCharges(2)
  })

  it('a call moves to another key if a shared store saw the other payload refused', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.shared()
    const refused = await failure(client.orders.create(order('r1', { quantity: 5000 })))
    expect(refused).toMatchObject({ code: 'order_not_accepted', charged: 'no' })
    const { order: placed, info } = await told(client.orders.create(order('r1')))

    expect(placed?.id).toBe(lab.charged())
    expect(info?.attempts).toBe(2)
    expect(keysOf(lab)).toHaveLength(2)
    expect(await lab.record('ref:r1')).toMatchObject({ generation: 1, attempts: 3 })
  })

  it('the next call moves on if the call that received the conflict was made too early', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    // The other machine's clock is ahead, so this call appears to precede that refusal.
    lab.runtime.jump(20_000)
    await failure(lab.shared().orders.create(order('r1', { quantity: 5000 })))
    lab.runtime.jump(-20_000)
    const early = await failure(lab.shared().orders.create(order('r1')))
    expect(early).toMatchObject({ code: 'idempotency_conflict', local: false, charged: 'unknown' })
    expect(keysOf(lab)).toHaveLength(1)
    lab.runtime.jump(30_000)
    const placed = await lab.shared().orders.create(order('r1'))
    expect(placed.id).toBe(lab.charged())
    expect(keysOf(lab)).toHaveLength(2)
  })

  it('a conflict without retries left reports charged no, and moves on once the key may be forgotten', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.shared({ maxRetries: 0 })
    await failure(client.orders.create(order('r1', { quantity: 5000 })))
    const error = await failure(client.orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'idempotency_conflict', local: false, charged: 'no' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', generation: 0 })
    lab.runtime.jump(20 * 60_000)
    await client.orders.create(order('r1'))
    lab.sandbox.expectCharges(1)
  })

  it("after a conflict, a later refusal is proof if the store's refused payloads explain the conflict", async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.runtime.jump(20_000)
    await failure(lab.shared().orders.create(order('r1', { quantity: 5000 })))
    lab.runtime.jump(-20_000)
    const conflict = await failure(lab.shared().orders.create(order('r1')))
    expect(conflict).toMatchObject({ code: 'idempotency_conflict', charged: 'unknown' })
    lab.fault({ type: 'status', status: 402 })
    const refused = await failure(lab.shared().orders.create(order('r1')))
    expect(refused).toMatchObject({ code: 'payment_required', charged: 'no' })
  })

  it('a conflict keeps its key if another process with its own store may have bought with it', async (lab) => {
    const refused = await failure(lab.create(order('r1', { quantity: 5000 })))
    expect(refused).toMatchObject({ code: 'order_not_accepted', charged: 'no' })
    await lab.client({ store: new MemoryStore() }).orders.create(order('r1'))
    const error = await failure(lab.create(order('r1', { quantity: 20 })))

    expect(error).toMatchObject({ code: 'idempotency_conflict', local: false, charged: 'unknown' })
    expect(error.message).toContain('must share one store')
    lab.sandbox.expectCharges(1)
    expect(keysOf(lab)).toHaveLength(1)
    await failure(lab.create(order('r1', { quantity: 20 })))
    lab.sandbox.expectCharges(1)
  })

  it('a conflict on a random key moves on without a shared store, because no other process has the key', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.unlabelled()
    await failure(client.orders.create(order('r1', { quantity: 5000 })))
    await client.orders.create(order('r1'))
    lab.sandbox.expectCharges(1)
    expect(keysOf(lab)).toHaveLength(2)
  })

  it('a conflict is distinct from a refusal of the key after an attempt in doubt', async () => {
    const lab = await foreign()
    lab.fault({ type: 'drop' })
    const error = await failure(lab.create())
    expect(error).toMatchObject({ code: 'idempotency_conflict', charged: 'unknown', attempts: 2 })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', ambiguous: true, hold: 'refused' })
  })

  it('after a conflict on an order without a reference, the next order starts afresh', async (lab) => {
    const { metadata: _metadata, ...bare } = order('r1')
    const fault = { type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' } as const
    lab.fault(fault)
    const error = await failure(lab.create(bare))
    expect(error).toMatchObject({ code: 'idempotency_conflict', local: false, charged: 'unknown' })
    await lab.create(bare)
    lab.sandbox.expectCharges(1)
  })
})

describe('IDEMPOTENCY_IN_PROGRESS', () => {
  it('after an in-progress response, a later refusal proves nothing, because a request was running', async (lab) => {
    lab.fault({ type: 'inProgress' })
    lab.drain()
    expect(await failure(lab.create())).toMatchObject({ code: 'payment_required', charged: 'unknown' })
  })

  it('an order in progress at the deadline stays open', async (lab) => {
    lab.fault({ type: 'inProgress' }, 'always')
    const begun = lab.runtime.monotonic()
    const error = await failure(lab.create())
    expect(error).toBeInstanceOf(IdempotencyInProgressError)
    expect(error).toMatchObject({ charged: 'unknown', status: 409, serverCode: 'IDEMPOTENCY_IN_PROGRESS' })
    expect(lab.runtime.monotonic() - begun).toBeLessThanOrEqual(120_000)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', ambiguous: true })
    expect(await lab.record('ref:r1')).not.toHaveProperty('busyUntil')
  })
})

it('a 409 with another code is retried like a server error, and proves nothing', async (lab) => {
  lab.fault({ type: 'status', status: 409, code: 'BUSY' }, 'always')
  const error = await failure(lab.client({ maxRetries: 2 }).orders.create(order('r1')))
  expect(error).toMatchObject({ code: 'conflict', charged: 'unknown', attempts: 3, serverCode: 'BUSY' })
  expect(error).not.toBeInstanceOf(IdempotencyConflictError)
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', ambiguous: true })
})
