import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type History,
  judgeOutcome,
  OUTCOMES,
  type OutcomeKind,
  type Shown,
} from '../../../../src/orders/protocol/outcome.ts'
import { outcomeWords } from '../../../../tools/docs/outcome-words.ts'
import { effort } from '../../../support/effort.ts'

const kinds = Object.keys(OUTCOMES) as OutcomeKind[]

const CLEAN: History = { ambiguous: false, proven: false }
const AMBIGUOUS: History = { ambiguous: true, proven: false }
const PROVEN: History = { ambiguous: false, proven: true }

interface Row {
  /** What it shows with nothing in doubt. */
  readonly clean: Shown
  /** The same after an attempt in doubt. */
  readonly ambiguous: 'charge' | 'doubt'
  readonly next: string
  /** The next step if an earlier attempt of the call got a 201. */
  readonly afterProof: 'stop' | 'replay'
  readonly doubt: boolean
  readonly hold?: 'refused' | 'aborted' | 'conflict'
}

const REFUSED = { clean: 'refused', ambiguous: 'doubt' } as const
const UNPROCESSED = { clean: 'not_processed', ambiguous: 'doubt' } as const
const CANCELLED = { clean: 'cancelled', ambiguous: 'doubt' } as const
const DOUBT = { clean: 'doubt', ambiguous: 'doubt', doubt: true } as const
const CHARGED = { clean: 'charge', ambiguous: 'charge', doubt: false } as const

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

describe('the outcome table', () => {
  it('the outcome table has a row for every kind, and no others', () => {
    expect(kinds.toSorted()).toEqual(Object.keys(EXPECTED).toSorted())
  })

  it.each(kinds)('the outcome %s means what its row states', (kind) => {
    const expected = EXPECTED[kind]
    const [clean, ambiguous, proven] = [CLEAN, AMBIGUOUS, PROVEN].map((history) =>
      judgeOutcome(kind, history),
    )
    expect([clean?.shows, ambiguous?.shows]).toEqual([expected.clean, expected.ambiguous])
    // A 201 means a charge, whatever else is in doubt.
    expect(proven?.shows).toBe('charge')
    expect(judgeOutcome(kind, { ambiguous: true, proven: true }).shows).toBe('charge')
    expect([OUTCOMES[kind].next, clean?.next, ambiguous?.next]).toEqual(Array(3).fill(expected.next))
    expect(proven?.next).toBe(expected.afterProof)
    expect([clean?.ambiguous, ambiguous?.ambiguous]).toEqual([expected.doubt, true])
    // Recovery is held back only while the record is open.
    const hold = expected.clean === 'doubt' ? expected.hold : undefined
    expect([clean?.hold, ambiguous?.hold, proven?.hold]).toEqual([hold, expected.hold, undefined])
    expect(outcomeWords(kind)).toMatch(/\w/)
  })
})

const ends = fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 12 })
const histories = fc.record({ ambiguous: fc.boolean(), proven: fc.boolean() })

/** The verdict on each attempt of a call, in order. */
function run(sequence: readonly OutcomeKind[], begin: History) {
  let history: History = begin
  return sequence.map((kind) => {
    const verdict = judgeOutcome(kind, history)
    history = verdict
    return verdict
  })
}

describe('the judgement of any sequence of attempts', () => {
  it('a yes is never taken back', () => {
    fc.assert(
      fc.property(ends, histories, (sequence, begin) => {
        const told = run(sequence, begin).map(({ shows }) => shows)
        const first = told.indexOf('charge')
        if (first >= 0) expect(new Set(told.slice(first))).toEqual(new Set(['charge']))
      }),
      { numRuns: effort(500, 5000) },
    )
  })

  it('after an attempt in doubt, charged is never no, and no record is closed as refused', () => {
    fc.assert(
      fc.property(ends, histories, (sequence, begin) => {
        let doubt = begin.ambiguous
        for (const [index, { shows }] of run(sequence, begin).entries()) {
          if (doubt) expect(['charge', 'doubt']).toContain(shows)
          doubt ||= OUTCOMES[sequence[index] as OutcomeKind].shows === 'doubt'
        }
      }),
      { numRuns: effort(500, 5000) },
    )
  })

  it('charged is no only after outcomes that the service or the platform confirms', () => {
    fc.assert(
      fc.property(ends, (sequence) => {
        for (const [index, { shows }] of run(sequence, CLEAN).entries()) {
          if (shows === 'charge' || shows === 'doubt') continue
          for (const kind of sequence.slice(0, index + 1)) expect(EXPECTED[kind].doubt).toBe(false)
        }
      }),
      { numRuns: effort(500, 5000) },
    )
  })

  it('a further attempt only adds to doubt and proof', () => {
    fc.assert(
      fc.property(ends, histories, (sequence, begin) => {
        let before: History = begin
        for (const verdict of run(sequence, begin)) {
          expect(verdict.ambiguous || !before.ambiguous).toBe(true)
          expect(verdict.proven || !before.proven).toBe(true)
          before = verdict
        }
      }),
    )
  })
})
