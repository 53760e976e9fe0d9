import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Counts,
  type Decision,
  decide,
  MAX_REPLAYS,
  noCounts,
  type Pace,
  parseRetryAfter,
  type Situation,
} from '../../../src/http/retry.ts'
import { character } from '../../support/character.ts'

const situation: Situation = {
  pace: 'backoff',
  counts: noCounts,
  maxRetries: 4,
  remaining: 120_000,
  random: 0.5,
}
const ask = (changes: Partial<Situation>): Decision => decide({ ...situation, ...changes })
const waitOf = (decision: Decision): number => ('wait' in decision ? decision.wait : Number.NaN)

/** All decisions of a call that continues at the same pace until the policy stops it. */
function follow(pace: Pace, changes: Partial<Situation> = {}): { waits: number[]; end: string | undefined } {
  const waits: number[] = []
  let counts = noCounts
  for (;;) {
    const decision = ask({ pace, counts, ...changes })
    if ('stop' in decision) return { waits, end: decision.stop }
    waits.push(decision.wait)
    counts = decision.counts
    if (waits.length === 50) return { waits, end: undefined }
  }
}

describe('backoff', () => {
  const caps = [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]

  test.each<[retries: number, cap: number]>([...caps.entries(), [99, 10_000]])(
    'the backoff after %i retries is at least 0 and less than %i ms',
    (retries, cap) => {
      const counts = { ...noCounts, retries }
      const at = (random: number): number => waitOf(ask({ counts, maxRetries: 100, random }))
      expect(at(0)).toBe(0)
      expect(at(0.5)).toBe(cap / 2)
      expect(at(1 - 2 ** -53)).toBeLessThan(cap)
      expect(at(1 - 2 ** -53)).toBeGreaterThan(cap * 0.999)
    },
  )

  test('maxRetries counts all kinds of retries together', () => {
    let counts = noCounts
    for (const pace of ['now', 'refresh', 'backoff', 'now'] as const) {
      const decision = ask({ pace, counts })
      if ('stop' in decision) throw new Error(decision.stop)
      counts = decision.counts
    }
    expect(counts).toEqual({ retries: 4, polls: 0, replays: 0 })
    expect(ask({ pace: 'refresh', counts })).toEqual({ stop: 'stopped' })
  })
})

test.each<[pace: Pace, limit: Partial<Situation>, waits: number[]]>([
  ['backoff', {}, [125, 250, 500, 1000]],
  // A socket that closed is retried immediately the first time, then after a backoff.
  ['now', {}, [0, 250, 500, 1000]],
  ...(['now', 'backoff', 'refresh'] as const).map((pace): [Pace, object, []] => [
    pace,
    { maxRetries: 0 },
    [],
  ]),
  // An unreadable success is repeated twice at most, whatever maxRetries is.
  ...[0, 4, 100].map((maxRetries): [Pace, object, number[]] => ['replay', { maxRetries }, [0, 250]]),
])('pace %s with %j waits %j, then the decision states that none is left', (pace, limit, waits) => {
  expect(follow(pace, limit)).toEqual({ waits, end: 'stopped' })
})

test('a refused API key is tried once more immediately, whatever was retried before', () => {
  expect(waitOf(ask({ pace: 'refresh', counts: { ...noCounts, retries: 3 } }))).toBe(0)
})

test('the wait for an earlier request with the same key starts at half a second and doubles up to five', () => {
  const most = follow('poll', { random: 1 - 2 ** -53 }).waits
  expect(most.slice(0, 7).map(Math.round)).toEqual([500, 1000, 2000, 4000, 5000, 5000, 5000])
  const least = follow('poll', { random: 0 }).waits
  expect(least.slice(0, 7)).toEqual([500, 500, 1000, 2000, 2500, 2500, 2500])
})

test('the wait for an earlier request has no maximum number, even with maxRetries 0, and uses no retry', () => {
  expect(follow('poll', { maxRetries: 0 }).end).toBeUndefined()
  const decision = ask({ pace: 'poll', counts: { retries: 4, polls: 2000, replays: 2 } })
  expect(decision).toEqual({ wait: 3750, counts: { retries: 4, polls: 2001, replays: 2 } })
})

test('repeating an unreadable success uses no retry, and needs none left', () => {
  const counts: Counts = { retries: 4, polls: 7, replays: 1 }
  expect(ask({ pace: 'replay', counts })).toEqual({ wait: 250, counts: { ...counts, replays: MAX_REPLAYS } })
})

test.each<Pace>(['now', 'backoff', 'refresh', 'poll', 'replay'])(
  'Retry-After is a lower bound for pace %s',
  (pace) => {
    const counts = { retries: 3, polls: 3, replays: 1 }
    const own = waitOf(ask({ pace, counts }))
    for (const retryAfter of [0, 1, 30_000])
      expect(waitOf(ask({ pace, counts, retryAfter }))).toBe(Math.max(own, retryAfter))
  },
)

