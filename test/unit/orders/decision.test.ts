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
} from '../../../src/orders/decision.ts'
import type { JournalRecord, RejectionKind } from '../../../src/orders/record.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'
import { MINUTE, NOW, WINDOW } from '../../support/place.ts'

const TOTAL = 2 * MINUTE

const here: Circumstances = { now: NOW, safeRetryWindow: WINDOW, totalTimeout: TOTAL, sameApiKey: true }

/** The changes to a record; what is undefined is left out of it. */
type Changes = { readonly [Field in keyof JournalRecord]?: JournalRecord[Field] | undefined }

/** A record of an order with a reference, opened a minute ago by a call that is gone. */
function record(changes: Changes = {}): JournalRecord {
  const times = { firstSentAt: NOW - MINUTE, createdAt: NOW - MINUTE, updatedAt: NOW - MINUTE }
  const made: JournalRecord = { ...LEFT_OPEN, ...times, key: 'key-0', version: 1, fingerprint: 'same' }
  for (const [field, value] of Object.entries(changes)) {
    if (value === undefined) Reflect.deleteProperty(made, field)
    else Reflect.set(made, field, value)
  }
  return made
}

type Line = readonly [
  when: string,
  expected: string,
  found?: Changes,
  wanted?: Partial<Wanted>,
  at?: Partial<Circumstances>,
]

const busy = { busyUntil: NOW + 1, updatedAt: NOW - 1 } as const
const order = { id: 'ord_1', status: 'pending', amount: 1 }
const created = { state: 'created', readable: true, order } as const
const unreadable = { state: 'created', readable: false } as const
const known = { ...unreadable, order: { id: 'ord_1' } }
const rejected = (kind: RejectionKind, changes: Changes = {}): Changes => ({
  state: 'rejected',
  rejection: { kind },
  ...changes,
})
const refused = (changes: Changes = {}): Changes => rejected('refused', changes)
const first = (sentAt: number) => ({ first: { sentAt, refused: true } })
const unclaimed = { ambiguous: false, apiKeyTag: '' }

const payload = { fingerprint: 'other' }
const key = { idempotencyKey: 'mine' }
const otherApiKey = { sameApiKey: false }
const tight = NOW - WINDOW + TOTAL
const caller = { keyOrigin: 'caller' } as const
const random = { keyOrigin: 'random' } as const

/** What `create()` does with what it finds under a reference: open, created, and closed without an order. */
const NAMED: readonly Line[] = [
  ['open and a live call has it', 'wait', busy],
  ['open and a live call has it, past the window', 'wait', { ...busy, firstSentAt: 0 }],
  ['open, nobody has it, inside the window', 'continue'],
  ['open, its claim ran out', 'continue', { busyUntil: NOW }],
  [
    'open, its claim is from the future',
    'continue',
    { busyUntil: NOW + TOTAL, updatedAt: NOW + CLOCK_SKEW + 1, firstSentAt: NOW },
  ],
  ['open, under a key that the caller gives again', 'continue', caller, { idempotencyKey: 'key-0' }],
  ['open, sent with another API key', 'unresolved api_key', {}, {}, otherApiKey],
  ['open, past the window', 'unresolved window', { firstSentAt: NOW - WINDOW }],
  ['open, with room for exactly one call', 'continue', { firstSentAt: tight }],
  ['open, with too little room for a call', 'unresolved window', { firstSentAt: tight - 1 }],
  [
    'open, sent in the future by a clock that went back',
    'unresolved window',
    { firstSentAt: NOW + 60 * MINUTE },
  ],
  [
    'open, never sent as far as is known, but old',
    'unresolved window',
    { createdAt: NOW - WINDOW, firstSentAt: undefined },
  ],
  [
    'open and claimed by nobody yet, however old and whatever the API key',
    'continue',
    { createdAt: 0, updatedAt: 0, firstSentAt: undefined, apiKeyTag: '' },
  ],
  ['open with another payload', 'conflict payload', {}, payload],
  ['open with another payload, busy', 'conflict payload', busy, payload],
  ['open under another key', 'conflict key', {}, key],
  ['enqueued again after a refusal, whose window is over', 'continue', { ...unclaimed, firstSentAt: 0 }],
  [
    'enqueued again under the caller’s key after a refusal, whose window is over',
    'unresolved window',
    { ...unclaimed, ...caller, firstSentAt: 0 },
  ],

  ['created', 'return', created],
  ['created, long ago, with another API key', 'return', { ...created, firstSentAt: 0 }, {}, otherApiKey],
  ['created with another payload', 'conflict payload', created, payload],
  ['created under another key', 'conflict key', created, key],
  ['created but unreadable, inside the window', 'read replay', unreadable],
  ['created but unreadable, id known, past the window', 'read id', { ...known, firstSentAt: 0 }],
  ['created but unreadable, id known, other API key', 'read id', known, {}, otherApiKey],
  ['created but unreadable, its body gone', 'read id', { ...known, body: undefined }],
  [
    'created but unreadable, id not known, past the window',
    'unresolved unreadable',
    { ...unreadable, firstSentAt: 0 },
  ],
  ['created but unreadable, being read by a live call', 'wait', { ...unreadable, ...busy }],

  ['refused', 'reopen same', refused()],
  ['refused, changed payload', 'reopen same', refused(), payload],
  ['refused, other API key', 'reopen same', refused(), {}, otherApiKey],
  ['refused under a first key whose window is over', 'reopen next', refused({ firstSentAt: 0 })],
  [
    'refused under a later key, while the window of the first is open',
    'reopen first',
    refused({ generation: 2, ...first(NOW - MINUTE) }),
  ],
  [
    'refused under a later key, and there is no room for the call in the window of the first',
    'reopen next',
    refused({ generation: 2, ...first(tight - 1) }),
  ],
  [
    'closed under a later key that the service never looked at, after the window of the first',
    'reopen same',
    rejected('not_processed', { generation: 1, firstSentAt: undefined, ...first(0) }),
  ],
  [
    'refused under a later key by a package that did not note the first one, and opened lately',
    'reopen first',
    refused({ generation: 1 }),
  ],
  // No other store could compute the first one.
  ['refused under a later random key', 'reopen same', refused({ generation: 1, ...random })],
  ['refused under a random key whose window is over', 'reopen next', refused({ ...random, firstSentAt: 0 })],
  [
    'refused by a clock that has gone back since',
    'reopen next',
    refused({ firstSentAt: NOW + CLOCK_SKEW + 1 }),
  ],
  ['refused under the caller’s key inside its window', 'reopen same', refused(caller)],
  // No other key may take its place.
  ['refused under the caller’s key, and its window is over', 'spent', refused({ ...caller, firstSentAt: 0 })],
  ['refused, a new key is given', 'reopen given', refused(), key],
  [
    'in conflict inside the window',
    'reopen same',
    rejected('conflict', { generation: 1, ...first(NOW - MINUTE) }),
  ],
  ['in conflict past the window', 'unresolved window', rejected('conflict', { firstSentAt: 0 })],
  [
    'not looked at, under a key that belongs to another payload, past the window',
    'unresolved window',
    rejected('not_processed', { firstSentAt: 0, foreign: true }),
  ],
  ['not processed, a new key is given', 'conflict key', rejected('not_processed'), key],
  ['never sent, a new key is given', 'reopen given', rejected('cancelled', { attempts: 0 }), key],
  ['cancelled after a send, a new key is given', 'conflict key', rejected('cancelled'), key],
  ['given up by a person, a new key is given', 'reopen given', rejected('abandoned'), key],
  ['another payload has the key', 'reopen same', rejected('conflict', { foreign: true })],
  [
    'another payload has the key, a new key is given',
    'conflict key',
    rejected('conflict', { foreign: true }),
    key,
  ],
  [
    'refused once, but the key is another payload’s, a new key is given',
    'conflict key',
    refused({ foreign: true }),
    key,
  ],
]

