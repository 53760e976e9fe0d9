import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CLOCK_SKEW } from '../../../../src/http/deadline.ts'
import { isBusy, mayAttempt, PERSON_SKEW } from '../../../../src/orders/protocol/keys.ts'
import {
  type Command,
  type Condition,
  changedSince,
  type Facts,
  idKnown,
  phaseOf,
  RULES,
  ruleFor,
  running,
  spent,
  unknownStep,
} from '../../../../src/orders/protocol/rules.ts'
import { isPending, type JournalRecord } from '../../../../src/orders/record/record.ts'
import { effort } from '../../../support/effort.ts'
import { MINUTE, NOW, ORDER, WINDOW } from '../../../support/order-context.ts'
import { type Changes, changed, here, intent, record } from './found.ts'

const HOUR = 3_600_000
const busy = { busyUntil: NOW + 1, updatedAt: NOW - 1 }
const stale = { firstSentAt: 0 }
const nameless = { slot: 'anon:same', externalOrderId: undefined, origin: 'random' } as const
const created = { state: 'created', ambiguous: false, order: ORDER, body: undefined } as const
const unread = { state: 'created', ambiguous: false } as const
const known = { ...unread, order: { id: 'o1' } } as const
const refused = {
  state: 'rejected',
  ambiguous: false,
  body: undefined,
  rejection: { kind: 'refused' },
} as const
const outdated = { ...refused, ...stale }
const lately = { updatedAt: NOW - 6 * MINUTE, busyUntil: NOW - 4 * MINUTE }
const ahead = (by: number) => ({ updatedAt: NOW + by })
const decided = (ago: number) => ({ decidedAt: NOW - ago })
const seen = decided(10 * MINUTE)
const hidden = { maybeHidden: true } as const
const CALLERS = { origin: 'caller' } as const
const given = { wanted: { ...intent, idempotencyKey: record().key } }

const said = (step: object): string => Object.values(step).join(' ')
const factsOf = (facts: Partial<Facts> = {}): Facts => ({ ...here, wanted: intent, ...facts })

