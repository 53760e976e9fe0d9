import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Facts, Wanted } from '../../../src/orders/conditions.ts'
import { ADOPTION_WINDOW, CLOCK_SKEW, inWindow, isBusy, PLAIN_FACTS } from '../../../src/orders/conditions.ts'
import type { JournalRecord, RejectionKind } from '../../../src/orders/record.ts'
import { type Command, decide, phaseOf, RULES, type StepOf } from '../../../src/orders/rules.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'
import { MINUTE, NOW, WINDOW } from '../../support/place.ts'

const TOTAL = 2 * MINUTE

const here = { ...PLAIN_FACTS, now: NOW, safeRetryWindow: WINDOW, totalTimeout: TOTAL }

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
  wanted?: Partial<Wanted> | undefined,
  at?: Partial<Facts> | undefined,
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

const MISFIT = { path: 'quantity', message: 'is too much' }
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
  ['open, nobody has it, inside the window', 'send stored'],
  ['open, its claim ran out', 'send stored', { busyUntil: NOW }],
  [
    'open, its claim is from the future',
    'send stored',
    { busyUntil: NOW + TOTAL, updatedAt: NOW + CLOCK_SKEW + 1, firstSentAt: NOW },
  ],
  ['open, under a key that the caller gives again', 'send stored', caller, { idempotencyKey: 'key-0' }],
  ['open, sent with another API key', 'refuse api_key', {}, {}, otherApiKey],
  ['open, past the window', 'refuse window', { firstSentAt: NOW - WINDOW }],
  ['open, with room for exactly one call', 'send stored', { firstSentAt: tight }],
  ['open, with too little room for a call', 'refuse window', { firstSentAt: tight - 1 }],
  ['open, sent in the future by a clock that went back', 'refuse window', { firstSentAt: NOW + 60 * MINUTE }],
  [
    'open, never sent as far as is known, but old',
    'refuse window',
    { createdAt: NOW - WINDOW, firstSentAt: undefined },
  ],
  [
    'open and claimed by nobody yet, however old and whatever the API key',
    'send stored',
    { createdAt: 0, updatedAt: 0, firstSentAt: undefined, apiKeyTag: '' },
    {},
    { isNotListed: true },
  ],
  ['open with another payload', 'refuse payload', {}, payload],
  ['open with another payload, busy', 'refuse payload', busy, payload],
  ['open under another key', 'refuse key', {}, key],
  ['enqueued again after a refusal, whose window is over', 'send stored', { ...unclaimed, firstSentAt: 0 }],
  [
    'enqueued again under the caller’s key after a refusal, whose window is over',
    'refuse window',
    { ...unclaimed, ...caller, firstSentAt: 0 },
  ],

  ['created', 'tell', created],
  ['created, long ago, with another API key', 'tell', { ...created, firstSentAt: 0 }, {}, otherApiKey],
  ['created with another payload', 'refuse payload', created, payload],
  ['created under another key', 'refuse key', created, key],
  ['created but unreadable, inside the window', 'send stored', unreadable],
  ['created but unreadable, id known, past the window', 'read', { ...known, firstSentAt: 0 }],
  ['created but unreadable, id known, other API key', 'read', known, {}, otherApiKey],
  ['created but unreadable, its body gone', 'read', { ...known, body: undefined }],
  [
    'created but unreadable, id not known, past the window',
    'refuse unreadable',
    { ...unreadable, firstSentAt: 0 },
  ],
  ['created but unreadable, being read by a live call', 'wait', { ...unreadable, ...busy }],

  ['refused', 'send same', refused()],
  ['refused, changed payload', 'send same', refused(), payload],
  ['refused, other API key', 'send same', refused(), {}, otherApiKey],
  ['refused under a first key whose window is over', 'send next', refused({ firstSentAt: 0 })],
  [
    'refused under a later key, while the window of the first is open',
    'send first',
    refused({ generation: 2, ...first(NOW - MINUTE) }),
  ],
  [
    'refused under a later key, and there is no room for the call in the window of the first',
    'send next',
    refused({ generation: 2, ...first(tight - 1) }),
  ],
  [
    'closed under a later key that the service never looked at, after the window of the first',
    'send same',
    rejected('not_processed', { generation: 1, firstSentAt: undefined, ...first(0) }),
  ],
  [
    'refused under a later key by a package that did not note the first one, and opened lately',
    'send first',
    refused({ generation: 1 }),
  ],
  // No other store could compute the first one.
  ['refused under a later random key', 'send same', refused({ generation: 1, ...random })],
  ['refused under a random key whose window is over', 'send next', refused({ ...random, firstSentAt: 0 })],
  [
    'refused by a clock that has gone back since',
    'send next',
    refused({ firstSentAt: NOW + CLOCK_SKEW + 1 }),
  ],
  ['refused under the caller’s key inside its window', 'send same', refused(caller)],
  // No other key may take its place.
  [
    'refused under the caller’s key, and its window is over',
    'refuse spent',
    refused({ ...caller, firstSentAt: 0 }),
  ],
  ['refused, a new key is given', 'send given', refused(), key],
  [
    'in conflict inside the window',
    'send same',
    rejected('conflict', { generation: 1, ...first(NOW - MINUTE) }),
  ],
  ['in conflict past the window', 'refuse window', rejected('conflict', { firstSentAt: 0 })],
  [
    'not looked at, under a key that belongs to another payload, past the window',
    'refuse window',
    rejected('not_processed', { firstSentAt: 0, foreign: true }),
  ],
  ['not processed, a new key is given', 'refuse key', rejected('not_processed'), key],
  ['never sent, a new key is given', 'send given', rejected('cancelled', { attempts: 0 }), key],
  ['cancelled after a send, a new key is given', 'refuse key', rejected('cancelled'), key],
  ['given up by a person, a new key is given', 'send given', rejected('abandoned'), key],
  ['another payload has the key', 'send same', rejected('conflict', { foreign: true })],
  [
    'another payload has the key, a new key is given',
    'refuse key',
    rejected('conflict', { foreign: true }),
    key,
  ],
  [
    'refused once, but the key is another payload’s, a new key is given',
    'refuse key',
    refused({ foreign: true }),
    key,
  ],
]

