import { describe, expect, it } from 'vitest'
import {
  CREATE_ORDER,
  chargedOf,
  makeKey,
  ORDERS_PATH,
  type OrderContext,
  sameApiKey,
  tagOf,
} from '../../../src/orders/context.ts'
import { derivedKey, fieldTags } from '../../../src/orders/identity.ts'
import type { JournalRecord } from '../../../src/orders/record.ts'
import {
  closedContent,
  createdContent,
  heardUnder,
  nextGeneration,
  openContent,
  requestOf,
  requeuedContent,
  startedWith,
} from '../../../src/orders/record-endings.ts'
import { LEFT_OPEN, orderContext } from '../../support/order-context.ts'
import { fakeRuntime } from '../../support/runtime.ts'

const runtime = fakeRuntime()
const NOW = runtime.now()

const contextWith = (changes: Partial<OrderContext> = {}): OrderContext => orderContext(changes, { runtime })

const context = contextWith()

/** An open record that a call has claimed, as it is when the call ends. */
const mine: JournalRecord = {
  ...LEFT_OPEN,
  key: 'key-0',
  attempts: 2,
  firstSentAt: NOW - 1000,
  busyUntil: NOW + 1000,
  createdAt: NOW - 2000,
  updatedAt: NOW - 1000,
  version: 3,
  fields: { quantity: 'abcdef01' },
  body: '{"quantity":1}',
}
const order = { id: 'ord_1', status: 'pending', amount: 5, note: 'kept' }

/** The record without some of its fields. */
function without(record: JournalRecord, ...fields: (keyof JournalRecord)[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).filter(([name]) => !fields.some((field) => field === name)),
  )
}

describe('the request in a record', () => {
  it('is what its body says', () => {
    expect(requestOf(mine)).toEqual({ quantity: 1 })
  })

  it.each([undefined, '', 'null', '7', '"text"', '{'])('is empty where the body is %j', (body) => {
    expect(requestOf(body === undefined ? {} : { body })).toEqual({})
  })
})

describe('a record closed without an order', () => {
  it('counts its attempts, and drops body, claim and hold', () => {
    const rejection = { kind: 'cancelled' } as const
    expect(closedContent({ ...mine, hold: 'aborted' }, rejection, 3)).toEqual({
      ...without(mine, 'body', 'busyUntil'),
      state: 'rejected',
      rejection,
      attempts: 5,
    })
  })

  it.each([
    ['refused', false, { refused: true, foreign: false }],
    ['refused', true, { refused: true, foreign: false }],
    ['not_processed', false, { refused: false, foreign: false }],
    ['not_processed', true, { refused: true, foreign: false }],
    ['conflict', false, { refused: false, foreign: true }],
    ['conflict', true, { refused: true, foreign: false }],
  ] as const)('as %s, where a payload was refused before: %s', (kind, refused, expected) => {
    expect(closedContent({ ...mine, refused }, { kind }, 0)).toMatchObject(expected)
    expect(closedContent({ ...mine, refused, foreign: true }, { kind }, 0).foreign).toBe(true)
    // Where others may have sent the key, refusals of our own payloads explain no conflict.
    expect(closedContent({ ...mine, refused }, { kind }, 0, true).foreign).toBe(kind === 'conflict')
  })
})

describe('a record left open', () => {
  it('counts its attempts and gives up its claim', () => {
    expect(openContent({ ...mine, ambiguous: false }, true, undefined, 3)).toEqual({
      ...without(mine, 'busyUntil'),
      ambiguous: true,
      attempts: 5,
    })
    expect(openContent(mine, false, undefined, 0).ambiguous).toBe(false)
  })

  it('keeps the hold that it had unless there is a new one', () => {
    expect(openContent(mine, true, 'refused', 0).hold).toBe('refused')
    expect(openContent({ ...mine, hold: 'aborted' }, true, undefined, 0).hold).toBe('aborted')
    expect(openContent({ ...mine, hold: 'aborted' }, true, 'refused', 0).hold).toBe('refused')
    expect('hold' in openContent(mine, true, undefined, 0)).toBe(false)
  })
})

