import type { Reconciled, ReconcileParams } from 'customer-ordering-sdk'
import type { FaultAction } from 'customer-ordering-sdk/sandbox'
import { expect, test } from 'vitest'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { all } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { anonymousOrder, failure, Lab, order } from '../../support/lab.ts'

const kindsOf = (found: readonly Reconciled[]): string[] =>
  found.map(({ kind, record, order: listed }) => `${kind} ${record?.externalOrderId ?? listed?.id}`).sort()

const kinds = async (lab: Lab, query: ReconcileParams = {}): Promise<string[]> =>
  kindsOf(await all(lab.orders.reconcile(query)))
const bareKinds = async (lab: Lab): Promise<string[]> =>
  (await kinds(lab)).map((line) => line.replace(/ .*/, ''))
type Change = Extract<FaultAction, { type: 'mutateList' }>['change']
const matched = (references: readonly string[]): string[] =>
  references.map((reference) => `matched ${reference}`).sort()

async function place(lab: Lab, count: number): Promise<string[]> {
  const references = Array.from({ length: count }, (_, index) => `r${index}`)
  for (const reference of references) {
    await lab.create(order(reference))
    // Orders with the same time have no defined order.
    lab.runtime.jump(1)
  }
  return references
}

it('reconcile() reports orders on both sides, on one side only, and with different amounts', async (lab) => {
  await place(lab, 4)
  const gone = lab.sandbox.expectChargedOnce('r2')
  lab.sandbox.removeOrder(gone.orderId)
  const foreign = lab.sandbox.addOrder({ metadata: { externalOrderId: 'half a character: \ud800' } })
  const dearer = lab.charged('r3')
  lab.fault(
    {
      type: 'mutateList',
      change: (rows) => rows.map((row) => (row['id'] === dearer ? { ...row, amount: 9999 } : row)),
    },
    'always',
    'listOrders',
  )
  const found = await all(lab.orders.reconcile())
  expect(kindsOf(found)).toEqual([
    'amount_differs r3',
    'matched r0',
    'matched r1',
    'only_local r2',
    `only_remote ${foreign.id}`,
  ])
  expect(found.find(({ kind }) => kind === 'amount_differs')).toMatchObject({
    record: { order: { amount: 2500 } },
    order: { amount: 9999 },
  })
})

it('reconcile() compares the amount of a listed order that is not readable otherwise', async (lab) => {
  await place(lab, 1)
  const change: Change = (rows) => rows.map((row) => ({ ...row, status: null, amount: 9999 }))
  lab.fault({ type: 'mutateList', change }, 'always', 'listOrders')
  expect(await bareKinds(lab)).toEqual(['amount_differs'])
})

it('reconcile() ends with an abort also after it has read the list', async (lab) => {
  for (const reference of ['r0', 'r1', 'r2']) await lab.doubted('drop', order(reference))
  const controller = new AbortController()
  const { signal } = controller
  const found: Reconciled[] = []
  const reading = (async () => {
    for await (const one of lab.orders.reconcile({}, { signal })) {
      found.push(one)
      controller.abort('enough')
    }
  })()
  expect(await failure(reading)).toMatchObject({ code: 'aborted', cause: 'enough' })
  expect(kindsOf(found)).toEqual(['only_local r0'])
})

it('reconcile() continues after a record that has become unreadable, and fails at its end', async (lab) => {
  await place(lab, 3)
  const found: Reconciled[] = []
  const reading = (async () => {
    for await (const one of lab.orders.reconcile())
      if (found.push(one) === 1) await lab.tamper('ref:r1', { layout: 2 })
  })()
  expect(await failure(reading)).toMatchObject({ code: 'store' })
  expect(found.filter(({ kind }) => kind === 'matched')).toHaveLength(2)
})

it('reconcile() matches an open order by its reference, and changes nothing', async (lab) => {
  await lab.doubted()
  const before = await lab.row('ref:r1')
  expect(await kinds(lab)).toEqual(['matched r1'])
  expect(await lab.row('ref:r1')).toEqual(before)
})

