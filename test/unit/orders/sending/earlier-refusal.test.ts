import { describe, expect, it } from 'vitest'
import { createOrder } from '../../../../src/orders/commands/create.ts'
import { CLOCK_SKEW } from '../../../../src/orders/protocol/keys.ts'
import { OUTCOMES, type OutcomeKind } from '../../../../src/orders/protocol/outcome.ts'
import type { Rejection } from '../../../../src/orders/record/record.ts'
import { earlierRefusal } from '../../../../src/orders/sending/drive.ts'
import { keptRefusal, mayHaveProcessed } from '../../../../src/orders/sending/send.ts'
import { storedRecords } from '../../../support/order-context.ts'
import { NOW, placeWith, problem } from '../../../support/place.ts'
import { record } from '../protocol/found.ts'

const refusal: Rejection = { kind: 'refused', status: 402 }
const busy: Rejection = { kind: 'not_processed', status: 429 }
const refused = record({ state: 'rejected', ambiguous: false, rejection: refusal })
const same = { key: refused.key, origin: 'derived', generation: 0 } as const
const later = { key: 'later', origin: 'derived', generation: 1 } as const

describe('the refusal that permits a new key if the service repeats it', () => {
  it('a refusal counts under the key that it was told of', () => {
    expect(earlierRefusal(refused, same, NOW)).toEqual(refusal)
    expect(earlierRefusal(refused, later, NOW)).toBeUndefined()
    expect(earlierRefusal(undefined, same, NOW)).toBeUndefined()
  })

  it('a refusal of the first key counts again when an order returns to that key', () => {
    const moved = record({ state: 'rejected', ...later, rejection: busy, firstRejection: refusal })
    expect(earlierRefusal(moved, same, NOW)).toEqual(refusal)
  })

  it.each([
    ['before this call', 0, refusal],
    ['during this call', 1, undefined],
    ['by a clock that is a little ahead', CLOCK_SKEW, undefined],
    ['by a clock that was set back since', CLOCK_SKEW + 1, refusal],
  ])('a refusal that was stored %s', (_when, ahead, expected) => {
    expect(earlierRefusal({ ...refused, updatedAt: NOW + ahead }, same, NOW)).toEqual(expected)
  })

  it('a response that says nothing of the order keeps the earlier refusal, and another refusal replaces it', () => {
    const other: Rejection = { kind: 'refused', status: 422 }
    expect(keptRefusal(busy, refusal)).toEqual(refusal)
    expect(keptRefusal(other, refusal)).toEqual(other)
    expect(keptRefusal(busy, undefined)).toEqual(busy)
    expect(keptRefusal(busy, { kind: 'cancelled' })).toEqual(busy)
  })
})

describe('the attempts that begin the window of a key', () => {
  it('every attempt begins the window, except one that the service certainly did not process', () => {
    const kinds = Object.keys(OUTCOMES) as OutcomeKind[]
    expect(kinds.filter((kind) => !mayHaveProcessed(kind))).toEqual([
      'refused_unprocessed',
      'unauthorized',
      'forbidden',
      'too_early',
      'rate_limited',
      'unreachable',
      'untrusted',
      'transport_closed',
      'not_sent',
    ])
  })

  it.each([
    [false, undefined],
    [true, NOW],
  ])('a 429 begins the window only if something else may repeat requests: %s', async (mayResend, sentAt) => {
    const { context } = placeWith([problem(429)])
    Object.assign(context.connection, { mayResend })
    const request = { serviceId: 's', target: 't', quantity: 1, metadata: { externalOrderId: 'r1' } }
    await expect(createOrder(context, request)).rejects.toMatchObject({ status: 429 })
    const [stored] = await storedRecords(context)
    expect(stored?.record.firstSentAt).toBe(sentAt)
  })
})