describe('an enqueued record that the service has not looked at', () => {
  it('is unsent again, with what an earlier call heard', () => {
    const rejection = { kind: 'refused', status: 402 } as const
    const unsent = { ...without(mine, 'busyUntil'), apiKeyTag: '', attempts: 5 }
    expect(requeuedContent(mine, 3, undefined)).toEqual(unsent)
    expect(requeuedContent(mine, 3, rejection)).toEqual({ ...unsent, rejection })
  })
})

describe('a record that moves to another key', () => {
  const named = { server: context.server, account: 'shop', externalOrderId: 'r1' }

  it('has a key of its own, and nothing of what was heard under the one before', () => {
    const rejection = { kind: 'refused' } as const
    const left = { ...mine, refused: true, foreign: true, hold: 'refused', rejection } as const
    const key = derivedKey(runtime.deriveId, { ...named, generation: 1 })
    expect(nextGeneration(context, left)).toEqual({
      ...without(mine, 'firstSentAt'),
      key,
      generation: 1,
      fields: fieldTags(runtime.deriveId, key, { quantity: 1 }),
      ambiguous: false,
      first: { sentAt: NOW - 1000, refused: true, rejection },
    })
  })

  it('takes a key that was never sent, and keeps what is known of the first', () => {
    const first = { sentAt: 1, refused: true } as const
    const left = { ...mine, generation: 2, highest: 4, first } as const
    const next = nextGeneration(context, left)
    expect(next).toMatchObject({ generation: 5, first })
    expect(next).not.toHaveProperty('highest')
    expect(nextGeneration(context, { ...mine, highest: 4 }).generation).toBe(5)
    expect(nextGeneration(context, { ...mine, generation: 1, keyOrigin: 'caller' })).not.toHaveProperty(
      'first',
    )
  })

  it('goes back to its first key with all that was known of it, and does not forget the others', () => {
    const rejection = { kind: 'refused', status: 402 } as const
    const later = { ...mine, generation: 2, first: { sentAt: 7, refused: true, rejection } } as const
    const key = derivedKey(runtime.deriveId, { ...named, generation: 0 })
    const started = startedWith(context, later, 'first')
    expect(started).toEqual({
      ...mine,
      key,
      fields: fieldTags(runtime.deriveId, key, { quantity: 1 }),
      ambiguous: false,
      refused: true,
      firstSentAt: 7,
      highest: 2,
    })
    expect(heardUnder(later, started)).toEqual(rejection)
    expect(startedWith(context, { ...mine, generation: 2 }, 'first')).toMatchObject({
      firstSentAt: mine.createdAt,
      refused: false,
    })
    expect(startedWith(context, later, 'same')).toBe(later)
    expect(startedWith(context, later, 'next').generation).toBe(3)
  })

  it('has heard under its current key what is noted there, and nothing under a new one', () => {
    const rejection = { kind: 'refused', status: 402 } as const
    const record = { ...mine, rejection }
    expect(heardUnder(record, record)).toBe(rejection)
    expect(heardUnder(record, startedWith(context, record, 'next'))).toBeUndefined()
  })

  it.each([
    ['without a reference', context, undefined],
    ['without an account', contextWith({ account: undefined }), 'r1'],
  ])('has a random key %s', (_without, its, reference) => {
    const made = makeKey(its, reference, 1)
    expect(made.keyOrigin).toBe('random')
    expect(makeKey(its, reference, 1).key).not.toBe(made.key)
  })
})