it('reconcile() never takes a second order with the same reference for the first', async (lab) => {
  await place(lab, 1)
  const twin = lab.sandbox.addOrder({ metadata: { externalOrderId: 'r0' }, amount: 2500 })
  expect(await kinds(lab)).toEqual(['matched r0', `only_remote ${twin.id}`])

  const open = new Lab()
  await open.doubted('drop')
  for (const target of ['@someone', '@someone'])
    open.sandbox.addOrder({ target, quantity: 10, metadata: { externalOrderId: 'r1' } })
  expect(await bareKinds(open)).toEqual(['matched', 'only_remote'])
})

it('reconcile() reports a record whose order belongs to another reference', async () => {
  const lab = new Lab({ preset: 'minimal-answers' })
  const { id: orderId } = await lab.create()
  await lab.orders.resolve({ externalOrderId: 'typo' }, { as: 'created', orderId })
  expect(await kinds(lab)).toEqual(['matched r1', 'only_local typo'])
})

it('reconcile() matches the one of two references that the list shows', async (lab) => {
  const { id: orderId } = lab.sandbox.addOrder({ metadata: { externalOrderId: 'right' } })
  for (const externalOrderId of ['wrong', 'right'])
    await lab.orders.resolve({ externalOrderId }, { as: 'created', orderId, despite: ['externalOrderId'] })
  expect(await kinds(lab)).toEqual(['matched right', 'only_local wrong'])

  const open = new Lab()
  await open.doubted()
  const despite = ['externalOrderId'] as const
  await open.orders.resolve({ externalOrderId: 'wrong' }, { as: 'created', orderId: open.charged(), despite })
  expect(await kinds(open)).toEqual(['matched r1', 'only_local wrong'])
})

it('reconcile() does not report the key of an order that has a reference, too', async () => {
  const key = { idempotencyKey: 'old-key' }
  for (const isAdoptedFirst of [true, false]) {
    const lab = new Lab({ preset: 'minimal-answers' })
    const { id: orderId } = await lab
      .client({ store: new MemoryStore() })
      .orders.create(anonymousOrder(), key)
    const adopt = () => lab.orders.resolve({ externalOrderId: 'r1' }, { as: 'created', orderId })
    if (isAdoptedFirst) await adopt()
    expect((await lab.orders.create(anonymousOrder(), key)).id).toBe(orderId)
    if (!isAdoptedFirst) await adopt()
    expect(await bareKinds(lab)).toEqual(['matched'])
  }
})

it('reconcile() never matches by amount, time or target', async () => {
  const lab = new Lab({ preset: 'minimal-answers' })
  await lab.doubted('drop')
  const lookalike = lab.sandbox.addOrder({ target: '@someone', quantity: 10, amount: 2500 })
  expect(await kinds(lab)).toEqual(['only_local r1', `only_remote ${lookalike.id}`])
})

it('reconcile() omits refused orders, and matches only the last of identical anonymous orders', async (lab) => {
  await lab.create(anonymousOrder())
  await lab.create(anonymousOrder())
  lab.drain()
  await failure(lab.create(order('refused')))
  expect(await bareKinds(lab)).toEqual(['matched', 'only_remote'])
})

it('reconcile() compares orders written since a time, and filters the list by source system', async (lab) => {
  await place(lab, 2)
  lab.runtime.jump(1000)
  const since = lab.runtime.now()
  const metadata = { externalOrderId: 'new', sourceSystem: 'shop' }
  await lab.create(order('new', { metadata }))
  expect(await kinds(lab, { since, sourceSystem: 'shop' })).toEqual(['matched new'])
})

it('reconcile() since a time does not report an older known order as only_remote', async (lab) => {
  await place(lab, 2)
  await lab.doubted('commitThenDrop', order('lost'))
  lab.runtime.jump(1000)
  const since = lab.runtime.now()
  await lab.create(order('new'))
  const foreign = lab.sandbox.addOrder()
  expect(await kinds(lab, { since })).toEqual(['matched new', `only_remote ${foreign.id}`])
})

