import { InvalidRequestError, type OrderRecord } from 'customer-ordering-sdk'
import { expect } from 'vitest'
import { all } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { anonymousOrder, failure, type Lab, order } from '../../support/lab.ts'

/** Leaves two orders whose process died, one of them after the charge. */
async function crashed(lab: Lab): Promise<void> {
  await lab.dies((orders) => orders.create(order('charged')))
  await lab.dies((orders) => orders.create(order('lost')), { charged: false })
  lab.runtime.jump(3 * 60_000)
}

it('an awaited recover() settles every order and counts the outcomes', async (lab) => {
  await crashed(lab)
  const summary = await lab.orders.recover()
  expect(summary).toEqual({ created: 2, rejected: 0, inProgress: 0, stillOpen: 0, needsAttention: [] })
  for (const reference of ['charged', 'lost']) lab.charged(reference)
  lab.sandbox.expectCharges(2)
})

it('an awaited recover() reports open orders, and refused ones as those that need a person', async (lab) => {
  await crashed(lab)
  const broken = lab.client({ fetch: () => Promise.reject(new TypeError('down')) })
  expect(await broken.orders.recover()).toMatchObject({ created: 0, stillOpen: 2, needsAttention: [] })
  lab.drain()
  expect(await lab.client({ maxRetries: 0 }).orders.recover()).toMatchObject({
    created: 1,
    needsAttention: [{ outcome: 'needs_attention', reason: 'refused', record: { externalOrderId: 'lost' } }],
  })
})

it('an awaited recover() reports orders in progress', async (lab) => {
  await lab.dies((orders) => orders.create(order('live')))
  expect(await lab.elsewhere().orders.recover()).toMatchObject({ created: 0, inProgress: 1 })
})

it('recover() and reconcile() do nothing until they are awaited or iterated', async (lab) => {
  await crashed(lab)
  const sent = lab.sandbox.requests.length
  lab.orders.recover()
  lab.orders.reconcile()
  await lab.runtime.settle()
  expect(lab.sandbox.requests).toHaveLength(sent)
})

it('recover() can be used once: a second use is an error and sends nothing', async (lab) => {
  await crashed(lab)
  const run = lab.orders.recover()
  await run
  const iterated = lab.orders.recover()
  await all(iterated)
  const sent = lab.sandbox.requests.length
  const uses = [() => run.then((value) => value), () => all(run), () => run.finally(), () => iterated.then()]
  for (const use of uses) {
    const error = await failure(use())
    expect(error).toBeInstanceOf(InvalidRequestError)
    expect(error.charged).toBe('unknown')
  }
  expect(lab.sandbox.requests).toHaveLength(sent)
})

it('an awaited createMany() places every row once, and counts new, replayed and failed orders', async (lab) => {
  const rows = [order('a'), order('b'), anonymousOrder(), { ...order('c'), quantity: 0 }]
  const summary = await lab.orders.createMany(rows)
  const failed = { ok: false, charged: 'no', error: { code: 'invalid_request' } }
  const failures = [rows[2], rows[3]].map((request) => ({ ...failed, request }))
  expect(summary).toMatchObject({ created: 2, replayed: 0, failed: 2, failures })
  const again = await lab.orders.createMany([order('a'), order('d')])
  expect(again).toEqual({ created: 1, replayed: 1, failed: 0, failures: [] })
  lab.sandbox.expectCharges(3)
})

it('createMany() can be used once: a second use is an error, reads no row and sends nothing', async (lab) => {
  let read = 0
  function* rows() {
    for (; read < 2; read++) yield order(`r${read}`)
  }
  const run = lab.orders.createMany(rows())
  expect(read).toBe(0)
  expect(await all(run)).toHaveLength(2)
  await expect(run).rejects.toThrow(InvalidRequestError)
  expect(read).toBe(2)
  lab.sandbox.expectCharges(2)
})

it('awaited remembered() is an array, and each await reads again', async (lab) => {
  const names = (records: readonly OrderRecord[]) =>
    records.map(({ externalOrderId }) => externalOrderId).sort()
  await crashed(lab)
  const { orders } = lab
  await orders.create(order('done'))
  const open = orders.unresolved()
  const since = orders.remembered({ since: 0 })
  const named = orders.remembered({ externalOrderId: 'done' })
  const compared = orders.reconcile()
  for (let round = 0; round < 2; round++) {
    expect(names(await open)).toEqual(['charged', 'lost'])
    expect(names(await all(open))).toEqual(['charged', 'lost'])
    expect(names(await since)).toEqual(['charged', 'done', 'lost'])
    expect(names(await named)).toEqual(['done'])
    expect((await compared).map(({ kind }) => kind).sort()).toEqual(['matched', 'matched', 'only_local'])
  }
  await orders.recover()
  expect(await open).toEqual([])
})
