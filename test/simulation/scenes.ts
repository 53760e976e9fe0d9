import type { SandboxBehaviour } from '../../src/sandbox/behaviour.ts'
import type { FaultAction, FaultRule } from '../../src/sandbox/faults.ts'
import type { Draw } from './draw.ts'
import { drawFault } from './faults.ts'
import { drawHabits, type Habit, MINUTE, type Rates } from './mishaps.ts'
import type { ClientPlan, IntentPlan, Step } from './plan.ts'

/** What one piece costs. */
export const PRICE = 250

/** What a seed does often. */
export interface Swarm {
  readonly habits: readonly Habit[]
  readonly rates: Rates
  readonly faults: readonly FaultRule[]
  /** Weights of the kinds of steps; absent ones do not come. */
  readonly kinds: Partial<Record<Step['kind'], number>>
  /** Weights of the times between steps: at once, soon, after the call, late. */
  readonly gaps: Gaps
  /** Chance that a caller gives up. */
  readonly aborts: number
  /** Where the order of the steps is not left to chance: their kinds, the time before each, and whose they are. */
  readonly script?: readonly Scripted[]
  /** Chance that a call changes the payload, where that is not the usual one. */
  readonly changes?: number
  readonly workers?: number
  readonly intents?: readonly IntentPlan[]
  readonly ending?: 'late'
  readonly client?: Partial<ClientPlan>
  readonly server?: Partial<SandboxBehaviour>
  readonly balance?: number
}

export type Gaps = readonly [atOnce: number, soon: number, after: number, late: number]
type Scripted = readonly [
  gap: Gaps,
  kind: 'create' | 'enqueue' | 'kill' | 'resolve' | 'recover' | 'rotate',
  worker?: number,
]

/** As often as not, steps meet, follow and outlast each other. */
export const USUAL_GAPS: Gaps = [4, 3, 4, 1]
const AT_ONCE: Gaps = [1, 0, 0, 0]
const SOON: Gaps = [1, 3, 0, 0]
const AFTER: Gaps = [0, 0, 3, 1]

const ANONYMOUS: IntentPlan = { name: 'intent-1' }
const REFERENCE: IntentPlan = { name: 'intent-1', externalOrderId: 'ref-1' }

/** What scenes have in common: nothing goes wrong but what they name, and nothing is done but what is in their script. */
const SCENE = {
  rates: { crash: 0, store: 0, network: 0 },
  faults: [],
  kinds: {},
  gaps: AT_ONCE,
  aborts: 0,
  balance: 100_000,
} as const

export function drawSwarm(draw: Draw): Swarm {
  const scene = draw.weighted(
    [lostBeginning, 6],
    [twoOfOne, 6],
    [slowProof, 7],
    [sleepingRotation, 5],
    [sleepingBeginning, 3],
    [slowRefusal, 2],
    [slowPerson, 2],
    [queue, 3],
    [manyLookedUp, 1],
    [anySwarm, 3],
  )
  return scene(draw)
}

/** What a call wrote first arrives long after its caller has given up, and whoever asks again gives up at once. */
function lostBeginning(draw: Draw): Swarm {
  return {
    ...SCENE,
    habits: [
      { effects: ['insert'], mishap: 'late', chance: 0.5 },
      { effects: ['insert'], mishap: draw.pick('failed', 'hangs'), chance: 0.3 },
      { effects: ['seal'], mishap: draw.pick('failed', 'hangs'), chance: draw.pick(0, 0, 0.3) },
    ],
    kinds: { create: 1, recover: 0.2 },
    gaps: SOON,
    aborts: 0.9,
    client: { safeRetryWindow: 20 * MINUTE },
    server: { processingTime: 0, orphanedMarkLifetime: 0, rememberServerErrors: false },
  }
}

/** Several calls go on with the same order that nobody knows of, and their store is slow. */
function twoOfOne(draw: Draw): Swarm {
  return {
    ...SCENE,
    habits: [
      { effects: ['send'], mishap: draw.pick('crash while it flies', 'unacknowledged'), chance: 0.4 },
      {
        effects: draw.pick(['update'], ['get'], ['get', 'update']),
        mishap: 'slow',
        chance: draw.pick(0.4, 0.8),
      },
    ],
    workers: 3,
    intents: [draw.pick(ANONYMOUS, ANONYMOUS, REFERENCE)],
    client: { totalTimeout: draw.pick(8000, 20_000, 60_000), maxRetries: draw.pick(0, 1) },
    aborts: draw.pick(0, 0.5),
    script: [
      [AT_ONCE, 'create', 0],
      [AFTER, draw.pick('create', 'recover'), 1],
      [SOON, 'create', 2],
      [SOON, draw.pick('create', 'recover')],
    ],
  }
}

