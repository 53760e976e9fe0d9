/** The plan of a round: a racing fleet, or single processes that are killed repeatedly. */
import type { FaultAction } from '../../../src/sandbox/index.ts'
import { seeded } from '../../../src/stores/contract/seeded.ts'
import { CLOCK_SKEW } from '../core.ts'
import type { Limits, Task } from './events.ts'

export const PRICE = 250

export type Disturbance = { readonly after: number } & (
  | {
      readonly does: 'kill'
      readonly victim: number
      readonly recover: Task['recover']
      /** Milliseconds from the request to the kill. The next disturbance counts from there. */
      readonly later?: number
    }
  | { readonly does: 'stop'; readonly victim: number; readonly milliseconds: number }
  | { readonly does: 'crash' }
)

/** Everything that the seed decides, except the timing of faults and the actions of each process. */
export interface Plan {
  readonly processes: number
  readonly orders: number
  /** One order after this many costs more than the wallet holds, and must never be charged. */
  readonly dear: number
  readonly concurrency: number
  /** Settings of the processes, and of the last one after all disturbances. */
  readonly limits: Readonly<Record<Task['role'], Limits>>
  readonly recover: Task['recover']
  readonly disturbances: readonly Disturbance[]
  readonly faults: readonly (readonly [probability: number, action: FaultAction])[]
  /**
   * True if the service repeats a refusal for its key, so that only a person or a new key can
   * continue.
   */
  readonly rememberedRefusals: readonly (402 | 422)[]
  readonly processingTime: number
  /** Number of orders that the wallet can pay for at first. */
  readonly funded: number
  /** Number of refusals before the wallet is topped up for all orders. */
  readonly refusals: number
}

const PROCESSES = 4
export const FLEET_ORDERS = 200
const FLEET_KILLS = 3
const STOPS = 4

/** Settings of racing processes, short enough that claims end while others race. */
const RACING = { timeout: 400, totalTimeout: 1_200, maxRetries: 4 } as const
const FINISHING = { timeout: 5_000, totalTimeout: 30_000, maxRetries: 4 } as const

/** The faults of order requests, with their frequencies. */
const FLEET_FAULTS: Plan['faults'] = [
  [0.06, { type: 'commitThenDrop' }],
  [0.04, { type: 'drop' }],
  [0.03, { type: 'cutBody' }],
  [0.04, { type: 'status', status: 503, commit: true }],
  [0.02, { type: 'status', status: 502, html: true }],
  [0.02, { type: 'inProgress', commit: true }],
  [0.02, { type: 'status', status: 429, headers: { 'retry-after': '0' } }],
  [0.01, { type: 'crash' }],
  [0.03, { type: 'delay', ms: 100, when: 'before' }],
  [0.03, { type: 'delay', ms: 150, when: 'during' }],
  // Longer than an attempt may take.
  [0.015, { type: 'delay', ms: 600, when: 'before' }],
  [0.015, { type: 'delay', ms: 600, when: 'after' }],
]

export function fleetPlan(seed: number): Plan {
  const random = seeded(seed)
  // Count requests, not milliseconds from the start, so that slow machines are disturbed during
  // work, too.
  const moment = (): number => 4 + random(FLEET_ORDERS - 10)
  const recoveries = ['no', 'yes', 'takeOver'] as const
  const kills = Array.from({ length: FLEET_KILLS }, () => ({
    does: 'kill' as const,
    after: moment(),
    victim: random(PROCESSES),
    recover: recoveries[random(recoveries.length)] ?? 'no',
  }))
  const stops = Array.from({ length: STOPS }, () => ({
    does: 'stop' as const,
    after: moment(),
    victim: random(PROCESSES),
    // Some pauses end before their claim does, some long after it.
    milliseconds: 50 + random(2_000),
  }))
  // In the first half: a disturbance that is delayed by a pending kill must not fall behind the round.
  const crash = { does: 'crash' as const, after: 4 + random(FLEET_ORDERS / 2) }
  const rememberedRefusals: Plan['rememberedRefusals'] = random(2) === 0 ? [] : [402, 422]
  const processingTime = random(15)
  // Long, or so short that some orders need a person.
  const short = CLOCK_SKEW + FINISHING.timeout + 2 * RACING.totalTimeout
  const safeRetryWindow = random(2) === 0 ? 20 * 60_000 : short
  return {
    processes: PROCESSES,
    orders: FLEET_ORDERS,
    dear: Number.POSITIVE_INFINITY,
    concurrency: 6,
    limits: { race: { ...RACING, safeRetryWindow }, finish: { ...FINISHING, safeRetryWindow } },
    recover: 'no',
    disturbances: [...kills, ...stops, crash].sort((one, other) => one.after - other.after),
    faults: FLEET_FAULTS,
    rememberedRefusals,
    processingTime,
    funded: 40 + random(FLEET_ORDERS - 60),
    refusals: 1 + random(60),
  }
}

const KILL_ORDERS = 12
const DEAR = 4
/** Orders of a round of kills that the wallet can pay. */
export const KILL_CHARGES: number = KILL_ORDERS - KILL_ORDERS / DEAR
const KILLS = 4
const ALONE = { timeout: 2_000, totalTimeout: 4_000, maxRetries: 2, safeRetryWindow: 20 * 60_000 } as const

/** One process at a time, which is killed at any moment. Then another one recovers and continues. */
export function killPlan(seed: number): Plan {
  const random = seeded(seed)
  return {
    processes: 1,
    orders: KILL_ORDERS,
    dear: DEAR,
    limits: { race: ALONE, finish: ALONE },
    recover: 'takeOver',
    faults: [
      [0.15, { type: 'commitThenDrop' }],
      [0.1, { type: 'drop' }],
      [0.1, { type: 'cutBody' }],
      [0.1, { type: 'status', status: 503, commit: true }],
    ],
    processingTime: random(20),
    // A key with a remembered server error could not be settled before its window ends.
    rememberedRefusals: random(2) === 0 ? [] : [402, 422],
    funded: 400,
    refusals: Number.POSITIVE_INFINITY,
    concurrency: 1 + random(4),
    disturbances: Array.from({ length: KILLS }, () => ({
      does: 'kill',
      after: 1 + random(6),
      victim: 0,
      recover: 'takeOver',
      later: random(12_000) / 1_000,
    })),
  }
}
