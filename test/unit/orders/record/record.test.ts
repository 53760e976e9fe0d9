import { describe, expect, it } from 'vitest'
import { CREATE_ORDER, ORDERS_PATH } from '../../../../src/orders/record/context.ts'
import {
  chargedOf,
  isPending,
  type JournalRecord,
  type OrderRecord,
  orderOf,
  publicRecord,
  recordFacts,
} from '../../../../src/orders/record/record.ts'
import { LEFT_OPEN, ORDER } from '../../../support/order-context.ts'

const NOTED = { id: 'o1', status: 'pending', amount: 5 }

describe('what a record says', () => {
  it.each<[string, boolean, boolean, Pick<OrderRecord, 'state' | 'order'>]>([
    ['unknown', true, false, { state: 'open' }],
    ['unknown', true, false, { state: 'open', order: ORDER }],
    ['yes', false, true, { state: 'created', order: ORDER }],
    ['yes', false, true, { state: 'created', order: NOTED }],
    ['yes', true, false, { state: 'created', order: { id: 'o1' } }],
    ['yes', true, false, { state: 'created', order: { ...NOTED, amount: 0.5 } }],
    ['yes', true, false, { state: 'created' }],
    ['no', false, false, { state: 'rejected' }],
    ['no', false, false, { state: 'rejected', order: ORDER }],
  ])(
    'charged is %s, recovery has work %s, and an order is readable %s for %j',
    (charged, pending, readable, record) => {
      expect(chargedOf(record)).toBe(charged)
      expect(isPending(record)).toBe(pending)
      expect(orderOf(record)).toEqual(readable ? record.order : undefined)
    },
  )

  it('an order without a record was never sent, but an unread record may have been charged', () => {
    expect(chargedOf(undefined)).toBe('no')
    expect(recordFacts(undefined)).toEqual({ charged: 'unknown' })
  })
})

describe('what is told of a record', () => {
  const record: JournalRecord = {
    ...LEFT_OPEN,
    firstSentAt: 1000,
    busyUntil: 3000,
    othersUntil: 4000,
    highest: 2,
    hold: 'aborted',
    createdAt: 1000,
    updatedAt: 2000,
    version: 3,
  }
  const told = {
    slot: 'ref:r1',
    key: LEFT_OPEN.key,
    generation: 0,
    state: 'open',
    ambiguous: true,
    externalOrderId: 'r1',
    attempts: 1,
    firstSentAt: 1000,
    busyUntil: 3000,
    createdAt: 1000,
    version: 3,
  }

  it('the public record has the documented fields, and no internals', () => {
    const held = { hold: 'aborted', request: JSON.parse(LEFT_OPEN.body ?? '{}') }
    expect(publicRecord(record)).toEqual({ ...told, ...held })
    const rejection = { kind: 'refused', status: 402 } as const
    expect(publicRecord({ ...record, order: ORDER, rejection })).toEqual({
      ...told,
      ...held,
      order: ORDER,
      rejection,
    })
  })

  it('an error names the key, the reference and the order of a record', () => {
    const names = { idempotencyKey: LEFT_OPEN.key, externalOrderId: 'r1', orderId: 'o1' }
    expect(recordFacts({ ...record, order: { id: 'o1' } })).toEqual({ charged: 'unknown', ...names })
  })
})

it('the request that creates an order matches the API document', () => {
  const facts = { permission: 'orders:write', missing: 'service_or_customer' }
  expect(CREATE_ORDER).toEqual({ operation: 'orders.create', method: 'POST', ...facts })
  expect(ORDERS_PATH).toBe('/v1/orders')
})
