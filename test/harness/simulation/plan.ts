import { defined } from '../../../src/defined.ts'
import type { ClientOptions, CreateOrderRequest } from '../../../src/index.ts'
import type { SandboxBehaviour, SandboxCheck } from '../../../src/sandbox/service/behaviour.ts'
import type { FaultRule } from '../../../src/sandbox/service/faults.ts'
import { Draw } from '../../support/seeds.ts'
import { REFUSED } from '../../support/statuses.ts'
import { drawFaults } from './faults.ts'
import { type Habit, LONGEST_FLIGHT, MINUTE, type Rates } from './mishaps.ts'
import {
  drawHarderScene,
  drawScene,
  drawSwarm,
  type Gaps,
  LONG_AGO,
  type Minutes,
  PRICE,
  type Swarm,
  USUAL_GAPS,
} from './scenes.ts'

/**
 * Everything that a seed decides before the run. The rest is drawn during the run, from streams of
 * the same seed.
 */
export interface Plan {
  readonly seed: number
  /**
   * True to use the whole client with ky and the sandbox's `fetch`. Otherwise, a test transport
   * replaces everything below the attempts.
   */
  readonly whole: boolean
  /** Absent only with a store that declares durability `memory`. */
  readonly account: string | undefined
  readonly workers: number
  readonly client: ClientPlan
  readonly server: Partial<SandboxBehaviour>
  readonly balance: number
  readonly faults: readonly FaultRule[]
  readonly intents: readonly IntentPlan[]
  readonly steps: readonly Step[]
  readonly rates: Rates
  /** Additional frequent mishaps. Empty in most seeds. */
  readonly habits: readonly Habit[]
  /** True if a codec that calls a service seals the stored data. It may fail or hang. */
  readonly sealed: boolean
  /** Maximum normal duration of one effect, in milliseconds. 0 makes everything immediate. */
  readonly latency: number
  /** Whether the last recovery comes within the safe-retry window or long after it. */
  readonly ending: 'soon' | 'late'
  /** Whether processes share one store, or have their own `MemoryStore`. */
  readonly stores: 'shared' | 'own'
  /** Orders that another integration has made before with the same wallet. */
  readonly otherOrders: number
  /** True if an HTTP cache returns reads forever, unless they forbid it. */
  readonly cached: boolean
  readonly scene?: string | undefined
  /** True if no transport promises to send a request once. */
  readonly resends: boolean
  /** How the service changes the fields that it shows of an order. Absent: not at all. */
  readonly shows?: Shown | undefined
  /** Page size for the read of the list at the end. Absent if the list is not read. */
  readonly listedBy?: number
}

/**
 * `tidied`: the target is trimmed and in lower case. `counted`: the quantity is what is left to
 * deliver.
 */
export type Shown = 'tidied' | 'counted'

export interface ClientPlan {
  readonly safeRetryWindow: number
  readonly timeout: number
  readonly totalTimeout: number
  readonly maxRetries: number
  readonly idempotencyScope: 'apiKey' | 'customer'
  readonly remember: 'order' | 'id'
}

/** One intended purchase, with its names. */
export interface IntentPlan {
  readonly name: string
  readonly externalOrderId?: string
  readonly idempotencyKey?: string
  /** The integration that the request names. The service may use another name. */
  readonly sourceSystem?: string
}

/** An action of a worker, a person, the service or another integration. */
export type Action =
  | {
      readonly kind: 'create'
      readonly worker: number
      readonly intent: number
      /** Changes the payload. */
      readonly quantity: number
      /** Metadata that varies between calls and does not change the order. */
      readonly note?: string
      /** An Idempotency-Key other than the intent's. */
      readonly otherKey: boolean
      /** When the caller aborts, in milliseconds from the call. */
      readonly abortAfter?: number
    }
  | { readonly kind: 'recover'; readonly worker: number; readonly takeOver: boolean }
  /** `correct`: a worker's clock is corrected. */
  | { readonly kind: 'kill' | 'rotate' | 'correct'; readonly worker: number }
  /**
   * `hasty`: the person decides by what is charged at that moment, even while a call or a request is
   * under way.
   */
  | {
      readonly kind: 'resolve'
      readonly worker: number
      readonly intent: number
      readonly hasty?: true
    }
  | { readonly kind: 'topUp'; readonly amount: number }
  | { readonly kind: 'jump'; readonly worker: number; readonly by: number }
  | { readonly kind: 'backup' | 'revoke' }
  /** The store is wiped or restored. */
  | { readonly kind: 'lose'; readonly to: 'nothing' | 'backup' }
  /** Another integration orders with the same reference: something else, or almost the same. */
  | { readonly kind: 'elsewhere'; readonly intent: number; readonly unlike?: 'target' | 'sourceSystem' }
  | { readonly kind: 'publish'; readonly published: boolean }