describe('a record of an order that exists', () => {
  const facts = { order, orderId: 'ord_1', attempts: 3 }

  it('holds the order, and neither body nor claim nor doubt', () => {
    expect(
      createdContent(context, { ...mine, hold: 'aborted', rejection: { kind: 'refused' } }, mine, facts),
    ).toEqual({
      ...without(mine, 'body', 'busyUntil'),
      state: 'created',
      ambiguous: false,
      readable: true,
      attempts: 5,
      order,
    })
  })

  it('holds the documented fields only, where no more is to be remembered', () => {
    const brief = createdContent(contextWith({ remember: 'id' }), mine, mine, facts)
    expect(brief?.order).toEqual({ id: 'ord_1', status: 'pending', amount: 5 })
  })

  it('is proven for the key that was sent, whoever has written meanwhile', () => {
    const others = { fingerprint: 'other', apiKeyTag: 'other', claim: 'other', attempts: 7, fields: {} }
    const newest: JournalRecord = { ...mine, ...others, key: 'key-1', keyOrigin: 'random', generation: 1 }
    const { key, keyOrigin, generation, fields, fingerprint, apiKeyTag, claim } = mine
    expect(createdContent(context, newest, mine, facts)).toMatchObject({
      ...{ key, keyOrigin, generation, fields, fingerprint, apiKeyTag, claim },
      attempts: 10,
    })
  })

  it('keeps the id and the body where the order was not readable', () => {
    const flawed = { order: undefined, orderId: 'ord_1', attempts: 1 }
    expect(createdContent(context, mine, mine, flawed)).toMatchObject({
      readable: false,
      order: { id: 'ord_1' },
      body: mine.body,
    })
    const bare = createdContent(context, mine, mine, { ...flawed, orderId: undefined })
    expect(bare !== undefined && 'order' in bare).toBe(false)
    const known = { ...mine, order: { id: 'ord_0', status: 'pending' } }
    expect(createdContent(context, known, mine, flawed)?.order).toEqual(known.order)
  })

  it("has this call's body where another one has dropped it", () => {
    const { body: _body, ...dropped } = mine
    const flawed = { order: undefined, orderId: 'ord_1', attempts: 1 }
    expect(createdContent(context, dropped, mine, flawed)?.body).toBe(mine.body)
    expect(createdContent(context, { ...mine, body: '{"quantity":2}' }, mine, flawed)?.body).toBe(
      '{"quantity":2}',
    )
    const gone = createdContent(context, dropped, dropped, flawed)
    expect(gone !== undefined && 'body' in gone).toBe(false)
  })

  describe('is left as it is', () => {
    const { busyUntil: _busyUntil, ...ended } = mine
    const unreadable: JournalRecord = { ...ended, state: 'created', order: { id: 'ord_1' } }
    const claimed: JournalRecord = { ...unreadable, busyUntil: NOW + 1 }
    const nothing = { order: undefined, orderId: 'ord_1', attempts: 1 }

    it.each<[string, JournalRecord, typeof nothing | typeof facts]>([
      ['once it is readable', { ...unreadable, readable: true, order }, facts],
      ['once it is readable and claimed', { ...claimed, readable: true, order }, facts],
      ['if this call has not read it either', unreadable, nothing],
      ['if another call is reading it', { ...claimed, claim: 'other' }, nothing],
    ])('%s', (_when, newest, known) => {
      expect(createdContent(context, newest, mine, known)).toBeUndefined()
    })

    it.each<[string, JournalRecord, typeof nothing | typeof facts]>([
      ['but for its claim, which is given up', claimed, nothing],
      ['but where this call has read it', unreadable, facts],
      ['but where this call has read it while another one tries', { ...claimed, claim: 'other' }, facts],
      ['but where it is open and readable', { ...mine, readable: true }, facts],
      ['but where it is open', mine, nothing],
    ])('%s', (_when, newest, known) => {
      expect(createdContent(context, newest, mine, known)).toMatchObject({
        state: 'created',
        readable: known.order !== undefined,
      })
    })
  })
})

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

describe('an API key', () => {
  it('may send a key again that it has sent, or that nobody has', () => {
    const sent = { ...mine, apiKeyTag: tagOf(context, mine.key, 'secret') }
    expect(sameApiKey(context, sent, 'secret')).toBe(true)
    expect(sameApiKey(context, sent, 'rotated')).toBe(false)
    expect(sameApiKey(context, sent, null)).toBe(false)
    const { firstSentAt: _firstSentAt, ...unsent } = { ...mine, apiKeyTag: '' }
    expect(sameApiKey(context, unsent, 'rotated')).toBe(true)
  })

  it('is of no account where the service remembers the keys of all of them', () => {
    expect(sameApiKey(contextWith({ idempotencyScope: 'customer' }), mine, 'rotated')).toBe(true)
  })
})
