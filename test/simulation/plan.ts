import type { SandboxBehaviour, SandboxCheck } from '../../src/sandbox/behaviour.ts'
import type { FaultAction, FaultRule } from '../../src/sandbox/faults.ts'
import { Draw } from './draw.ts'

/** Everything that a seed decides before the run begins. The rest is drawn while it runs, from streams of the same seed. */
export interface Plan {
  readonly seed: number
  /** True for the whole client over ky and the sandbox's own `fetch`; else the transport below the loop of attempts is ours. */
  readonly whole: boolean
  /** Absent only with a store that calls itself `memory`. */
  readonly account: string | undefined
  readonly workers: number
  readonly client: ClientPlan
  readonly server: Partial<SandboxBehaviour>
  readonly balance: number
  readonly faults: readonly FaultRule[]
  readonly intents: readonly IntentPlan[]
  readonly steps: readonly Step[]
  /** Chance of each kind of trouble at one effect of a process. */
  readonly rates: Rates
  /** True if what is stored is sealed by a codec that asks a service: it may fail, or not answer. */
  readonly sealed: boolean
  /** Longest usual way of one effect, milliseconds; 0 lets everything happen at once. */
  readonly latency: number
  /** Whether the last recovery comes within the safe-retry window or long after it. */
  readonly ending: 'soon' | 'late'
}

export interface ClientPlan {
  readonly safeRetryWindow: number
  readonly timeout: number
  readonly totalTimeout: number
  readonly maxRetries: number
  readonly idempotencyScope: 'apiKey' | 'customer'
  readonly remember: 'order' | 'id'
}

/** One thing to buy, and how it is named. */
export interface IntentPlan {
  readonly name: string
  readonly externalOrderId?: string
  readonly idempotencyKey?: string
}

/** What somebody does at a time, milliseconds from the start. A worker that is dead is started anew for it. */
export type Step =
  | {
      readonly at: number
      readonly kind: 'create'
      readonly worker: number
      readonly intent: number
      /** The payload changes with it. */
      readonly quantity: number
      /** Metadata that differs from call to call and makes no other order. */
      readonly note?: string
      /** An Idempotency-Key other than the intent's. */
      readonly otherKey: boolean
      /** When the caller gives up, milliseconds from the call. */
      readonly abortAfter?: number
    }
  | {
      readonly at: number
      readonly kind: 'recover'
      readonly worker: number
      readonly takeOver: boolean
      readonly replay: 'safe' | 'all'
    }
  | { readonly at: number; readonly kind: 'kill'; readonly worker: number }
  | { readonly at: number; readonly kind: 'resolve'; readonly worker: number; readonly intent: number }
  | { readonly at: number; readonly kind: 'topUp'; readonly amount: number }
  | { readonly at: number; readonly kind: 'jump'; readonly worker: number; readonly by: number }
  | { readonly at: number; readonly kind: 'rotate'; readonly worker: number }
  | { readonly at: number; readonly kind: 'revoke' }
  | { readonly at: number; readonly kind: 'publish'; readonly published: boolean }

export interface Rates {
  readonly crash: number
  readonly store: number
  readonly network: number
}

const MINUTE = 60_000
/** Longest that a request or a write is on its way after it was given up. */
export const LONGEST_FLIGHT: number = 4 * MINUTE
const CHECKS: readonly SandboxCheck[] = ['auth', 'key', 'validation', 'service', 'balance']
const PRICE = 250
/** One seed in so many runs the whole client over ky, which costs about as much as all the rest of a seed. */
const WHOLE_SHARE = 32
/** A stream that no process has. */
const SEALED = 1_000_000

