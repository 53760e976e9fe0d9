/**
 * Runs the real client in every order of the effects of concurrent calls, with a given number of
 * mishaps among them. Knows nothing of how an order is sent: an effect is an operation of the store
 * or a request.
 */
import { brokenPromises } from '../../support/invariants.ts'
import { Deadlock } from '../../support/virtual-time.ts'
import { type EffectKind, MINUTE, type Mishap } from '../simulation/mishaps.ts'
import type { Action, IntentPlan, Plan } from '../simulation/plan.ts'
import { act, settle } from '../simulation/simulate.ts'
import { type Offer, World } from '../simulation/world.ts'

const OF_WRITES: readonly Mishap[] = [
  ...(['crash before', 'crash after', 'crash while it flies', 'unacknowledged', 'failed', 'late'] as const),
]
// A crash after a read equals one before the next effect.
const OF_READS: readonly Mishap[] = ['crash before', 'failed']

/** What may go wrong at each kind of effect. */
const MISHAPS: Readonly<Record<EffectKind, readonly Mishap[]>> = {
  get: OF_READS,
  insert: OF_WRITES,
  update: OF_WRITES,
  list: [],
  send: OF_WRITES.filter((mishap) => mishap !== 'late'),
  fetch: OF_READS,
  seal: [],
}

/** A plan with one order and nothing else, which never fails. */
const planOf = (intent: IntentPlan): Plan => ({
  ...{ seed: 1, whole: false, account: 'shop', workers: 3, balance: 1000, server: {}, sealed: false },
  client: {
    ...{ safeRetryWindow: 20 * MINUTE, timeout: 30_000, totalTimeout: 120_000, maxRetries: 4 },
    ...{ idempotencyScope: 'apiKey', remember: 'order' },
  },
  ...{ faults: [], intents: [intent], steps: [], habits: [], rates: { crash: 0, store: 0, network: 0 } },
  ...{ latency: 0, stores: 'shared', otherOrders: 0, cached: false, resends: false, ending: 'soon' },
})

export type LaneStep = Action | { readonly kind: 'pass'; readonly minutes: number }

/** One order, and what happens at the same time. */
export interface Setting {
  readonly name: string
  readonly intent: IntentPlan
  readonly lanes: readonly (readonly LaneStep[])[]
  readonly plan?: Partial<Plan>
  readonly mishaps: number
}

/** The choices of one run, by their numbers. The rest of a run takes the first choice each time. */
type Choices = readonly number[]

interface Outcome {
  readonly broken: readonly string[]
  readonly trace: readonly string[]
  /** The choices that were taken, and how many there were each time. */
  readonly taken: Choices
  readonly widths: readonly number[]
  /** True if the run came to a state that another one has seen, and ended there. */
  readonly known: boolean
}

const NONE: ReadonlySet<string> = new Set()

/** Runs one order of effects, until it comes to a state that another run has seen. */
async function runInOrder(
  setting: Setting,
  choices: Choices,
  { traced = false, seen = new Set() }: { readonly traced?: boolean; readonly seen?: Set<number> } = {},
): Promise<Outcome> {
  const trace: string[] | undefined = traced ? [] : undefined
  const world = new World({ ...planOf(setting.intent), ...setting.plan }, NONE, trace)
  const taken: number[] = []
  const widths: number[] = []
  const choose = (options: readonly (() => void)[], lanes: string): boolean => {
    // The state after the last given choice is the first new one.
    if (taken.length >= choices.length) {
      const state = stateOf(world, lanes)
      if (seen.has(state)) return false
      seen.add(state)
    }
    const choice = choices[taken.length] ?? 0
    taken.push(choice)
    widths.push(options.length)
    options[choice]?.()
    return true
  }
  const broken: string[] = []
  try {
    if (!(await inChosenOrder(world, setting, choose)))
      return { broken, trace: trace ?? [], taken, widths, known: true }
    await world.time.run(settle(world))
  } catch (error) {
    if (!(error instanceof Deadlock)) throw error
    broken.push(`I9: ${error.message}`)
  }
  broken.push(...brokenPromises(world.log))
  return { broken, trace: trace ?? [], taken, widths, known: false }
}

/**
 * The same number for runs that go on alike and are judged alike: in both, each process has learnt
 * the same, and whatever the promises are about has happened in the same order.
 */
