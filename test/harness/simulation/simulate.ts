import { defined } from '../../../src/defined.ts'
import type { SandboxOrder } from '../../../src/sandbox/index.ts'
import { brokenPromises, isVague } from '../../support/invariants.ts'
import { Deadlock, Livelock } from '../../support/virtual-time.ts'
import { isConflict } from '../core.ts'
import { LONGEST_FLIGHT } from './mishaps.ts'
import { type Plan, type Step, skewOf } from './plan.ts'
import { PRICE } from './scenes.ts'
import { type Without, World } from './world.ts'

export interface Result {
  readonly broken: readonly string[]
  /**
   * True if the run ended in an error that no caller may get. Then its log ends early and proves no
   * broken promise.
   */
  readonly threw: boolean
  /** The parts that the run may omit: steps, faults of the service, mishaps. */
  readonly parts: readonly string[]
  /** A description of the events, if requested. */
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
/** Time for background work of a living process. */
const BACKGROUND = 6 * 60_000
/** Maximum time that a call's claim keeps others away. */
const AFTER_BUSY = 125_000

/** Runs a plan from its first step to a last recovery without mishaps, and checks the promises. */
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
  // These checks use nothing from the log of the invariants.
  if (plan.listedBy !== undefined && broken.length === 0) await run(readList(world, plan.listedBy, broken))
  if (broken.length === 0 && !world.log.lost && plan.stores === 'shared') await run(buyAgain(world, broken))
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
    // It is awaited below. Until then, its error must not count as unhandled.
    action.catch(() => {})
  }
  // Calls of dead processes never end. `act` handles that.
  await Promise.all(actions)
  await settle(world)
}

/** Ends all mishaps, and ends every process cleanly. Then another process recovers open orders. */
export async function settle(world: World): Promise<void> {
  const { plan, time, log } = world
  world.troubled = false
  world.note('everybody', () => 'no more trouble')
  world.sandbox.faults.clear()
  await time.sleep(world, LONGEST_FLIGHT + BACKGROUND)
  for (const process of world.processes) {
    // A sleeping machine does its work when it wakes, and receives responses in transit later, too.
    const rest = process.wakesAt + LONGEST_FLIGHT + BACKGROUND - time.now
    if (!process.died && rest > 0) await time.sleep(world, rest)
    if (!process.died) await process.close()
  }
  for (const process of world.processes) {
    if (process.died) continue
    log.leftovers += time.pending(process)
    process.kill()
  }
  // By every clock, even one that was ahead when it wrote the record.
  if (plan.ending === 'late')
    await time.sleep(world, plan.client.safeRetryWindow + AFTER_BUSY + skewOf(plan.steps))
  // A correct clock, and the newest API key.
  const last = plan.workers
  world.rotateToNewest(last)
  await world.process(last).recover({ takeOver: true })
  log.recovered = true
  log.secrets.push(...world.apiKeys)
}

/** Reads the complete list, which must contain every charged order. */
async function readList(world: World, limit: number, broken: string[]): Promise<void> {
  const { plan, sandbox, time } = world
  const { ordering, ignoreOffset, readLag = 0 } = plan.server
  // A list whose rows are shuffled for each page cannot be read completely.
  if (ordering === 'random' || ignoreOffset === true) return
  // The newest orders do not appear in the list immediately.
  await time.sleep(world, readLag)
  const listed = await world.process(plan.workers).list(limit)
  for (const { orderId } of sandbox.ledger)
    if (!listed.has(orderId)) broken.push(`I2: order ${orderId} is not in the list`)
}

/**
 * Once its cause is gone, an order that was cleanly refused can be bought again: perhaps not by the
 * next call, which may hear a refusal that the service remembers.
 */