type Line = readonly [when: string, expected: string, found?: Changes, facts?: Partial<Facts>]
const OTHER_KEY = { wanted: { ...intent, idempotencyKey: 'other' } }
const OTHER_PAYLOAD = { wanted: changed }
const OTHER_BOTH = { wanted: { ...changed, idempotencyKey: 'other' } }
const CONFLICT = { hold: 'conflict' } as const
const CREATE: readonly Line[] = [
  ...Object.entries({ busy, open: {}, stale, created, unread, refused }).flatMap(([phase, its]): Line[] => [
    [`${phase}, under another key`, 'refuse key', its, OTHER_KEY],
    ...(phase === 'refused'
      ? []
      : [[`${phase}, with another payload`, 'refuse payload', its, OTHER_PAYLOAD] as const]),
  ]),
  ['in conflict, under another key', 'refuse key', CONFLICT, OTHER_KEY],
  ['open, under another key and with another payload', 'refuse key', {}, OTHER_BOTH],
  ['open, under the key that it has', 'send', {}, given],
  ['open, and nothing is asked for', 'send', {}, { wanted: undefined }],
  ['held, with another payload', 'refuse payload', { hold: 'refused' }, OTHER_PAYLOAD],
  ['refused, with another payload', 'send', refused, OTHER_PAYLOAD],
  ['in conflict, with another payload', 'send', CONFLICT, OTHER_PAYLOAD],
  ['in conflict, taken over', 'refuse payload', { ...CONFLICT, othersUntil: NOW }, OTHER_PAYLOAD],
  ['recorded only by resolve()', 'tell', { ...created, fingerprint: {} }, OTHER_PAYLOAD],
  ['busy', 'wait', busy],
  ['busy in this process', 'wait', {}, { isLive: true }],
  ['busy, past the window', 'wait', { ...busy, ...stale }],
  ['nameless and busy', 'refuse duplicate', { ...nameless, ...busy }],
  ['busy, and outwaited', 'send', busy, { outwaited: true }],
  ['busy in this process, and outwaited', 'wait', busy, { outwaited: true, isLive: true }],
  ['claimed by a clock that was set back since', 'send', { ...busy, ...ahead(CLOCK_SKEW + 1) }],
  ['open', 'send'],
  ['open and nameless', 'send', nameless],
  ['open and nameless, and a call was overtaken', 'refuse duplicate', { ...nameless, othersUntil: NOW + 1 }],
  ['open and nameless, and the overtaken call has ended', 'send', { ...nameless, othersUntil: NOW }],
  ['open and held', 'send', { hold: 'aborted' }],
  ['stale', 'refuse window', stale],
  ['stale and nameless', 'refuse window', { ...nameless, ...stale }],
  ['stale and held', 'refuse window', { ...stale, hold: 'conflict' }],
  ['created', 'tell', created],
  ['created, being written by a call', 'tell', { ...created, ...busy }],
  ['created and nameless, which makes room for a new order', 'send', { ...created, ...nameless }],
  ['unread, its id known', 'read', known],
  ['unread, its id known, past the window', 'read', { ...known, ...stale }],
  ['unread', 'send', unread],
  ['unread and nameless, so that there is no second order', 'send', { ...unread, ...nameless }],
  [
    'unread and nameless, and a call was overtaken',
    'refuse duplicate',
    { ...known, ...nameless, othersUntil: NOW + 1 },
  ],
  ['unread, past the window', 'refuse unreadable', { ...unread, ...stale }],
  ['unread, its body gone', 'refuse unreadable', { ...unread, body: undefined }],
  ['unread, being read by a call', 'wait', { ...unread, ...busy }],
  ['refused', 'send', refused],
  ['refused, and asked for again in this process', 'send', refused, { isLive: true }],
  ['refused, past the window', 'send', outdated],
  ["refused under the caller's key", 'send', { ...refused, ...CALLERS }],
  ["refused under the caller's key, past the window", 'refuse spent', { ...outdated, ...CALLERS }],
  ['refused under our key, which the caller gives, past the window', 'refuse spent', outdated, given],
  ['refused, past the window, and may have been resent', 'look_up past_window', { ...outdated, ...hidden }],
  ['refused, may have been resent, but inside the window', 'send', { ...refused, ...hidden }],
  ['refused, may have been resent, but nameless', 'send', { ...outdated, ...hidden, ...nameless }],
  ['refused, may have been resent, but unlisted', 'send', { ...outdated, ...hidden }, { unlisted: 1 }],
  [
    'refused, may have been resent since it was unlisted',
    'look_up past_window',
    { ...outdated, ...hidden, version: 2 },
    { unlisted: 1 },
  ],
]
const RECOVER: readonly Line[] = [
  ['busy', 'in_progress', busy],
  ['busy in this process, taken over', 'in_progress', busy, { outwaited: true, isLive: true }],
  ['busy, taken over', 'send', busy, { outwaited: true }],
  ['open', 'send'],
  ['open, aborted by its caller', 'look_up held', { hold: 'aborted' }],
  ['open, refused after doubt', 'look_up held', { hold: 'refused' }],
  ['open, in conflict', 'look_up held', { hold: 'conflict' }],
  ['stale', 'look_up past_window', stale],
  ['stale, held', 'look_up held', { ...stale, hold: 'aborted' }],
  ['created', 'tell', created],
  ['unread', 'send', unread],
  ['unread, its id known', 'read', known],
  ['unread, past the window', 'look_up past_window', { ...unread, ...stale }],
  ['unread, its body gone', 'look_up past_window', { ...unread, body: undefined }],
  ['refused', 'tell', refused],
]
const found = { orderId: 'o1' }
const other = { orderId: 'o2' }
const CONFIRM: readonly Line[] = [
  ['busy', 'refuse busy', busy, found],
  ['busy in this process', 'refuse busy', {}, { ...found, isLive: true }],
  ['open', 'verify', {}, found],
  ['stale', 'verify', stale, found],
  ['created', 'verify', created, found],
  ['created with another id', 'refuse other_order', created, other],
  ['unread', 'verify', unread, found],
  ['unread, its id known', 'verify', known, found],
  ['unread, with another id', 'refuse other_order', known, other],
  ['refused', 'verify', refused, found],
]
const ABANDON: readonly Line[] = [
  ['busy', 'refuse busy', busy, seen],
  ...(['open', 'stale'] as const).flatMap((phase): Line[] => {
    const its = phase === 'stale' ? stale : {}
    return [
      [phase, 'close', its, seen],
      [`${phase}, and its call may be running`, 'refuse busy', { ...its, ...lately }, seen],
      [`${phase}, and an overtaken call may be running`, 'refuse busy', { ...its, othersUntil: NOW }, seen],
      [`${phase}, and written since`, 'refuse changed', its, decided(11 * MINUTE)],
      [`${phase}, and written a little ahead`, 'refuse changed', { ...its, ...ahead(PERSON_SKEW) }, seen],
      [`${phase}, and written far ahead`, 'close', { ...its, ...ahead(PERSON_SKEW + 1) }, seen],
      [`${phase}, by a clock that was set back since`, 'refuse changed', its, decided(-1)],
    ]
  }),
  ['created', 'refuse created', created, seen],
  ['unread', 'refuse created', unread, seen],
  ['refused', 'tell', refused, seen],
]
const FORGET: readonly Line[] = [
  ['busy', 'refuse unsettled', busy],
  ['open', 'refuse unsettled'],
  ['stale', 'refuse unsettled', stale],
  ['created', 'empty', created],
  ['unread', 'refuse unsettled', unread],
  ['unread, its id known', 'empty', known],
  ['refused', 'empty', refused],
]

