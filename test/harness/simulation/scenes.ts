/**
 * What a seed has besides the usual, as three tables of scenes: those that do a few things often,
 * those with unusual stores, proxies or other integrations, and harder ones about clocks, the end of
 * the window, hasty persons and services that show other values.
 */
import type { SandboxBehaviour } from '../../../src/sandbox/service/behaviour.ts'
import type { FaultAction, FaultRule } from '../../../src/sandbox/service/faults.ts'
import type { Draw } from '../../support/seeds.ts'
import { drawFault, withoutAmount } from './faults.ts'
import { drawHabits, type Habit, LONGEST_FLIGHT, MINUTE, type Mishap } from './mishaps.ts'
import type { Action, ClientPlan, IntentPlan, Plan } from './plan.ts'

export const PRICE = 250
/** A clock that differs by more is obviously wrong. */
export const LONG_AGO: number = 24 * 60 * MINUTE
const DAY = 24 * 60

type Replaced = 'workers' | 'intents' | 'ending' | 'balance' | 'stores' | 'otherOrders' | 'cached'

/** What a scene changes. Undefined: as in {@link STILL}, or else as in a usual seed. */
type Scene = {
  readonly [Name in Replaced | 'resends' | 'shows']?: Plan[Name] | undefined
} & Partial<Pick<Plan, 'habits' | 'rates' | 'faults'>> & {
    /** Weights of the kinds of steps. Absent kinds do not occur. */
    readonly kinds?: Partial<Record<Action['kind'], number>>
    /** Weights of the times between steps: immediately, soon, after the call, late. */
    readonly gaps?: Gaps
    readonly aborts?: number
    /** A fixed order of steps, if any: their kinds, the time before each, and their workers. */
    readonly script?: readonly Scripted[]
    /** Probability that a call changes the payload, if not the usual one. */
    readonly changes?: number | undefined
    readonly client?: Partial<ClientPlan>
    readonly server?: Partial<SandboxBehaviour>
  }

/** What a seed has besides the usual, and its frequent actions. */
export type Swarm = Scene &
  Required<Pick<Scene, 'kinds' | 'gaps' | 'aborts'>> &
  Pick<Plan, 'habits' | 'rates' | 'faults' | 'scene'>

export type Gaps = readonly [atOnce: number, soon: number, after: number, late: number]
export interface Minutes {
  readonly from: number
  readonly to: number
}
type Scripted = readonly [
  gap: Gaps | Minutes,
  what: 'create' | 'kill' | 'resolve' | 'recover' | 'rotate' | 'topUp' | Action,
  worker?: number,
]

/** Steps overlap, follow and outlast each other equally often. */
export const USUAL_GAPS: Gaps = [4, 3, 4, 1]
const AT_ONCE: Gaps = [1, 0, 0, 0]
const SOON: Gaps = [1, 3, 0, 0]
const AFTER: Gaps = [0, 0, 3, 1]
const A_MINUTE: Gaps = [0, 1, 3, 0]

export const ANONYMOUS: IntentPlan = { name: 'intent-1' }
export const REFERENCE: IntentPlan = { name: 'intent-1', externalOrderId: 'ref-1' }
export const KEY: IntentPlan = { name: 'intent-1', idempotencyKey: 'key-1' }
const SECOND: IntentPlan = { name: 'intent-2', externalOrderId: 'ref-2' }
/** The first order with both names. */
const BOTH: IntentPlan = { ...REFERENCE, ...KEY }

/** A call of create() for the first order. */
export const CREATE = { kind: 'create', worker: 0, intent: 0, quantity: 1, otherKey: false } as const
const TOP_UP = { kind: 'topUp', amount: 4 * PRICE } as const
/** A person decides at once, whatever is under way. */
const decides = (worker: number): Action => ({ kind: 'resolve', worker, intent: 0, hasty: true })
const jump = (worker: number, by: number): Action => ({ kind: 'jump', worker, by })
const minutes = (from: number, to: number): Minutes => ({ from, to })