/** What it does with what it finds of an order without a name. */
const ANONYMOUS: readonly Line[] = [
  ['open and a live call has it', 'refuse duplicate', busy],
  ['touched just now', 'send stored'],
  ['touched this moment', 'send stored', { updatedAt: NOW }],
  ['touched by a clock as far ahead as clocks may be', 'send stored', { updatedAt: NOW + CLOCK_SKEW }],
  ['touched 15 minutes ago', 'send stored', { updatedAt: NOW - ADOPTION_WINDOW }],
  ['touched longer ago', 'refuse age', { updatedAt: NOW - ADOPTION_WINDOW - 1 }],
  ['touched in the future', 'refuse age', { updatedAt: NOW + CLOCK_SKEW + 1 }],
  ['past the window', 'refuse window', { firstSentAt: NOW - WINDOW }],
  ['created, to make room for a new order', 'send new', created],
  ['created but unreadable, so that there is no second order', 'send stored', unreadable],
  ['refused, which makes it a new order', 'send new', refused()],
]

/** What `enqueue()` does, where that is not what `create()` does. */
const ENQUEUED: readonly Line[] = [
  ['queued', 'tell', unclaimed],
  ['queued, another payload', 'refuse payload', unclaimed, payload],
  ['queued under another key', 'refuse key', unclaimed, key],
  ['busy', 'refuse busy', busy],
  ['busy, another payload', 'refuse payload', busy, payload],
  ['busy under another key', 'refuse key', busy, key],
  ['open', 'take_over'],
  ['open, another payload', 'refuse payload', {}, payload],
  ['open under another key', 'refuse key', {}, key],
  ['open, aborted by its caller', 'refuse held', { hold: 'aborted' }],
  ['past the window', 'refuse window', { firstSentAt: 0 }],
  ['past the window, another payload', 'refuse payload', { firstSentAt: 0 }, payload],
  ['past the window under another key', 'refuse key', { firstSentAt: 0 }, key],
  ['created', 'tell', created],
  ['created, another payload', 'refuse payload', created, payload],
  ['created under another key', 'refuse key', created, key],
  ['unreadable', 'tell', unreadable],
  ['unreadable, another payload', 'refuse payload', unreadable, payload],
  ['unreadable under another key', 'refuse key', unreadable, key],
  ['refused', 'write again', refused()],
  ['refused, another payload', 'write again', refused(), payload],
  ['refused, a new key is given', 'write given', refused(), key],
  ['refused, a service is given that does not fit', 'refuse misfit', refused(), { misfit: MISFIT }],
  ['refused under a key that is given again', 'refuse spent', refused({ left: ['mine'] }), key],
  ['cancelled after a send, a new key is given', 'refuse key', rejected('cancelled'), key],
  ['in conflict past the window', 'refuse window', rejected('conflict', { firstSentAt: 0 })],
  ['refused under the caller’s key, past its window', 'refuse spent', refused({ ...caller, firstSentAt: 0 })],
]

