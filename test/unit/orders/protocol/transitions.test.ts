import { describe, expect, it } from 'vitest'
import type { Key } from '../../../../src/orders/protocol/keys.ts'
import {
  abandon,
  type Claim,
  claim,
  distrust,
  type Ending,
  isAnother,
  isProven,
  type Proof,
  prove,
  settle,
} from '../../../../src/orders/protocol/transitions.ts'
import type { JournalRecord, RecordContent } from '../../../../src/orders/record/record.ts'
import { LEFT_OPEN, MINUTE, NOW, ORDER } from '../../../support/order-context.ts'
import { type Changes, changed, intent, record } from './found.ts'

/** The changed fields as JSON, and the removed fields. */
function changes(before: object, after: object): string {
  const [from, to] = [before, after].map((each) => new Map<string, unknown>(Object.entries(each)))
  const names = [...new Set([...(from?.keys() ?? []), ...(to?.keys() ?? [])])].sort()
  return names
    .filter((name) => JSON.stringify(from?.get(name)) !== JSON.stringify(to?.get(name)))
    .map((name) => (to?.get(name) === undefined ? `-${name}` : `${name}=${JSON.stringify(to.get(name))}`))
    .join(' ')
    .replace(/["\\]/g, '')
}

/** What a claim, a settlement and the rest leave of {@link record}, without the version and the times. */
function content(with_: Changes = {}): RecordContent {
  const { version: _version, createdAt: _created, updatedAt: _updated, ...rest } = record(with_)
  return rest
}

const lease: Claim = { now: 50, until: 150, claim: 'new', apiKeyTag: 'mine' }
const own: Claim = { ...lease, claim: LEFT_OPEN.claim }
const CLAIMED = 'apiKeyTag=mine busyUntil=150 claim=new'
const SAME: Key = { key: LEFT_OPEN.key, origin: 'derived', generation: 0, firstSentAt: 10 }
const NEXT: Key = { key: 'k3', origin: 'derived', generation: 3 }
const refusal = { kind: 'refused', status: 402 } as const
const clean = { ambiguous: false, firstSentAt: 10 } as const
const refused = { ...clean, state: 'rejected', rejection: refusal, body: undefined } as const
const busy = { ...clean, busyUntil: 99, othersUntil: undefined }

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

  it.each<[string, string, Changes, Key, Claim]>([
    ['of an open order', CLAIMED, { firstSentAt: 10 }, SAME, lease],
    [
      'of an order that another call has, whose doubt is ours now',
      `ambiguous=true ${CLAIMED} othersUntil=99`,
      busy,
      SAME,
      lease,
    ],
    ['by the same call', 'apiKeyTag=mine busyUntil=150', busy, SAME, own],
    [
      'after the end of the claim before',
      `ambiguous=true ${CLAIMED}`,
      { ...busy, busyUntil: 50 },
      SAME,
      lease,
    ],
    [
      'of an order that two calls have',
      `${CLAIMED} othersUntil=99`,
      { firstSentAt: 10, busyUntil: 99, othersUntil: 98 },
      SAME,
      lease,
    ],
    [
      'of an order with a longer overtaken call',
      CLAIMED,
      { firstSentAt: 10, busyUntil: 99, othersUntil: 120 },
      SAME,
      lease,
    ],
    [
      'of an order whose overtaken call is over',
      `${CLAIMED} -othersUntil`,
      { firstSentAt: 10, othersUntil: 50 },
      SAME,
      lease,
    ],
    ['of an order that is held', `${CLAIMED} -hold`, { firstSentAt: 10, hold: 'aborted' }, SAME, lease],
    ['of an order that exists', CLAIMED, { ...clean, state: 'created', order: { id: 'o1' } }, SAME, lease],
    [
      'of a refused order',
      `${CLAIMED} -rejection state=open`,
      { ...refused, body: intent.body },
      SAME,
      lease,
    ],
    [
      'of an abandoned order whose key is its name',
      `${CLAIMED} -rejection state=open`,
      { ...refused, ambiguous: true, body: intent.body },
      SAME,
      lease,
    ],
    [
      'with the next key',
      `${CLAIMED} firstKeySentAt=10 firstRejection={kind:refused,status:402} firstSentAt=50 generation=3 key=k3 -rejection state=open`,
      { ...refused, body: intent.body },
      NEXT,
      lease,
    ],
    [
      'with the next key, by the same call',
      'ambiguous=false apiKeyTag=mine busyUntil=150 firstKeySentAt=10 firstSentAt=50 generation=3 key=k3',
      { ...busy, ambiguous: true },
      NEXT,
      own,
    ],
    [
      'with the next key after a later one, which keeps the window of the first',
      `${CLAIMED} firstSentAt=50 generation=3 key=k3`,
      { ...clean, generation: 2, key: 'k2', firstKeySentAt: 5 },
      NEXT,
      lease,
    ],
    [
      'with the first key again',
      `${CLAIMED} -firstKeySentAt -firstRejection firstSentAt=5 generation=0 highest=2 key=${LEFT_OPEN.key}`,
      { ...clean, generation: 2, key: 'k2', firstKeySentAt: 5, firstRejection: refusal },
      { ...SAME, firstSentAt: 5 },
      lease,
    ],
    [
      'with a key above the highest',
      `${CLAIMED} firstSentAt=50 generation=3 -highest key=k3`,
      { ...clean, highest: 2, key: 'k0', origin: 'derived', generation: 1 },
      NEXT,
      lease,
    ],
    [
      'with a derived key after a random one, which is no first key',
      `${CLAIMED} firstSentAt=50 generation=3 key=k3 origin=derived`,
      { ...clean, origin: 'random', key: 'k0' },
      NEXT,
      lease,
    ],
    [
      'with a random key, which leaves no first key behind',
      `${CLAIMED} firstSentAt=50 generation=1 key=k1 origin=random`,
      clean,
      { key: 'k1', origin: 'random', generation: 1 },
      lease,
    ],
  ])('a claim %s changes: %s', (_what, expected, before, key, its) => {
    expect(changes(content(before), claim(content(before), undefined, key, its))).toBe(expected)
  })

  it('a claim with a payload sends that payload', () => {
    const its = { ...changed, body: '{"quantity":2}' }
    const claimed = claim(content(refused), its, SAME, lease)
    expect(claimed).toMatchObject({
      body: its.body,
      fingerprint: its.fingerprint,
      state: 'open',
      attempts: 1,
    })
  })
})

