import { describe, expect, it } from 'vitest'
import {
  askedContent,
  begunContent,
  keyOf,
  makeKey,
  nextKey,
  refusalUnder,
  repeatedContent,
  sameApiKey,
  startedWith,
  tagOf,
} from '../../../src/orders/claim.ts'
import { apiKeyTag, derivedKey, fieldTags, proxiedTag } from '../../../src/orders/identity.ts'
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

const OPEN: JournalRecord = { ...LEFT_OPEN, ambiguous: false, createdAt: 1, updatedAt: 1, version: 7 }
const HELD: JournalRecord = { ...OPEN, hold: 'aborted' }

describe('the content that a call begins with', () => {
  const first = { key: makeKey(context, 'r1', 0).key, generation: 0, firstSentAt: 1, highest: 5 }
  it.each([
    ['new', { key: 'd1', keyOrigin: 'random', generation: 0 }, undefined],
    ['stored', { key: 'key-r1', claim: 'claim', ambiguous: true }, HELD],
    ['same', { key: 'key-r1', generation: 3, highest: 5 }, CLOSED],
    ['first', first, CLOSED],
    ['next', { generation: 6 }, CLOSED],
  ] as const)('an order that is sent as %s begins with %j', (as, expected, over) => {
    const content = begunContent(context, intentOf(NAMED), over, as, 'd1')
    expect(content).toMatchObject({ state: 'open', ...expected })
    expect(content).not.toHaveProperty('hold')
  })

  it('an order that recovery sends keeps its key and its hold', () => {
    expect(repeatedContent(HELD)).toMatchObject({ key: 'key-r1', hold: 'aborted', ambiguous: true })
  })
})

describe('a new order that no call has claimed', () => {
  it('an unclaimed order has no reference if none was given', () => {
    const content = askedContent(context, intentOf(UNNAMED), undefined)
    expect(content).not.toHaveProperty('externalOrderId')
    expect(content).toMatchObject({ keyOrigin: 'random', slot: expect.stringMatching(/^anon:/) })
  })

  it("an unclaimed order is named by the caller's key, a deliberate duplicate's key, or its own key", () => {
    const keyed = intentOf(NAMED, { idempotencyKey: 'k1' })
    expect(askedContent(context, keyed, undefined, 'd1')).toMatchObject({
      key: 'k1',
      keyOrigin: 'caller',
    })
    const duplicate = intentOf(UNNAMED, { duplicateKey: 'd1' })
    expect(askedContent(context, duplicate, undefined, 'd1')).toMatchObject({
      key: 'd1',
      keyOrigin: 'random',
      slot: 'key:d1',
    })
    // A closed order continues with its key.
    expect(askedContent(context, duplicate, CLOSED, 'd1')).toMatchObject({ key: 'key-r1' })
  })
})

describe('the key with which a closed order is sent again', () => {
  const record = { ...CLOSED, rejection: { kind: 'refused', status: 402 } } as const

  it('a key has the recorded refusals, and none if it is new', () => {
    const rejection = { kind: 'refused', status: 404 } as const
    const later = { ...record, first: { sentAt: 1, refused: true, rejection } }
    expect(refusalUnder(later, later)).toBe(record.rejection)
    expect(refusalUnder(later, startedWith(context, later, 'first'))).toBe(rejection)
    expect(refusalUnder(later, startedWith(context, later, 'next'))).toBeUndefined()
    expect(refusalUnder(OPEN, { key: 'key-0', generation: 0 })).toBeUndefined()
  })
})

const { server } = context
const mine = { ...LEFT_OPEN, body: '{"quantity":1}' }

describe('the key of a generation', () => {
  it('the key of a generation is derived from the reference, with the tags of its payload', () => {
    const key = derivedKey(deriveId, { server, account: 'shop', externalOrderId: 'r1', generation: 2 })
    const fields = fieldTags(deriveId, key, { quantity: 1 })
    expect(keyOf(context, mine, 2)).toEqual({ key, keyOrigin: 'derived', generation: 2, fields })
  })

  it('the key of the next generation has never been sent', () => {
    expect(nextKey(context, { ...mine, generation: 2 }).generation).toBe(3)
    expect(nextKey(context, { ...mine, generation: 2, highest: 4 }).generation).toBe(5)
  })

  it.each([
    ['without a reference', context, undefined],
    ['without an account', orderContext({ account: undefined }), 'r1'],
  ])('the key of a generation is random %s', (_without, its, reference) => {
    const made = makeKey(its, reference, 1)
    expect(made.keyOrigin).toBe('random')
    expect(makeKey(its, reference, 1).key).not.toBe(made.key)
  })
})

describe('an API key', () => {
  it('an API key may repeat a key that it sent', () => {
    const sent = { ...mine, apiKeyTag: tagOf(context, mine.key, 'secret') }
    expect(sameApiKey(context, sent, 'secret')).toBe(true)
    expect(sameApiKey(context, sent, 'rotated')).toBe(false)
    expect(sameApiKey(context, sent, null)).toBe(false)
  })

  it('an API key belongs to no account if the service scopes keys by customer', () => {
    expect(sameApiKey(orderContext({ idempotencyScope: 'customer' }), mine, 'rotated')).toBe(true)
  })
})

describe('the tag of the API key that sends', () => {
  const { get } = context.connection.credentials
  const behindProxy = orderContext({}, { credentials: { rotates: true, get, proxyTag: 'of-the-proxy' } })
  const proxied = proxiedTag(deriveId, mine.key, 'of-the-proxy')

  it('the tag is derived from the API key, even if a proxy added one earlier', () => {
    const own = apiKeyTag(deriveId, mine.key, 'secret')
    expect(tagOf(behindProxy, mine.key, 'secret', proxied)).toBe(own)
  })

  it("without an API key, the tag is derived from the proxy's tag", () => {
    expect(tagOf(behindProxy, mine.key, null)).toBe(proxied)
  })

  it('the tag stays as the proxy reported it to an earlier page, until it reports it again', () => {
    expect(tagOf(context, mine.key, null, proxied)).toBe(proxied)
    expect(tagOf(context, mine.key, null, 'of-an-api-key')).toBe(apiKeyTag(deriveId, mine.key, null))
  })
})
