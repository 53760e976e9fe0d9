import { describe, expect, it } from 'vitest'
import { type Key, PERSON_SKEW } from '../../../../src/orders/protocol/keys.ts'
import {
  abandon,
  type Claim,
  claim,
  distrust,
  type Ending,
  isAnother,
  isLater,
  isProven,
  type Proof,
  prove,
  settle,
} from '../../../../src/orders/protocol/transitions.ts'
import type { RecordContent } from '../../../../src/orders/record/record.ts'
import { LEFT_OPEN, MINUTE, NOW, ORDER } from '../../../support/order-context.ts'
import { type Changes, changed, intent, record } from './found.ts'

/** The fields that differ, with their later values. A removed field is undefined. */
function changes(before: RecordContent, after: RecordContent): Changes {
  const fields = Object.keys({ ...before, ...after }) as (keyof RecordContent)[]
  const differ = (field: keyof RecordContent) =>
    JSON.stringify(before[field]) !== JSON.stringify(after[field])
  return Object.fromEntries(fields.filter(differ).map((field) => [field, after[field]]))
}

/** What a claim, a settlement and the rest leave of {@link record}, without the version and the times. */
function content(with_: Changes = {}): RecordContent {
  const { version: _version, createdAt: _created, updatedAt: _updated, ...rest } = record(with_)
  return rest
}

const OWN = { apiKeyTag: 'mine', busyUntil: 150 } as const
const CLAIMED = { ...OWN, claim: 'new' } as const
const lease: Claim = { now: 50, until: 149.4, claim: 'new', apiKeyTag: 'mine' }
const late: Claim = { ...lease, now: 50 + 2 * PERSON_SKEW }
const own: Claim = { ...lease, claim: LEFT_OPEN.claim }
const SAME: Key = { key: LEFT_OPEN.key, origin: 'derived', generation: 0, firstSentAt: 10 }
const THIRD = { key: 'k3', generation: 3 } as const
const NEXT: Key = { ...THIRD, origin: 'derived' }
const SENT_NOW = { ...THIRD, firstSentAt: 50 } as const
const MOVED = { ...CLAIMED, ...SENT_NOW } as const
const refusal = { kind: 'refused', status: 402 } as const
const clean = { ambiguous: false, firstSentAt: 10 } as const
const refused = { ...clean, state: 'rejected', rejection: refusal, body: undefined } as const
/** A refused order whose request is asked for again. */
const again = { ...refused, body: intent.body } as const
const REOPENED = { ...CLAIMED, rejection: undefined, state: 'open' } as const
const busy = { ...clean, busyUntil: 99, othersUntil: undefined }
const second = { ...clean, generation: 2, key: 'k2', firstKeySentAt: 5 } as const