const habit = (effects: Habit['effects'], mishap: Mishap, chance: number): Habit => ({
  effects,
  mishap,
  chance,
})
const SEND_LOST: Habit = habit(['send'], 'unacknowledged', 0.8)
export const onOrders = (rule: Omit<FaultRule, 'match'>): FaultRule => ({
  match: { operation: 'createOrder' },
  ...rule,
})
const WINDOW = 20 * MINUTE
const PATIENT = { safeRetryWindow: WINDOW, timeout: 5000, totalTimeout: 20_000, maxRetries: 0 } as const
/** A service that acts immediately, and forgets a key as soon as it may. */
const PROMPT = {
  keyLifetime: WINDOW + LONGEST_FLIGHT,
  processingTime: 0,
  orphanedMarkLifetime: 0,
  rememberServerErrors: false,
  readLag: 0,
  unknownFields: 'ignore',
} as const
/** A service whose list shows the source of each order. */
const LISTED = {
  ...PROMPT,
  orderFields: ['metadata', 'serviceId', 'quantity'],
  ordering: 'newest',
  ignoreOffset: false,
} as const

/** Only the named mishaps and the scripted steps happen. */
const SCENE = {
  ...{ habits: [], rates: { crash: 0, store: 0, network: 0 }, faults: [] },
  ...{ kinds: {}, gaps: AT_ONCE, aborts: 0, balance: 100_000 },
} as const
/** The same for two workers and one order, without anything that is drawn. */
const STILL = { ...SCENE, changes: 0, workers: 2, intents: [REFERENCE], client: PATIENT, server: PROMPT }

const scene = (weight: number, drawn: (draw: Draw) => Scene) => ({ weight, drawn })

const oneOf =
  (usual: typeof SCENE | typeof STILL, scenes: Readonly<Record<string, ReturnType<typeof scene>>>) =>
  (draw: Draw): Swarm => {
    const [first, ...others] = Object.entries(scenes).map((entry) => [entry, entry[1].weight] as const)
    if (first === undefined) throw new TypeError('there is no scene')
    const [name, { drawn }] = draw.weighted(first, ...others)
    return { ...usual, ...drawn(draw), scene: name }
  }

/** Scenes that do a few things often. */
export const drawSwarm = oneOf(SCENE, {
  /** A call's first write arrives long after its caller aborted, and the next call aborts immediately. */
  lostBeginning: scene(6, (draw) => ({
    habits: [
      habit(['insert'], 'late', 0.5),
      habit(['insert'], draw.pick('failed', 'hangs'), 0.3),
      habit(['seal'], draw.pick('failed', 'hangs'), draw.pick(0, 0, 0.3)),
    ],
    kinds: { create: 1, recover: 0.2 },
    gaps: SOON,
    aborts: 0.9,
    client: { safeRetryWindow: WINDOW },
    server: { processingTime: 0, orphanedMarkLifetime: 0, rememberServerErrors: false },
  })),
  /** Several calls continue the same order with an unknown outcome, and their store is slow. */
  twoOfOne: scene(6, (draw) => ({
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
  })),
  /** A person or a call proves an order so slowly that the next one has begun in its slot. */
  slowProof: scene(7, (draw) => ({
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
  })),
  /** A machine falls asleep while it records that its API key has changed. */
  sleepingRotation: scene(5, (draw) => ({
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
  })),
  /** A call falls asleep after it stored its order, and another process takes it for dead. */
  sleepingBeginning: scene(3, (draw) => ({
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
  })),
  /** A call is slow to store its refusal, and another call orders something else with its name. */
  slowRefusal: scene(2, (draw) => ({
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
  })),
  /** A person abandons an order while another call continues it. */
  slowPerson: scene(2, (draw) => ({
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
  })),
  /** Several orders get no response, and are looked up much later in a list with short pages. */
  manyLookedUp: scene(1, (draw) => ({
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
  })),
  anything: scene(3, (draw) => {
    const fault = drawFault(draw)
    return {
      habits: drawHabits(draw),
      rates: { crash: draw.pick(0, 0, 0.05), store: draw.pick(0, 0, 0.05), network: draw.pick(0, 0.1) },
      faults: draw.chance(0.4)
        ? []
        : [onOrders({ skip: draw.weighted([0, 4], [1, 1]), times: draw.pick(1, 2, 4), action: fault })],
      balance: undefined,
      kinds: {
        create: 4,
        ...draw.pick<Swarm['kinds']>(
          ...[{}, { resolve: 3 }, { resolve: 3 }, { recover: 3 }, { rotate: 3 }, { rotate: 3, resolve: 1 }],
          ...[{ kill: 2 }, { recover: 2, kill: 1 }, { recover: 2, resolve: 2 }],
        ),
      },
      client: { totalTimeout: draw.pick(20_000, 120_000), timeout: draw.pick(30_000, 5000) },
      gaps: draw.pick<Gaps>([4, 0, 0, 0], [2, 3, 0, 0], [3, 1, 3, 0], [3, 0, 3, 1], [1, 0, 1, 0]),
      aborts: draw.pick(0, 0, 0.4),
    }
  }),
})

