import type { SandboxBehaviour } from '../../../src/sandbox/service/behaviour.ts'
import type { FaultAction, FaultRule } from '../../../src/sandbox/service/faults.ts'
import type { Draw } from '../../support/seeds.ts'
import { drawFault } from './faults.ts'
import { drawHabits, type Habit, LONGEST_FLIGHT, MINUTE, type Mishap } from './mishaps.ts'
import type { Action, ClientPlan, IntentPlan, Plan } from './plan.ts'

export const PRICE = 250
/** A clock that differs by more is obviously wrong. */
export const LONG_AGO: number = 24 * 60 * MINUTE
const DAY = 24 * 60

/** What a seed has besides the usual, and its frequent actions. */
export interface Swarm
  extends Pick<Plan, 'habits' | 'rates' | 'faults'>,
    Partial<Pick<Plan, 'workers' | 'intents' | 'ending' | 'balance' | 'scene'>>,
    Partial<Pick<Plan, 'stores' | 'otherOrders' | 'cached' | 'resends' | 'shows'>> {
  /** Weights of the kinds of steps. Absent kinds do not occur. */
  readonly kinds: Partial<Record<Action['kind'], number>>
  /** Weights of the times between steps: immediately, soon, after the call, late. */
  readonly gaps: Gaps
  readonly aborts: number
  /** A fixed order of steps, if any: their kinds, the time before each, and their workers. */
  readonly script?: readonly Scripted[]
  /** Probability that a call changes the payload, if not the usual one. */
  readonly changes?: number
  readonly client?: Partial<ClientPlan>
  readonly server?: Partial<SandboxBehaviour>
}

export type Gaps = readonly [atOnce: number, soon: number, after: number, late: number]
export interface Minutes {
  readonly from: number
  readonly to: number
}
export type Scripted = readonly [
  gap: Gaps | Minutes,
  what: 'create' | 'kill' | 'resolve' | 'recover' | 'rotate' | 'topUp' | Action,
  worker?: number,
]

/** Steps overlap, follow and outlast each other equally often. */
export const USUAL_GAPS: Gaps = [4, 3, 4, 1]
export const AT_ONCE: Gaps = [1, 0, 0, 0]
export const SOON: Gaps = [1, 3, 0, 0]
const AFTER: Gaps = [0, 0, 3, 1]
export const A_MINUTE: Gaps = [0, 1, 3, 0]

export const ANONYMOUS: IntentPlan = { name: 'intent-1' }
export const REFERENCE: IntentPlan = { name: 'intent-1', externalOrderId: 'ref-1' }
export const KEY: IntentPlan = { name: 'intent-1', idempotencyKey: 'key-1' }
export const SECOND: IntentPlan = { name: 'intent-2', externalOrderId: 'ref-2' }

/** A call of create() for the first order. */
export const CREATE = { kind: 'create', worker: 0, intent: 0, quantity: 1, otherKey: false } as const

export const habit = (effects: Habit['effects'], mishap: Mishap, chance: number): Habit => ({
  effects,
  mishap,
  chance,
})
export const onOrders = (rule: Omit<FaultRule, 'match'>): FaultRule => ({
  match: { operation: 'createOrder' },
  ...rule,
})
export const minutes = (from: number, to: number): Minutes => ({ from, to })

/** Defaults of scenes: only the named mishaps and the scripted steps happen. */
export const SCENE = {
  habits: [],
  rates: { crash: 0, store: 0, network: 0 },
  faults: [],
  kinds: {},
  gaps: AT_ONCE,
  aborts: 0,
  balance: 100_000,
} as const

/** What a scene changes of {@link SCENE}. */
export type Scene = Partial<Swarm>

export function drawSwarm(draw: Draw): Swarm {
  const scene = draw.weighted(
    [lostBeginning, 6],
    [twoOfOne, 6],
    [slowProof, 7],
    [sleepingRotation, 5],
    [sleepingBeginning, 3],
    [slowRefusal, 2],
    [slowPerson, 2],
    [manyLookedUp, 1],
    [undefined, 3],
  )
  return scene === undefined ? anySwarm(draw) : { ...SCENE, ...scene(draw) }
}

/** A call's first write arrives long after its caller aborted, and the next call aborts immediately. */
const lostBeginning = (draw: Draw): Scene => ({
  habits: [
    habit(['insert'], 'late', 0.5),
    habit(['insert'], draw.pick('failed', 'hangs'), 0.3),
    habit(['seal'], draw.pick('failed', 'hangs'), draw.pick(0, 0, 0.3)),
  ],
  kinds: { create: 1, recover: 0.2 },
  gaps: SOON,
  aborts: 0.9,
  client: { safeRetryWindow: 20 * MINUTE },
  server: { processingTime: 0, orphanedMarkLifetime: 0, rememberServerErrors: false },
})