const stale = { firstSentAt: 0 } as const
const old = { ...unclaimed, firstSentAt: undefined, updatedAt: 0 } as const
const notGenuine = { isGenuine: () => false }

/** What `recover()` does. */
const RECOVERED: readonly Line[] = [
  ['queued', 'send stored', unclaimed],
  ['queued, its row damaged', 'look_up corrupt', unclaimed, {}, notGenuine],
  ['queued long ago', 'look_up past_window', old],
  ['queued long ago, and not in the whole list', 'send stored', old, {}, { isNotListed: true }],
  ['queued long ago without a reference', 'send stored', { ...old, externalOrderId: undefined }],
  ['queued long ago, all is repeated', 'send stored', old, {}, { replaysAll: true }],
  ['busy', 'leave', busy],
  ['busy, taken over', 'send stored', busy, {}, { outwaited: true }],
  ['busy in this process, taken over', 'leave', busy, {}, { outwaited: true, isLive: true }],
  ['open', 'send stored'],
  ['open, its row damaged', 'look_up corrupt', {}, {}, notGenuine],
  [
    'open, other API key, all is repeated',
    'look_up api_key_changed',
    {},
    {},
    { ...otherApiKey, replaysAll: true },
  ],
  ['open, aborted by its caller', 'look_up aborted', { hold: 'aborted' }],
  ['open, refused after doubt', 'look_up refused_after_doubt', { hold: 'refused' }],
  [
    'open, refused after doubt, all is repeated',
    'send stored',
    { hold: 'refused' },
    {},
    { replaysAll: true },
  ],
  ['past the window', 'look_up past_window', stale],
  ['past the window, its row damaged', 'look_up corrupt', stale, {}, notGenuine],
  ['past the window, other API key', 'look_up api_key_changed', stale, {}, otherApiKey],
  ['past the window, aborted', 'look_up aborted', { ...stale, hold: 'aborted' }],
  ['past the window, refused after doubt', 'look_up refused_after_doubt', { ...stale, hold: 'refused' }],
  ['past the window, all is repeated', 'send stored', stale, {}, { replaysAll: true }],
  ['created', 'tell', created],
  ['unreadable', 'send stored', unreadable],
  ['unreadable, its body gone', 'look_up unreadable', { ...unreadable, body: undefined }],
  ['unreadable, its row damaged', 'look_up corrupt', unreadable, {}, notGenuine],
  ['unreadable, other API key', 'look_up api_key_changed', unreadable, {}, otherApiKey],
  ['unreadable, past the window', 'look_up past_window', { ...unreadable, ...stale }],
  [
    'unreadable, past the window, all is repeated',
    'send stored',
    { ...unreadable, ...stale },
    {},
    { replaysAll: true },
  ],
  ['refused', 'tell', refused()],
  ['refused, asked for again in this process', 'tell', refused(), {}, { isLive: true }],
  ['in conflict', 'look_up conflict', rejected('conflict')],
  ['in conflict, asked for again in this process', 'leave', rejected('conflict'), {}, { isLive: true }],
]