/** What a seed stands for. */
export function planOf(seed: number): Plan {
  const draw = new Draw(seed, 0)
  const workers = draw.weighted([1, 3], [2, 4], [3, 2], [4, 1])
  const account = draw.chance(0.9) ? 'shop' : undefined
  const jumps = draw.chance(0.25)
  const rotates = draw.chance(0.25)
  const keyScope = draw.pick('apiKey', 'customer')
  const client: ClientPlan = {
    safeRetryWindow: draw.pick(20 * MINUTE, 20 * MINUTE, 5 * MINUTE),
    timeout: draw.pick(30_000, 30_000, 5_000),
    totalTimeout: draw.pick(120_000, 120_000, 20_000),
    maxRetries: draw.pick(4, 4, 1, 0),
    idempotencyScope: keyScope === 'customer' && draw.chance(0.5) ? 'customer' : 'apiKey',
    remember: draw.pick('order', 'order', 'id'),
  }
  const intents = drawIntents(draw)
  const steps = drawSteps(draw, { workers, intents, jumps, rotates })
  const server = drawServer(draw, keyScope, client.safeRetryWindow + skewOf(steps) + LONGEST_FLIGHT)
  // A server may say for a while, or for ever, that a request is running which is not: only time settles that.
  const sticky =
    server.rememberServerErrors === true ||
    server.orphanedMarkLifetime === null ||
    server.processingTime !== 0
  return {
    seed,
    whole: seed % WHOLE_SHARE === 0,
    account,
    workers,
    client,
    server,
    balance: draw.weighted([100_000, 4], [1000, 2], [2 * PRICE, 2], [PRICE, 3], [0, 3]),
    faults: drawFaults(draw),
    // `replay: 'all'` sends whatever the window says, so it goes with servers that never forget a key.
    steps: server.keyLifetime === null ? steps : steps.map(onlySafe),
    intents,
    rates: {
      crash: draw.pick(0, 0, 0.02, 0.1),
      store: draw.pick(0, 0, 0.03, 0.15),
      network: draw.pick(0, 0, 0.1, 0.4),
    },
    // Of a stream of its own, so that what the other seeds stand for stays.
    sealed: new Draw(seed, SEALED).chance(0.1),
    latency: draw.pick(0, 20, 20, 400),
    ending: sticky || draw.chance(0.3) ? 'late' : 'soon',
  }
}

/** Most that two clocks of a run can be apart, milliseconds. */
export function skewOf(steps: readonly Step[]): number {
  return steps.reduce((sum, step) => sum + (step.kind === 'jump' ? Math.abs(step.by) : 0), 0)
}

function onlySafe(step: Step): Step {
  return step.kind === 'recover' ? { ...step, replay: 'safe' } : step
}

function drawIntents(draw: Draw): IntentPlan[] {
  const count = draw.weighted([1, 8], [2, 3], [3, 1])
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
}

function drawSteps(draw: Draw, { workers, intents, jumps, rotates }: Cast): Step[] {
  const steps: Step[] = []
  const count = draw.weighted([1, 2], [2, 4], [3, 4], [4, 3], [5, 2], [6, 1])
  let at = 0
  for (let index = 0; index < count; index++) {
    const worker = draw.below(workers)
    // The first thing that anybody does is to order.
    const kind =
      index === 0
        ? 'create'
        : draw.weighted(
            ['create', 8],
            ['recover', 3],
            ['kill', 2],
            ['resolve', 1],
            ['topUp', 2],
            ['jump', jumps ? 2 : 0],
            ['rotate', rotates ? 2 : 0],
            ['revoke', rotates ? 0.5 : 0],
            ['publish', 0.3],
          )
    switch (kind) {
      case 'create':
        steps.push({
          at,
          kind,
          worker,
          intent: draw.below(intents.length),
          quantity: draw.weighted([1, 8], [2, 1]),
          otherKey: draw.chance(0.05),
          ...(draw.chance(0.2) ? { note: `call ${index}` } : {}),
          ...(draw.chance(0.1) ? { abortAfter: draw.pick(0, 5, 50, 2000, 31_000) } : {}),
        })
        break
      case 'recover':
        steps.push({
          at,
          kind,
          worker,
          takeOver: draw.chance(0.4),
          replay: draw.chance(0.15) ? 'all' : 'safe',
        })
        break
      case 'kill':
      case 'rotate':
        steps.push({ at, kind, worker })
        break
      case 'resolve':
        steps.push({ at, kind, worker, intent: draw.below(intents.length) })
        break
      case 'topUp':
        steps.push({ at, kind, amount: draw.pick(PRICE, 2 * PRICE, 1000) })
        break
      case 'jump':
        steps.push({
          at,
          kind,
          worker,
          by: draw.pick(-1, 1) * draw.pick(1000, 20_000, 40_000, 300_000, 3_600_000),
        })
        break
      case 'revoke':
        steps.push({ at, kind })
        break
      case 'publish':
        steps.push({ at, kind, published: draw.chance(0.5) })
    }
    at += gapOf(draw)
  }
  return steps
}