describe('a settlement', () => {
  const end: Ending = { rejection: undefined, ambiguous: true, hold: undefined, attempts: 1, unused: false }
  it.each<[string, string, Changes, Partial<Ending>]>([
    ['leaves doubt', 'ambiguous=true attempts=2 -busyUntil', busy, {}],
    ['holds the order', 'ambiguous=true attempts=2 -busyUntil hold=conflict', busy, { hold: 'conflict' }],
    ['keeps an earlier hold', 'attempts=2', { hold: 'aborted', firstSentAt: 10 }, {}],
    [
      'replaces an earlier hold',
      'attempts=2 hold=refused',
      { hold: 'aborted', firstSentAt: 10 },
      { hold: 'refused' },
    ],
    [
      'closes the order',
      'attempts=2 -body -busyUntil rejection={kind:refused,status:402} state=rejected',
      busy,
      { rejection: refusal, ambiguous: false },
    ],
    [
      'closes an order that nobody has processed',
      'attempts=1 -body -busyUntil -firstSentAt rejection={kind:cancelled} state=rejected',
      { ...busy, attempts: 1 },
      { rejection: { kind: 'cancelled' }, ambiguous: false, attempts: 0, unused: true },
    ],
    [
      'closes a held order',
      'attempts=2 -body -hold rejection={kind:refused,status:402} state=rejected',
      { ...clean, hold: 'refused' },
      { rejection: refusal, ambiguous: false },
    ],
    [
      'keeps the end of an overtaken call',
      'ambiguous=true attempts=2 -busyUntil',
      { ...busy, othersUntil: 120 },
      {},
    ],
  ])('a settlement %s: %s', (_what, expected, before, ending) => {
    const after = settle(content(before), { ...end, ...ending })
    expect(changes(content(before), after)).toBe(expected.replace('attempts=1 ', ''))
  })
})

const proof: Proof = { order: ORDER, orderId: 'o1', attempts: 1 }
const idOnly: Proof = { ...proof, order: undefined }
const nothing: Proof = { ...idOnly, orderId: undefined }