const live = { isLive: true }
const found = { orderId: 'ord_1' }
const unseen = { decidedAt: NOW - 2 * MINUTE }
const seen = { decidedAt: NOW - MINUTE }

/** What a person's word does: that the order exists, that it is given up, that it is to be forgotten. */
const BY_A_PERSON: readonly (readonly [Extract<Command, 'resolve' | 'abandon' | 'forget'>, ...Line])[] = [
  ...[unclaimed, {}, stale, unreadable, rejected('conflict'), refused()].map(
    (changes) => ['resolve', JSON.stringify(changes), 'verify', changes, {}, found] as const,
  ),
  ['resolve', 'created', 'verify', created, {}, found],
  ['resolve', 'created under another id', 'refuse other_order', created, {}, { orderId: 'ord_2' }],
  ['resolve', 'unreadable under another id', 'refuse other_order', known, {}, { orderId: 'ord_2' }],
  ['resolve', 'busy', 'refuse busy', busy],
  ['resolve', 'created, and read by a call of this process', 'refuse busy', created, {}, live],
  ['resolve', 'refused, and asked for again in this process', 'refuse busy', refused(), {}, live],

  ...[unclaimed, {}, stale, rejected('conflict')].flatMap((changes) => [
    ['abandon', JSON.stringify(changes), 'close', changes, {}, seen] as const,
    ['abandon', `${JSON.stringify(changes)}, written since`, 'refuse changed', changes, {}, unseen] as const,
  ]),
  ['abandon', 'written far in the future', 'close', { updatedAt: NOW + CLOCK_SKEW + 1 }, {}, seen],
  ['abandon', 'written a little ahead', 'refuse changed', { updatedAt: NOW + CLOCK_SKEW }, {}, seen],
  ['abandon', 'busy', 'refuse busy', busy],
  ['abandon', 'created', 'refuse created', created],
  ['abandon', 'created, and asked for in this process', 'refuse busy', created, {}, live],
  ['abandon', 'unreadable', 'refuse created', unreadable],
  ['abandon', 'refused', 'tell', refused()],
  ['abandon', 'refused, and asked for again in this process', 'refuse busy', refused(), {}, live],

  ...[unclaimed, {}, stale, busy, unreadable, rejected('conflict')].map(
    (changes) => ['forget', JSON.stringify(changes), 'refuse unsettled', changes] as const,
  ),
  ['forget', 'created', 'empty', created],
  ['forget', 'created, and asked for in this process', 'refuse unsettled', created, {}, live],
  ['forget', 'refused', 'empty', refused()],
  ['forget', 'refused, and asked for again in this process', 'refuse unsettled', refused(), {}, live],
]