const COMMANDS = { create: CREATE, recover: RECOVER, confirm: CONFIRM, abandon: ABANDON, forget: FORGET }
/** Each line is a record of an order, and facts, in which a command takes a step. */
const LINES = Object.entries(COMMANDS).flatMap(([command, lines]) =>
  lines.map(([when, expected, changes, facts]) => ({
    ...{ command: command as Command, when, expected },
    ...{ is: record(changes), at: factsOf(facts) },
  })),
)

describe('what a command does with an order', () => {
  it.each(LINES)('$command of an order that is $when: $expected', ({ command, expected, is, at }) => {
    expect(said(ruleFor(command, is, at))).toBe(expected)
  })

  it.each<[Command, string]>([
    ['create', 'send'],
    ['recover', 'nothing'],
    ['confirm', 'verify'],
    ['abandon', 'refuse unknown'],
    ['forget', 'nothing'],
  ])('%s of an order without a record: %s', (command, expected) => {
    expect(said(ruleFor(command, undefined, factsOf()))).toBe(expected)
  })

  it('every cell, and every condition of a cell, has a line here', () => {
    const met = new Set<string>()
    for (const { command, is, at } of LINES) {
      const phase = phaseOf(is, at)
      const cell: readonly unknown[] = RULES[phase][command]
      const entry = cell.findIndex((each) => !Array.isArray(each) || (each[0] as Condition)(is, at))
      met.add(`${phase} ${command} ${entry}`)
    }
    const { absent: _absent, ...rows } = RULES
    const cells = Object.entries(rows).flatMap(([phase, row]) =>
      Object.entries(row).flatMap(([command, cell]) => cell.map((_entry, at) => `${phase} ${command} ${at}`)),
    )
    expect(cells.filter((each) => !met.has(each))).toEqual(['rejected create 1'])
  })

  it('a cell without a last step ends in an error, and so does an unknown step', () => {
    const row = RULES.busy as { forget: unknown }
    const { forget } = row
    row.forget = []
    try {
      expect(() => ruleFor('forget', record(busy), here)).toThrow('unreachable')
    } finally {
      row.forget = forget
    }
    const unheard = { step: 'guess' } as unknown as never
    expect(() => unknownStep(unheard)).toThrow('Nothing was sent: {"step":"guess"} is an unknown step.')
  })
})

it.each<[Condition, boolean, Changes, Partial<Facts>]>([
  [idKnown, true, { order: { id: 'o1' } }, {}],
  [idKnown, false, { order: { id: '..' } }, {}],
  [idKnown, false, { order: { id: 'o\ud800' } }, {}],
  [idKnown, false, { order: undefined }, {}],
  [spent, true, { ...refused, ...stale, origin: 'caller' }, { wanted: undefined }],
  [changedSince, true, { updatedAt: NOW - 1 }, { decidedAt: NOW + 1 }],
  [changedSince, false, { updatedAt: NOW - 1 }, { decidedAt: NOW }],
  [changedSince, false, { updatedAt: NOW - 1 }, { decidedAt: NOW - 1 }],
  [changedSince, true, { updatedAt: NOW }, { decidedAt: NOW - 1 }],
  // The machine of the person slept for an hour after the decision.
  [running, true, { updatedAt: NOW - HOUR, busyUntil: NOW - HOUR + 1 }, { decidedAt: NOW - HOUR + 2 }],
  [running, false, { updatedAt: NOW - HOUR, busyUntil: NOW - HOUR + 1 }, { decidedAt: NOW }],
])('at its edge, the condition $0.name is %s for %j with %j', (condition, holds, changes, further) => {
  expect(condition(record(changes), { ...here, ...further })).toBe(holds)
})