describe('a claim', () => {
  it('a claim of a new order has the payload and the lease', () => {
    const { rowId: _rowId, ...payload } = intent
    expect(claim(undefined, intent, { key: 'k', origin: 'random', generation: 0 }, lease)).toEqual({
      ...payload,
      key: 'k',
      origin: 'random',
      generation: 0,
      state: 'open',
      ambiguous: false,
      attempts: 0,
      firstSentAt: 50,
      busyUntil: 150,
      apiKeyTag: 'mine',
      claim: 'new',
    })
    expect(claim(undefined, intent, NEXT, lease).firstKeySentAt).toBeUndefined()
    expect(() => claim(undefined, undefined, SAME, lease)).toThrow('a claim without an order')
  })

  const held = (busyUntil: number | undefined, othersUntil: number): Changes => ({
    ...{ firstSentAt: 10, busyUntil, othersUntil },
  })
  const left = { firstKeySentAt: 10, firstRejection: refusal }
  const below = { ...clean, highest: 2, key: 'k0', generation: 1 }
  const derived = { origin: 'derived' } as const
  const random = { ...clean, origin: 'random', key: 'k0' } as const
  const nextRandom: Key = { ...NEXT, origin: 'random' }
  it.each<[what: string, expected: Changes, before: Changes, key?: Key, its?: Claim]>([
    ['of an open order', CLAIMED, { firstSentAt: 10 }],
    ['of an order that another call has', { ...CLAIMED, ambiguous: true, othersUntil: 99 }, busy],
    ['by the same call', OWN, busy, SAME, own],
    [
      'after the end of the claim before',
      { ...CLAIMED, ambiguous: true, othersUntil: 50 },
      { ...busy, busyUntil: 50 },
    ],
    ['of an order that two calls have', { ...CLAIMED, othersUntil: 99 }, held(99, 98)],
    ['of an order with a longer overtaken call', CLAIMED, held(99, 120)],
    ['of an order whose overtaken call is over by this clock', CLAIMED, held(undefined, 50)],
    [
      'of an order whose overtaken call is over',
      { ...CLAIMED, othersUntil: undefined },
      held(undefined, 50),
      SAME,
      late,
    ],
    ['of an order that is held', { ...CLAIMED, hold: undefined }, { firstSentAt: 10, hold: 'aborted' }],
    ['of an order that exists', CLAIMED, { ...clean, state: 'created', order: { id: 'o1' } }],
    ['of a refused order', REOPENED, again],
    ['of an abandoned order whose key is its name', REOPENED, { ...again, ambiguous: true }],
    ['with the next key', { ...REOPENED, ...SENT_NOW, ...left }, again, NEXT],
    [
      'with the next key, by the same call',
      { ...OWN, ...SENT_NOW, ambiguous: false, firstKeySentAt: 10 },
      { ...busy, ambiguous: true },
      NEXT,
      own,
    ],
    ['with the next key after a later one, which keeps the first', MOVED, second, NEXT],
    [
      'with the first key again',
      {
        ...{ ...CLAIMED, key: LEFT_OPEN.key, generation: 0, highest: 2, firstSentAt: 5 },
        ...{ firstKeySentAt: undefined, firstRejection: undefined },
      },
      { ...second, firstRejection: refusal },
      { ...SAME, firstSentAt: 5 },
    ],
    ['with a key above the highest', { ...MOVED, highest: undefined }, below, NEXT],
    ['with a derived key after a random one, which is no first key', { ...MOVED, ...derived }, random, NEXT],
    ['with a random key, which leaves no first key', { ...MOVED, origin: 'random' }, clean, nextRandom],
  ])('a claim %s changes: %j', (_what, expected, before, key = SAME, its = lease) => {
    const after = claim(content(before), undefined, key, its)
    expect(changes(content(before), after)).toStrictEqual(expected)
  })

  it('a claim with a payload sends that payload', () => {
    const its = { ...changed, body: '{"quantity":2}' }
    const { body, fingerprint } = its
    const claimed = claim(content(refused), its, SAME, lease)
    expect(claimed).toMatchObject({ body, fingerprint, state: 'open', attempts: 1 })
  })
})

describe('a settlement', () => {
  const end: Ending = { rejection: undefined, ambiguous: true, hold: undefined, attempts: 1, unused: false }
  const ended = { attempts: 2, busyUntil: undefined }
  const doubted = { ...ended, ambiguous: true }
  const closed = { state: 'rejected', rejection: refusal, body: undefined } as const
  const unsent = { busyUntil: undefined, firstSentAt: undefined }
  const cancelled = { ...closed, ...unsent, rejection: { kind: 'cancelled' } } as const
  const aborted = { hold: 'aborted', firstSentAt: 10 } as const
  const certain = { rejection: refusal, ambiguous: false } as const
  const unused = { ...certain, rejection: cancelled.rejection, attempts: 0, unused: true } as const
  it.each<[what: string, expected: Changes, before: Changes, ending?: Partial<Ending>]>([
    ['leaves doubt', doubted, busy],
    ['holds the order', { ...doubted, hold: 'conflict' }, busy, { hold: 'conflict' }],
    ['replaces an earlier hold', { attempts: 2, hold: 'refused' }, aborted, { hold: 'refused' }],
    ['closes the order', { ...ended, ...closed }, busy, certain],
    ['closes an order that nobody has processed', cancelled, busy, unused],
    ['closes a held order', { ...closed, attempts: 2, hold: undefined }, { ...aborted, ...clean }, certain],
    ['keeps the end of an overtaken call', doubted, { ...busy, othersUntil: 120 }],
  ])('a settlement %s: %j', (_what, expected, before, ending) => {
    const after = settle(content(before), { ...end, ...ending })
    expect(changes(content(before), after)).toStrictEqual(expected)
  })
})

