import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Action,
  ADOPTION_WINDOW,
  type Circumstances,
  CLOCK_SKEW,
  decideAction,
  inWindow,
  isBusy,
  type Wanted,
} from '../../../src/idempotency/decision.ts'
import type { JournalRecord, RejectionKind } from '../../../src/idempotency/record.ts'

const NOW = 1_700_000_000_000
const MINUTE = 60_000
const WINDOW = 20 * MINUTE
const TOTAL = 2 * MINUTE

const here: Circumstances = { now: NOW, safeRetryWindow: WINDOW, totalTimeout: TOTAL, sameApiKey: true }

/** A record of an order with a reference, opened a minute ago by a call that is gone. */
function record(changes: Partial<JournalRecord> = {}): JournalRecord {
  return {
    slot: 'ref:r1',
    key: 'key-0',
    keyOrigin: 'derived',
    generation: 0,
    state: 'open',
    ambiguous: true,
    externalOrderId: 'r1',
    attempts: 1,
    firstSentAt: NOW - MINUTE,
    createdAt: NOW - MINUTE,
    updatedAt: NOW - MINUTE,
    version: 1,
    fingerprint: 'same',
    fields: {},
    body: '{}',
    apiKeyTag: 'tag',
    claim: 'claim',
    readable: false,
    refused: false,
    foreign: false,
    ...changes,
  }
}

function withoutBody(changes: Partial<JournalRecord>): JournalRecord {
  const { body: _body, ...rest } = record(changes)
  return rest
}

function withoutSend(changes: Partial<JournalRecord>): JournalRecord {
  const { firstSentAt: _sent, ...rest } = record(changes)
  return rest
}

const order = { id: 'ord_1', status: 'pending', amount: 1 }
const created = { state: 'created', readable: true, order } as const
const unreadable = { state: 'created', readable: false } as const
const busy = { busyUntil: NOW + 1, updatedAt: NOW - 1 } as const
const rejected = (kind: RejectionKind, changes: Partial<JournalRecord> = {}) =>
  ({ state: 'rejected', rejection: { kind }, ...changes }) as const

const named: Wanted = { slot: 'ref:r1', fingerprint: 'same' }
const anonymous: Wanted = { slot: 'anon:same', fingerprint: 'same' }
const ofAnonymous = (changes: Partial<JournalRecord>): JournalRecord =>
  record({ slot: 'anon:same', keyOrigin: 'random', ...changes })

type Line = readonly [when: string, JournalRecord, Wanted, Action, Partial<Circumstances>?]

const continues = { action: 'continue' } as const
const past = { action: 'unresolved', because: 'window' } as const
const overPayload = { action: 'conflict', over: 'payload' } as const
const overKey = { action: 'conflict', over: 'key' } as const

