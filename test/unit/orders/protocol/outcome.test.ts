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

interface Row {
  /** What it shows with nothing in doubt. */
  readonly shows: Shown
  readonly next: string
  readonly hold?: 'refused' | 'aborted' | 'conflict'
}

const row = (shows: Shown, next: string, hold?: Row['hold']): Row => ({ shows, next, ...(hold && { hold }) })

/** A second copy of the outcome table, so that a change of the table is noticed. */
const EXPECTED: Readonly<Record<OutcomeKind, Row>> = {
  created: row('charge', 'stop'),
  created_flawed: row('charge', 'stop'),
  created_unreadable: row('charge', 'replay'),
  success_unreadable: row('doubt', 'replay'),
  contradicted: row('doubt', 'replay'),
  redirected: row('doubt', 'stop'),
  refused: row('refused', 'stop', 'refused'),
  refused_unprocessed: row('not_processed', 'stop', 'refused'),
  unauthorized: row('not_processed', 'stop'),
  forbidden: row('not_processed', 'stop'),
  too_early: row('not_processed', 'backoff'),
  rate_limited: row('not_processed', 'backoff'),
  conflict: row('doubt', 'stop', 'conflict'),
  in_progress: row('doubt', 'poll'),
  conflict_unknown: row('doubt', 'backoff'),
  request_timeout: row('doubt', 'backoff'),
  server_error: row('doubt', 'backoff'),
  unrecognised: row('doubt', 'stop'),
  unreachable: row('not_processed', 'backoff'),
  untrusted: row('not_processed', 'stop'),
  transport_closed: row('not_processed', 'stop'),
  connection_closed: row('doubt', 'now'),
  connection_lost: row('doubt', 'backoff'),
  timed_out: row('doubt', 'backoff'),
  aborted: row('doubt', 'stop', 'aborted'),
  not_sent: row('cancelled', 'stop'),
}

describe('the outcome table', () => {
  it('the outcome table has a row for every kind, and no others', () => {
    expect(kinds.toSorted()).toEqual(Object.keys(EXPECTED).toSorted())
  })

  it.each(kinds)('the outcome %s means what its row states', (kind) => {
    const { shows, next, hold } = EXPECTED[kind]
    expect(OUTCOMES[kind].next).toBe(next)
    const clean = judgeOutcome(kind, CLEAN)
    expect(clean).toMatchObject({ shows, next, ambiguous: shows === 'doubt' })
    // Recovery is held back only while the record is open.
    expect(clean.hold).toBe(shows === 'doubt' ? hold : undefined)
    const ambiguous = judgeOutcome(kind, { ...CLEAN, ambiguous: true })
    expect(ambiguous).toMatchObject({ shows: shows === 'charge' ? shows : 'doubt', next, ambiguous: true })
    expect(ambiguous.hold).toBe(hold)
    const proven = judgeOutcome(kind, { ...CLEAN, proven: true })
    expect(proven).toMatchObject({ shows: 'charge', next: next === 'stop' ? 'stop' : 'replay' })
    expect(proven.hold).toBeUndefined()
    expect(judgeOutcome(kind, { ambiguous: true, proven: true }).shows).toBe('charge')
    expect(outcomeWords(kind)).toMatch(/\w/)
  })
})

const ends = fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 12 })
const histories = fc.record({ ambiguous: fc.boolean(), proven: fc.boolean() })

interface Attempt {
  readonly kind: OutcomeKind
  readonly before: History
  readonly verdict: ReturnType<typeof judgeOutcome>
}

/** Checks the verdicts on the attempts of any call, in order. */
function forAnyCall(check: (attempts: readonly Attempt[]) => void): void {
  const property = fc.property(ends, histories, (kinds, begin) => {
    let before: History = begin
    const judged = kinds.map((kind) => {
      const attempt = { kind, before, verdict: judgeOutcome(kind, before) }
      before = attempt.verdict
      return attempt
    })
    check(judged)
  })
  fc.assert(property, { numRuns: effort(500, 5000) })
}

describe('the judgement of any sequence of attempts', () => {
  it('a yes is never taken back', () => {
    forAnyCall((attempts) => {
      const told = attempts.map(({ verdict }) => verdict.shows)
      const first = told.indexOf('charge')
      if (first >= 0) expect(new Set(told.slice(first))).toEqual(new Set(['charge']))
    })
  })

  it('after an attempt in doubt, charged is never no, and no record is closed as refused', () => {
    forAnyCall((attempts) => {
      let doubt = attempts[0]?.before.ambiguous === true
      for (const { kind, verdict } of attempts) {
        if (doubt) expect(['charge', 'doubt']).toContain(verdict.shows)
        doubt ||= EXPECTED[kind].shows === 'doubt'
      }
    })
  })

  it('a further attempt only adds to doubt and proof', () => {
    forAnyCall((attempts) => {
      for (const { before, verdict } of attempts) {
        expect(verdict.ambiguous || !before.ambiguous).toBe(true)
        expect(verdict.proven || !before.proven).toBe(true)
      }
    })
  })
})
