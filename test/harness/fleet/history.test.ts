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
const NOTHING_ELSE = { arrivals: [], readings: [], ledger: [], rows: [] }

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

describe('a call whose process was stopped', () => {
  const record = {
    ...{ ...LEFT_OPEN, slot: 'ref:r', key: 'k', externalOrderId: 'r' },
    ...{ state: 'created', readable: true, order: { id: 'o' } },
  }
  const row = {
    ...{ scope: 's', id: 'row', version: 1, open: false, state: 'created' as const },
    ...{ createdAt: wall, updatedAt: wall, data: JSON.stringify(record) },
  }

  /** What I6 says about a call that begins at 1000 and times out although another process has bought the order. */
  const judged = (
    stop: Life['stops'][number] | undefined,
    awakeAt: number,
    meanwhile: readonly (readonly [number, Happening])[] = [],
    calledAt = 1001,
  ): string[] => {
    const call = 'late'
    const events: (readonly [number, Happening])[] = [
      [1000, { event: 'began', call, kind: 'create', reference: 'r' }],
      [calledAt, { event: 'called', call }],
      ...meanwhile,
      [awakeAt, { event: 'told', call, told: TIMED_OUT, waiting: false }],
    ]
    return agreement(
      runLogOf({
        references: ['r'],
        lives: [
          life('buyer', [], [[10, { event: 'wrote', row }]]),
          life('sleeper', stop === undefined ? [] : [stop], events),
        ],
        ...NOTHING_ELSE,
      }),
    )
  }
  const broken = ["I6: r was told 'unknown' (timeout) while the record says 'yes'"]

  it('a call has overslept if its process was stopped from its deadline until its last read was due', () => {
    expect(judged({ from: 1002, to: 3000 }, 3001)).toEqual([])
    expect(judged({ from: 1999, to: 2502 }, 2503)).toEqual([])
  })

  it('a call has overslept if its process was stopped before it could log that the call began', () => {
    expect(judged({ from: 1000.5, to: 3000 }, 3002, [], 3001)).toEqual([])
  })

  it.each<[string, Life['stops'][number] | undefined, number, (readonly [number, Happening])[]?]>([
    ['its process was never stopped', undefined, 2505],
    ['its process woke before the deadline', { from: 1100, to: 1900 }, 2505],
    ['its process was stopped only after the deadline', { from: 2100, to: 4000 }, 4001],
    ['its process woke early enough for a last read', { from: 1100, to: 2300 }, 2301],
    ['its process was stopped before the call', { from: 100, to: 999 }, 2505],
    ['the call began while its process woke', { from: 500, to: 1000.5 }, 2505],
    [
      'another call of its process was awake',
      { from: 1100, to: 2400 },
      2600,
      [[2401, { event: 'asked', call: 'other' }]],
    ],
    [
      'it had read that the order exists',
      { from: 1100, to: 3000 },
      3001,
      [[1050, { event: 'saw', call: 'late', row }]],
    ],
  ])('a call has not overslept if %s', (_why, stop, awakeAt, meanwhile) => {
    expect(judged(stop, awakeAt, meanwhile)).toEqual(broken)
  })
})