/** The table of what `create()` does with what it finds, line by line; the columns are the wanted order's name. */
const TABLE: readonly Line[] = [
  ['open and a live call has it: wait', record(busy), named, { action: 'wait' }],
  [
    'open and a live call has it, past the window: wait',
    record({ ...busy, firstSentAt: 0 }),
    named,
    { action: 'wait' },
  ],
  ['open and a live call has it, anonymous: refuse', ofAnonymous(busy), anonymous, { action: 'duplicate' }],
  ['open, nobody has it, inside the window: continue', record(), named, continues],
  ['open, its claim ran out: continue', record({ busyUntil: NOW }), named, continues],
  [
    'open, its claim is from the future: continue',
    record({ busyUntil: NOW + TOTAL, updatedAt: NOW + CLOCK_SKEW + 1, firstSentAt: NOW }),
    named,
    continues,
  ],
  [
    'open, under a key that the caller gives again: continue',
    record({ keyOrigin: 'caller' }),
    { ...named, idempotencyKey: 'key-0' },
    continues,
  ],
  [
    'open, sent with another API key: unresolved',
    record(),
    named,
    { action: 'unresolved', because: 'api_key' },
    { sameApiKey: false },
  ],
  ['open, anonymous, touched just now: continue', ofAnonymous({}), anonymous, continues],
  ['open, anonymous, touched this moment: continue', ofAnonymous({ updatedAt: NOW }), anonymous, continues],
  [
    'open, anonymous, touched by a clock that is as far ahead as clocks may be: continue',
    ofAnonymous({ updatedAt: NOW + CLOCK_SKEW }),
    anonymous,
    continues,
  ],
  [
    'open, anonymous, touched 15 minutes ago: continue',
    ofAnonymous({ updatedAt: NOW - ADOPTION_WINDOW }),
    anonymous,
    continues,
  ],
  [
    'open, anonymous, touched longer ago: unresolved',
    ofAnonymous({ updatedAt: NOW - ADOPTION_WINDOW - 1 }),
    anonymous,
    { action: 'unresolved', because: 'age' },
  ],
  [
    'open, anonymous, touched in the future: unresolved',
    ofAnonymous({ updatedAt: NOW + CLOCK_SKEW + 1 }),
    anonymous,
    { action: 'unresolved', because: 'age' },
  ],
  ['open, past the window: unresolved', record({ firstSentAt: NOW - WINDOW }), named, past],
  [
    'open, anonymous, past the window: unresolved',
    ofAnonymous({ firstSentAt: NOW - WINDOW }),
    anonymous,
    past,
  ],
  [
    'open, with room for exactly one call: continue',
    record({ firstSentAt: NOW - WINDOW + TOTAL }),
    named,
    continues,
  ],
  [
    'open, with too little room for a call: unresolved',
    record({ firstSentAt: NOW - WINDOW + TOTAL - 1 }),
    named,
    past,
  ],
  [
    'open, sent in the future because the clock went back: unresolved',
    record({ firstSentAt: NOW + 60 * MINUTE }),
    named,
    past,
  ],
  [
    'open, never sent as far as is known: its age counts',
    record({ createdAt: NOW - WINDOW, firstSentAt: undefined as never }),
    named,
    past,
  ],
  [
    'open and claimed by nobody yet: continue, however old and whatever the API key',
    record({ createdAt: 0, updatedAt: 0, firstSentAt: undefined as never, apiKeyTag: '' }),
    named,
    continues,
  ],
  ['open with another payload: conflict', record(), { ...named, fingerprint: 'other' }, overPayload],
  [
    'open with another payload, busy: conflict',
    record(busy),
    { ...named, fingerprint: 'other' },
    overPayload,
  ],
  ['open under another key: conflict', record(), { ...named, idempotencyKey: 'mine' }, overKey],
  [
    'created with another payload: conflict',
    record(created),
    { ...named, fingerprint: 'other' },
    overPayload,
  ],
  ['created under another key: conflict', record(created), { ...named, idempotencyKey: 'mine' }, overKey],
  ['created: return', record(created), named, { action: 'return' }],
  [
    'created, long ago, with another API key: return',
    record({ ...created, firstSentAt: 0 }),
    named,
    { action: 'return' },
    { sameApiKey: false },
  ],
  ['created, anonymous: archive', ofAnonymous(created), anonymous, { action: 'archive' }],
  [
    'created but unreadable, inside the window: read by a replay',
    record(unreadable),
    named,
    { action: 'read', by: 'replay' },
  ],
  [
    'created but unreadable, id known, past the window: read by id',
    record({ ...unreadable, firstSentAt: 0, order: { id: 'ord_1' } }),
    named,
    { action: 'read', by: 'id' },
  ],
  [
    'created but unreadable, id known, other API key: read by id',
    record({ ...unreadable, order: { id: 'ord_1' } }),
    named,
    { action: 'read', by: 'id' },
    { sameApiKey: false },
  ],
  [
    'created but unreadable, its body gone: read by id',
    withoutBody({ ...unreadable, order: { id: 'ord_1' } }),
    named,
    { action: 'read', by: 'id' },
  ],
  [
    'created but unreadable, id not known, past the window: unresolved',
    record({ ...unreadable, firstSentAt: 0 }),
    named,
    { action: 'unresolved', because: 'unreadable' },
  ],
  [
    'created but unreadable, being read by a live call: wait',
    record({ ...unreadable, ...busy }),
    named,
    { action: 'wait' },
  ],
  [
    'created but unreadable, anonymous: read it, never a second order',
    ofAnonymous(unreadable),
    anonymous,
    { action: 'read', by: 'replay' },
  ],
  ['refused: again with the same key', record(rejected('refused')), named, { action: 'reopen', key: 'same' }],
  [
    'refused, changed payload: again with the same key',
    record(rejected('refused')),
    { ...named, fingerprint: 'other' },
    { action: 'reopen', key: 'same' },
  ],
  [
    'refused under a first key whose window is over: again with a key that was never sent',
    record(rejected('refused', { firstSentAt: 0 })),
    named,
    { action: 'reopen', key: 'next' },
  ],
  [
    'refused under a later key, while the window of the first is open: again with the first',
    record(rejected('refused', { generation: 2, first: { sentAt: NOW - MINUTE, refused: true } })),
    named,
    { action: 'reopen', key: 'first' },
  ],
  [
    'refused under a later key, and there is no room for the call in the window of the first: with one that was never sent',
    record(
      rejected('refused', { generation: 2, first: { sentAt: NOW - WINDOW + TOTAL - 1, refused: true } }),
    ),
    named,
    { action: 'reopen', key: 'next' },
  ],
  [
    'closed under a later key that the service never looked at, after the window of the first: with that key',
    withoutSend(rejected('not_processed', { generation: 1, first: { sentAt: 0, refused: true } })),
    named,
    { action: 'reopen', key: 'same' },
  ],
  [
    'refused under a later key by a package that did not note the first one, and opened lately: with the first',
    record(rejected('refused', { generation: 1 })),
    named,
    { action: 'reopen', key: 'first' },
  ],
  [
    'refused under a later random key: with that one, because no other store could compute the first',
    record(rejected('refused', { generation: 1, keyOrigin: 'random' })),
    named,
    { action: 'reopen', key: 'same' },
  ],
  [
    'refused under a random key whose window is over: with another one',
    record(rejected('refused', { keyOrigin: 'random', firstSentAt: 0 })),
    named,
    { action: 'reopen', key: 'next' },
  ],
  [
    'refused by a clock that has gone back since: with a key that was never sent',
    record(rejected('refused', { firstSentAt: NOW + CLOCK_SKEW + 1 })),
    named,
    { action: 'reopen', key: 'next' },
  ],
  [
    'refused under the caller’s key inside its window: with that key',
    record(rejected('refused', { keyOrigin: 'caller' })),
    named,
    { action: 'reopen', key: 'same' },
  ],
  [
    'refused under the caller’s key, and its window is over: nothing, because no other key may take its place',
    record(rejected('refused', { keyOrigin: 'caller', firstSentAt: 0 })),
    named,
    { action: 'spent' },
  ],
  [
    'in conflict inside the window: with the same key',
    record(rejected('conflict', { generation: 1, first: { sentAt: NOW - MINUTE, refused: true } })),
    named,
    { action: 'reopen', key: 'same' },
  ],
  [
    'in conflict past the window: for a person',
    record(rejected('conflict', { firstSentAt: 0 })),
    named,
    past,
  ],
  [
    'not looked at, under a key that belongs to another payload, past the window: for a person',
    record(rejected('not_processed', { firstSentAt: 0, foreign: true })),
    named,
    past,
  ],
  [
    'enqueued again after a refusal, whose window is over: sent, with a key that was never sent',
    record({ ambiguous: false, apiKeyTag: '', firstSentAt: 0 }),
    named,
    continues,
  ],
  [
    'enqueued again under the caller’s key after a refusal, whose window is over: for a person',
    record({ ambiguous: false, apiKeyTag: '', firstSentAt: 0, keyOrigin: 'caller' }),
    named,
    past,
  ],
  [
    'refused, other API key: again with the same key',
    record(rejected('refused')),
    named,
    { action: 'reopen', key: 'same' },
    { sameApiKey: false },
  ],
  [
    'refused, a new key is given: that key',
    record(rejected('refused')),
    { ...named, idempotencyKey: 'mine' },
    { action: 'reopen', key: 'given' },
  ],
  [
    'not processed, a new key is given: conflict',
    record(rejected('not_processed')),
    { ...named, idempotencyKey: 'mine' },
    overKey,
  ],
  [
    'never sent, a new key is given: that key',
    record(rejected('cancelled', { attempts: 0 })),
    { ...named, idempotencyKey: 'mine' },
    { action: 'reopen', key: 'given' },
  ],
  [
    'cancelled after a send, a new key is given: conflict',
    record(rejected('cancelled')),
    { ...named, idempotencyKey: 'mine' },
    overKey,
  ],
  [
    'given up by a person, a new key is given: that key',
    record(rejected('abandoned')),
    { ...named, idempotencyKey: 'mine' },
    { action: 'reopen', key: 'given' },
  ],
  [
    'another payload has the key: again with the same key',
    record(rejected('conflict', { foreign: true })),
    named,
    { action: 'reopen', key: 'same' },
  ],
  [
    'another payload has the key, a new key is given: conflict',
    record(rejected('conflict', { foreign: true })),
    { ...named, idempotencyKey: 'mine' },
    overKey,
  ],
  [
    'refused once, but the key is another payload’s: conflict over a new key',
    record(rejected('refused', { foreign: true })),
    { ...named, idempotencyKey: 'mine' },
    overKey,
  ],
  [
    'refused, anonymous: a new order',
    ofAnonymous(rejected('refused')),
    anonymous,
    { action: 'reopen', key: 'fresh' },
  ],
]

