import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isBusy, mayAttempt, startOf } from '../../../../src/orders/protocol/keys.ts'
import {
  type Condition,
  changedSince,
  type Facts,
  GUARDS,
  idKnown,
  phaseOf,
  RULES,
  ruleFor,
  running,
  spent,
  unknownStep,
} from '../../../../src/orders/protocol/rules.ts'
import type { Intent } from '../../../../src/orders/record/intent.ts'
import { isPending, type JournalRecord } from '../../../../src/orders/record/record.ts'
import { effort } from '../../../support/effort.ts'
import { MINUTE, NOW, ORDER, WINDOW } from '../../../support/order-context.ts'
import { type Changes, changed, here, intent, record } from './found.ts'
import {
  ABSENT,
  busy,
  created,
  factsOf,
  given,
  LINES,
  refused,
  said,
  stale,
  unread,
  wrongLine,
} from './rule-lines.ts'

const HOUR = 3_600_000

describe('what a command does with an order', () => {
  it('every line of the table and of its guards holds', () => {
    expect(wrongLine()).toBeUndefined()
  })

  it.each(LINES)('$command of an order that is $when: $expected', ({ command, expected, changes, facts }) => {
    expect(said(ruleFor(command, record(changes), factsOf(facts)))).toBe(expected)
  })

  it.each(ABSENT)('%s of an order without a record: %s', (command, expected) => {
    expect(said(ruleFor(command, undefined, factsOf()))).toBe(expected)
  })

  it('every cell, and every condition of a cell, has a line here', () => {
    const met = new Set<string>()
    for (const { command, changes, facts } of LINES) {
      const [is, at] = [record(changes), factsOf(facts)]
      const phase = phaseOf(is, at)
      const cell: readonly unknown[] = RULES[phase][command]
      const entry = cell.findIndex((each) => !Array.isArray(each) || (each[0] as Condition)(is, at))
      met.add(`${phase} ${command} ${entry}`)
    }
    const { absent: _absent, ...rows } = RULES
    const cells = Object.entries(rows).flatMap(([phase, row]) =>
      Object.entries(row).flatMap(([command, cell]) => cell.map((_entry, at) => `${phase} ${command} ${at}`)),
    )
    // The payload of a refused order may be changed.
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

describe('the guards of create()', () => {
  const OTHER_KEY: Intent = { ...intent, idempotencyKey: 'mine' }
  const CONFLICT = { hold: 'conflict' } as const
  it.each<[string | undefined, string, Intent | undefined, Changes]>([
    [undefined, 'the same order is asked for', intent, {}],
    [undefined, 'nothing is asked for', undefined, {}],
    [undefined, 'the key is given that the record has', given.wanted, {}],
    ['key', 'another key is given', OTHER_KEY, {}],
    ['key', 'another key is given, and the order was refused', OTHER_KEY, refused],
    ['key', 'another key is given, and the order exists', OTHER_KEY, created],
    ['key', 'another key is given, and the key is in conflict', OTHER_KEY, CONFLICT],
    ['key', 'another key and payload are given', { ...changed, idempotencyKey: 'mine' }, {}],
    ['payload', 'another payload is given', changed, {}],
    ['payload', 'another payload is given, and the order exists', changed, created],
    ['payload', 'another payload is given, and the order was never read', changed, unread],
    ['payload', 'another payload is given, and the order is held', changed, { hold: 'refused' }],
    [undefined, 'another payload is given, and the order was refused', changed, refused],
    [undefined, 'another payload is given, and the key is in conflict', changed, CONFLICT],
    [
      undefined,
      'another payload is given, and only resolve() has recorded the order',
      changed,
      { ...created, fingerprint: {} },
    ],
  ])('a local conflict is %s if %s', (because, _if, wanted, changes) => {
    const step = ruleFor('create', record(changes), { ...here, wanted })
    const conflict = step.step === 'refuse' && GUARDS.some(([, guard]) => guard.because === step.because)
    expect(conflict ? step.because : undefined).toBe(because)
  })

  it('the guards are checked in their order', () => {
    expect(GUARDS.map(([when]) => when.name)).toEqual(['otherKey', 'otherPayload'])
  })
})

it.each<[Condition, boolean, Changes, Partial<Facts>]>([
  [idKnown, true, { order: { id: 'o1' } }, {}],
  [idKnown, false, { order: { id: '..' } }, {}],
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

it.each([
  ['same', {}, { ...intent, idempotencyKey: record().key }],
  [undefined, stale, { ...intent, idempotencyKey: record().key }],
  ['next', stale, intent],
  ['next', stale, undefined],
])(
  'the start key of a refused order is %s for %j, where a given key is always the caller’s',
  (start, changes, wanted) => {
    expect(startOf(record({ ...refused, ...changes }), here, wanted?.idempotencyKey)).toBe(start)
  },
)

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
    connection: fc.record({ mayResend: fc.boolean() }),
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

  it('a key that the caller gave is never changed', () => {
    each((is, at) => {
      if (is.origin === 'caller')
        expect(['same', undefined]).toContain(startOf(is, at, at.wanted?.idempotencyKey))
    })
  })

  it('a record is abandoned only if it is open, and forgotten only if it is settled', () => {
    each((is, at) => {
      if (ruleFor('abandon', is, at).step === 'close') expect(is.state).toBe('open')
      if (ruleFor('forget', is, at).step === 'empty') expect(isPending(is)).toBe(false)
    })
  })
})