/** A person, or a call, proves an order so slowly that the next one has begun in its slot. */
function slowProof(draw: Draw): Swarm {
  return {
    ...SCENE,
    habits: [
      { effects: ['send'], mishap: draw.pick('crash while it flies', 'unacknowledged'), chance: 0.3 },
      draw.chance(0.5)
        ? { effects: ['fetch'], mishap: 'slow', chance: 0.7 }
        : { effects: ['update'], mishap: draw.pick('slow', 'sleeps'), chance: 0.3 },
    ],
    workers: 3,
    intents: [draw.pick(ANONYMOUS, ANONYMOUS, REFERENCE)],
    client: { totalTimeout: draw.pick(20_000, 120_000), maxRetries: 0 },
    server: { readLag: 0, processingTime: 0 },
    script: [
      [AT_ONCE, 'create', 0],
      [AFTER, 'resolve', 1],
      [AT_ONCE, 'create', 0],
      [SOON, 'create', 2],
      [SOON, 'create', 2],
    ],
  }
}

/** A machine falls asleep while it writes down that it has another API key now. */
function sleepingRotation(draw: Draw): Swarm {
  return {
    ...SCENE,
    habits: [{ effects: ['update'], mishap: 'sleeps', chance: 0.5 }],
    faults: [
      {
        match: { operation: 'createOrder' },
        times: draw.pick(1, 2),
        action: draw.pick<FaultAction>(
          { type: 'retryAfter', value: '1' },
          { type: 'retryAfter', value: '8' },
          { type: 'status', status: 425 },
        ),
      },
    ],
    kinds: { rotate: 1 },
    gaps: SOON,
    workers: 2,
    intents: [draw.pick(ANONYMOUS, REFERENCE)],
    client: { safeRetryWindow: 5 * MINUTE, maxRetries: 4 },
    server: draw.chance(0.8) ? { keyLifetime: 9 * MINUTE } : {},
    script: [
      [AT_ONCE, 'create', 0],
      [AT_ONCE, 'rotate', 0],
      [AT_ONCE, 'rotate', 1],
      [AFTER, draw.pick('create', 'recover'), 1],
      [AFTER, draw.pick('create', 'resolve'), 1],
    ],
  }
}

/** A person gives an order up while another call goes on with it. */
function slowPerson(draw: Draw): Swarm {
  return {
    ...SCENE,
    habits: [
      { effects: draw.pick(['get'], ['list'], ['get', 'list']), mishap: 'slow', chance: 0.5 },
      { effects: ['get'], mishap: 'sleeps', chance: draw.pick(0, 0.2) },
      { effects: ['send'], mishap: 'unacknowledged', chance: 0.5 },
    ],
    faults: [{ match: { operation: 'createOrder' }, times: 1, action: { type: 'drop' } }],
    workers: 2,
    intents: [draw.pick(ANONYMOUS, REFERENCE)],
    client: { totalTimeout: draw.pick(20_000, 120_000), timeout: 5000, maxRetries: 0 },
    server: { processingTime: 0 },
    script: [
      [AT_ONCE, 'create', 0],
      [AFTER, 'resolve', 0],
      [AT_ONCE, 'create', 1],
      [AFTER, draw.pick('create', 'recover')],
    ],
  }
}

/** A call falls asleep when it has written its order, and somebody who takes it for dead has the order sent later on. */
function sleepingBeginning(draw: Draw): Swarm {
  return {
    ...SCENE,
    habits: [
      { effects: draw.pick(['insert'], ['insert'], ['insert', 'update']), mishap: 'sleeps', chance: 0.6 },
    ],
    workers: 3,
    intents: [draw.pick(REFERENCE, { name: 'intent-1', idempotencyKey: 'key-1' })],
    client: { totalTimeout: draw.pick(3000, 20_000), timeout: draw.pick(30_000, 5000) },
    server: { processingTime: 0 },
    script: [
      [AT_ONCE, 'create', 0],
      [AFTER, 'enqueue', 1],
      [USUAL_GAPS, draw.pick('create', 'recover', 'enqueue')],
    ],
  }
}

