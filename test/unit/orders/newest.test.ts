import { describe, expect, it } from 'vitest'
import { Deadline } from '../../../src/http/deadline.ts'
import type { OrderContext } from '../../../src/orders/context.ts'
import { loadNewest, markCreated, proveCreated } from '../../../src/orders/newest.ts'
import type { RecordContent } from '../../../src/orders/record.ts'
import type { Proof } from '../../../src/orders/transitions.ts'
import { LEFT_OPEN, orderContext, recordOf, remember } from '../../support/order-context.ts'
import { fails, ORDER } from '../../support/place.ts'

const SLOT = 'anon:fingerprint'
const { externalOrderId: _reference, ...UNNAMED } = LEFT_OPEN
const FIRST: RecordContent = { ...UNNAMED, slot: SLOT, key: 'key-1', keyOrigin: 'random', claim: 'first' }
const SECOND: RecordContent = { ...FIRST, key: 'key-2', claim: 'second' }
const CREATED = { state: 'created', readable: true, order: { id: 'o1' } } as const

const soon = ({ connection }: OrderContext): Deadline => new Deadline(connection.runtime, 1000, undefined)
const proofOf = (record: RecordContent): Proof => ({
  sent: record,
  order: CREATED.order,
  orderId: 'o1',
  attempts: 0,
  claim: record.claim,
})

describe('the proof of a charge', () => {
  it.each([
    ['is open', { state: 'open' }, 'displaced'],
    ['was created', CREATED, 'displaced'],
    ['is in conflict', { state: 'rejected', rejection: { kind: 'conflict' } }, 'displaced'],
    ['was refused', { state: 'rejected', rejection: { kind: 'refused' } }, 'stored'],
    ['was given up', { state: 'rejected', rejection: { kind: 'abandoned' } }, 'stored'],
  ] as const)('if the next order in the row %s, the proof is %s', async (_is, changes, expected) => {
    const context = orderContext()
    const mine = await remember(context, FIRST)
    const next = await remember(context, { ...SECOND, ...changes }, mine)
    expect(await proveCreated(context, mine, proofOf(mine.record), soon(context))).toBe(expected)
    const stored = await recordOf(context, SLOT)
    if (expected === 'displaced') expect(stored).toEqual(next.record)
    else expect(stored).toMatchObject({ ...CREATED, key: 'key-1' })
  })

  it('if the store fails, the proof is stored later', async () => {
    const context = orderContext()
    const mine = await remember(context, FIRST)
    context.journal.store.update = fails
    expect(await proveCreated(context, mine, proofOf(mine.record), soon(context))).toBe('later')
  })

  it.each([
    ['order', ORDER],
    ['id', { id: 'o1', status: 'pending', amount: 5 }],
  ] as const)('if the client remembers the %s, a listed order is stored as %j', async (kept, order) => {
    const context = orderContext({ remember: kept })
    await markCreated(context, await remember(context, FIRST), { id: 'o1', order: ORDER }, soon(context))
    expect((await recordOf(context, SLOT))?.order).toEqual(order)
  })
})

it('an anonymous order has no newest version if the next order has its row', async () => {
  const context = orderContext()
  const mine = await remember(context, FIRST)
  const next = await remember(context, SECOND, mine)
  expect(await loadNewest(context, mine, soon(context))).toEqual({ id: mine.id })
  expect(await loadNewest(context, { id: mine.id }, soon(context))).toEqual(next)
  expect(await loadNewest(context, { ...mine, id: 'no row' }, soon(context))).toEqual({ id: 'no row' })
})
