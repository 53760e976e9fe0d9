import type { SandboxOrder } from '../../../src/sandbox/index.ts'
import { brokenPromises } from '../../support/invariants.ts'
import { Deadlock, Livelock } from '../../support/virtual-time.ts'
import { LONGEST_FLIGHT } from './mishaps.ts'
import { type Plan, type Step, skewOf } from './plan.ts'
import { type Without, World } from './world.ts'

/** What came of a seed. */
export interface Result {
  readonly broken: readonly string[]
  /** True if the run ended in an error that no caller may get, so that its log ends early and proves no promise broken. */
  readonly threw: boolean
  /** What the run could do without: steps, faults of the service, mishaps. */
  readonly parts: readonly string[]
  /** What happened, in words, if that was asked for. */
  readonly trace: readonly string[]
  readonly requests: number
  readonly charges: number
  readonly deaths: number
}

export interface SimulateOptions {
  readonly without?: Without
  readonly traced?: boolean
}

const NOTHING: Without = new Set()
/** What a living process may still do in the background: attempts to store a proven charge, over four minutes. */
const BACKGROUND = 6 * 60_000
/** A claim by a call holds others off for no longer. */
const AFTER_BUSY = 125_000

/** Runs a plan from its first step to a last recovery without any trouble, and looks for broken promises. */
export async function simulate(
  plan: Plan,
  { without = NOTHING, traced = false }: SimulateOptions = {},
): Promise<Result> {
  const trace: string[] | undefined = traced ? [] : undefined
  const world = new World(plan, without, trace)
  const broken: string[] = []
  let threw = false
  const run = async (part: Promise<void>): Promise<void> => {
    try {
      await world.time.run(part)
    } catch (error) {
      threw = !(error instanceof Deadlock || error instanceof Livelock)
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      broken.push(threw ? `threw ${text}` : `I9: ${text}`)
    }
  }
  await run(direct(world))
  broken.push(...brokenPromises(world.log))
  // Nothing of this is in the log that the invariants judge.
  if (plan.listedBy !== undefined && broken.length === 0) await run(readList(world, plan.listedBy, broken))
  const { log, processes, mishaps } = world
  return {
    broken,
    threw,
    parts: [
      ...plan.steps.map((_, index) => `step:${index}`),
      ...plan.faults.map((_, index) => `fault:${index}`),
      ...mishaps.map((name) => `mishap:${name}`),
      ...(plan.latency > 0 ? ['latency'] : []),
    ].filter((part) => !without.has(part)),
    trace: trace ?? [],
    requests: log.requests.length,
    charges: log.charges.length,
    deaths: processes.filter(({ died }) => died).length,
  }
}

async function direct(world: World): Promise<void> {
  const { plan, time, without } = world
  const actions: Promise<void>[] = []
  const begin = time.now
  for (const [index, step] of plan.steps.entries()) {
    if (step.at > time.now - begin) await time.sleep(world, step.at - (time.now - begin))
    if (without.has(`step:${index}`)) continue
    const action = act(world, step)
    actions.push(action)
    // It is waited for below; until then, nobody else takes its error.
    action.catch(() => {})
  }
  // Calls of processes that died never end, which `act` knows.
  await Promise.all(actions)
  await settle(world)
}

/** Ends all trouble and, in peace, every process; then another one recovers what is open. */
export async function settle(world: World): Promise<void> {
  const { plan, time, log } = world
  world.troubled = false
  world.note('everybody', () => 'no more trouble')
  world.sandbox.faults.clear()
  await time.sleep(world, LONGEST_FLIGHT + BACKGROUND)
  for (const process of world.processes) {
    // What a machine that was asleep has to do is done when it wakes, and answers on their way reach it later, too.
    const rest = process.wakesAt + LONGEST_FLIGHT + BACKGROUND - time.now
    if (!process.died && rest > 0) await time.sleep(world, rest)
    if (!process.died) await process.close()
  }
  for (const process of world.processes) {
    if (process.died) continue
    log.leftovers += time.pending(process)
    process.kill()
  }
  // By every clock, also by one that went ahead when it wrote the record.
  if (plan.ending === 'late')
    await time.sleep(world, plan.client.safeRetryWindow + AFTER_BUSY + skewOf(plan.steps))
  // A clock that is right, and the newest API key.
  const last = plan.workers
  world.rotateToNewest(last)
  // What was only written down is sent for the first time now, and a slow service may not answer in time.
  if (plan.steps.some(({ kind }) => kind === 'enqueue')) {
    await world.process(last).recover({ takeOver: true, replay: 'safe' })
    await time.sleep(world, plan.client.safeRetryWindow + AFTER_BUSY + skewOf(plan.steps))
  }
  await world.process(last).recover({ takeOver: true, replay: 'safe' })
  log.recovered = true
  log.secrets.push(...world.apiKeys)
}