it('reconcile() reads as it iterates: leaving early requests no further page', async () => {
  const lab = new Lab({ behaviour: { maxLimit: 5 } })
  await place(lab, 30)
  const before = lab.sandbox.requests.length
  for await (const _line of lab.orders.reconcile()) break
  expect(lab.sandbox.requests.length - before).toBe(1)
})

test.each([
  ['that give fewer rows than asked for', { behaviour: { maxLimit: 3 } }],
  ['that give one row at a time', { behaviour: { maxLimit: 1 } }],
  ['in random order', { behaviour: { ordering: 'random', maxLimit: 200 } }],
  ['by amount', { behaviour: { ordering: 'amount', maxLimit: 4 } }],
  ['that refuse what is not documented', { preset: 'strict-gateway' }],
  ['as a bare array', { behaviour: { listEnvelope: 'array' } }],
] as const)('reconcile() matches every order of lists %s', async (_which, options) => {
  const lab = new Lab(options)
  const references = await place(lab, 23)
  expect(await kinds(lab)).toEqual(matched(references))
})

it.each<[string, FaultAction]>([
  ['a page that is short by some', { type: 'shortPage', fewer: 9 }],
  ['a row that comes twice', { type: 'mutateList', change: 'duplicateFirst' }],
  ['a row that is hidden on one page', { type: 'mutateList', change: 'dropFirst' }],
  ['rows that change places', { type: 'mutateList', change: 'shuffle' }],
  ['rows that are turned round', { type: 'mutateList', change: 'reverse' }],
])('reconcile() matches every order of a list with %s', async (lab, _what, action) => {
  lab.sandbox.configure({ maxLimit: 10 })
  const references = await place(lab, 25)
  lab.sandbox.faults.add({ match: { operation: 'listOrders' }, skip: 1, action })
  const found = await kinds(lab)
  expect(found).toEqual(matched(references))
})

it('reconcile() matches every order if new orders arrive while it reads', async () => {
  const lab = new Lab({ behaviour: { maxLimit: 10 } })
  const references = await place(lab, 40)
  const change: Change = (rows) => {
    lab.sandbox.addOrder({ createdAt: lab.runtime.now() + 1 })
    lab.runtime.jump(2)
    return rows
  }
  lab.fault({ type: 'mutateList', change }, 6, 'listOrders')
  const found = await kinds(lab)
  expect(found.filter((line) => line.startsWith('matched'))).toEqual(matched(references))
  expect(found.some((line) => line.startsWith('only_local'))).toBe(false)
})

it.each([false, true])(
  'reconcile() matches an order that is placed while it reads, beside a damaged row: %j',
  async (lab, isDamaged) => {
    await lab.create()
    await lab.create(order('damaged'))
    if (isDamaged) await lab.tamper('ref:damaged', { state: 'open' })
    const fetch: typeof globalThis.fetch = async (...request) => {
      if (lab.sandbox.ledger.length === 2) await lab.create(order('r2'))
      return await lab.sandbox.fetch(...request)
    }
    const found: Reconciled[] = []
    const reading = (async () => {
      for await (const line of lab.client({ fetch }).orders.reconcile()) found.push(line)
    })()
    if (isDamaged) expect(await failure(reading)).toMatchObject({ code: 'store' })
    else await reading
    expect(kindsOf(found)).toEqual(expect.arrayContaining(matched(['r1', 'r2'])))
  },
)

it('reconcile() matches every other order if orders disappear while it reads', async () => {
  const lab = new Lab({ behaviour: { maxLimit: 20, ordering: 'newest' } })
  const references = await place(lab, 60)
  const removed: string[] = []
  const change: Change = (rows) => {
    const reference = references.at(-1 - removed.length) ?? ''
    removed.push(reference)
    lab.sandbox.removeOrder(lab.sandbox.expectChargedOnce(reference).orderId)
    return rows
  }
  lab.fault({ type: 'mutateList', change }, 3, 'listOrders')
  const found = await kinds(lab)
  expect(found).toEqual(expect.arrayContaining(matched(references.slice(0, -3))))
})