/** What it does with what it finds of an order without a name. */
const ANONYMOUS: readonly Line[] = [
  ['open and a live call has it', 'duplicate', busy],
  ['touched just now', 'continue'],
  ['touched this moment', 'continue', { updatedAt: NOW }],
  ['touched by a clock as far ahead as clocks may be', 'continue', { updatedAt: NOW + CLOCK_SKEW }],
  ['touched 15 minutes ago', 'continue', { updatedAt: NOW - ADOPTION_WINDOW }],
  ['touched longer ago', 'unresolved age', { updatedAt: NOW - ADOPTION_WINDOW - 1 }],
  ['touched in the future', 'unresolved age', { updatedAt: NOW + CLOCK_SKEW + 1 }],
  ['past the window', 'unresolved window', { firstSentAt: NOW - WINDOW }],
  ['created, which makes room for a new order', 'reopen fresh', created],
  ['created but unreadable, so that there is no second order', 'read replay', unreadable],
  ['refused, which makes it a new order', 'reopen fresh', refused()],
]

describe('what create() does with the record it finds', () => {
  const decided = (slot: string, found: Changes, wanted?: Partial<Wanted>, at?: Partial<Circumstances>) => {
    const wish = { slot, fingerprint: 'same', ...wanted }
    return Object.values(decideAction(record({ slot, ...found }), wish, { ...here, ...at })).join(' ')
  }

  const titled = (lines: readonly Line[]) => lines.map((line) => ({ title: `${line[0]}: ${line[1]}`, line }))

  it.each(titled(NAMED))('$title', ({ line: [, expected, found = {}, wanted, at] }) => {
    expect(decided('ref:r1', found, wanted, at)).toBe(expected)
  })

  it.each(titled(ANONYMOUS))('without a name, $title', ({ line: [, expected, found] }) => {
    expect(decided('anon:same', { ...random, ...found })).toBe(expected)
  })
})

describe('the safe-retry window', () => {
  it('ends early enough for a whole call', () => {
    const at = (age: number) => inWindow(record({ firstSentAt: NOW - age }), here)
    const ages = [0, WINDOW - TOTAL, WINDOW - TOTAL + 1, WINDOW]
    expect(ages.map(at)).toEqual([true, true, false, false])
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
    state: fc.constantFrom<JournalRecord['state']>('open', 'created', 'rejected'),
    keyOrigin: fc.constantFrom<JournalRecord['keyOrigin']>('caller', 'derived', 'random'),
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
    record({ ...changes, rejection: changes.state === 'rejected' ? { kind } : undefined }),
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
    const actions = 'continue reopen return read wait duplicate conflict unresolved spent'.split(' ')
    each((_found, _wanted, _at, { action }) => expect(actions).toContain(action))
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
      expect(action).not.toBe('continue')
      if (action === 'reopen') expect(found.slot).toMatch(/^anon:/)
    })
  })

  it('gives an intent a second key only where everything under the first was refused, never sent, or given up', () => {
    each((found, _wanted, _at, action) => {
      if (action.action !== 'reopen' || action.key === 'same') return
      if (action.key === 'fresh') {
        expect(found.slot).toMatch(/^anon:/)
        return
      }
      expect(found.state).toBe('rejected')
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
