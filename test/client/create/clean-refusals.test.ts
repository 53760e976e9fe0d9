import { describe, expect, it } from 'vitest'
import { anonymousOrder, failure, Lab, order } from '../../support/lab.ts'

/** Bugs that create() had, each as small as it gets. */
describe('create()', () => {
  it('does not call a key clean that a person has given up and that cannot change', async () => {
    const lab = new Lab({ preset: 'balance-before-key', balance: 2500 })
    const options = { idempotencyKey: 'mine' }
    lab.sandbox.faults.add({ action: { type: 'commitThenDrop' } })
    await failure(lab.client({ maxRetries: 0 }).orders.create(anonymousOrder(), options))
    await lab.client().orders.resolve(options, { as: 'abandoned' })

    // The order exists, and took all the money: this 402 is no proof of the contrary.
    const error = await failure(lab.client().orders.create(anonymousOrder(), options))
    expect(error).toMatchObject({ code: 'payment_required', charged: 'unknown' })
    lab.sandbox.expectCharges(1)
  })

  it('does not distrust a key over a conflict that its own refused payloads explain', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.runtime.jump(20_000)
    await failure(lab.shared().orders.create(order('r1', { quantity: 5000 })))
    lab.runtime.jump(-20_000)
    const conflict = await failure(lab.shared().orders.create(order('r1')))
    expect(conflict).toMatchObject({ code: 'idempotency_conflict', charged: 'unknown' })

    lab.sandbox.faults.add({ action: { type: 'status', status: 402 } })
    const refused = await failure(lab.shared().orders.create(order('r1')))
    expect(refused).toMatchObject({ code: 'payment_required', charged: 'no' })
  })

  it('counts the requests of a call that moved to another key once, also where it ends in doubt', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    await failure(lab.client().orders.create(order('r1')))
    lab.sandbox.faults.add({ action: { type: 'redirect', location: 'https://elsewhere.test/' }, skip: 1 })
    const error = await failure(lab.client().orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'unknown', attempts: 2 })
    expect(lab.posts).toHaveLength(3)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', generation: 1, attempts: 3 })
  })
})
