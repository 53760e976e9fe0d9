import { describe, expect, it } from 'vitest'
import { all } from '../../support/all.ts'
import { failure, Lab, order } from '../../support/lab.ts'

/** A lab with an order whose only attempt was charged and whose answer was lost. */
async function inDoubt(): Promise<Lab> {
  const lab = new Lab()
  lab.sandbox.faults.add({ action: { type: 'commitThenDrop' } })
  await failure(lab.client({ maxRetries: 0 }).orders.create(order('r1')))
  return lab
}

describe('create() while recover() works on the same order', () => {
  it('names the fields that differ, and only those', async () => {
    const lab = await inDoubt()
    const client = lab.client()
    lab.sandbox.faults.add({ action: { type: 'delay', ms: 1000 } })
    const { ending } = await lab.begin(() => all(client.orders.recover()))
    const error = await failure(client.orders.create(order('r1', { quantity: 20 })))
    expect(error).toMatchObject({ code: 'idempotency_conflict', local: true, fields: ['quantity'] })
    expect(await ending).toMatchObject([{ outcome: 'created' }])
    lab.sandbox.expectChargedOnce('r1')
  })

  it('waits for it where the order is the same, and returns what it found', async () => {
    const lab = await inDoubt()
    const client = lab.client()
    lab.sandbox.faults.add({ action: { type: 'delay', ms: 1000 } })
    const { ending } = await lab.begin(() => all(client.orders.recover()))
    const placed = await client.orders.create(order('r1'))
    expect(await ending).toMatchObject([{ outcome: 'created', order: { id: placed.id } }])
    expect(lab.posts).toHaveLength(2)
  })
})

describe('an order that was given up and found after all', () => {
  it('names the fields that differ, although its key has changed since', async () => {
    const lab = await inDoubt()
    const { orders } = lab.client()
    const before = await lab.record('ref:r1')
    const abandoned = await orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
    expect(abandoned).toMatchObject({ state: 'rejected', generation: 1, rejection: { kind: 'abandoned' } })
    expect(abandoned.key).not.toBe(before?.key)
    const [charged] = await all(orders.list())
    const orderId = charged?.id ?? ''
    await orders.resolve({ externalOrderId: 'r1' }, { as: 'created', orderId })
    expect(await failure(orders.create(order('r1', { quantity: 20 })))).toMatchObject({
      code: 'idempotency_conflict',
      charged: 'yes',
      fields: ['quantity'],
    })
    expect((await orders.create(order('r1'))).id).toBe(orderId)
    lab.sandbox.expectChargedOnce('r1')
  })

  it('names the field that differs from an order that was in conflict before it was found', async () => {
    const lab = new Lab()
    lab.sandbox.faults.add({ action: { type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' } })
    const { orders } = lab.client()
    await failure(orders.create(order('r1')))
    await orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
    const { id: orderId } = lab.sandbox.addOrder({ quantity: 10 })
    await orders.resolve({ externalOrderId: 'r1' }, { as: 'created', orderId })
    const error = await failure(orders.create(order('r1', { quantity: 20 })))
    // Whether the payload differs is known, by its fingerprint.
    expect(error).toMatchObject({ code: 'idempotency_conflict', fields: ['quantity'] })
    expect((await orders.create(order('r1'))).id).toBe(orderId)
  })
})