const proof: Proof = { order: ORDER, orderId: 'o1', attempts: 1 }
const idOnly: Proof = { ...proof, order: undefined }
const nothing: Proof = { ...idOnly, orderId: undefined }

describe('a proof', () => {
  const unread: Changes = { ...clean, state: 'created', order: { id: 'o1' } }
  const exists = { attempts: 2, claim: 'new', state: 'created' } as const
  const read = { ...exists, ambiguous: false, body: undefined, order: ORDER } as const
  const free = { busyUntil: undefined, othersUntil: undefined, hold: undefined }
  it.each<[what: string, expected: Changes, before: Changes, its: Proof]>([
    ['of an open order', read, {}, proof],
    [
      'of an order that is held and claimed',
      { ...read, ...free },
      { hold: 'refused', busyUntil: 99, othersUntil: 120 },
      proof,
    ],
    ['of a refused order', { ...exists, order: ORDER, rejection: undefined }, refused, proof],
    [
      'of an order under a later key',
      { ...read, firstKeySentAt: undefined, highest: undefined },
      { generation: 1, highest: 2, firstKeySentAt: 5 },
      proof,
    ],
    ['without the order', { ...exists, ambiguous: false, order: { id: 'o1' } }, {}, idOnly],
    ['without its id', { ...exists, ambiguous: false }, {}, nothing],
    [
      'without the order, beside an overtaken call',
      { ...exists, ambiguous: false },
      { othersUntil: 120 },
      nothing,
    ],
    [
      'without the order, beside a call that has the record now',
      { ...exists, busyUntil: undefined, othersUntil: 99 },
      busy,
      nothing,
    ],
    [
      'without the order, by the call that has the record',
      { attempts: 2, state: 'created', ambiguous: false, busyUntil: undefined },
      { busyUntil: 99, claim: 'new' },
      nothing,
    ],
    ['of which more is known', { attempts: 2, claim: 'new' }, { ...unread, order: { id: 'o0' } }, idOnly],
  ])('a proof %s changes: %j', (_what, expected, before, its) => {
    expect(changes(content(before), prove(content(before), its, 'new'))).toStrictEqual(expected)
  })

  it('a proof is of the key and the body that were sent, whatever was written meanwhile', () => {
    const sent = content({ ...busy, claim: 'sender' })
    const newest = content({
      fingerprint: changed.fingerprint,
      body: '{"quantity":2}',
      key: 'k1',
      origin: 'random',
      generation: 1,
      firstSentAt: 40,
      apiKeyTag: 'other',
      attempts: 7,
    })
    const { key, origin, generation, fingerprint, apiKeyTag, firstSentAt, body } = sent
    const its = { key, origin, generation, fingerprint, apiKeyTag, firstSentAt, attempts: 8, claim: 'new' }
    expect(prove(newest, { ...proof, sent }, 'new')).toMatchObject(its)
    expect(prove(newest, { ...idOnly, sent }, 'new')).toMatchObject({ ...its, body })
  })

  const reading: Changes = { ...unread, busyUntil: 99 }
  const mine = { sent: content({ ...busy, claim: LEFT_OPEN.claim }) }
  const others = { sent: content({ ...busy, claim: 'of another' }) }
  it.each<[boolean, string, Changes, Proof]>([
    [true, 'the order is readable', { ...clean, state: 'created', order: ORDER }, proof],
    [true, 'another call is reading it, and the id is known', reading, { ...idOnly, ...others }],
    [true, 'nobody is reading it, and the id is known', unread, { ...idOnly, ...mine }],
    [true, 'a list shows only its id, which is known', reading, idOnly],
    [true, 'nothing is known of its id either', { ...reading, order: undefined }, nothing],
    [false, 'the record is open', {}, nothing],
    [false, 'the record is closed', refused, nothing],
    [false, 'the order is read only now', reading, proof],
    [false, 'the id is known only now', { ...reading, order: undefined }, idOnly],
    [false, 'the claim of this call is to end', reading, { ...idOnly, ...mine }],
  ])('a proof adds nothing (%s) if %s', (expected, _if, newest, its) => {
    expect(isProven(record(newest), its)).toBe(expected)
  })

  it.each([
    [true, 'anon:x', 'other'],
    [false, 'anon:x', LEFT_OPEN.key],
    [false, 'ref:r1', 'other'],
  ])('the record is of another order (%s) if the row %s has the key %s', (expected, slot, key) => {
    expect(isAnother(content({ slot, key }), content({ slot }))).toBe(expected)
  })

  it.each<[boolean, string, Changes, Proof]>([
    [true, 'of a nameless twin', { slot: 'anon:x', key: 'k2' }, { ...idOnly, ...mine }],
    [true, 'that a person has permitted since the order was found', second, idOnly],
    [false, 'although the order that was sent has another key by now', second, { ...idOnly, ...mine }],
  ])('the row has a later order (%s) %s', (expected, _what, newest, its) => {
    expect(isLater(content(newest), content(), its)).toBe(expected)
  })
})

