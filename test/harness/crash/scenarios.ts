import type { FaultAction, SandboxBehaviour } from '../../../src/sandbox/index.ts'
import { brokenPromises } from '../../support/invariants.ts'
import type { EffectKind, Mishap } from '../simulation/mishaps.ts'
import type { IntentPlan, Plan } from '../simulation/plan.ts'
import { settle } from '../simulation/simulate.ts'
import { World } from '../simulation/world.ts'

/** The names of one order, and its account. */
interface OrderNaming extends IntentPlan {
  readonly account: string | undefined
}

/** An order, the service's result for it, and the service's undocumented behaviour. */
export interface Scenario {
  readonly name: string
  readonly naming: OrderNaming
  readonly behaviour: Partial<SandboxBehaviour>
  readonly ending: Ending
}

/** The service's reaction to the first request, and the wallet. */
interface Ending {
  readonly name: string
  readonly fault?: FaultAction
  readonly times?: number
  /** The balance of the wallet. The order costs 250. */
  readonly balance: number
  readonly topUp?: 'before recovery' | 'before the caller asks again'
}

/** What another process does about the first call. */
type Remedy = 'recover' | 'take over' | 'create' | 'recover late'

/** The mishaps of one schedule: at an effect of the call, and at one of its remedy. */
export interface Schedule {
  readonly first?: readonly [effect: number, mishap: Mishap]
  readonly remedy: Remedy
  readonly second?: readonly [effect: number, mishap: Mishap]
}

const NAMINGS: readonly OrderNaming[] = [
  { name: 'reference and account', account: 'shop', externalOrderId: 'ref-1' },
  { name: 'reference', account: undefined, externalOrderId: 'ref-1' },
  { name: 'key', account: 'shop', idempotencyKey: 'key-1' },
  { name: 'anonymous', account: 'shop' },
]

const ENDINGS: readonly Ending[] = [
  { name: 'charged', balance: 1000 },
  { name: 'refused', balance: 0, topUp: 'before the caller asks again' },
  { name: 'refused, then topped up', balance: 0, topUp: 'before recovery' },
  { name: '201 cut', balance: 1000, fault: { type: 'cutBody' } },
  { name: '201 cut thrice', balance: 1000, fault: { type: 'cutBody' }, times: 3 },
  { name: 'in progress', balance: 1000, fault: { type: 'crash' } },
  { name: 'charged with the last money, unheard', balance: 250, fault: { type: 'commitThenDrop' } },
]

const REMEDIES: readonly Remedy[] = ['recover', 'take over', 'create', 'recover late']

const DEATHS: ReadonlySet<Mishap> = new Set(['crash before', 'crash after', 'crash while it flies'])
const OF_WRITES: readonly Mishap[] = [...DEATHS, 'unacknowledged', 'failed', 'late']
// A crash after a read equals one before the next effect.
const OF_READS: readonly Mishap[] = ['crash before', 'failed']

/** What may go wrong at each kind of effect. */
export const MISHAPS: Readonly<Record<EffectKind, readonly Mishap[]>> = {
  get: OF_READS,
  insert: OF_WRITES,
  update: OF_WRITES,
  list: [],
  send: [...DEATHS, 'unacknowledged', 'failed'],
  fetch: OF_READS,
  seal: [],
}

/**
 * Every combination of a naming, a service and an ending. `complete` also varies the status of
 * replays.
 */
export function scenarios(complete: boolean): Scenario[] {
  const found: Scenario[] = []
  for (const naming of NAMINGS)
    for (const remembers of [false, true])
      for (const balanceFirst of [false, true])
        for (const [index, ending] of ENDINGS.entries())
          for (const replayStatus of [200, 201] as const) {
            if (!complete && replayStatus !== 200 + ((index + Number(remembers)) % 2)) continue
            found.push({
              name: [
                naming.name,
                ending.name,
                remembers ? 'refusals remembered' : 'refusals forgotten',
                balanceFirst ? 'balance before key' : 'key before balance',
                `replays ${replayStatus}`,
              ].join(', '),
              naming,
              ending,
              behaviour: {
                replayStatus,
                rememberedRefusals: remembers ? [400, 402, 404, 422] : [],
                checks: balanceFirst
                  ? ['auth', 'validation', 'service', 'balance', 'key']
                  : ['auth', 'key', 'validation', 'service', 'balance'],
                orphanedMarkLifetime: 2000,
              },
            })
          }
  return found
}

function isAnonymous({ externalOrderId, idempotencyKey }: IntentPlan): boolean {
  return externalOrderId === undefined && idempotencyKey === undefined
}

export interface Outcome {
  readonly broken: readonly string[]
  /** Effects of the first call and of its remedy. */
  readonly first: readonly EffectKind[]
  readonly second: readonly EffectKind[]
}