const times = fc.oneof(fc.constant(0), fc.integer({ min: NOW - 2 * WINDOW, max: NOW + WINDOW }))
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined })
const records: fc.Arbitrary<JournalRecord> = fc
  .record({
    slot: fc.constantFrom('ref:r1', 'key:key-0', 'anon:same'),
    state: fc.constantFrom<JournalRecord['state']>('open', 'created', 'rejected'),
    origin: fc.constantFrom<JournalRecord['origin']>('caller', 'derived', 'random'),
    hold: maybe(fc.constantFrom<JournalRecord['hold']>('aborted', 'refused', 'conflict')),
    ambiguous: fc.boolean(),
    attempts: fc.nat(3),
    generation: fc.nat(3),
    firstSentAt: maybe(times),
    maybeHidden: maybe(fc.constant(true as const)),
    firstKeySentAt: maybe(times),
    busyUntil: maybe(times),
    othersUntil: maybe(times),
    updatedAt: times,
    body: maybe(fc.constant('{}')),
    order: maybe(fc.constantFrom(ORDER, { id: 'o1' })),
    fingerprint: fc.constantFrom(intent.fingerprint, changed.fingerprint, {}),
  })
  .map(record)
const facts: fc.Arbitrary<Facts> = fc
  .record({
    safeRetryWindow: fc.constantFrom(0, WINDOW, 24 * 60 * MINUTE),
    wanted: fc.constantFrom(intent, changed, { ...intent, idempotencyKey: 'mine' }),
    isLive: fc.boolean(),
    outwaited: fc.boolean(),
    decidedAt: times,
    orderId: fc.constantFrom('o1', 'o2'),
  })
  .map((changes) => ({ ...here, ...changes }))

describe('the step for any record', () => {
  const each = (check: (is: JournalRecord, at: Facts) => void): void =>
    fc.assert(fc.property(records, facts, check), { numRuns: effort(1000, 20_000) })
  const sends = (command: 'create' | 'recover', is: JournalRecord, at: Facts): boolean =>
    ruleFor(command, is, at).step === 'send'

  it('an order that may exist is sent only inside the window, unless another call has it', () => {
    each((is, at) => {
      for (const command of ['create', 'recover'] as const) {
        if (!isPending(is) || !sends(command, is, at)) continue
        expect(mayAttempt(is.firstSentAt, at)).toBe(true)
        expect(at.isLive || (isBusy(is, NOW) && !at.outwaited)).toBe(false)
      }
    })
  })

  it('recovery sends no order that is held, and none that is closed', () => {
    each((is, at) => {
      if (!sends('recover', is, at)) return
      expect(is.state === 'open' ? is.hold : undefined).toBeUndefined()
      expect(isPending(is)).toBe(true)
    })
  })

  it('an order that exists is bought again only if it has no name, and was read', () => {
    each((is, at) => {
      if (is.state !== 'created' || !sends('create', is, at)) return
      expect(isPending(is) ? is.body : is.slot).toMatch(isPending(is) ? /./ : /^anon:/)
    })
  })

  it('an order is returned, read or sent only for the payload and key of the call', () => {
    each((is, at) => {
      if (ruleFor('create', is, at).step === 'refuse') return
      expect([undefined, is.key]).toContain(at.wanted?.idempotencyKey)
      const isOpenEnded =
        is.state === 'rejected' || is.hold === 'conflict' || is.fingerprint['target'] === undefined
      if (!isOpenEnded) expect(is.fingerprint).toEqual(at.wanted?.fingerprint)
    })
  })

  it('a record is abandoned only if it is open, and forgotten only if its outcome is known', () => {
    each((is, at) => {
      if (ruleFor('abandon', is, at).step === 'close') expect(is.state).toBe('open')
      if (ruleFor('forget', is, at).step === 'empty') expect(!isPending(is) || idKnown(is, at)).toBe(true)
    })
  })
})