/** An action at a time, in milliseconds from the start. A dead worker is restarted for it. */
export type Step = Action & { readonly at: number }

export const HERE = 'sandbox.test'
const CHECKS: readonly SandboxCheck[] = ['auth', 'key', 'validation', 'service', 'balance']
/**
 * One in this many seeds runs the whole client with ky, which costs about three times as much as
 * the rest of a seed.
 */
const WHOLE_SHARE = 32
/** Streams that belong to no process. */
const MOOD = 1_000_000
const SCENES = 1_000_001
/** Share of the seeds that do a few things often, instead of everything now and then. */
const SWARM_SHARE = 0.1
/** Share of the seeds with unusual behaviour of stores, clocks, proxies or another integration. */
const SCENE_SHARE = 0.08
/** Share of the seeds with a harder scene. */
const HARDER_SHARE = 0.08
/** Share of the seeds whose service has unusual settings, even those that rarely matter. */
const FURTHER_SHARE = 0.2

export function planOf(seed: number): Plan {
  const draw = new Draw(seed, 0)
  const mood = new Draw(seed, MOOD)
  const sealed = mood.chance(0.1)
  const scenes = new Draw(seed, SCENES)
  const often = mood.chance(SWARM_SHARE) ? drawSwarm(mood) : undefined
  const harder = scenes.chance(HARDER_SHARE) ? drawHarderScene(scenes) : undefined
  const swarm = harder ?? (scenes.chance(SCENE_SHARE) ? drawScene(scenes) : often)
  const workers = swarm?.workers ?? draw.weighted([1, 3], [2, 4], [3, 2], [4, 1])
  const hasAccount = draw.chance(0.9)
  const account = hasAccount || swarm?.stores === 'own' ? 'shop' : undefined
  const jumps = draw.chance(0.25)
  const rotates = swarm?.kinds.rotate !== undefined || draw.chance(0.25)
  const keyScope = draw.pick('apiKey', 'customer')
  const client: ClientPlan = {
    safeRetryWindow: draw.pick(20 * MINUTE, 20 * MINUTE, 5 * MINUTE),
    timeout: draw.pick(30_000, 30_000, 5_000),
    totalTimeout: draw.pick(120_000, 120_000, 20_000, 3000),
    maxRetries: draw.pick(4, 4, 1, 0),
    idempotencyScope: keyScope === 'customer' && draw.chance(0.5) ? 'customer' : 'apiKey',
    remember: draw.pick('order', 'order', 'id'),
    ...swarm?.client,
  }
  const intents = drawIntents(draw, swarm)
  const steps = drawSteps(draw, { workers, intents, jumps, rotates, swarm })
  const least = client.safeRetryWindow + skewOf(steps) + LONGEST_FLIGHT
  const usual = drawServer(draw, keyScope, least)
  const further = mood.chance(FURTHER_SHARE) ? drawFurther(mood, usual, least) : {}
  const server = { ...usual, ...further, ...swarm?.server }
  // A server may report, for a while or forever, that a request is running which is not. Only time
  // resolves that.
  const sticky =
    server.rememberServerErrors === true ||
    server.orphanedMarkLifetime === null ||
    server.processingTime !== 0
  return {
    seed,
    whole: seed % WHOLE_SHARE === 0 || swarm?.cached === true,
    account,
    workers,
    client,
    server,
    balance: swarm?.balance ?? draw.weighted([100_000, 4], [1000, 2], [2 * PRICE, 2], [PRICE, 3], [0, 3]),
    faults: swarm?.faults ?? drawFaults(draw),
    steps,
    intents,
    rates: swarm?.rates ?? {
      crash: draw.pick(0, 0, 0.02, 0.1),
      store: draw.pick(0, 0, 0.03, 0.15),
      network: draw.pick(0, 0, 0.1, 0.4),
    },
    habits: swarm?.habits ?? [],
    sealed:
      sealed || swarm?.habits.some(({ effects, chance }) => effects.includes('seal') && chance > 0) === true,
    latency: draw.pick(0, 20, 20, 400),
    stores: swarm?.stores ?? 'shared',
    otherOrders: swarm?.otherOrders ?? 0,
    cached: swarm?.cached ?? false,
    resends: swarm?.resends ?? false,
    scene: swarm?.scene,
    shows: swarm?.shows,
    ...(mood.chance(0.05) ? { listedBy: mood.pick(1, 2, 50) } : {}),
    ending: swarm?.ending ?? (sticky || draw.chance(0.3) ? 'late' : 'soon'),
  }
}

