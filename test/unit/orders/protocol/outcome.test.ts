import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Charged } from '../../../../src/errors/classes.ts'
import {
  type History,
  judgeOutcome,
  OUTCOMES,
  type OutcomeKind,
} from '../../../../src/orders/protocol/outcome.ts'
import { outcomeWords } from '../../../../tools/docs/outcome-words.ts'
import { effort } from '../../../support/effort.ts'

const kinds = Object.keys(OUTCOMES) as OutcomeKind[]

const CLEAN: History = { ambiguous: false, proven: false }
const AMBIGUOUS: History = { ambiguous: true, proven: false }
const PROVEN: History = { ambiguous: false, proven: true }

interface Row {
  /**
   * `charged record` with nothing in doubt. The reason follows if the record is closed without an
   * order.
   */
  readonly clean: string
  /** The same after an attempt in doubt. */
  readonly ambiguous: 'yes created' | 'unknown open'
  readonly next: string
  /** The next step if an earlier attempt of the call got a 201. */
  readonly afterProof: 'stop' | 'replay'
  readonly doubt: boolean
  readonly hold?: 'refused' | 'aborted' | 'conflict'
}

const REFUSED = { clean: 'no rejected refused', ambiguous: 'unknown open' } as const
const UNPROCESSED = { clean: 'no rejected not_processed', ambiguous: 'unknown open' } as const
const CANCELLED = { clean: 'no rejected cancelled', ambiguous: 'unknown open' } as const
const DOUBT = { clean: 'unknown open', ambiguous: 'unknown open', doubt: true } as const
const CHARGED = { clean: 'yes created', ambiguous: 'yes created', doubt: false } as const

/** A second copy of the outcome table, so that a change of the table is noticed. */
const EXPECTED: Readonly<Record<OutcomeKind, Row>> = {
  created: { ...CHARGED, next: 'stop', afterProof: 'stop' },
  created_flawed: { ...CHARGED, next: 'stop', afterProof: 'stop' },
  created_unreadable: { ...CHARGED, next: 'replay', afterProof: 'replay' },
  success_unreadable: { ...DOUBT, next: 'replay', afterProof: 'replay' },
  contradicted: { ...DOUBT, next: 'replay', afterProof: 'replay' },
  redirected: { ...DOUBT, next: 'stop', afterProof: 'stop' },
  refused: { ...REFUSED, next: 'stop', afterProof: 'stop', doubt: false, hold: 'refused' },
  refused_unprocessed: { ...UNPROCESSED, next: 'stop', afterProof: 'stop', doubt: false, hold: 'refused' },
  unauthorized: { ...UNPROCESSED, next: 'stop', afterProof: 'stop', doubt: false },
  forbidden: { ...UNPROCESSED, next: 'stop', afterProof: 'stop', doubt: false },
  too_early: { ...UNPROCESSED, next: 'backoff', afterProof: 'replay', doubt: false },
  rate_limited: { ...UNPROCESSED, next: 'backoff', afterProof: 'replay', doubt: false },
  conflict: { ...DOUBT, next: 'stop', afterProof: 'stop', hold: 'conflict' },
  in_progress: { ...DOUBT, next: 'poll', afterProof: 'replay' },
  conflict_unknown: { ...DOUBT, next: 'backoff', afterProof: 'replay' },
  request_timeout: { ...DOUBT, next: 'backoff', afterProof: 'replay' },
  server_error: { ...DOUBT, next: 'backoff', afterProof: 'replay' },
  unrecognised: { ...DOUBT, next: 'stop', afterProof: 'stop' },
  unreachable: { ...UNPROCESSED, next: 'backoff', afterProof: 'replay', doubt: false },
  untrusted: { ...UNPROCESSED, next: 'stop', afterProof: 'stop', doubt: false },
  transport_closed: { ...UNPROCESSED, next: 'stop', afterProof: 'stop', doubt: false },
  connection_closed: { ...DOUBT, next: 'now', afterProof: 'replay' },
  connection_lost: { ...DOUBT, next: 'backoff', afterProof: 'replay' },
  timed_out: { ...DOUBT, next: 'backoff', afterProof: 'replay' },
  aborted: { ...DOUBT, next: 'stop', afterProof: 'stop', hold: 'aborted' },
  not_sent: { ...CANCELLED, next: 'stop', afterProof: 'stop', doubt: false },
}

function said(kind: OutcomeKind, history: History): string {
  const { charged, state, rejection } = judgeOutcome(kind, history)
  return [charged, state, rejection].filter((part) => part !== undefined).join(' ')
}