/** Behaviour of stores, clocks, proxies and other integrations that most seeds do not have. */
export const drawScene = oneOf(STILL, {
  /** An order is refused, then bought. The store is lost, and the order is requested again. */
  lostStore: scene(3, (draw) => ({
    habits: draw.chance(0.3) ? [SEND_LOST] : [],
    balance: draw.pick(0, 0, PRICE),
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
  })),
  /** Each process has its own store, and they disagree about the order. */
  unsharedStores: scene(3, (draw) => {
    const create = { ...CREATE, quantity: draw.pick(1, 2) }
    return {
      stores: 'own',
      balance: draw.pick(0, PRICE, PRICE),
      intents: [draw.pick(REFERENCE, REFERENCE, KEY)],
      client: { ...PATIENT, maxRetries: 4 },
      script: [
        [AT_ONCE, create],
        [A_MINUTE, { ...CREATE, worker: draw.pick(0, 1) }],
        [A_MINUTE, TOP_UP],
        [SOON, { ...create, worker: draw.pick(0, 1) }],
        [A_MINUTE, create],
        [A_MINUTE, { ...create, worker: 1 }],
      ],
    }
  }),
  /** A clock is an hour ahead when an order is first sent, and right at the next read. */
  correctedClock: scene(2, (draw) => ({
    habits: [SEND_LOST],
    intents: [draw.pick(REFERENCE, KEY)],
    script: [
      [AT_ONCE, jump(0, 60 * MINUTE)],
      [AT_ONCE, 'create', 0],
      [A_MINUTE, { kind: 'correct', worker: 0 }],
      [A_MINUTE, draw.pick('recover', 'create')],
      [minutes(58, 76), draw.pick('recover', 'create')],
    ],
  })),
  /** One worker's clock is more than a year ahead. */
  farAhead: scene(2, (draw) => ({
    intents: [draw.pick(REFERENCE, KEY), SECOND],
    script: [
      [AT_ONCE, CREATE],
      [A_MINUTE, jump(1, 401 * DAY * MINUTE)],
      [AT_ONCE, draw.pick<Scripted[1]>('recover', { ...CREATE, worker: 1, intent: draw.pick(0, 1) }), 1],
      [AT_ONCE, 'recover', 1],
      [minutes(25, 40), CREATE],
    ],
  })),
  /**
   * An order is refused, bought much later with the same key, and its response is lost. Its caller
   * may have tried another key in between.
   */
  restartedWindow: scene(2, (draw) => {
    const otherKey = draw.chance(0.5)
    return {
      faults: [onOrders({ skip: 2, times: 1, action: { type: 'commitThenDrop' } })],
      balance: 0,
      intents: [otherKey ? BOTH : draw.pick(REFERENCE, KEY)],
      server: { ...PROMPT, keyFormat: 'any', keyLifetimeFrom: 'firstUse', rememberedRefusals: [] },
      script: [
        [AT_ONCE, CREATE],
        [A_MINUTE, { ...CREATE, otherKey }],
        [minutes(9, 15), TOP_UP],
        [AT_ONCE, CREATE],
        [minutes(8, 15), draw.pick('recover', 'create'), 1],
      ],
    }
  }),
  /** Another integration spends from the same wallet, and uses the same references. */
  sharedWallet: scene(2, (draw) => ({
    habits: [habit(['send'], draw.pick('failed', 'unacknowledged', 'crash after'), 0.8)],
    workers: undefined,
    server: { ...LISTED, ordering: draw.pick('newest', 'oldest') },
    script: [
      [AT_ONCE, { kind: 'elsewhere', intent: 0 }],
      [AT_ONCE, 'create'],
      [minutes(21, 40), draw.pick('recover', 'resolve')],
      [SOON, draw.pick('recover', 'create')],
    ],
  })),
  /** A proxy mixes up its connections, or responds from its cache. */
  otherResponses: scene(2, (draw) => {
    const action = { type: 'otherOrder', commit: draw.chance(0.5) } as const
    return {
      faults: [onOrders({ skip: draw.pick(1, 2), times: draw.pick(1, 2), action })],
      kinds: { create: 4, recover: 1 },
      gaps: draw.pick(AT_ONCE, SOON, USUAL_GAPS),
      intents: [REFERENCE, SECOND],
      client: { ...PATIENT, maxRetries: draw.pick(0, 4) },
      server: LISTED,
    }
  }),
  /** The order list comes from a cache unless the request forbids it. */
  cachedReads: scene(1, (draw) => ({
    cached: true,
    habits: [SEND_LOST],
    workers: undefined,
    intents: [REFERENCE, SECOND],
    server: { ...LISTED, ordering: draw.pick('newest', 'oldest') },
    script: [
      [AT_ONCE, CREATE],
      [minutes(21, 25), 'recover'],
      [SOON, { ...CREATE, intent: 1 }],
      [minutes(21, 25), 'recover'],
    ],
  })),
  /** The order is in the list after more pages than a look-up reads. */
  longList: scene(0.1, (draw) => ({
    otherOrders: 230,
    habits: [SEND_LOST],
    changes: undefined,
    workers: undefined,
    server: { ...LISTED, maxLimit: 1, ordering: draw.pick('oldest', 'oldest', 'newest') },
    script: [[AT_ONCE, 'create']],
    ending: 'late',
  })),
  /**
   * The service reports that a key belongs to another order, and the order is requested again days
   * later.
   */
  oldConflict: scene(1, () => ({
    intents: [BOTH, { ...SECOND, idempotencyKey: 'key-1' }, { name: 'intent-3', externalOrderId: 'ref-3' }],
    server: { ...PROMPT, keyFormat: 'any' },
    script: [
      [AT_ONCE, CREATE],
      [A_MINUTE, { ...CREATE, intent: 1 }],
      // Without a younger record, nothing is removed.
      [minutes(6 * DAY, 7 * DAY), { ...CREATE, intent: 2 }],
      [minutes(2 * DAY, 3 * DAY), 'recover'],
    ],
  })),
})