/** Maximum difference of two clocks of a run in milliseconds, except for obviously wrong clocks. */
export function skewOf(steps: readonly Step[]): number {
  return steps.reduce(
    (sum, step) => sum + (step.kind === 'jump' && Math.abs(step.by) < LONG_AGO ? Math.abs(step.by) : 0),
    0,
  )
}

function drawIntents(draw: Draw, swarm: Swarm | undefined): IntentPlan[] {
  if (swarm?.intents !== undefined) return [...swarm.intents]
  const count = swarm !== undefined ? 1 : draw.weighted([1, 8], [2, 3], [3, 1])
  return Array.from({ length: count }, (_, index) => {
    const name = `intent-${index + 1}`
    switch (draw.weighted(['reference', 6], ['key', 2], ['both', 1], ['anonymous', 3])) {
      case 'reference':
        return { name, externalOrderId: `ref-${index + 1}` }
      case 'key':
        return { name, idempotencyKey: `key-${index + 1}` }
      case 'both':
        return { name, externalOrderId: `ref-${index + 1}`, idempotencyKey: `key-${index + 1}` }
      default:
        return { name }
    }
  })
}

interface Cast {
  readonly workers: number
  readonly intents: readonly IntentPlan[]
  readonly jumps: boolean
  readonly rotates: boolean
  readonly swarm: Swarm | undefined
}

/** The kinds of steps that are drawn, in the order of their weights. */
const KINDS = [
  'create',
  'recover',
  'kill',
  'resolve',
  'topUp',
  'jump',
  'rotate',
  'revoke',
  'publish',
] as const
type Kind = (typeof KINDS)[number]

function drawAction(draw: Draw, kind: Kind, index: number, worker: number, { intents, swarm }: Cast): Action {
  switch (kind) {
    case 'create':
      return {
        ...{ kind, worker, intent: draw.below(intents.length) },
        quantity:
          swarm?.changes === undefined ? draw.weighted([1, 8], [2, 1]) : draw.chance(swarm.changes) ? 2 : 1,
        otherKey: draw.chance(0.05) && swarm?.changes !== 0,
        ...(draw.chance(0.2) ? { note: `call ${index}` } : {}),
        ...(draw.chance(swarm?.aborts ?? 0.1) ? { abortAfter: draw.pick(0, 5, 50, 2000, 31_000) } : {}),
      }
    case 'recover':
      return { kind, worker, takeOver: draw.chance(0.4) }
    case 'kill':
    case 'rotate':
      return { kind, worker }
    case 'resolve':
      return { kind, worker, intent: draw.below(intents.length) }
    case 'topUp':
      return { kind, amount: draw.pick(PRICE, 2 * PRICE, 1000) }
    case 'jump': {
      const by = draw.pick(-1, 1) * draw.pick(1000, 20_000, 40_000, 300_000, 3_600_000)
      return { kind, worker, by }
    }
    case 'revoke':
      return { kind }
    case 'publish':
      return { kind, published: draw.chance(0.5) }
  }
}

function drawSteps(draw: Draw, cast: Cast): Step[] {
  const { workers, jumps, rotates, swarm } = cast
  const kinds = swarm?.kinds ?? usualKinds(jumps, rotates)
  const [first, ...others] = KINDS.map((kind) => [kind, kinds[kind] ?? 0] as const)
  const steps: Step[] = []
  const script = swarm?.script
  const count = script?.length ?? draw.weighted([1, 2], [2, 4], [3, 4], [4, 3], [5, 2], [6, 1])
  let at = 0
  for (let index = 0; index < count; index++) {
    const [gap, act, given] = script?.[index] ?? []
    if (gap !== undefined) at += gapOf(draw, gap)
    const worker = given ?? draw.below(workers)
    if (typeof act === 'object') {
      steps.push({ at, ...act })
      continue
    }
    // The first action is an order.
    const kind = act ?? (index === 0 || first === undefined ? 'create' : draw.weighted(first, ...others))
    steps.push({ at, ...drawAction(draw, kind, index, worker, cast) })
    if (script === undefined) at += gapOf(draw, swarm?.gaps ?? USUAL_GAPS)
    // A write in the same millisecond as a person's decision counts as older.
    if (kind === 'resolve') at++
  }
  return steps
}

function usualKinds(jumps: boolean, rotates: boolean): Swarm['kinds'] {
  return {
    create: 8,
    recover: 3,
    kill: 2,
    resolve: 1,
    topUp: 2,
    jump: jumps ? 2 : 0,
    rotate: rotates ? 2 : 0,
    revoke: rotates ? 0.5 : 0,
    publish: 0.3,
  }
}

