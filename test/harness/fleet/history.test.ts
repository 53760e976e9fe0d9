import { describe, expect, it } from 'vitest'
import { agreement } from '../../support/invariants.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'
import type { Happening } from './events.ts'
import { type Life, runLogOf } from './history.ts'

const wall = 1_700_000_000_000
const limits = { timeout: 400, totalTimeout: 1000, maxRetries: 0, safeRetryWindow: 10_000 }
const life = (
  name: string,
  stops: Life['stops'],
  events: readonly (readonly [number, Happening])[],
  killed = false,
): Life => ({
  ...{ name, stops, limits, endedAt: 10_000, killed },
  events: events.map(([at, happening]) => ({ at, wall, ...happening })),
})
const TIMED_OUT = { charged: 'unknown', code: 'timeout' } as const
const BESIDE = [
  { from: 100, to: 999 },
  { from: 4000, to: 5000 },
]
const NOTHING_ELSE = { requests: [], answers: new Map(), ledger: [], rows: [] }

it('a call of the fleet begins when its client has read the clock, even if writing the log takes long', () => {
  const events: readonly (readonly [number, Happening])[] = [
    [10, { event: 'began', call: 'slow', kind: 'create', reference: 'r1' }],
    [95, { event: 'called', call: 'slow' }],
    [120, { event: 'told', call: 'slow', told: TIMED_OUT, waiting: false }],
    [130, { event: 'began', call: 'killed', kind: 'create', reference: 'r2' }],
  ]
  const lives = [life('process-1', [], events, true)]
  expect(runLogOf({ references: ['r1', 'r2'], lives, ...NOTHING_ELSE }).calls).toMatchObject([
    { intent: 'r1', time: 95, endedTime: 120 },
    { intent: 'r2', time: 130, died: true },
  ])
})

describe('the order of another process', () => {
  const record = {
    ...{ ...LEFT_OPEN, slot: 'ref:r', key: 'k', externalOrderId: 'r' },
    ...{ state: 'created', readable: true, order: { id: 'o' } },
  }
  const row = {
    ...{ scope: 's', id: 'row', version: 1, open: false, state: 'created' as const },
    ...{ createdAt: wall, updatedAt: wall, data: JSON.stringify(record) },
  }

  const broken = ["I6: r was told 'unknown' (timeout) while the record says 'yes'"]
  it.each<[string, Life['stops'], number, readonly string[]]>([
    ['breaks a promise', [], 1001, broken],
    ['breaks a promise if its process was stopped before and after', BESIDE, 1001, broken],
    ['breaks none if its process was stopped meanwhile', [{ from: 1002, to: 3000 }], 1001, []],
    ['breaks none if it was stopped before it logged its beginning', [{ from: 1000.5, to: 3000 }], 3001, []],
  ])('a call that times out %s', (_what, stops, calledAt, told) => {
    const call = 'late'
    const events: (readonly [number, Happening])[] = [
      [1000, { event: 'began', call, kind: 'create', reference: 'r' }],
      [calledAt, { event: 'called', call }],
      [3002, { event: 'told', call, told: TIMED_OUT, waiting: false }],
    ]
    const lives = [life('buyer', [], [[10, { event: 'wrote', row }]]), life('sleeper', stops, events)]
    expect(agreement(runLogOf({ references: ['r'], lives, ...NOTHING_ELSE }))).toEqual(told)
  })
})