describe('an order that a person abandons', () => {
  const closed = {
    claim: 'new',
    state: 'rejected',
    rejection: { kind: 'abandoned' },
    body: undefined,
  } as const
  const next = { ...closed, ...THIRD, ambiguous: false, firstKeySentAt: 0, firstSentAt: undefined } as const
  const free = { busyUntil: undefined, othersUntil: undefined, hold: undefined, highest: undefined }
  it.each<[what: string, expected: Changes, before: Changes, next: Key | undefined]>([
    ['gets an unsent key, and never its first key again', next, { firstSentAt: 10 }, NEXT],
    [
      'is held by nobody any more',
      { ...next, ...free },
      { busyUntil: 99, othersUntil: 120, hold: 'conflict', highest: 2 },
      NEXT,
    ],
    [
      'keeps a key that is its name, in doubt',
      { ...closed, generation: 1, hold: undefined, ambiguous: true },
      { slot: 'key:k', origin: 'caller', hold: 'refused', ambiguous: false },
      undefined,
    ],
  ])('an abandoned order %s: %j', (_what, expected, before, next) => {
    expect(changes(content(before), abandon(content(before), next, 'new'))).toStrictEqual(expected)
  })
})

describe('a record whose times are not to be trusted', () => {
  const updatedAt = NOW + 10 * MINUTE
  const until = (minutes: number) => updatedAt + minutes * MINUTE
  const marked = { claim: 'new', firstSentAt: 0 } as const
  const over = { ...marked, busyUntil: undefined } as const
  const othersFor = (minutes: number) => ({ ...over, othersUntil: NOW + minutes * MINUTE })
  it.each<[what: string, expected: Changes, before: Changes]>([
    ['sent', marked, {}],
    ['never sent', { claim: 'new' }, { firstSentAt: undefined }],
    ['under a later key', { ...marked, firstKeySentAt: 0 }, { firstKeySentAt: 5 }],
    ['claimed by a call that may be running', othersFor(1), { busyUntil: until(1) }],
    ['overtaken by such a call', othersFor(2), { busyUntil: until(1), othersUntil: until(2) }],
    ['claimed by a call that is over by its clock', othersFor(0), { busyUntil: updatedAt }],
    ['clean, in doubt', { ...marked, ambiguous: true }, { ambiguous: false }],
    ['refused', marked, { state: 'rejected', ambiguous: false }],
  ])('a record that was %s is marked: %j', (_what, expected, before) => {
    const after = distrust(record({ ...before, updatedAt }), NOW, 'new')
    expect(changes(record({ ...before, updatedAt }), after)).toStrictEqual(expected)
  })
})
