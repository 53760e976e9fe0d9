import type { SandboxRequest } from 'customer-ordering-sdk/sandbox'
import { describe, expect, it } from 'vitest'
import { agreement, oneCharge } from '../../support/invariants.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'
import { CALL_HEADER, type Happening } from './events.ts'
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
const NOTHING_ELSE = { requests: [], answers: new Map(), ledger: [], rows: [] }

it('a call of the fleet begins when its client has read the clock, even if writing the log takes long', () => {
  const events: readonly (readonly [number, Happening])[] = [
    [10, { event: 'began', call: 'slow', kind: 'create', reference: 'r1' }],
    [95, { event: 'called', call: 'slow', since: wall }],
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

  type Logged = readonly [number, Happening]
  const otherAwake: Logged = [2401, { event: 'asked', call: 'other' }]
  const sawOrder: Logged = [1050, { event: 'saw', call: 'late', row }]
  const broken = ["I6: r was told 'unknown' (timeout) while the record says 'yes'"]
  const [excused, isWrong] = ['is excused', 'breaks a promise']

  // The call begins at 1000: its deadline is at 2000, and it may read its record until 2500.
  it.each<[string, string, Life['stops'], number, number, ...Logged[]]>([
    [excused, 'its process was stopped past the last read', [{ from: 1002, to: 3000 }], 1001, 3001],
    [excused, 'its process was stopped no longer than needed', [{ from: 1999, to: 2502 }], 1001, 2503],
    [excused, 'its process was stopped before it logged the call', [{ from: 1000.5, to: 3000 }], 3001, 3002],
    [isWrong, 'its process was never stopped', [], 1001, 2505],
    [isWrong, 'its process woke before the deadline', [{ from: 1100, to: 1900 }], 1001, 2505],
    [isWrong, 'its process was stopped after the deadline', [{ from: 2100, to: 4000 }], 1001, 4001],
    [isWrong, 'its process woke before its last read', [{ from: 1100, to: 2300 }], 1001, 2301],
    [isWrong, 'its process was stopped before the call', [{ from: 100, to: 999 }], 1001, 2505],
    [isWrong, 'it began while its process woke', [{ from: -1000, to: 1000.5 }], 1001, 2000],
    [isWrong, 'its client read its clock after the stop', [{ from: 1000.5, to: 3000 }], 3001, 4001],
    [isWrong, 'another call was awake', [{ from: 1100, to: 2400 }], 1001, 2600, otherAwake],
    [isWrong, 'it had seen the order', [{ from: 1100, to: 3000 }], 1001, 3001, sawOrder],
  ])('a call that times out %s if %s', (judged, _why, stops, calledAt, endedAt, ...meanwhile) => {
    const call = 'late'
    const events: Logged[] = [
      [1000, { event: 'began', call, kind: 'create', reference: 'r' }],
      [calledAt, { event: 'called', call, since: wall }],
      ...meanwhile,
      [endedAt, { event: 'told', call, told: TIMED_OUT, waiting: false }],
    ]
    const lives = [life('buyer', [], [[10, { event: 'wrote', row }]]), life('sleeper', stops, events)]
    expect(agreement(runLogOf({ references: ['r'], lives, ...NOTHING_ELSE }))).toEqual(
      judged === excused ? [] : broken,
    )
  })
})

it.each([
  ['in the last millisecond of its window', 6200, []],
  ['a millisecond later', 6201, ['I1: r was sent with key k 7100 ms after its first send']],
])('a request is judged by the wall clock of its process alone: %s', (_when, since, broken) => {
  const record = { ...LEFT_OPEN, slot: 'ref:r', key: 'k', externalOrderId: 'r', firstSentAt: wall }
  const row = {
    ...{ scope: 's', id: 'row', version: 1, open: true, state: 'open' as const },
    ...{ createdAt: wall, updatedAt: wall, data: JSON.stringify(record) },
  }
  const call = 'c'
  const on = (at: number, clock: number, happening: Happening) => ({ at, wall: wall + clock, ...happening })
  const buyer: Life = {
    ...life('buyer', [], []),
    limits: { ...limits, totalTimeout: 1200, safeRetryWindow: 37_400 },
    events: [
      on(6000, since, { event: 'began', call, kind: 'create', reference: 'r' }),
      // The client has begun the call 0.9 ms before it could log this.
      on(6000.9, since, { event: 'called', call, since: wall + since }),
      on(6900, 7100, { event: 'wrote', call, row }),
      on(6900, 7100, { event: 'sending', call, key: 'k' }),
    ],
  }
  const request: SandboxRequest = {
    ...{ number: 1, at: 6901, operation: 'createOrder', method: 'POST', path: '/v1/orders' },
    ...{ headers: { [CALL_HEADER]: call }, idempotencyKey: 'k', apiKeyId: null, faults: [] },
    ...{ status: 'dropped', response: null, delivery: 'drop', charged: false },
    body: JSON.stringify({ metadata: { externalOrderId: 'r' } }),
  }
  const log = runLogOf({ references: ['r'], lives: [buyer], ...NOTHING_ELSE, requests: [request] })
  expect(oneCharge(log)).toEqual(broken)
})
