import type { FaultAction, SandboxBehaviour } from '../../../src/sandbox/index.ts'
import {
  CrashWorld,
  DEATHS,
  type EffectKind,
  type Mishap,
  type OrderNaming,
  type Process,
} from '../../support/crash-world.ts'
import { brokenPromises } from '../../support/invariants.ts'

/** An order to be placed, what the service makes of it, and how the service acts where its documentation is silent. */
export interface Scenario {
  readonly name: string
  readonly naming: OrderNaming
  readonly behaviour: Partial<SandboxBehaviour>
  readonly ending: Ending
  /** How the order begins: placed at once, or written down for recovery to send. */
  readonly begin: 'create' | 'enqueue'
}

/** What the service has in store for the first request, and for the wallet. */
interface Ending {
  readonly name: string
  readonly fault?: FaultAction
  readonly times?: number
  /** What the wallet holds; the order costs 250. */
  readonly balance: number
  /** When the wallet is filled up. */
  readonly topUp?: 'before recovery' | 'before the caller asks again'
}

/** What is done about the first call, by another process. */
type Remedy = 'recover' | 'take over' | 'create' | 'recover late'

/** What goes wrong in one schedule: at which effect of the call, and of its remedy. */
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

const BEGINNINGS = ['create', 'enqueue'] as const

const REMEDIES: readonly Remedy[] = ['recover', 'take over', 'create', 'recover late']

const OF_WRITES: readonly Mishap[] = ['before', 'after', 'flying', 'unacknowledged', 'failed', 'late']
// An effect that only looks has no after of its own.
const OF_READS: readonly Mishap[] = ['before', 'failed']

/** What can go wrong with each kind of effect. */
const MISHAPS: Readonly<Record<EffectKind, readonly Mishap[]>> = {
  get: OF_READS,
  insert: OF_WRITES,
  update: OF_WRITES,
  send: ['before', 'after', 'flying', 'unacknowledged', 'failed'],
  fetch: OF_READS,
}

/** Every combination of a naming, a service and an ending; `complete` also of each with both statuses of replays. */
export function scenarios(complete: boolean): Scenario[] {
  const found: Scenario[] = []
  for (const naming of NAMINGS)
    for (const remembers of [false, true])
      for (const balanceFirst of [false, true])
        for (const [index, ending] of ENDINGS.entries())
          for (const [begin, replayStatus] of BEGINNINGS.flatMap((begin) => [
            [begin, 200] as const,
            [begin, 201] as const,
          ])) {
            if (begin === 'enqueue' && isAnonymous(naming)) continue
            if (begin === 'enqueue' && !complete && remembers !== balanceFirst) continue
            if (!complete && replayStatus !== 200 + ((index + Number(remembers)) % 2)) continue
            found.push({
              name: [
                naming.name,
                ...(begin === 'enqueue' ? ['written down first'] : []),
                ending.name,
                remembers ? 'refusals remembered' : 'refusals forgotten',
                balanceFirst ? 'balance before key' : 'key before balance',
                `replays ${replayStatus}`,
              ].join(', '),
              naming,
              ending,
              begin,
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

function isAnonymous({ externalOrderId, idempotencyKey }: OrderNaming): boolean {
  return externalOrderId === undefined && idempotencyKey === undefined
}

/** What came of a schedule. */
export interface Outcome {
  readonly broken: readonly string[]
  /** Effects of the first call and of its remedy. */
  readonly first: readonly EffectKind[]
  readonly second: readonly EffectKind[]
}

const AFTER_BUSY = 125_000
const PAST_WINDOW = 25 * 60_000

/** Runs one schedule: a call, its remedy by another process, the caller's next try, a last recovery without mishaps. */
export async function runSchedule(
  { naming, behaviour, ending, begin }: Scenario,
  { first, remedy, second }: Schedule,
): Promise<Outcome> {
  const { fault, times, balance, topUp } = ending
  const faults =
    fault === undefined
      ? []
      : [{ match: { operation: 'createOrder' as const }, times: times ?? 1, action: fault }]
  const world = new CrashWorld(naming, { behaviour, balance, faults })
  const processes: Process[] = []
  const start = (mishap?: readonly [number, Mishap]): Process => {
    const process = world.start(mishap === undefined ? undefined : new Map([mishap]))
    processes.push(process)
    return process
  }
  const fill = (): void => world.sandbox.topUp(world.sandbox.customerId, 1000)

  const caller = start(first)
  await caller[begin]()
  if (topUp === 'before recovery') fill()
  const helper = start(second)
  if (remedy === 'recover' || remedy === 'create') await world.time.advance(AFTER_BUSY)
  if (remedy === 'recover late') await world.time.advance(PAST_WINDOW)
  if (remedy !== 'create') await helper.recover({ takeOver: remedy === 'take over' })
  else if (mayAskAgain(world)) await helper.create()

  await world.time.advance(AFTER_BUSY)
  if (topUp === 'before the caller asks again') fill()
  if (mayAskAgain(world)) await start().create()
  await start().recover({ takeOver: true })
  world.log.recovered = true
  // What a living process still does in the background ends by itself.
  await world.time.advance(10 * 60_000)
  for (const process of processes) if (!process.died) world.log.leftovers += world.time.pending(process)
  return { broken: brokenPromises(world.log), first: caller.effects, second: helper.effects }
}

/** A caller that has its order does not ask again; without a name, asking again for an order that exists is a new one. */
function mayAskAgain({ log, naming, record }: CrashWorld): boolean {
  if (isAnonymous(naming)) return record?.state !== 'created'
  return !log.calls.some(({ told }) => told?.orderId !== undefined)
}

/**
 * Runs the schedules of a scenario: no mishap; each mishap at each effect of the call; and each crash in the call with
 * each crash in its remedy. `complete` pairs everything that can go wrong, not only crashes.
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