const MINUTE = 60_000
const AFTER_BUSY = 125_000
const PAST_WINDOW = 25 * MINUTE
const NO_MISHAP: ReadonlyMap<number, Mishap> = new Map()

/** A plan with one order and nothing else, which never fails. */
export function planOf(intent: IntentPlan): Plan {
  return {
    seed: 1,
    whole: false,
    account: 'shop',
    workers: WORKERS.length,
    client: {
      safeRetryWindow: 20 * MINUTE,
      timeout: 30_000,
      totalTimeout: 120_000,
      maxRetries: 4,
      idempotencyScope: 'apiKey',
      remember: 'order',
    },
    server: {},
    balance: 1000,
    faults: [],
    intents: [intent],
    steps: [],
    rates: { crash: 0, store: 0, network: 0 },
    habits: [],
    sealed: false,
    latency: 0,
    stores: 'shared',
    otherOrders: 0,
    cached: false,
    resends: false,
    ending: 'soon',
  }
}

const WORKERS = ['caller', 'helper', 'caller again'] as const
const [CALLER, HELPER, CALLER_AGAIN] = [0, 1, 2]

/**
 * Runs one schedule: a call, its remedy in another process, the caller's next attempt, and a last
 * recovery without mishaps.
 */
export async function runSchedule(scenario: Scenario, { first, remedy, second }: Schedule): Promise<Outcome> {
  const mishaps = [first, second].map((point) => (point === undefined ? NO_MISHAP : new Map([point])))
  const { naming, behaviour, ending } = scenario
  const { account, ...intent } = naming
  const { fault, times = 1, balance } = ending
  const plan: Plan = {
    ...planOf(intent),
    account,
    server: behaviour,
    balance,
    faults: fault === undefined ? [] : [{ match: { operation: 'createOrder' }, times, action: fault }],
  }
  const world = new World(plan, new Set(), undefined, (process, effect) => mishaps[process - 1]?.get(effect))
  await world.time.run(direct(world, scenario, remedy))
  const [caller, helper] = world.processes
  return {
    broken: brokenPromises(world.log),
    first: caller?.effects ?? [],
    second: helper?.effects ?? [],
  }
}

async function direct(world: World, { ending: { topUp } }: Scenario, remedy: Remedy): Promise<void> {
  const { time, sandbox } = world
  const [intent] = world.intents
  if (intent === undefined) return
  const create = (worker: number): Promise<void> =>
    world
      .process(worker)
      .create(intent, { at: 0, kind: 'create', worker, intent: 0, quantity: 1, otherKey: false }, false)
  const fill = (): void => sandbox.topUp(sandbox.customerId, 1000)

  await create(CALLER)
  if (topUp === 'before recovery') fill()
  const helper = world.process(HELPER)
  if (remedy === 'recover' || remedy === 'create') await time.sleep(world, AFTER_BUSY)
  if (remedy === 'recover late') await time.sleep(world, PAST_WINDOW)
  if (remedy !== 'create') await helper.recover({ takeOver: remedy === 'take over' })
  else if (mayAskAgain(world)) await create(HELPER)

  await time.sleep(world, AFTER_BUSY)
  if (topUp === 'before the caller asks again') fill()
  if (mayAskAgain(world)) await create(CALLER_AGAIN)
  await settle(world)
}

/**
 * A caller that has its order does not call again. Without a name, a second call would be a new
 * order.
 */
function mayAskAgain(world: World): boolean {
  const [intent] = world.intents
  if (intent !== undefined && isAnonymous(intent.plan)) return world.recordOf(intent)?.state !== 'created'
  return !world.log.calls.some(({ told }) => told?.orderId !== undefined)
}

/**
 * Runs the schedules of a scenario: without a mishap, with each mishap at each effect of the call,
 * and with each crash in the call combined with each crash in its remedy. `complete` combines all
 * mishaps, not only crashes.
 */
export async function* enumerate(
  scenario: Scenario,
  complete: boolean,
): AsyncGenerator<readonly [Schedule, Outcome], void, undefined> {
  const { first: effects } = await runSchedule(scenario, { remedy: 'recover' })
  for (const first of [undefined, ...points(effects)]) {
    for (const remedy of REMEDIES) {
      const schedule: Schedule = { remedy, ...(first === undefined ? {} : { first }) }
      const outcome = await runSchedule(scenario, schedule)
      yield [schedule, outcome]
      const paired = complete || first === undefined || DEATHS.has(first[1])
      for (const second of paired ? points(outcome.second) : []) {
        if (!complete && !DEATHS.has(second[1])) continue
        const pair = { ...schedule, second }
        yield [pair, await runSchedule(scenario, pair)]
      }
    }
  }
}

type Point = readonly [effect: number, mishap: Mishap]

function points(effects: readonly EffectKind[]): Point[] {
  return effects.flatMap((kind, effect) => MISHAPS[kind].map((mishap): Point => [effect, mishap]))
}