/** From immediately to long after the safe-retry window, so that steps overlap or follow each other. */
function gapOf(draw: Draw, gap: Gaps | Minutes): number {
  if ('from' in gap) return draw.between(gap.from * MINUTE, gap.to * MINUTE)
  const [atOnce, soon, after, late] = gap
  switch (draw.weighted(['at once', atOnce], ['soon', soon], ['after the call', after], ['late', late])) {
    case 'at once':
      return draw.below(60)
    case 'soon':
      return draw.below(8000)
    case 'after the call':
      return draw.between(30_000, 4 * MINUTE)
    default:
      return draw.between(5 * MINUTE, 40 * MINUTE)
  }
}

/**
 * One server of the family that the API document permits: draws a value for everything that it does
 * not show.
 */
function drawServer(draw: Draw, keyScope: 'apiKey' | 'customer', least: number): Partial<SandboxBehaviour> {
  return {
    errorShape: draw.pick('bare', 'nested', 'errors', 'problem', 'flat'),
    listEnvelope: draw.pick('array', 'data', 'items', 'named', 'results'),
    orderFields: draw.chance(0.7) ? ['metadata', 'target', 'quantity'] : [],
    requestIdHeader: draw.chance(0.5) ? 'x-request-id' : null,
    checks: draw.chance(0.5)
      ? CHECKS
      : draw.chance(0.5)
        ? ['auth', 'validation', 'service', 'balance', 'key']
        : draw.shuffled(CHECKS),
    keyScope,
    // A key is remembered forever, or exactly as long as the client may send it.
    keyLifetime: draw.chance(0.7) ? null : least,
    keyFormat: draw.chance(0.97) ? 'any' : 'uuid',
    payloadEquality: draw.pick('bytes', 'json', 'json-without-metadata'),
    rememberedRefusals: draw.chance(0.5) ? [] : draw.subset(...REFUSED),
    rememberServerErrors: draw.chance(0.15),
    replayStatus: draw.pick(200, 201),
    replayBody: draw.pick('original', 'current'),
    replayHeader: draw.chance(0.5),
    processingTime: draw.weighted([0, 7], [300, 1], [3000, 1], [45_000, 1]),
    orphanedMarkLifetime: draw.pick(0, 2000, 60_000, null),
    maxLimit: draw.pick(100, 1),
    ordering: draw.pick('newest', 'oldest', 'random'),
    readLag: draw.pick(0, 0, 2000),
    unknownFields: draw.chance(0.9) ? 'ignore' : 'refuse',
    priceIs: draw.chance(0.9) ? 'perUnit' : 'perOrder',
  }
}

/** Settings that matter rarely or little, but that a service may have. */
function drawFurther(
  draw: Draw,
  { ordering }: Partial<SandboxBehaviour>,
  least: number,
): Partial<SandboxBehaviour> {
  return {
    ...(draw.chance(0.3) ? { keyLifetime: draw.pick(least, 2 * least, 24 * 60 * MINUTE) } : {}),
    ...(draw.chance(0.3) ? { ordering: 'amount' } : {}),
    // With shuffled rows, the check is impossible.
    ignoreOffset: draw.chance(0.2) && ordering !== 'random',
    invalidPaging: draw.pick('clamp', 'refuse'),
    requiredFields: draw.weighted(
      [['target'], 8],
      [[], 1],
      [['target', 'metadata'], 1],
      [['target', 'metadata', 'externalOrderId'], 0.5],
    ),
    stepFrom: draw.pick('minimum', 'zero'),
    sourceSystemFrom: draw.pick('metadata', 'body', 'apiKey'),
    fractionalQuantity: draw.chance(0.5),
    statuses: draw.pick(ONE_STATUS, SEVERAL_STATUSES),
    stockState: draw.pick(
      { field: 'stockState', inStock: 'in_stock', outOfStock: 'out_of_stock' },
      { field: 'stock', inStock: 'yes', outOfStock: 'no' },
    ),
  }
}

const ONE_STATUS = [{ status: 'pending', after: 0 }]
const SEVERAL_STATUSES = [
  { status: 'queued', after: 0 },
  { status: 'running', after: 5000 },
  { status: 'completed', after: 10 * MINUTE },
]

export function requestOf(
  { name, externalOrderId, sourceSystem }: IntentPlan,
  quantity: number,
  note: string | undefined,
): CreateOrderRequest {
  const metadata = defined({ externalOrderId, note, sourceSystem })
  return { serviceId: 'svc_standard', target: name, quantity, metadata }
}

/** The payload as text in the log, which distinguishes orders. */
export function payloadOf({ serviceId, target, quantity }: CreateOrderRequest): string {
  return `${quantity} of ${serviceId} for ${target}`
}

export function optionsOf({ account, client }: Plan): ClientOptions {
  return { ...client, logLevel: 'off', ...defined({ account }) }
}
