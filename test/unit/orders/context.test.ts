import { describe, expect, it } from 'vitest'
import { moneySentence } from '../../../src/errors/classes.ts'
import { CREATE_ORDER, chargedOf, ORDERS_PATH } from '../../../src/orders/context.ts'

describe('the request that makes an order', () => {
  it('the request that creates an order matches the API document', () => {
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
  ] as const)("a record's charge is %s for %j", (charged, record) => {
    expect(chargedOf(record)).toBe(charged)
  })
})

describe('the sentence about the wallet', () => {
  it.each([
    ['no', 'The wallet was not charged.'],
    ['yes', 'The wallet was charged.'],
    ['unknown', 'The wallet may have been charged.'],
  ] as const)('the sentence about the wallet for %s is: %s', (charged, sentence) => {
    expect(moneySentence(charged)).toBe(sentence)
  })
})