/** From at once to long after the safe-retry window, so that steps meet, follow and outlast each other. */
function gapOf(draw: Draw): number {
  switch (draw.weighted(['at once', 4], ['soon', 3], ['after the call', 4], ['late', 1])) {
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

/** One server out of the family that the API document allows: every "not shown" has its say. */
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
    // A key is remembered for ever, or just for as long as the client may send it.
    keyLifetime: draw.chance(0.7) ? null : least,
    keyFormat: draw.chance(0.97) ? 'any' : 'uuid',
    payloadEquality: draw.pick('bytes', 'json', 'json-without-metadata'),
    rememberedRefusals: draw.chance(0.5) ? [] : draw.subset(400, 402, 404, 422),
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

/** Faults of the service and of what stands before it. None of them lies: a clean refusal has bought nothing. */
function drawFaults(draw: Draw): FaultRule[] {
  const count = draw.weighted([0, 4], [1, 4], [2, 3], [3, 1])
  return Array.from({ length: count }, () => ({
    match: { operation: draw.chance(0.92) ? 'createOrder' : draw.pick('listOrders', 'retrieveOrder') },
    skip: draw.weighted([0, 4], [1, 2], [2, 1]),
    times: draw.weighted([1, 4], [2, 2], [3, 1], [6, 1]),
    ...(draw.chance(0.3) ? { probability: 0.5 } : {}),
    action: drawFault(draw),
  }))
}

function drawFault(draw: Draw): FaultAction {
  const commit = draw.chance(0.6)
  switch (draw.below(18)) {
    case 0:
      return { type: 'drop' }
    case 1:
    case 2:
      return { type: 'commitThenDrop' }
    case 3:
      return { type: 'crash' }
    case 4:
      return { type: 'cutBody', cleanly: draw.chance(0.5), after: draw.pick(0, 5, 20) }
    case 5:
      return { type: 'stallBody', after: draw.pick(0, 12) }
    case 6:
      return { type: 'stall', commit }
    case 7:
      return {
        type: 'delay',
        ms: draw.pick(100, 3000, 20_000, 40_000, 130_000),
        when: draw.pick('before', 'during', 'after'),
      }
    case 8:
    case 9:
      return {
        type: 'status',
        status: draw.pick(500, 502, 503, 504, 520, 408),
        commit,
        html: draw.chance(0.5),
      }
    case 10:
      return { type: 'status', status: draw.pick(400, 402, 404, 422), code: draw.pick('REFUSED', 'OTHER') }
    case 11:
      return { type: 'status', status: draw.pick(401, 403, 425, 429, 413) }
    case 12:
      // The page of a gateway in place of the service's answer.
      return { type: 'status', status: draw.pick(400, 402, 403, 404, 422, 418), html: true, commit }
    case 13:
      return { type: 'inProgress', commit }
    case 14:
      return draw.chance(0.5)
        ? { type: 'retryAfter', value: draw.pick('1', '30', '200') }
        : { type: 'retryAfter', value: draw.pick('1', '60'), status: 503, commit }
    case 15:
      return { type: 'transformBody', transform: draw.pick(withoutAmount, withoutId) }
    case 16:
      return draw.chance(0.5)
        ? { type: 'redirect', location: '/v1/orders', status: draw.pick(302, 303, 307, 308), commit }
        : { type: 'status', status: 409, code: draw.pick('LOCKED', 'CONFLICT'), commit }
    default:
      return {
        type: 'bytes',
        status: draw.pick(200, 202),
        body: draw.pick('<html>login</html>', '', '{}'),
        commit,
      }
  }
}

function withoutAmount(body: unknown): unknown {
  return isOrder(body) ? { ...body, amount: 'much' } : body
}

function withoutId(body: unknown): unknown {
  return isOrder(body) ? { ...body, id: '' } : body
}

function isOrder(body: unknown): body is { readonly id: string; readonly amount: number } {
  return typeof body === 'object' && body !== null && 'id' in body && 'amount' in body
}