const MORE_NAMED: readonly Line[] = [
  ['queued', 'send stored', unclaimed],
  ['queued long ago', 'look_up past_window', old],
  ['queued long ago, and not in the whole list', 'send stored', old, {}, { isNotListed: true }],
  ['queued, another payload', 'refuse payload', unclaimed, payload],
  ['queued under another key', 'refuse key', unclaimed, key],
  ['queued, its row damaged', 'refuse corrupt', unclaimed, { misfit: MISFIT }, notGenuine],
  ['queued long ago, a service is given that does not fit', 'refuse misfit', old, { misfit: MISFIT }],
  ['busy, and outwaited', 'send stored', busy, {}, { outwaited: true }],
  ['busy under another key', 'refuse key', busy, key],
  ['open, a service is given that does not fit', 'send stored', {}, { misfit: MISFIT }],
  ['open, its row damaged', 'refuse corrupt', {}, {}, notGenuine],
  ['past the window, another payload', 'refuse payload', stale, payload],
  ['past the window under another key', 'refuse key', stale, key],
  ['unreadable, another payload', 'refuse payload', unreadable, payload],
  ['unreadable under another key', 'refuse key', unreadable, key],
  ['unreadable, its row damaged', 'refuse corrupt', unreadable, {}, notGenuine],
  ['refused, its row damaged', 'refuse corrupt', refused(), { misfit: MISFIT }, notGenuine],
  ['refused, a service is given that does not fit', 'refuse misfit', refused(), { misfit: MISFIT }],
  ['refused, its row damaged, a new key is given', 'send given', refused(), key, notGenuine],
  ['refused under a key that is given again', 'refuse spent', refused({ left: ['mine'] }), key],
  ['created, a service is given that does not fit', 'tell', created, { misfit: MISFIT }],
]

const MORE_ANONYMOUS: readonly Line[] = [
  ['created by the call that was in doubt when this one began', 'tell', created, {}, { asked: 'key-0' }],
  ['created, a service is given that does not fit', 'refuse misfit', created, { misfit: MISFIT }],
  ['refused, a service is given that does not fit', 'refuse misfit', refused(), { misfit: MISFIT }],
  ['refused, its row damaged', 'send new', refused(), {}, notGenuine],
  ['created but unreadable, being read by a live call', 'wait', { ...unreadable, ...busy }],
]

const PHASES = [
  ['queued', unclaimed],
  ['busy', busy],
  ['busy', { ...unreadable, ...busy }],
  ['open', {}],
  ['stale', stale],
  ['created', created],
  ['created', { ...created, busyUntil: NOW + 1 }],
  ['unread', unreadable],
  ['rejected', refused()],
  ['rejected', rejected('conflict')],
] as const

const said = (step: StepOf[Command]): string => Object.values(step).join(' ')
const decided = (command: Command, slot: string, [, , found, wanted, at]: Line): string => {
  const wish = { slot, fingerprint: 'same', ...wanted }
  return said(decide(command, { record: record({ slot, ...found }) }, { ...here, wanted: wish, ...at }))
}
const titled = (lines: readonly Line[]) => lines.map((line) => ({ title: `${line[0]}: ${line[1]}`, line }))

describe('the phase of a record', () => {
  it.each(PHASES)('is %s: %j', (phase, changes) => {
    expect(phaseOf({ record: record(changes) }, here)).toBe(phase)
  })

  it('is absent where there is no row, and forgotten where the row has no record', () => {
    const row = {
      scope: 's',
      id: 'i',
      version: 2,
      open: false,
      state: 'rejected',
      createdAt: 0,
      updatedAt: 0,
      data: '',
    }
    expect(phaseOf({}, here)).toBe('absent')
    expect(phaseOf({ row: { ...row, state: 'rejected' } }, here)).toBe('forgotten')
  })
})

describe('what create() does with what it finds', () => {
  it.each(titled([...NAMED, ...MORE_NAMED]))('$title', ({ line }) => {
    expect(decided('create', 'ref:r1', line)).toBe(line[1])
  })

  it.each(titled([...ANONYMOUS, ...MORE_ANONYMOUS]))('without a name, $title', ({ line }) => {
    const [when, expected, found, wanted, at] = line
    expect(decided('create', 'anon:same', [when, expected, { ...random, ...found }, wanted, at])).toBe(
      expected,
    )
  })
})

