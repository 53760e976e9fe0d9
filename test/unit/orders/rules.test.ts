import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Facts, Wanted } from '../../../src/orders/conditions.ts'
import { CLOCK_SKEW, inWindow, isBusy } from '../../../src/orders/conditions.ts'
import type { JournalRecord, RejectionKind } from '../../../src/orders/record.ts'
import { decide, phaseOf, RULES, type StepOf } from '../../../src/orders/rules.ts'
import { MINUTE, NOW, WINDOW } from '../../support/place.ts'
import {
  busy,
  created,
  here,
  LINES,
  order,
  record,
  refused,
  rejected,
  stale,
  TOTAL,
  unreadable,
} from './rule-lines.ts'

const PHASES = [
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

describe('the phase of a record', () => {
  it.each(PHASES)('the phase of a record is %s: %j', (phase, changes) => {
    expect(phaseOf({ record: record(changes) }, here)).toBe(phase)
  })

  it('the phase is absent without a row, and forgotten if the row has no record', () => {
    const row = { scope: 's', id: 'i', version: 2, open: false, createdAt: 0, updatedAt: 0, data: '' }
    expect(phaseOf({}, here)).toBe('absent')
    expect(phaseOf({ row: { ...row, state: 'rejected' } }, here)).toBe('forgotten')
  })
})

describe('what a command does with what it finds', () => {
  it.each(LINES)('$title', ({ expected, said }) => {
    expect(said()).toBe(expected)
  })

  it('a cell without a last step ends in an error', () => {
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
  it('the safe-retry window ends early enough for a complete call', () => {
    const at = (age: number) => inWindow(record({ firstSentAt: NOW - age }), here)
    const ages = [0, WINDOW - TOTAL, WINDOW - TOTAL + 1, WINDOW]
    expect(ages.map(at)).toEqual([true, true, false, false])
  })

  it("a clock slightly behind is another machine's, and one far behind was set back", () => {
    const ahead = (by: number) => inWindow(record({ firstSentAt: NOW + by }), here)
    expect([ahead(CLOCK_SKEW), ahead(CLOCK_SKEW + 1), ahead(60 * MINUTE)]).toEqual([true, false, false])
  })

  it('the safe-retry window never fits a call that is longer than it', () => {
    const long = { ...here, totalTimeout: WINDOW + 1 }
    expect(inWindow(record({ firstSentAt: NOW }), long)).toBe(false)
  })
})

describe('a claim', () => {
  it('a claim holds until its time', () => {
    const at = (now: number) => isBusy({ updatedAt: NOW, busyUntil: NOW + TOTAL }, now)
    expect([at(NOW), at(NOW + TOTAL - 1), at(NOW + TOTAL)]).toEqual([true, true, false])
  })

  it('a claim does not hold without a time, or after the clock was set back far', () => {
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

  it('create() sends an open order again only in its window, with its API key and payload, and unless charged', () => {
    each((found, wanted, at, step) => {
      if (found.state !== 'open' || step.step !== 'send') return
      expect(step.as).toBe('stored')
      expect(found.fingerprint).toBe(wanted.fingerprint)
      expect(at.sameApiKey).toBe(true)
      expect(inWindow(found, at)).toBe(true)
      expect(isBusy(found, at.now)).toBe(false)
    })
  })

  it('create() never buys again if an order exists, except without a name', () => {
    each((found, _wanted, _at, step) => {
      if (found.state !== 'created' || step.step !== 'send' || step.as === 'stored') return
      expect(step.as).toBe('new')
      expect(found.slot).toMatch(/^anon:/)
    })
  })

  it('create() gives an intent a second key only if the first is refused, unsent or abandoned throughout', () => {
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

  it('create() never returns an order to a call that requests something else', () => {
    each((found, wanted, _at, { step }) => {
      if (step !== 'tell' && step !== 'read') return
      expect(found.fingerprint).toBe(wanted.fingerprint)
      expect([undefined, found.key]).toContain(wanted.idempotencyKey)
    })
  })
})