describe('the outcome table', () => {
  it('the outcome table has a row for every kind, and no others', () => {
    expect(kinds.toSorted()).toEqual(Object.keys(EXPECTED).toSorted())
  })

  it.each(kinds)('the outcome %s means what its row states', (kind) => {
    const expected = EXPECTED[kind]
    const [clean, ambiguous, proven] = [CLEAN, AMBIGUOUS, PROVEN].map((history) =>
      judgeOutcome(kind, history),
    )
    expect([said(kind, CLEAN), said(kind, AMBIGUOUS)]).toEqual([expected.clean, expected.ambiguous])
    // A 201 means a charge, whatever else is in doubt.
    expect(said(kind, PROVEN)).toBe('yes created')
    expect(said(kind, { ambiguous: true, proven: true })).toBe('yes created')
    expect([OUTCOMES[kind].next, clean?.next, ambiguous?.next]).toEqual(Array(3).fill(expected.next))
    expect(proven?.next).toBe(expected.afterProof)
    expect([clean?.history.ambiguous, ambiguous?.history.ambiguous]).toEqual([expected.doubt, true])
    // Recovery is held back only while the record is open.
    const hold = expected.clean.endsWith('open') ? expected.hold : undefined
    expect([clean?.hold, ambiguous?.hold, proven?.hold]).toEqual([hold, expected.hold, undefined])
    expect(outcomeWords(kind)).toMatch(/\w/)
  })

  it('every kind that leaves the record open leaves doubt, so a later refusal cannot close it', () => {
    for (const kind of kinds) {
      const { clean, leavesDoubt } = OUTCOMES[kind]
      if (clean.state === 'open') expect([kind, leavesDoubt]).toEqual([kind, true])
    }
  })

  it('a kind has a reason exactly if it closes a record without an order', () => {
    for (const kind of kinds) {
      const { clean, ambiguous } = OUTCOMES[kind]
      for (const { state, rejection } of [clean, ambiguous])
        expect([kind, rejection !== undefined]).toEqual([kind, state === 'rejected'])
    }
  })
})

const ends = fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 12 })
const histories = fc.record({ ambiguous: fc.boolean(), proven: fc.boolean() })

/** The verdict on each attempt of a call, in order. */
function run(sequence: readonly OutcomeKind[], begin: History) {
  let history = begin
  return sequence.map((kind) => {
    const verdict = judgeOutcome(kind, history)
    history = verdict.history
    return verdict
  })
}

describe('the judgement of any sequence of attempts', () => {
  it("every kind after every history has a meaning, which fits the record's state", () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), histories, (kind, history) => {
        const { charged, state, next } = judgeOutcome(kind, history)
        const byState: Readonly<Record<string, readonly Charged[]>> = {
          created: ['yes'],
          open: ['unknown'],
          rejected: ['no'],
        }
        expect(byState[state]).toContain(charged)
        expect(['stop', 'now', 'backoff', 'poll', 'replay']).toContain(next)
      }),
    )
  })

  it('a yes is never taken back', () => {
    fc.assert(
      fc.property(ends, histories, (sequence, begin) => {
        const told = run(sequence, begin).map(({ charged }) => charged)
        const first = told.indexOf('yes')
        if (first >= 0) expect(new Set(told.slice(first))).toEqual(new Set(['yes']))
      }),
      { numRuns: effort(500, 5000) },
    )
  })

  it('after an attempt in doubt, charged is never no, and no record is closed as refused', () => {
    fc.assert(
      fc.property(ends, histories, (sequence, begin) => {
        let doubt = begin.ambiguous
        for (const [index, { charged, state }] of run(sequence, begin).entries()) {
          const kind = sequence[index] as OutcomeKind
          if (doubt) {
            expect(charged).not.toBe('no')
            expect(state).not.toBe('rejected')
          }
          doubt ||= OUTCOMES[kind].leavesDoubt
        }
      }),
      { numRuns: effort(500, 5000) },
    )
  })

  it('charged is no only after outcomes that the service or the platform confirms', () => {
    fc.assert(
      fc.property(ends, (sequence) => {
        for (const [index, { charged }] of run(sequence, CLEAN).entries()) {
          if (charged !== 'no') continue
          for (const kind of sequence.slice(0, index + 1)) expect(OUTCOMES[kind].leavesDoubt).toBe(false)
        }
      }),
      { numRuns: effort(500, 5000) },
    )
  })

  it('a further attempt only adds to doubt and proof', () => {
    fc.assert(
      fc.property(ends, histories, (sequence, begin) => {
        let before = begin
        for (const { history } of run(sequence, begin)) {
          expect(history.ambiguous || !before.ambiguous).toBe(true)
          expect(history.proven || !before.proven).toBe(true)
          before = history
        }
      }),
    )
  })
})