/** A call is slow to write down that it was refused, and somebody orders something else under its name. */
function slowRefusal(draw: Draw): Swarm {
  return {
    ...SCENE,
    habits: [{ effects: ['update'], mishap: draw.pick('slow answer', 'sleeps'), chance: 0.5 }],
    faults: [
      {
        match: { operation: 'createOrder' },
        times: 1,
        action: { type: 'status', status: draw.pick(400, 404, 422), code: 'OTHER' },
      },
    ],
    workers: 3,
    intents: [draw.pick(REFERENCE, { name: 'intent-1', idempotencyKey: 'key-1' })],
    server: { processingTime: 0 },
    changes: 0.5,
    script: [
      [AT_ONCE, 'create', 0],
      [SOON, 'create', 1],
      [USUAL_GAPS, draw.pick('create', 'recover')],
    ],
  }
}

/** An order is written down and sent by one recovery after the other, while the service is busy. */
function queue(draw: Draw): Swarm {
  const writes: Habit = {
    effects: ['insert', 'update'],
    mishap: draw.pick('late', 'crash after', 'unacknowledged', 'sleeps'),
    chance: 0.2,
  }
  return {
    ...SCENE,
    habits: draw.chance(0.5) ? [writes] : [],
    rates: { crash: draw.pick(0, 0.05), store: 0, network: draw.pick(0, 0.2) },
    faults: [
      {
        match: { operation: 'createOrder' },
        skip: draw.pick(0, 0, 1),
        times: draw.pick(1, 2, 4),
        action: drawFault(draw),
      },
    ],
    intents: [draw.pick(REFERENCE, { name: 'intent-1', idempotencyKey: 'key-1' })],
    server: { processingTime: 0, orphanedMarkLifetime: 0, rememberServerErrors: false },
    script: [
      [AT_ONCE, 'enqueue'],
      [USUAL_GAPS, draw.pick('recover', 'recover', 'kill')],
      [USUAL_GAPS, 'recover'],
      [USUAL_GAPS, 'recover'],
    ],
  }
}

/** Nobody hears of several orders, which are looked for long afterwards in a list of short pages. */
function manyLookedUp(draw: Draw): Swarm {
  return {
    ...SCENE,
    habits: [{ effects: ['send'], mishap: draw.pick('unacknowledged', 'crash while it flies'), chance: 0.8 }],
    kinds: { create: 1 },
    gaps: [3, 1, 0, 0],
    aborts: draw.pick(0, 0.4),
    intents: [1, 2, 3].map((index) => ({ name: `intent-${index}`, externalOrderId: `ref-${index}` })),
    client: { maxRetries: 0 },
    server: {
      ignoreOffset: false,
      maxLimit: draw.pick(1, 2),
      orderFields: ['metadata'],
      ordering: draw.pick('newest', 'oldest'),
    },
    ending: 'late',
  }
}

function anySwarm(draw: Draw): Swarm {
  const fault = drawFault(draw)
  return {
    habits: drawHabits(draw),
    rates: { crash: draw.pick(0, 0, 0.05), store: draw.pick(0, 0, 0.05), network: draw.pick(0, 0.1) },
    faults: draw.chance(0.4)
      ? []
      : [
          {
            match: { operation: 'createOrder' },
            skip: draw.weighted([0, 4], [1, 1]),
            times: draw.pick(1, 2, 4),
            action: fault,
          },
        ],
    kinds: {
      create: 4,
      ...draw.pick<Swarm['kinds']>(
        {},
        { resolve: 3 },
        { resolve: 3 },
        { recover: 3 },
        { rotate: 3 },
        { rotate: 3, resolve: 1 },
        { kill: 2 },
        { recover: 2, kill: 1 },
        { recover: 2, resolve: 2 },
        { recover: 2, enqueue: 2 },
      ),
    },
    client: { totalTimeout: draw.pick(20_000, 120_000), timeout: draw.pick(30_000, 5000) },
    gaps: draw.pick<Gaps>([4, 0, 0, 0], [2, 3, 0, 0], [3, 1, 3, 0], [3, 0, 3, 1], [1, 0, 1, 0]),
    aborts: draw.pick(0, 0, 0.4),
  }
}