test('a Retry-After past the deadline ends the call instead of a shorter wait, unless no retry is left', () => {
  expect(ask({ retryAfter: 119_999 })).toMatchObject({ wait: 119_999 })
  expect(ask({ retryAfter: 120_000 })).toEqual({ stop: 'deadline' })
  expect(ask({ maxRetries: 0, retryAfter: 1e9 })).toEqual({ stop: 'stopped' })
})

test('no wait ends at or after the deadline, and none is negative', () => {
  const paces = fc.constantFrom<Pace>('now', 'backoff', 'refresh', 'poll', 'replay')
  const count = fc.nat({ max: 2000 })
  const counts = fc.record({ retries: count, polls: count, replays: count })
  const milliseconds = fc.double({ min: -1e6, max: 1e6, noNaN: true })
  fc.assert(
    fc.property(
      fc.record({
        pace: paces,
        counts,
        maxRetries: fc.nat({ max: 100 }),
        retryAfter: fc.option(fc.nat(), { nil: undefined }),
        remaining: milliseconds,
        random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      }),
      (given) => {
        const decision = decide(given)
        if ('stop' in decision) return
        expect(decision.wait).toBeGreaterThanOrEqual(given.retryAfter ?? 0)
        expect(decision.wait).toBeLessThan(given.remaining)
        const used = (of: Counts): number => of.retries + of.polls + of.replays
        expect(used(decision.counts)).toBe(used(given.counts) + 1)
      },
    ),
  )
})

describe('reading Retry-After', () => {
  const now = Date.UTC(2026, 0, 1, 12, 0, 0)
  const ASCTIME = 'Thu Jan  1 12:01:00 2026'

  test('an asctime date is read as UTC in every time zone', () => {
    const before = process.env['TZ']
    try {
      process.env['TZ'] = 'Asia/Tokyo'
      expect(parseRetryAfter(ASCTIME, now)).toBe(60_000)
    } finally {
      if (before === undefined) delete process.env['TZ']
      else process.env['TZ'] = before
    }
  })

  test.each([
    ['0', 0],
    ['1', 1000],
    [' 7 ', 7000],
    ['007', 7000],
    ['120', 120_000],
    ['0.5', 500],
    ['1.0001', 1001],
    ['Thu, 01 Jan 2026 12:01:00 GMT', 60_000],
    ['Thursday, 01-Jan-26 12:01:00 GMT', 60_000],
    [ASCTIME, 60_000],
    // A past date means no wait.
    ['Thu, 01 Jan 2026 11:59:59 GMT', 0],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
  ])('Retry-After %j is %i ms', (text, milliseconds) => {
    expect(parseRetryAfter(text, now)).toBe(milliseconds)
  })

  test.each(['999999999999', '9'.repeat(13), '9'.repeat(400)])(
    'an extremely long wait is limited to one that no deadline allows (%s)',
    (text) => {
      const milliseconds = parseRetryAfter(text, now)
      expect(milliseconds).toBeGreaterThan(1e14)
      expect(Number.isSafeInteger(milliseconds)).toBe(true)
      expect(ask({ retryAfter: milliseconds })).toEqual({ stop: 'deadline' })
    },
  )

  test.each([
    ...[null, '', ' ', '-1', '+1', '1e3', '0x10', '1,5', '1, 2', '.5', '5.', 'NaN', 'Infinity', 'soon'],
    ...['10 seconds', '2026-01-01T12:01:00Z', 'Thu, 01 Jan 2026 12:01:00', '1767268860000 GMT'],
    ...['Thu, 01 Jan 2026 12:01:00 +0000', 'Thu, 01 Foo 2026 12:01:00 GMT', 'Thu, 99 Jan 2026 12:01:00 GMT'],
    // Date.parse would accept these.
    'x Sun, 06 Nov 2094 08:49:37 GMT',
    'Sun, 06 Nov 2094 08:49:37 GMT (x)',
    'x Sun Nov  6 08:49:37 2094',
    'Sun Nov  6 08:49:37 2094 (x)',
    ...['Sun Nov ,6 08:49:37 2094', ['1'] as never],
  ])('Retry-After %j is not usable', (text) => {
    expect(parseRetryAfter(text, now)).toBeUndefined()
  })

  test('every text gives nothing or a whole, non-negative number of milliseconds', () => {
    fc.assert(
      fc.property(fc.string({ unit: character }), (text) => {
        const milliseconds = parseRetryAfter(text, now)
        if (milliseconds === undefined) return
        expect(Number.isSafeInteger(milliseconds)).toBe(true)
        expect(milliseconds).toBeGreaterThanOrEqual(0)
      }),
    )
  })
})