/** Reads the list to its end, where every order that was charged has to be. */
async function readList(world: World, limit: number, broken: string[]): Promise<void> {
  const { plan, sandbox, time } = world
  const { ordering, ignoreOffset, readLag = 0 } = plan.server
  // Nobody finds everything in a list whose rows are shuffled for each page.
  if (ordering === 'random' || ignoreOffset === true) return
  // What was bought last is not in the list at once.
  await time.sleep(world, readLag)
  const listed = await world.process(plan.workers).list(limit)
  for (const { orderId } of sandbox.ledger)
    if (!listed.has(orderId)) broken.push(`I2: order ${orderId} is not in the list`)
}

async function act(world: World, step: Step): Promise<void> {
  const { sandbox, time } = world
  // A sleeping process does what it is told when it wakes.
  if ('worker' in step && step.kind !== 'kill')
    for (let wait = 1; wait > 0; ) {
      wait = world.process(step.worker).sleepsFor
      if (wait > 0) await time.sleep(world, wait)
    }
  switch (step.kind) {
    case 'create': {
      const intent = world.intents[step.intent]
      if (intent === undefined) return
      const { externalOrderId, idempotencyKey } = intent.plan
      const anonymous = externalOrderId === undefined && idempotencyKey === undefined
      // Without a name, asking again for an order that may exist by now may be a new order.
      const record = world.recordOf(intent)
      const isMade = (record?.state === 'created' && record.readable) || world.hasBeenTold(intent)
      const asksAnew = anonymous && (isMade || world.isUncertain(intent))
      return await world.process(step.worker).create(intent, step, asksAnew)
    }
    case 'recover': {
      // The same goes for a recovery beside a call for an order without a name.
      for (const running of world.running) {
        const { intent, asksForOpen } = running
        const named = intent?.plan.externalOrderId ?? intent?.plan.idempotencyKey
        if (intent === undefined || named !== undefined || asksForOpen) continue
        intent.logged.wanted++
        running.anew++
      }
      const { takeOver, replay } = step
      return await world.process(step.worker).recover({ takeOver, replay })
    }
    case 'enqueue': {
      const intent = world.intents[step.intent]
      return intent && (await world.process(step.worker).enqueue(intent))
    }
    case 'kill':
      return world.process(step.worker).kill()
    case 'resolve': {
      const intent = world.intents[step.intent]
      // A person decides by evidence: an order that is there, or nothing under way that could still become one.
      if (intent === undefined || world.isUncertain(intent)) return
      world.observe()
      const record = world.recordOf(intent)
      if (record?.state !== 'open') return
      const charge = world.log.charges.find(({ key }) => key === record.key)
      // Who finds only another integration's order of that name may take it for this one.
      const { externalOrderId } = record
      const isNamed = ({ metadata }: SandboxOrder): boolean =>
        metadata?.['externalOrderId'] === externalOrderId
      const other = world.log.otherOrders > 0 ? sandbox.orders().find(isNamed)?.id : undefined
      return await world.process(step.worker).resolve(intent, charge?.orderId ?? other)
    }
    case 'topUp':
      return sandbox.topUp(sandbox.customerId, step.amount)
    case 'jump':
      world.note(`worker ${step.worker + 1}`, () => `clock jumps by ${step.by} ms`)
      return world.jump(step.worker, step.by)
    case 'rotate':
      world.note(`worker ${step.worker + 1}`, () => 'has the new API key')
      return world.rotate(step.worker)
    case 'revoke': {
      const [first] = world.apiKeys
      if (world.apiKeys.length === 2 && first !== undefined) sandbox.revokeApiKey(first)
      return
    }
    case 'correct':
      world.note(`worker ${step.worker + 1}`, () => 'clock is right')
      return world.jump(step.worker, -world.offset(step.worker))
    case 'backup':
      return await world.backUp()
    case 'lose':
      return await world.lose(step.to)
    case 'elsewhere': {
      const reference = world.intents[step.intent]?.plan.externalOrderId
      if (reference !== undefined) world.addOrder(reference)
      return
    }
    case 'publish':
      sandbox.addService({ productId: 'svc_standard', amount: 250, published: step.published })
  }
}