/** Several calls continue the same order with an unknown outcome, and their store is slow. */
const twoOfOne = (draw: Draw): Scene => ({
  habits: [
    habit(['send'], draw.pick('crash while it flies', 'unacknowledged'), 0.4),
    habit(draw.pick(['update'], ['get'], ['get', 'update']), 'slow', draw.pick(0.4, 0.8)),
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
})

/** A person or a call proves an order so slowly that the next one has begun in its slot. */
const slowProof = (draw: Draw): Scene => ({
  habits: [
    habit(['send'], draw.pick('crash while it flies', 'unacknowledged'), 0.3),
    draw.chance(0.5) ? habit(['fetch'], 'slow', 0.7) : habit(['update'], draw.pick('slow', 'sleeps'), 0.3),
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
})

/** A machine falls asleep while it records that its API key has changed. */
const sleepingRotation = (draw: Draw): Scene => ({
  habits: [habit(['update'], 'sleeps', 0.5)],
  faults: [
    onOrders({
      times: draw.pick(1, 2),
      action: draw.pick<FaultAction>(
        { type: 'status', status: 429, headers: { 'retry-after': '1' } },
        { type: 'status', status: 429, headers: { 'retry-after': '8' } },
        { type: 'status', status: 425 },
      ),
    }),
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
})

/** A person abandons an order while another call continues it. */
const slowPerson = (draw: Draw): Scene => ({
  habits: [
    habit(draw.pick(['get'], ['list'], ['get', 'list']), 'slow', 0.5),
    habit(['get'], 'sleeps', draw.pick(0, 0.2)),
    habit(['send'], 'unacknowledged', 0.5),
  ],
  faults: [onOrders({ times: 1, action: { type: 'drop' } })],
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
})

/** A call falls asleep after it stored its order, and another process takes it for dead. */
const sleepingBeginning = (draw: Draw): Scene => ({
  habits: [habit(draw.pick(['insert'], ['insert'], ['insert', 'update']), 'sleeps', 0.6)],
  workers: 3,
  intents: [draw.pick(REFERENCE, KEY)],
  client: { totalTimeout: draw.pick(3000, 20_000), timeout: draw.pick(30_000, 5000) },
  server: { processingTime: 0 },
  script: [
    [AT_ONCE, 'create', 0],
    [AFTER, draw.pick('create', 'recover'), 1],
    [USUAL_GAPS, draw.pick('create', 'recover')],
  ],
})

/** A call is slow to store its refusal, and another call orders something else with its name. */
const slowRefusal = (draw: Draw): Scene => ({
  habits: [habit(['update'], draw.pick('slow answer', 'sleeps'), 0.5)],
  faults: [
    onOrders({ times: 1, action: { type: 'status', status: draw.pick(400, 404, 422), code: 'OTHER' } }),
  ],
  workers: 3,
  intents: [draw.pick(REFERENCE, KEY)],
  server: { processingTime: 0 },
  changes: 0.5,
  script: [
    [AT_ONCE, 'create', 0],
    [SOON, 'create', 1],
    [USUAL_GAPS, draw.pick('create', 'recover')],
  ],
})

/** Several orders get no response, and are looked up much later in a list with short pages. */
const manyLookedUp = (draw: Draw): Scene => ({
  habits: [habit(['send'], draw.pick('unacknowledged', 'crash while it flies'), 0.8)],
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
})

function anySwarm(draw: Draw): Swarm {
  const fault = drawFault(draw)
  return {
    habits: drawHabits(draw),
    rates: { crash: draw.pick(0, 0, 0.05), store: draw.pick(0, 0, 0.05), network: draw.pick(0, 0.1) },
    faults: draw.chance(0.4)
      ? []
      : [onOrders({ skip: draw.weighted([0, 4], [1, 1]), times: draw.pick(1, 2, 4), action: fault })],
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
      ),
    },
    client: { totalTimeout: draw.pick(20_000, 120_000), timeout: draw.pick(30_000, 5000) },
    gaps: draw.pick<Gaps>([4, 0, 0, 0], [2, 3, 0, 0], [3, 1, 3, 0], [3, 0, 3, 1], [1, 0, 1, 0]),
    aborts: draw.pick(0, 0, 0.4),
  }
}

/** Behaviour of stores, clocks, proxies and other integrations that most seeds do not have. */
export function drawScene(draw: Draw): Swarm {
  const scene = draw.weighted(
    [lostStore, 3],
    [unsharedStores, 3],
    [correctedClock, 2],
    [farAhead, 2],
    [restartedWindow, 2],
    [sharedWallet, 2],
    [otherResponses, 2],
    [cachedReads, 1],
    [longList, 0.1],
    [oldConflict, 1],
  )
  return { ...SCENE, ...scene(draw), scene: scene.name }
}

export const TOP_UP = { kind: 'topUp', amount: 4 * PRICE } as const
const WINDOW = 20 * MINUTE
export const SEND_LOST: Habit = habit(['send'], 'unacknowledged', 0.8)
export const PATIENT = {
  safeRetryWindow: WINDOW,
  timeout: 5000,
  totalTimeout: 20_000,
  maxRetries: 0,
} as const
/** A service that acts immediately, and forgets a key as soon as it may. */
export const PROMPT = {
  keyLifetime: WINDOW + LONGEST_FLIGHT,
  processingTime: 0,
  orphanedMarkLifetime: 0,
  rememberServerErrors: false,
  readLag: 0,
  unknownFields: 'ignore',
} as const
/** A service whose list shows the source of each order. */
export const LISTED = {
  ...PROMPT,
  orderFields: ['metadata', 'serviceId', 'quantity'],
  ordering: 'newest',
  ignoreOffset: false,
} as const

/** An order is refused, then bought. The store is lost, and the order is requested again. */
const lostStore = (draw: Draw): Scene => ({
  habits: draw.chance(0.3) ? [SEND_LOST] : [],
  balance: draw.pick(0, 0, PRICE),
  changes: 0,
  workers: 2,
  intents: [draw.pick(REFERENCE, REFERENCE, KEY)],
  client: { ...PATIENT, maxRetries: draw.pick(0, 4) },
  server: { ...PROMPT, keyLifetimeFrom: draw.pick('remembered', 'firstUse') },
  script: [
    [AT_ONCE, 'create', 0],
    [SOON, { kind: 'backup' }],
    [A_MINUTE, 'create', 0],
    [A_MINUTE, TOP_UP],
    [SOON, 'create', 0],
    [A_MINUTE, { kind: 'lose', to: draw.pick('nothing', 'backup') }],
    [SOON, draw.pick('create', 'recover'), 1],
    [A_MINUTE, 'create', 1],
  ],
})

/** Each process has its own store, and they disagree about the order. */
function unsharedStores(draw: Draw): Scene {
  const create = { kind: 'create', intent: 0, quantity: draw.pick(1, 2), otherKey: false } as const
  return {
    stores: 'own',
    balance: draw.pick(0, PRICE, PRICE),
    workers: 2,
    intents: [draw.pick(REFERENCE, REFERENCE, KEY)],
    client: { ...PATIENT, maxRetries: 4 },
    server: PROMPT,
    script: [
      [AT_ONCE, { ...create, worker: 0 }],
      [A_MINUTE, { ...create, worker: draw.pick(0, 1), quantity: 1 }],
      [A_MINUTE, TOP_UP],
      [SOON, { ...create, worker: draw.pick(0, 1) }],
      [A_MINUTE, { ...create, worker: 0 }],
      [A_MINUTE, { ...create, worker: 1 }],
    ],
  }
}

/** A clock is an hour ahead when an order is first sent, and right at the next read. */
const correctedClock = (draw: Draw): Scene => ({
  habits: [SEND_LOST],
  changes: 0,
  workers: 2,
  intents: [draw.pick(REFERENCE, KEY)],
  client: PATIENT,
  server: PROMPT,
  script: [
    [AT_ONCE, { kind: 'jump', worker: 0, by: 60 * MINUTE }],
    [AT_ONCE, 'create', 0],
    [A_MINUTE, { kind: 'correct', worker: 0 }],
    [A_MINUTE, draw.pick('recover', 'create')],
    [minutes(58, 76), draw.pick('recover', 'create')],
  ],
})

/** One worker's clock is more than a year ahead. */
const farAhead = (draw: Draw): Scene => ({
  changes: 0,
  workers: 2,
  intents: [draw.pick(REFERENCE, KEY), SECOND],
  client: PATIENT,
  server: PROMPT,
  script: [
    [AT_ONCE, { ...CREATE, worker: 0, intent: 0 }],
    [A_MINUTE, { kind: 'jump', worker: 1, by: 401 * DAY * MINUTE }],
    [AT_ONCE, draw.pick<Scripted[1]>('recover', { ...CREATE, worker: 1, intent: draw.pick(0, 1) }), 1],
    [AT_ONCE, 'recover', 1],
    [minutes(25, 40), { ...CREATE, worker: 0, intent: 0 }],
  ],
})

/**
 * An order is refused, bought much later with the same key, and its response is lost. Its caller
 * may have tried another key in between.
 */
function restartedWindow(draw: Draw): Scene {
  const otherKey = draw.chance(0.5)
  const create = { kind: 'create', worker: 0, intent: 0, quantity: 1, otherKey } as const
  return {
    faults: [onOrders({ skip: 2, times: 1, action: { type: 'commitThenDrop' } })],
    balance: 0,
    changes: 0,
    workers: 2,
    intents: [otherKey ? { ...REFERENCE, idempotencyKey: 'key-1' } : draw.pick(REFERENCE, KEY)],
    client: PATIENT,
    server: { ...PROMPT, keyFormat: 'any', keyLifetimeFrom: 'firstUse', rememberedRefusals: [] },
    script: [
      [AT_ONCE, { ...create, otherKey: false }],
      [A_MINUTE, create],
      [minutes(9, 15), TOP_UP],
      [AT_ONCE, { ...create, otherKey: false }],
      [minutes(8, 15), draw.pick('recover', 'create'), 1],
    ],
  }
}

/** Another integration spends from the same wallet, and uses the same references. */
const sharedWallet = (draw: Draw): Scene => ({
  habits: [habit(['send'], draw.pick('failed', 'unacknowledged', 'crash after'), 0.8)],
  changes: 0,
  intents: [REFERENCE],
  client: PATIENT,
  server: { ...LISTED, ordering: draw.pick('newest', 'oldest') },
  script: [
    [AT_ONCE, { kind: 'elsewhere', intent: 0 }],
    [AT_ONCE, 'create'],
    [minutes(21, 40), draw.pick('recover', 'resolve')],
    [SOON, draw.pick('recover', 'create')],
  ],
})

/** A proxy mixes up its connections, or responds from its cache. */
function otherResponses(draw: Draw): Scene {
  const action = { type: 'otherOrder', commit: draw.chance(0.5) } as const
  return {
    faults: [onOrders({ skip: draw.pick(1, 2), times: draw.pick(1, 2), action })],
    kinds: { create: 4, recover: 1 },
    gaps: draw.pick(AT_ONCE, SOON, USUAL_GAPS),
    changes: 0,
    workers: 2,
    intents: [REFERENCE, SECOND],
    client: { ...PATIENT, maxRetries: draw.pick(0, 4) },
    server: LISTED,
  }
}

/** The order list comes from a cache unless the request forbids it. */
const cachedReads = (draw: Draw): Scene => ({
  cached: true,
  habits: [SEND_LOST],
  intents: [REFERENCE, SECOND],
  client: PATIENT,
  server: { ...LISTED, ordering: draw.pick('newest', 'oldest') },
  script: [
    [AT_ONCE, { ...CREATE, intent: 0 }],
    [minutes(21, 25), 'recover'],
    [SOON, { ...CREATE, intent: 1 }],
    [minutes(21, 25), 'recover'],
  ],
})

/** The order is in the list after more pages than a look-up reads. */
const longList = (draw: Draw): Scene => ({
  otherOrders: 230,
  habits: [SEND_LOST],
  intents: [REFERENCE],
  client: PATIENT,
  server: { ...LISTED, maxLimit: 1, ordering: draw.pick('oldest', 'oldest', 'newest') },
  script: [[AT_ONCE, 'create']],
  ending: 'late',
})

/**
 * The service reports that a key belongs to another order, and the order is requested again days
 * later.
 */
const oldConflict = (): Scene => ({
  workers: 2,
  intents: [
    { ...REFERENCE, idempotencyKey: 'key-1' },
    { ...SECOND, idempotencyKey: 'key-1' },
    { name: 'intent-3', externalOrderId: 'ref-3' },
  ],
  client: PATIENT,
  server: { ...PROMPT, keyFormat: 'any' },
  script: [
    [AT_ONCE, { ...CREATE, intent: 0 }],
    [A_MINUTE, { ...CREATE, intent: 1 }],
    // Without a younger record, nothing is removed.
    [minutes(6 * DAY, 7 * DAY), { ...CREATE, intent: 2 }],
    [minutes(2 * DAY, 3 * DAY), 'recover'],
  ],
})