describe('what the other commands do with what they find', () => {
  it.each(titled(ENQUEUED))('enqueue(), $title', ({ line }) => {
    expect(decided('enqueue', 'ref:r1', line)).toBe(line[1])
  })

  it.each(titled(RECOVERED))('recover(), $title', ({ line }) => {
    expect(decided('recover', 'ref:r1', line)).toBe(line[1])
  })

  const people = BY_A_PERSON.map(([command, ...line]) => ({ title: `${line[0]}: ${line[1]}`, command, line }))
  it.each(people)('$command of an order that is $title', ({ command, line }) => {
    expect(decided(command, 'ref:r1', line)).toBe(line[1])
  })

  it.each([
    ['create', 'send new', 'refuse misfit'],
    ['enqueue', 'write new', 'refuse misfit'],
    ['recover', 'nothing', 'nothing'],
    ['resolve', 'refuse unknown', 'refuse unknown'],
    ['abandon', 'refuse unknown', 'refuse unknown'],
    ['forget', 'nothing', 'nothing'],
  ] as const)('%s where nothing is remembered: %s', (command, expected, ofMisfit) => {
    const wanted = { slot: 'ref:r1', fingerprint: 'same' }
    const told = (facts: Facts) => said(decide(command, {}, facts))
    expect(told({ ...here, wanted })).toBe(expected)
    expect(told({ ...here, wanted: { ...wanted, misfit: MISFIT } })).toBe(ofMisfit)
  })

  it('ends with an error where a cell has no last step', () => {
    const cells = RULES.absent as { forget: unknown }
    const { forget } = cells
    cells.forget = []
    try {
      expect(() => decide('forget', {}, here)).toThrow('unreachable')
    } finally {
      cells.forget = forget
    }
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

const facts: fc.Arbitrary<Facts> = fc
  .record({
    safeRetryWindow: fc.constantFrom(0, WINDOW, 24 * 60 * MINUTE),
    totalTimeout: fc.constantFrom(1, TOTAL, WINDOW),
    sameApiKey: fc.boolean(),
  })
  .map((changes) => ({ ...here, ...changes }))

describe('the decision of create() about any record', () => {
  const each = (
    check: (found: JournalRecord, wanted: Wanted, at: Facts, step: StepOf['create']) => void,
  ): void =>
    fc.assert(
      fc.property(records, wishes, facts, (found, wish, at) => {
        const wanted = { slot: found.slot, ...wish } as Wanted
        check(found, wanted, at, decide('create', { record: found }, { ...at, wanted }))
      }),
      { numRuns: 5000 },
    )

  it('sends an open order again only inside the window, with its API key, with its payload, and to nobody’s cost', () => {
    each((found, wanted, at, step) => {
      if (found.state !== 'open' || step.step !== 'send') return
      expect(step.as).toBe('stored')
      expect(found.fingerprint).toBe(wanted.fingerprint)
      expect(at.sameApiKey).toBe(true)
      expect(inWindow(found, at)).toBe(true)
      expect(isBusy(found, at.now)).toBe(false)
    })
  })

  it('never buys again where an order exists, except without a name', () => {
    each((found, _wanted, _at, step) => {
      if (found.state !== 'created' || step.step !== 'send' || step.as === 'stored') return
      expect(step.as).toBe('new')
      expect(found.slot).toMatch(/^anon:/)
    })
  })

  it('gives an intent a second key only where everything under the first was refused, never sent, or given up', () => {
    each((found, _wanted, _at, step) => {
      if (found.state !== 'rejected' || step.step !== 'send' || step.as === 'same') return
      if (step.as === 'new') {
        expect(found.slot).toMatch(/^anon:/)
        return
      }
      const kind = found.rejection?.kind
      if (step.as === 'first' || step.as === 'next') {
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
    each((found, wanted, _at, { step }) => {
      if (step !== 'tell' && step !== 'read') return
      expect(found.fingerprint).toBe(wanted.fingerprint)
      expect([undefined, found.key]).toContain(wanted.idempotencyKey)
    })
  })
})