function stateOf({ log, processes, time, offers = [] }: World, lanes: string): number {
  const events = [
    ...log.rows.map(({ at, version, record }) => [at, `${version} ${JSON.stringify(record)}`] as const),
    ...log.requests.flatMap(({ at, call, key, status, answeredAt }) => [
      [at, `${call} ${key}`] as const,
      ...(answeredAt === undefined ? [] : [[answeredAt, `${call} ${status}`] as const]),
    ]),
    ...log.charges.map(({ at, key }) => [at, key] as const),
    ...log.calls.flatMap(({ at, id, endedAt, told }) => [
      [at, `call ${id}`] as const,
      ...(endedAt === undefined ? [] : [[endedAt, `${id} ${JSON.stringify(told)}`] as const]),
    ]),
  ].sort(([one], [other]) => one - other)
  const parts = [
    time.now,
    lanes,
    ...events.map(([, what]) => what),
    ...processes.map(({ name, died, history }) => `${name} ${died} ${history}`),
    ...offers.map(({ process, kind }) => `${process.name} ${kind}`).sort(),
  ]
  return numberOf(parts.join('\n'))
}

/** A number of 53 bits (cyrb53): states are too many to keep their texts. */
function numberOf(text: string): number {
  let one = 0xdeadbeef
  let other = 0x41c6ce57
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    one = Math.imul(one ^ unit, 2654435761)
    other = Math.imul(other ^ unit, 1597334677)
  }
  one = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(other ^ (other >>> 13), 3266489909)
  other = Math.imul(other ^ (other >>> 16), 2246822507) ^ Math.imul(one ^ (one >>> 13), 3266489909)
  return 4294967296 * (2097151 & other) + (one >>> 0)
}

/**
 * Lets everything happen that may happen next, until the last lane has ended. Returns false if a
 * choice ends the run.
 */
async function inChosenOrder(
  world: World,
  { lanes, mishaps }: Setting,
  choose: (options: readonly (() => void)[], lanes: string) => boolean,
): Promise<boolean> {
  const { time } = world
  const rest = lanes.map((steps) => [...steps])
  const busy = new Set<number>()
  const failures: unknown[] = []
  const begin = (lane: number, step: LaneStep): void => {
    busy.add(lane)
    const action =
      step.kind === 'pass' ? time.sleep(world, step.minutes * MINUTE) : act(world, { ...step, at: 0 })
    action.catch((error: unknown) => failures.push(error)).finally(() => busy.delete(lane))
  }
  let left = mishaps
  world.offers = []
  for (;;) {
    await time.turn()
    const [failure] = failures
    if (failure !== undefined) throw failure
    if (time.fire(time.now)) continue
    // The effects of a process that has died since never happen.
    const offers: Offer[] = world.offers.filter(({ process }) => !process.died)
    world.offers = offers
    const happen = (index: number, mishap: Mishap | undefined) => (): void => {
      if (mishap !== undefined) left--
      const [offer] = offers.splice(index, 1)
      offer?.happen(mishap)
    }
    const options = [
      ...rest.flatMap((steps, lane) => {
        const [step] = steps
        if (step === undefined || busy.has(lane)) return []
        return () => {
          steps.shift()
          begin(lane, step)
        }
      }),
      ...offers.map((_, index) => happen(index, undefined)),
      ...(left > 0 ? offers.flatMap(({ kind }, at) => MISHAPS[kind].map((each) => happen(at, each))) : []),
    ]
    if (options.length > 0) {
      const lanes = `${rest.map(({ length }) => length)} ${[...busy].sort()} ${left}`
      if (!choose(options, lanes)) return false
    } else if (busy.size === 0) break
    else if (!time.fire()) throw new Deadlock()
  }
  world.offers = undefined
  return true
}

/** The choices of the next run: the last one that has another. */
function nextOf({ taken, widths }: Outcome): Choices | undefined {
  const last = taken.findLastIndex((choice, index) => choice + 1 < (widths[index] ?? 0))
  return last < 0 ? undefined : [...taken.slice(0, last), (taken[last] ?? 0) + 1]
}

export interface Found {
  /** Runs, without those that ended in a known state. */
  readonly runs: number
  /** False if the search stopped before every order was run. */
  readonly whole: boolean
  readonly broken: string | undefined
}

/** Searches every order of a setting for a broken promise, in up to a number of runs. */
export async function searched(setting: Setting, most: number): Promise<Found> {
  const seen = new Set<number>()
  let choices: Choices | undefined = []
  let runs = 0
  for (let all = 0; choices !== undefined && all < most; all++) {
    const outcome: Outcome = await runInOrder(setting, choices, { seen })
    const { broken, taken, known } = outcome
    if (!known) runs++
    if (broken.length > 0) {
      const { trace } = await runInOrder(setting, taken, { traced: true })
      return { runs, whole: false, broken: [...broken, setting.name, ...trace].join('\n') }
    }
    choices = nextOf(outcome)
  }
  return { runs, whole: choices === undefined, broken: undefined }
}