async function buyAgain(world: World, broken: string[]): Promise<void> {
  const { plan, sandbox, log } = world
  sandbox.topUp(sandbox.customerId, 100 * PRICE)
  sandbox.addService({ productId: 'svc_standard', amount: PRICE, published: true })
  for (const [index, intent] of world.intents.entries()) {
    const record = world.recordOf(intent)
    if (record?.state !== 'rejected' || isConflict(record)) continue
    const { plan: naming, logged } = intent
    const otherKey = record.key === `other-${naming.name}`
    const step = {
      at: 0,
      kind: 'create',
      worker: plan.workers,
      intent: index,
      quantity: 1,
      otherKey,
    } as const
    const buyer = world.process(plan.workers)
    for (let call = 0; call < CALLS_TO_BUY; call++) {
      if (log.calls.at(-1)?.told?.orderId !== undefined && call > 0) break
      await buyer.create(intent, step, false)
    }
    const { told, id } = log.calls.at(-1) ?? {}
    if (told?.orderId !== undefined && told.code === undefined) continue
    // The call had to look the order up first, in a list that cannot be read or that proves nothing.
    const looked = log.reads.some(({ call }) => call === id)
    const isDoubt = told?.code === 'unresolved_order' && isVague(log)
    if (looked && (plan.server.ignoreOffset === true || isDoubt)) continue
    // A key that its caller gave never changes, and is not sent after its window.
    const isGiven = record.keyOrigin === 'caller'
    if (isGiven && told?.code === 'invalid_request') continue
    const { status } = await world.sell(intent, isGiven ? record.key : `another key of ${naming.name}`)
    if (status < 300)
      broken.push(`I12: ${logged.name} was refused, is told '${told?.code}' since, and the service sells it`)
  }
}

/** How many calls it takes at most to leave a key whose refusal the service remembers. */
const CALLS_TO_BUY = 3

export async function act(world: World, step: Step): Promise<void> {
  const { sandbox, time } = world
  // A sleeping process acts when it wakes.
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
      // Without a name, another call for an order that may exist by now may be a new order.
      const record = world.recordOf(intent)
      const isMade = (record?.state === 'created' && record.readable) || world.hasBeenTold(intent)
      const asksAnew = anonymous && (isMade || world.isUncertain(intent))
      return await world.process(step.worker).create(intent, step, asksAnew)
    }
    case 'recover': {
      // The same applies to a recovery concurrent with a call for an anonymous order.
      for (const running of world.running) {
        const { intent, asksForOpen } = running
        const named = intent?.plan.externalOrderId ?? intent?.plan.idempotencyKey
        if (intent === undefined || named !== undefined || asksForOpen) continue
        intent.logged.wanted++
        running.anew++
      }
      return await world.process(step.worker).recover({ takeOver: step.takeOver })
    }
    case 'kill':
      return world.process(step.worker).kill()
    case 'resolve': {
      const intent = world.intents[step.intent]
      // A person decides on evidence: an existing order, or nothing in transit that could still
      // become one. A hasty person does not wait for calls, which the claim must protect.
      if (intent === undefined || (step.hasty === true ? world.hasStray(intent) : world.isUncertain(intent)))
        return
      world.observe()
      const record = world.recordOf(intent)
      if (record?.state !== 'open') return
      const charge = world.log.charges.find(({ key }) => key === record.key)
      // A person who finds only another integration's order with that name may take it for this
      // one.
      const { externalOrderId } = record
      const isNamed = ({ metadata }: SandboxOrder): boolean =>
        metadata?.['externalOrderId'] === externalOrderId
      const other = world.log.otherOrders > 0 ? sandbox.orders().find(isNamed)?.id : undefined
      return await world.process(step.worker).resolve(intent, charge?.orderId ?? other, charge !== undefined)
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
      const { externalOrderId, name } = world.intents[step.intent]?.plan ?? {}
      const quantity = step.unlike === undefined ? 7 : 1
      const target = step.unlike === 'sourceSystem' ? { target: name } : {}
      if (externalOrderId !== undefined) world.addOrder(externalOrderId, { quantity, ...defined(target) })
      return
    }
    case 'publish':
      sandbox.addService({ productId: 'svc_standard', amount: 250, published: step.published })
  }
}