describe('what create() does with the record it finds', () => {
  for (const [when, found, wanted, action, circumstances] of TABLE) {
    it(when, () => {
      expect(decideAction(found, wanted, { ...here, ...circumstances })).toEqual(action)
    })
  }
})

describe('the safe-retry window', () => {
  it('ends early enough for a whole call', () => {
    const at = (age: number) => inWindow(record({ firstSentAt: NOW - age }), here)
    expect([at(0), at(WINDOW - TOTAL), at(WINDOW - TOTAL + 1), at(WINDOW)]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  it('takes a clock that is a little behind for another machine’s, and one far behind for a clock set back', () => {
    const ahead = (by: number) => inWindow(record({ firstSentAt: NOW + by }), here)
    expect([ahead(CLOCK_SKEW), ahead(CLOCK_SKEW + 1), ahead(60 * MINUTE)]).toEqual([true, false, false])
  })

  it('never fits a call that is longer than the window', () => {
    const long = { ...here, totalTimeout: WINDOW + 1 }
    expect(inWindow(record({ firstSentAt: NOW }), long)).toBe(false)
  })
})

describe('a claim', () => {
  it('holds until the time it names', () => {
    const at = (now: number) => isBusy({ updatedAt: NOW, busyUntil: NOW + TOTAL }, now)
    expect([at(NOW), at(NOW + TOTAL - 1), at(NOW + TOTAL)]).toEqual([true, true, false])
  })

  it('does not hold if none is named, or if the clock was set back far behind it', () => {
    expect(isBusy({ updatedAt: NOW }, NOW)).toBe(false)
    expect(isBusy({ updatedAt: NOW, busyUntil: NOW + TOTAL }, NOW - CLOCK_SKEW)).toBe(true)
    expect(isBusy({ updatedAt: NOW, busyUntil: NOW + TOTAL }, NOW - CLOCK_SKEW - 1)).toBe(false)
  })
})

const times = fc.integer({ min: NOW - 3 * WINDOW, max: NOW + 3 * WINDOW })
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined })

const records = fc
  .record({
    slot: fc.constantFrom('ref:r1', 'key:key-0', 'anon:same'),
    state: fc.constantFrom('open', 'created', 'rejected'),
    keyOrigin: fc.constantFrom('caller', 'derived', 'random'),
    ambiguous: fc.boolean(),
    readable: fc.boolean(),
    refused: fc.boolean(),
    foreign: fc.boolean(),
    attempts: fc.nat(3),
    firstSentAt: maybe(times),
    busyUntil: maybe(times),
    updatedAt: times,
    createdAt: times,
    body: maybe(fc.constant('{}')),
    order: maybe(fc.constant(order)),
    kind: fc.constantFrom<RejectionKind>('refused', 'not_processed', 'conflict', 'cancelled', 'abandoned'),
  })
  .map(({ kind, ...changes }) =>
    record({
      ...(changes as Partial<JournalRecord>),
      ...(changes.state === 'rejected' ? { rejection: { kind } } : {}),
    }),
  )

const wishes = fc.record({
  fingerprint: fc.constantFrom('same', 'other'),
  idempotencyKey: maybe(fc.constantFrom('key-0', 'mine')),
})

const circumstances = fc.record({
  now: fc.constant(NOW),
  safeRetryWindow: fc.constantFrom(0, WINDOW, 24 * 60 * MINUTE),
  totalTimeout: fc.constantFrom(1, TOTAL, WINDOW),
  sameApiKey: fc.boolean(),
})

describe('the decision about any record', () => {
  const each = (
    check: (found: JournalRecord, wanted: Wanted, at: Circumstances, action: Action) => void,
  ): void =>
    fc.assert(
      fc.property(records, wishes, circumstances, (found, wish, at) => {
        const wanted = { slot: found.slot, ...wish }
        check(found, wanted, at, decideAction(found, wanted, at))
      }),
      { numRuns: 5000 },
    )

  it('is one of the known actions', () => {
    const known = [
      'continue',
      'reopen',
      'archive',
      'return',
      'read',
      'wait',
      'duplicate',
      'conflict',
      'unresolved',
      'spent',
    ]
    each((_found, _wanted, _at, { action }) => expect(known).toContain(action))
  })

  it('sends an open key again only inside the window, with its API key, with its payload, and to nobody’s cost', () => {
    each((found, wanted, at, { action }) => {
      if (action !== 'continue') return
      expect(found.state).toBe('open')
      expect(found.fingerprint).toBe(wanted.fingerprint)
      expect(at.sameApiKey).toBe(true)
      expect(inWindow(found, at)).toBe(true)
      expect(isBusy(found, at.now)).toBe(false)
    })
  })

  it('never buys again where an order exists, except anonymously', () => {
    each((found, _wanted, _at, { action }) => {
      if (found.state !== 'created') return
      expect(['continue', 'reopen']).not.toContain(action)
      if (action === 'archive') expect(found.slot).toMatch(/^anon:/)
    })
  })

  it('gives an intent a second key only where everything under the first was refused, never sent, or given up', () => {
    each((found, _wanted, _at, action) => {
      if (action.action !== 'reopen' || action.key === 'same') return
      expect(found.state).toBe('rejected')
      if (action.key === 'fresh') {
        expect(found.slot).toMatch(/^anon:/)
        return
      }
      const kind = found.rejection?.kind
      if (action.key === 'first' || action.key === 'next') {
        expect(found.keyOrigin).not.toBe('caller')
        expect(kind).not.toBe('conflict')
        expect(found.foreign).toBe(false)
        return
      }
      const proven = kind === 'refused' && !found.foreign
      expect(found.attempts === 0 || proven || kind === 'abandoned').toBe(true)
    })
  })

  it('never returns an order to a call that wants something else', () => {
    each((found, wanted, _at, { action }) => {
      if (action !== 'return' && action !== 'read') return
      expect(found.fingerprint).toBe(wanted.fingerprint)
      expect([undefined, found.key]).toContain(wanted.idempotencyKey)
    })
  })
})
