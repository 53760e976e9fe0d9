import { describe, expect, it } from 'vitest'
import { CREATE_ORDER, chargedOf, ORDERS_PATH } from '../../../src/orders/context.ts'

describe('the request that makes an order', () => {
  it('is the one of the API document', () => {
    const facts = { permission: 'orders:write', missing: 'service_or_customer' }
    expect(CREATE_ORDER).toEqual({ operation: 'orders.create', method: 'POST', ...facts })
    expect(ORDERS_PATH).toBe('/v1/orders')
  })
})

describe('what a record says of the wallet', () => {
  it.each([
    ['yes', { state: 'created' }],
    ['unknown', { state: 'open' }],
    ['unknown', { state: 'open', rejection: { kind: 'refused' } }],
    ['unknown', { state: 'rejected', rejection: { kind: 'conflict' } }],
    ['no', { state: 'rejected', rejection: { kind: 'refused' } }],
    ['no', { state: 'rejected' }],
  ] as const)('is %s for %j', (charged, record) => {
    expect(chargedOf(record)).toBe(charged)
  })
})
