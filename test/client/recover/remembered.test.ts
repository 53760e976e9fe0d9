import type { OrderRecord, Reconciled, RememberedQuery } from 'customer-ordering-sdk'
import { expect } from 'vitest'
import { all } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { anonymousOrder, failure, type Lab, order } from '../../support/lab.ts'

const remembered = (lab: Lab, query: RememberedQuery): Promise<OrderRecord[]> =>
  all(lab.orders.remembered(query))

it('remembered() finds an order by its reference, and sends nothing', async (lab) => {
  const placed = await lab.create()
  const before = lab.sandbox.requests.length
  const found = await remembered(lab, { externalOrderId: 'r1' })
  const createdAt = found[0]?.createdAt ?? 0
  expect(found).toEqual([
    {
      slot: 'ref:r1',
      key: lab.posts[0]?.key,
      generation: 0,
      state: 'created',
      ambiguous: false,
      attempts: 1,
      createdAt,
      firstSentAt: expect.any(Number),
      version: createdAt + 2,
      externalOrderId: 'r1',
      order: placed,
    },
  ])
  expect(lab.sandbox.requests.length).toBe(before)
})

it('remembered() shows why an order was refused', async (lab) => {
  lab.drain()
  await failure(lab.create())
  expect(await remembered(lab, { externalOrderId: 'r1' })).toMatchObject([
    { state: 'rejected', rejection: { kind: 'refused', status: 402, code: 'PAYMENT_REQUIRED' } },
  ])
})

it("remembered() finds orders by key: a given key, a reference's key, and an anonymous order's key", async (lab) => {
  await lab.create(anonymousOrder(), { idempotencyKey: 'k1' })
  await lab.create()
  await lab.create(anonymousOrder({ quantity: 20 }))
  const slots: string[] = []
  for (const { key } of lab.posts)
    for (const { slot } of await remembered(lab, { idempotencyKey: key ?? '' })) slots.push(slot.slice(0, 5))
  expect(slots).toEqual(['key:k', 'ref:r', 'anon:'])
})

it('remembered() shows each record written since a time once', async (lab) => {
  for (let count = 0; count < 150; count++) await lab.create(order(`old-${count}`))
  lab.runtime.jump(1000)
  const since = lab.runtime.now()
  for (let count = 0; count < 120; count++) await lab.create(order(`new-${count}`))
  const found = await remembered(lab, { since })
  expect(found.map(({ slot }) => slot).sort()).toEqual(
    Array.from({ length: 120 }, (_, count) => `ref:new-${count}`).sort(),
  )
  expect(await remembered(lab, { since: 0 })).toHaveLength(270)
})

it('remembered() is empty if nothing is remembered for the account', async (lab) => {
  expect(await remembered(lab, { externalOrderId: 'r1' })).toEqual([])
  expect(await remembered(lab, { idempotencyKey: 'k1' })).toEqual([])
  expect(await remembered(lab, { since: 0 })).toEqual([])
  await lab.create()
  const other = lab.client({ account: 'another shop' }).orders
  for (const query of [{ externalOrderId: 'r1' }, { since: 0 }])
    expect(await all(other.remembered(query))).toEqual([])
  await lab.orders.forget({ externalOrderId: 'r1' })
  expect(await remembered(lab, { since: 0 })).toEqual([])
})

it('remembered() shows only the fields of a created order that `remember` permits', async (lab) => {
  await lab.client({ remember: 'id' }).orders.create(order('r1'))
  const [record] = await remembered(lab, { externalOrderId: 'r1' })
  expect(Object.keys(record?.order ?? {}).sort()).toEqual(['amount', 'id', 'status'])
})

it('a remembered record has the documented fields, and no internals', async (lab) => {
  await lab.dies((orders) => orders.create(order('r1')))
  const [running] = await all(lab.orders.remembered({ externalOrderId: 'r1' }))
  const names = 'slot key generation state ambiguous attempts createdAt version request externalOrderId'
  const claimed = [...names.split(' '), 'firstSentAt', 'busyUntil']
  expect(Object.keys(running ?? {}).toSorted()).toEqual(claimed.toSorted())
  expect(running?.request).toEqual(order('r1'))

  lab.fault({ type: 'stall' })
  const controller = new AbortController()
  const { ending } = await lab.begin(() => failure(lab.create(order('r2'), { signal: controller.signal })))
  controller.abort()
  await ending
  const [held] = await all(lab.orders.remembered({ externalOrderId: 'r2' }))
  expect(held).toMatchObject({ state: 'open', hold: 'aborted' })
  expect(held).not.toHaveProperty('busyUntil')
})

it.each<[string, (orders: Lab['orders']) => AsyncIterable<OrderRecord | Reconciled>, found: string[]]>([
  ['unresolved()', (orders) => orders.unresolved(), ['open']],
  ['remembered()', (orders) => orders.remembered({ since: 0 }), ['open', 'r2']],
  ['reconcile()', (orders) => orders.reconcile(), ['open', 'r2', 'unknown']],
])('%s gives every readable record, then fails if one is unreadable', async (lab, _what, walk, found) => {
  for (const reference of ['r1', 'open']) await lab.doubted('commitThenDrop', order(reference))
  await lab.create(order('r2'))
  await lab.tamper('ref:r1', { layout: 9 })
  const names: string[] = []
  const walking = async (): Promise<void> => {
    for await (const line of walk(lab.orders))
      names.push(('kind' in line ? line.record : line)?.externalOrderId ?? 'unknown')
  }
  expect(await failure(walking())).toMatchObject({ code: 'store', charged: 'unknown' })
  expect(names.sort()).toEqual(found)
})

it('remembered() of a reference fails if its record has lost a field', async (lab) => {
  await lab.create()
  await lab.tamper('ref:r1', (content) => Reflect.deleteProperty(content, 'fingerprint'))
  const error = await failure(remembered(lab, { externalOrderId: 'r1' }))
  expect(error).toMatchObject({ code: 'store', charged: 'unknown' })
})

it('what names an order by its key fails if a record that cannot be read may have the key', async (lab) => {
  await lab.doubted()
  const name = { idempotencyKey: (await lab.record('ref:r1'))?.key ?? '' }
  await lab.tamper('ref:r1', { state: 'created' })
  const { orders } = lab
  for (const call of [remembered(lab, name), orders.forget(name), orders.resolve(name, { as: 'abandoned' })])
    expect(await failure(call)).toMatchObject({ code: 'store', charged: 'unknown' })
})
