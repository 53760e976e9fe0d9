import { describe, expect, it } from 'vitest'
import { askedContent, heardUnder, makeKey, startedWith } from '../../../src/orders/claim.ts'
import { fieldTags } from '../../../src/orders/identity.ts'
import { type IntentOptions, readIntent } from '../../../src/orders/intent.ts'
import type { JournalRecord } from '../../../src/orders/record.ts'
import type { CreateOrderRequest } from '../../../src/schemas/order.ts'
import { LEFT_OPEN, orderContext } from '../../support/order-context.ts'

const context = orderContext()
const { deriveId } = context.connection.runtime
const UNNAMED: CreateOrderRequest = { serviceId: 's', target: 't', quantity: 2 }
const NAMED: CreateOrderRequest = { ...UNNAMED, metadata: { externalOrderId: 'r1' } }
const intentOf = (request: CreateOrderRequest, options: IntentOptions = {}) =>
  readIntent(deriveId, request, options)

const { body: _body, ...rest } = LEFT_OPEN
const CLOSED: JournalRecord = {
  ...rest,
  state: 'rejected',
  rejection: { kind: 'refused' },
  ambiguous: false,
  generation: 3,
  attempts: 4,
  highest: 5,
  first: { sentAt: 1, refused: true },
  busyUntil: 1,
  firstSentAt: 1,
  hold: 'refused',
  refused: true,
  createdAt: 1,
  updatedAt: 1,
  version: 7,
}

describe('a new order that no call has claimed', () => {
  it('is open, sent by nobody, with the body that will be sent', () => {
    const intent = intentOf(NAMED)
    const { key } = makeKey(context, 'r1', 0)
    expect(askedContent(context, intent, undefined, { moved: false })).toEqual({
      slot: 'ref:r1',
      key,
      keyOrigin: 'derived',
      generation: 0,
      state: 'open',
      ambiguous: false,
      externalOrderId: 'r1',
      attempts: 0,
      fingerprint: intent.fingerprint,
      fields: fieldTags(deriveId, key, { ...NAMED }),
      body: intent.body,
      apiKeyTag: '',
      claim: expect.stringMatching(/./),
      readable: false,
      refused: false,
      foreign: false,
    })
  })

  it('has no reference where none was given', () => {
    const content = askedContent(context, intentOf(UNNAMED), undefined, { moved: false })
    expect(content).not.toHaveProperty('externalOrderId')
    expect(content).toMatchObject({ keyOrigin: 'random', slot: expect.stringMatching(/^anon:/) })
  })

  it('goes by the caller’s key, or by that of a deliberate duplicate, or by one of its own', () => {
    const keyed = intentOf(NAMED, { idempotencyKey: 'k1' })
    expect(askedContent(context, keyed, undefined, { moved: false, duplicateKey: 'd1' })).toMatchObject({
      key: 'k1',
      keyOrigin: 'caller',
    })
    const duplicate = intentOf(UNNAMED, { duplicateKey: 'd1' })
    const begun = { moved: false, duplicateKey: 'd1' }
    expect(askedContent(context, duplicate, undefined, begun)).toMatchObject({
      key: 'd1',
      keyOrigin: 'random',
      slot: 'key:d1',
    })
    // A closed one goes on with the key that it has.
    expect(askedContent(context, duplicate, CLOSED, begun)).toMatchObject({ key: 'key-r1' })
  })
})

describe('a closed order that is asked for again', () => {
  it('goes on with its key, its attempts and what is known of the key', () => {
    const intent = intentOf(NAMED)
    const content = askedContent(context, intent, CLOSED, { moved: false })
    expect(content).toMatchObject({
      key: 'key-r1',
      keyOrigin: 'derived',
      generation: 3,
      attempts: 4,
      state: 'open',
      ambiguous: false,
      refused: true,
      foreign: false,
      fingerprint: intent.fingerprint,
      fields: fieldTags(deriveId, 'key-r1', { ...NAMED }),
      body: intent.body,
      apiKeyTag: '',
      // Its window goes on: the service has known the key since then.
      firstSentAt: 1,
      highest: 5,
      first: { sentAt: 1, refused: true },
    })
    for (const field of ['rejection', 'hold', 'busyUntil', 'order', 'version'])
      expect(content).not.toHaveProperty(field)
    expect(content.claim).not.toBe(CLOSED.claim)
    const doubted = { ...CLOSED, ambiguous: true, refused: false, foreign: true }
    expect(askedContent(context, intent, doubted, { moved: false })).toMatchObject({
      ambiguous: true,
      refused: false,
      foreign: true,
    })
  })

  it('begins its next generation under another key of the caller, of which nothing is known', () => {
    const doubted = { ...CLOSED, ambiguous: true, foreign: true }
    const intent = intentOf(NAMED, { idempotencyKey: 'k2' })
    expect(askedContent(context, intent, doubted, { moved: true })).toMatchObject({
      key: 'k2',
      keyOrigin: 'caller',
      generation: 6,
      attempts: 4,
      ambiguous: false,
      refused: false,
      foreign: false,
    })
    const content = askedContent(context, intent, doubted, { moved: true })
    for (const field of ['firstSentAt', 'first', 'highest']) expect(content).not.toHaveProperty(field)
  })
})

describe('the key with which a closed order is sent again', () => {
  const record = { ...CLOSED, rejection: { kind: 'refused', status: 402 } } as const

  it('is the one that it has, the first one or the next one', () => {
    expect(startedWith(context, record, 'same')).toBe(record)
    expect(startedWith(context, record, 'first')).toMatchObject({
      key: makeKey(context, 'r1', 0).key,
      generation: 0,
      firstSentAt: 1,
      highest: 5,
    })
    expect(startedWith(context, record, 'next')).toMatchObject({ generation: 6 })
  })

  it('has heard what is noted of it, and nothing if it is new', () => {
    const rejection = { kind: 'refused', status: 404 } as const
    const later = { ...record, first: { sentAt: 1, refused: true, rejection } }
    expect(heardUnder(later, later)).toBe(record.rejection)
    expect(heardUnder(later, startedWith(context, later, 'first'))).toBe(rejection)
    expect(heardUnder(later, startedWith(context, later, 'next'))).toBeUndefined()
  })
})