/** Two clocks may differ by this much without a risk, and those of persons by more. */
const TOLERANCE = 29_000
const WRONG = 4.9 * MINUTE
/** A service that knows a key for as long as clocks may be wrong. */
const KNOWING = { ...PROMPT, keyLifetime: 20 * MINUTE + WRONG + LONGEST_FLIGHT }

/** The clocks of the first two workers, which differ by less than that. */
function clocks(draw: Draw, by: number): readonly Scripted[] {
  const ahead = draw.pick(0, draw.below(by), by)
  return [
    [AT_ONCE, jump(0, draw.chance(0.5) ? ahead - by : ahead)],
    [AT_ONCE, jump(1, draw.chance(0.5) ? ahead - by : ahead)],
  ]
}

export const drawHarderScene = oneOf(STILL, {
  /**
   * A service forgets each key when the window ends. Clocks differ as much as they may, and attempts
   * last until their timeout.
   */
  endOfWindow: scene(4, (draw) => {
    const safeRetryWindow = draw.pick(3, 5) * MINUTE
    const rest = safeRetryWindow / MINUTE
    const timeout = draw.pick(5000, 30_000)
    const again = (): Scripted => [
      minutes(draw.pick(0, rest / 2, rest - 1), rest),
      draw.pick('create', 'create', 'recover'),
    ]
    return {
      habits: [habit(['send'], draw.pick('lasts', 'unacknowledged'), draw.pick(0.5, 0.9))],
      balance: draw.pick(100_000, 100_000, 0),
      intents: [draw.pick(REFERENCE, KEY)],
      client: {
        safeRetryWindow,
        timeout,
        totalTimeout: draw.pick(20_000, 120_000, 3 * safeRetryWindow),
        maxRetries: draw.pick(0, 4, 10),
      },
      server: {
        ...PROMPT,
        keyLifetime: safeRetryWindow,
        keyLifetimeFrom: draw.pick('firstUse', 'remembered'),
      },
      script: [...clocks(draw, TOLERANCE), [AT_ONCE, CREATE], [SOON, TOP_UP], again(), again(), again()],
    }
  }),
  /** A call polls an order in progress, or repeats it, until long after the window. */
  longCall: scene(2, (draw) => {
    const safeRetryWindow = draw.pick(2, 3) * MINUTE
    return {
      faults: [
        onOrders({
          times: draw.pick(10, 20, 30, 60),
          action: draw.pick(
            { type: 'inProgress', commit: true },
            { type: 'status', status: 503, commit: true },
          ),
        }),
      ],
      intents: [draw.pick(REFERENCE, KEY)],
      client: {
        safeRetryWindow,
        timeout: draw.pick(5000, 30_000),
        totalTimeout: draw.pick(5, 10) * MINUTE,
        maxRetries: draw.pick(4, 60),
      },
      server: { ...PROMPT, keyLifetime: safeRetryWindow },
      script: [...clocks(draw, TOLERANCE), [AT_ONCE, CREATE], [A_MINUTE, draw.pick('create', 'recover')]],
    }
  }),
  /** A claim ends earlier or later by the clock of another process, which is minutes wrong. */
  otherClock: scene(3, (draw) => {
    const again = (gap: Scripted[0]): Scripted => [gap, draw.pick('create', 'recover'), draw.pick(0, 1, 2)]
    return {
      habits: [habit(['send'], draw.pick('lasts', 'slow', 'unacknowledged'), draw.pick(0.4, 0.8))],
      workers: 3,
      intents: [draw.pick(REFERENCE, KEY), SECOND],
      client: {
        ...PATIENT,
        timeout: draw.pick(5000, 30_000),
        totalTimeout: 120_000,
        maxRetries: draw.pick(0, 4),
      },
      server: KNOWING,
      script: [
        ...clocks(draw, draw.pick(MINUTE, 3 * MINUTE, WRONG)),
        [AT_ONCE, { ...CREATE, worker: draw.pick(0, 1) }],
        again(draw.pick(SOON, A_MINUTE)),
        again(draw.pick(SOON, A_MINUTE)),
        again(minutes(1, 15)),
      ],
    }
  }),
  /** A person decides while a request is under way, perhaps by a clock that is minutes wrong. */
  hastyPerson: scene(3, (draw) => {
    const person = (): Scripted => [draw.pick(AT_ONCE, SOON, A_MINUTE), decides(draw.pick(0, 1, 1, 2))]
    return {
      habits: [habit(['send'], draw.pick('lasts', 'slow', 'slow answer'), draw.pick(0.5, 0.9))],
      rates: draw.chance(0.3) ? { crash: 0.02, store: 0, network: 0 } : SCENE.rates,
      workers: 3,
      intents: [draw.pick(REFERENCE, KEY)],
      client: {
        ...PATIENT,
        timeout: draw.pick(5000, 30_000),
        totalTimeout: draw.pick(20_000, 120_000),
        maxRetries: draw.pick(0, 0, 4),
      },
      server: KNOWING,
      script: [
        ...clocks(draw, draw.pick(0, MINUTE, 3 * MINUTE, WRONG, WRONG)),
        [AT_ONCE, { ...CREATE, worker: draw.pick(0, 0, 1) }],
        ...(draw.chance(0.5) ? [[A_MINUTE, draw.pick('create', 'recover'), 2] as const] : []),
        person(),
        [draw.pick(AT_ONCE, SOON, A_MINUTE), draw.pick('create', 'create', 'recover')],
        person(),
        [A_MINUTE, 'create'],
      ],
    }
  }),
  /** A recovery takes over the claim of a call that goes on sending, and a person decides meanwhile. */
  overtaken: scene(2, (draw) => ({
    habits: [habit(['send'], 'hangs', draw.pick(0.6, 0.8))],
    workers: 3,
    intents: [draw.pick(REFERENCE, KEY)],
    client: { ...PATIENT, totalTimeout: 120_000, maxRetries: 10 },
    script: [
      [AT_ONCE, CREATE],
      [SOON, { kind: 'recover', worker: 1, takeOver: true }],
      [SOON, decides(2)],
      [SOON, decides(2)],
      [A_MINUTE, 'create'],
    ],
  })),
  /**
   * A fetch or a service worker repeats a request whose response was lost: a refusal hides a charge.
   * The service forgets the key when the window ends.
   */
  hiddenCharge: scene(2, (draw) => {
    const status = draw.pick(401, 402, 422, 425, 429)
    // A service that refuses a charged order again and again, whatever its key, breaks its own rule.
    const times = status === 402 || status === 422 ? 1 : draw.pick(1, 2, 4)
    // A list without references shows no charge, so the key must still be in its window.
    const orderFields = draw.pick<SandboxBehaviour['orderFields']>(
      ...[LISTED.orderFields, LISTED.orderFields, []],
    )
    const again = (): Scripted => [
      orderFields.length === 0 ? A_MINUTE : draw.pick<Scripted[0]>(A_MINUTE, minutes(8, 14), minutes(21, 30)),
      draw.pick('create', 'create', 'recover'),
    ]
    return {
      resends: true,
      habits: [habit(['send'], 'resent', draw.pick(0.3, 0.9))],
      faults: [onOrders({ skip: 1, times, action: { type: 'status', status, code: 'OTHER' } })],
      intents: [draw.pick(REFERENCE, BOTH)],
      client: { ...PATIENT, maxRetries: draw.pick(0, 4) },
      server: { ...LISTED, orderFields, keyLifetime: WINDOW, keyFormat: 'any' },
      // Another note makes another body, so that the service reports a conflict.
      script: [[AT_ONCE, { ...CREATE, ...draw.pick({}, { note: 'first' }) }], again(), again(), again()],
    }
  }),
  /**
   * Another integration orders the same with the same reference, for another target or from another
   * source system. A look-up for several systems reads the whole list.
   */
  twinOrders: scene(2, (draw) => {
    const unlike = draw.pick('target', 'sourceSystem')
    return {
      habits: [habit(['send'], draw.pick('failed', 'unacknowledged', 'crash after'), 0.8)],
      workers: undefined,
      intents: [unlike === 'target' ? REFERENCE : { ...REFERENCE, sourceSystem: 'shop' }, SECOND],
      server: {
        ...LISTED,
        sourceSystemFrom: 'metadata',
        orderFields: [...LISTED.orderFields, 'target', 'sourceSystem'],
        ordering: draw.pick('newest', 'oldest'),
      },
      script: [
        [AT_ONCE, { kind: 'elsewhere', intent: 0, unlike }],
        [AT_ONCE, CREATE],
        ...(draw.chance(0.5) ? [[AT_ONCE, { ...CREATE, intent: 1 }] as const] : []),
        [minutes(21, 40), draw.pick('recover', 'resolve')],
        [SOON, draw.pick('recover', 'create')],
      ],
    }
  }),
  /**
   * A service that shows a tidied target or the quantity that is left. The reference proves the order.
   */
  otherValues: scene(2, (draw) => ({
    habits: draw.chance(0.7) ? [SEND_LOST] : [],
    balance: draw.pick(100_000, PRICE),
    shows: draw.pick('tidied', 'counted'),
    client: { ...PATIENT, maxRetries: draw.pick(0, 4) },
    server: {
      ...LISTED,
      orderFields: [...LISTED.orderFields, 'target'],
      ordering: draw.pick('newest', 'oldest'),
    },
    script: [
      [AT_ONCE, 'create'],
      [draw.pick<Scripted[0]>(A_MINUTE, minutes(21, 40)), draw.pick('recover', 'create')],
      [A_MINUTE, 'resolve'],
      [A_MINUTE, draw.pick('recover', 'create')],
    ],
  })),
  /** A refused order is bought with a response that cannot be read, and its replays hear of a conflict. */
  unreadOrder: scene(1, (draw) => {
    const times = draw.pick(1, 2)
    return {
      faults: [
        onOrders({ skip: 1, times: 1, action: { type: 'cutBody', after: 5, cleanly: draw.chance(0.5) } }),
        onOrders({
          ...{ skip: 1, times },
          action: { type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' },
        }),
      ],
      balance: 0,
      client: { ...PATIENT, maxRetries: draw.pick(0, 4) },
      server: { ...PROMPT, rememberedRefusals: [] },
      script: [
        [AT_ONCE, CREATE],
        [A_MINUTE, TOP_UP],
        [SOON, 'create', draw.pick(0, 1)],
        [A_MINUTE, draw.pick('create', 'recover')],
      ],
    }
  }),
  /** Several calls without a name read the same order by its id, because its response had a wrong amount. */
  readTwice: scene(1, (draw) => ({
    habits: [
      habit(draw.pick(['fetch'], ['update']), 'slow', draw.pick(0, 0.5)),
      habit(['update'], draw.pick('failed', 'late', 'slow answer'), draw.pick(0, 0.3)),
    ],
    faults: [onOrders({ times: 1, action: { type: 'transformBody', transform: withoutAmount } })],
    workers: 3,
    intents: [ANONYMOUS],
    script: [
      [AT_ONCE, CREATE],
      [A_MINUTE, 'create', 0],
      [AT_ONCE, draw.pick('create', 'create', 'recover'), 1],
      [draw.pick(AT_ONCE, A_MINUTE), 'create', 2],
    ],
  })),
  /** A call reads its record so slowly that another process's call is refused meanwhile. */
  racedRefusal: scene(1, (draw) => ({
    habits: [habit(['get'], 'slow', 0.5)],
    balance: 0,
    client: { ...PATIENT, maxRetries: 4 },
    server: { ...PROMPT, rememberedRefusals: draw.pick([], [402]) },
    script: [
      [AT_ONCE, CREATE],
      [SOON, 'create', 1],
      [SOON, 'create', 0],
      [A_MINUTE, TOP_UP],
      [SOON, 'create'],
    ],
  })),
  /** A machine sleeps between its claim and its request. Meanwhile a person abandons the order, and it is bought again. */
  sleepingClaim: scene(1, () => ({
    habits: [habit(['insert'], 'sleeps', 0.7)],
    workers: 3,
    script: [
      [AT_ONCE, CREATE],
      [minutes(6, 9), decides(1)],
      [SOON, 'create', 2],
    ],
  })),
})