describe('a proof', () => {
  const READ = `order=${JSON.stringify(ORDER).replace(/"/g, '')}`
  it.each<[string, string, Changes, Proof]>([
    ['of an open order', `ambiguous=false attempts=2 -body claim=new ${READ} state=created`, {}, proof],
    [
      'of an order that is held and claimed',
      `ambiguous=false attempts=2 -body -busyUntil claim=new -hold ${READ} -othersUntil state=created`,
      { hold: 'refused', busyUntil: 99, othersUntil: 120 },
      proof,
    ],
    ['of a refused order', `attempts=2 claim=new ${READ} -rejection state=created`, refused, proof],
    [
      'of an order under a later key',
      `ambiguous=false attempts=2 -body claim=new -firstKeySentAt -highest ${READ} state=created`,
      { generation: 1, highest: 2, firstKeySentAt: 5 },
      proof,
    ],
    ['without the order', 'ambiguous=false attempts=2 claim=new order={id:o1} state=created', {}, idOnly],
    ['without its id', 'ambiguous=false attempts=2 claim=new state=created', {}, nothing],
    [
      'of which more is known',
      'attempts=2 claim=new',
      { ...clean, state: 'created', order: { id: 'o0' } },
      idOnly,
    ],
  ])('a proof %s changes: %s', (_what, expected, before, its) => {
    expect(changes(content(before), prove(content(before), its, 'new'))).toBe(expected)
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

  const unread: Changes = { ...clean, state: 'created', order: { id: 'o1' }, busyUntil: 99 }
  const mine = { sent: content({ ...busy, claim: LEFT_OPEN.claim }) }
  const others = { sent: content({ ...busy, claim: 'of another' }) }
  it.each<[boolean, string, Changes, Proof]>([
    [true, 'the order is readable', { ...clean, state: 'created', order: ORDER }, proof],
    [true, 'another call is reading it, and the id is known', unread, { ...idOnly, ...others }],
    [
      true,
      'nobody is reading it, and the id is known',
      { ...unread, busyUntil: undefined },
      { ...idOnly, ...mine },
    ],
    [true, 'a list shows only its id, which is known', unread, idOnly],
    [true, 'nothing is known of its id either', { ...unread, order: undefined }, nothing],
    [false, 'the record is open', {}, nothing],
    [false, 'the record is closed', refused, nothing],
    [false, 'the order is read only now', unread, proof],
    [false, 'the id is known only now', { ...unread, order: undefined }, idOnly],
    [false, 'the claim of this call is to end', unread, { ...idOnly, ...mine }],
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
})

describe('an order that a person abandons', () => {
  const closed = 'claim=new'
  it.each<[string, string, Changes, Key | undefined]>([
    [
      'gets an unsent key, and never its first key again',
      `ambiguous=false -body ${closed} firstKeySentAt=0 -firstSentAt generation=3 key=k3 rejection={kind:abandoned} state=rejected`,
      { firstSentAt: 10 },
      NEXT,
    ],
    [
      'is held by nobody any more',
      `ambiguous=false -body -busyUntil ${closed} firstKeySentAt=0 -firstSentAt generation=3 -highest -hold key=k3 -othersUntil rejection={kind:abandoned} state=rejected`,
      { busyUntil: 99, othersUntil: 120, hold: 'conflict', highest: 2 },
      NEXT,
    ],
    [
      'keeps a key that is its name, in doubt',
      `-body ${closed} generation=1 -hold rejection={kind:abandoned} state=rejected`,
      { slot: 'key:k', origin: 'caller', hold: 'refused' },
      undefined,
    ],
  ])('an abandoned order %s: %s', (_what, expected, before, next) => {
    expect(changes(content(before), abandon(content(before), next, 'new'))).toBe(expected)
  })
})

describe('a record whose times are not to be trusted', () => {
  const updatedAt = NOW + 10 * MINUTE
  it.each<[string, string, Changes]>([
    ['sent', 'claim=new firstSentAt=0', {}],
    ['never sent', 'claim=new', { firstSentAt: undefined }],
    ['under a later key', 'claim=new firstKeySentAt=0 firstSentAt=0', { firstKeySentAt: 5 }],
    [
      'claimed by a call that may be running',
      `-busyUntil claim=new firstSentAt=0 othersUntil=${NOW + MINUTE}`,
      { busyUntil: updatedAt + MINUTE },
    ],
    [
      'overtaken by such a call',
      `-busyUntil claim=new firstSentAt=0 othersUntil=${NOW + 2 * MINUTE}`,
      { busyUntil: updatedAt + MINUTE, othersUntil: updatedAt + 2 * MINUTE },
    ],
    ['claimed by a call that is over', '-busyUntil claim=new firstSentAt=0', { busyUntil: updatedAt }],
  ])('a record that was %s is marked: %s', (_what, expected, before) => {
    const found: JournalRecord = record({ ...before, updatedAt })
    const { version: _version, createdAt: _created, updatedAt: _updated, ...rest } = found
    expect(changes(rest, distrust(found, NOW, 'new'))).toBe(expected)
  })
})
