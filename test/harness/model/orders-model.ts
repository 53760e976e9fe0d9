/**
 * Compares the public API with a model of a wallet and its orders. fast-check draws commands, and
 * the model predicts each result. After each command, the real client, store and sandbox must agree
 * with the model.
 */
import fc from 'fast-check'
import {
  CustomerOrderingClient,
  isCustomerOrderingError,
  MemoryStore,
  type OrderRecord,
} from '../../../src/index.ts'
import { createSandbox, type FaultAction, type Sandbox } from '../../../src/sandbox/index.ts'
import type { CreateOrderRequest } from '../../../src/schemas/order.ts'
import { all } from '../../support/calls.ts'
import { VirtualTime } from '../../support/virtual-time.ts'
import { scopeOf } from '../core.ts'

const PRICE = 250
const START = 10 * PRICE
const HOUR = 3_600_000
/** Together below the safe-retry window, whatever their number in a run. */
const MOMENT = 1_000

type State = 'none' | 'open' | 'created' | 'rejected'

interface Key {
  readonly generation: number
  /** The time of its first send. */
  since?: number | undefined
}

/** The model's state of an intent. */
interface Intent {
  state: State
  /** True if recovery must not repeat the request. */
  held: boolean
  key: Key
  /** The first key while a later one is current. 0 if it must not be sent again. */
  first?: Key | undefined
  highest: number
  /** Generations with an order at the service. */
  readonly bought: Set<number>
}

/** The state of an intent that was never requested, or was forgotten. */
const unknownIntent = (): Omit<Intent, 'bought'> => ({
  state: 'none',
  held: false,
  key: { generation: 0 },
  first: undefined,
  highest: 0,
})

interface Model {
  balance: number
  now: number
  readonly intents: Intent[]
  anonymous: number
  closed: boolean
}

interface Real {
  readonly time: VirtualTime
  readonly sandbox: Sandbox
  readonly store: MemoryStore
  client: CustomerOrderingClient
}

const NAMES = ['ref-0', 'ref-1', 'key-0'] as const
const isReference = (index: number): boolean => NAMES[index]?.startsWith('ref') === true
const request = (index: number): CreateOrderRequest => ({
  serviceId: 'svc_standard',
  target: `@${NAMES[index]}`,
  quantity: 1,
  ...(isReference(index) ? { metadata: { externalOrderId: NAMES[index] ?? '' } } : {}),
})
const options = (index: number) => (isReference(index) ? {} : { idempotencyKey: NAMES[index] ?? '' })
const nameOf = (index: number) =>
  isReference(index) ? { externalOrderId: NAMES[index] ?? '' } : { idempotencyKey: NAMES[index] ?? '' }

const FAULTS = {
  none: undefined,
  lost: { type: 'drop' },
  'answer lost': { type: 'commitThenDrop' },
  broken: { type: 'status', status: 500 },
  'broken after it': { type: 'status', status: 500, commit: true },
  'too many': { type: 'status', status: 429, code: 'SLOW' },
  refused: { type: 'status', status: 422, code: 'NO' },
} as const satisfies Record<string, FaultAction | undefined>
type Fault = keyof typeof FAULTS
const FAULT_NAMES = Object.keys(FAULTS) as Fault[]

function connect({ sandbox, store, time }: Omit<Real, 'client'>): CustomerOrderingClient {
  const { baseUrl, apiKey, fetch } = sandbox
  return new CustomerOrderingClient(
    { baseUrl, apiKey, fetch, store, account: 'shop', maxRetries: 0, totalTimeout: 60_000 },
    time.runtime({}, ++processes),
  )
}
let processes = 0

function arm({ faults }: Sandbox, fault: Fault): void {
  faults.clear()
  const action = FAULTS[fault]
  if (action !== undefined) faults.add({ match: { operation: 'createOrder' }, times: 1, action })
}

/** The service's result of one request for a generation of an intent. */
type Heard = 'created' | 'nothing' | 'refused' | 'not processed'

function serve(model: Model, { bought, key }: Intent, fault: Fault): Heard {
  const commits = fault === 'none' || fault === 'answer lost' || fault === 'broken after it'
  let paid = bought.has(key.generation)
  if (commits && !paid && model.balance >= PRICE) {
    model.balance -= PRICE
    bought.add(key.generation)
    paid = true
  }
  if (fault === 'too many') return 'not processed'
  if (fault === 'refused') return 'refused'
  if (fault !== 'none') return 'nothing'
  return paid ? 'created' : 'refused'
}

/**
 * Sends one request with the current key. Its window begins whatever the response: a given `fetch`
 * may have sent the request before.
 */
function send(model: Model, intent: Intent, fault: Fault): Heard {
  intent.key.since ??= model.now
  return serve(model, intent, fault)
}

function settle(intent: Intent, heard: Heard, doubt: boolean): void {
  if (heard === 'created') Object.assign(intent, { state: 'created', held: false })
  else if (doubt || heard === 'nothing') {
    intent.state = 'open'
    intent.held = heard === 'refused'
  } else Object.assign(intent, { state: 'rejected', held: false })
}

/** True if the list has an order with that reference, even one from before an abandonment. */
const isListed = ({ bought }: Intent, index: number): boolean => isReference(index) && bought.size > 0

/** True if a key first sent at that time may be sent again. */
const inWindow = ({ now }: Model, since: number = now): boolean => now - since < HOUR / 3 - 60_000

/**
 * Selects the key for a closed order: the first one while its window is open, else the current one
 * while its window is open, else an unsent one. Returns false if a key of the caller's is too old.
 */
function takeKey(model: Model, intent: Intent, index: number): boolean {
  const { key, first } = intent
  if (first !== undefined && inWindow(model, first.since)) {
    intent.key = first
    intent.first = undefined
  } else if (!inWindow(model, key.since)) {
    if (!isReference(index)) return false
    takeNextKey(intent)
  }
  return true
}

function takeNextKey(intent: Intent): void {
  const { key } = intent
  if (key.generation === 0) intent.first = { ...key, since: key.since ?? 0 }
  intent.key = { generation: ++intent.highest }
}

async function told(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'done'
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    return `${error.code} ${error.charged}`
  }
}

function must(held: boolean, what: string): void {
  if (!held) throw new Error(what)
}

/** Compares everything visible from outside with the model. */
async function compare(model: Model, real: Real): Promise<void> {
  const { sandbox, time } = real
  sandbox.faults.clear()
  const balance = sandbox.customer(sandbox.customerId).wallet?.amount
  must(balance === model.balance, `the wallet holds ${balance} instead of ${model.balance}`)
  for (const [index, intent] of model.intents.entries()) {
    const charges = sandbox.ledger.filter(({ orderId }) =>
      sandbox.orders().some(({ id, target }) => id === orderId && target === request(index).target),
    )
    must(
      charges.length === intent.bought.size,
      `${NAMES[index]} was charged ${charges.length} times instead of ${intent.bought.size}`,
    )
    if (model.closed) continue
    const [record] = await time.run(all(real.client.orders.remembered(nameOf(index))))
    must(
      fits(record, intent),
      `${NAMES[index]} is ${JSON.stringify(intent.state)}, and the record ${JSON.stringify(record)}`,
    )
  }
}

function fits(record: OrderRecord | undefined, { state, key }: Intent): boolean {
  if (record === undefined) return state === 'none'
  const { generation, firstSentAt, busyUntil } = record
  return (
    record.state === state &&
    generation === key.generation &&
    firstSentAt === key.since &&
    busyUntil === undefined
  )
}

type Command = fc.AsyncCommand<Model, Real>

const always = (): boolean => true

/** A command that runs a function and then compares. */
class Step implements Command {
  readonly #words: string
  readonly #allowed: (model: Model) => boolean
  readonly #work: (model: Model, real: Real) => Promise<void>

  constructor(
    words: string,
    work: (model: Model, real: Real) => Promise<void>,
    allowed: (model: Model) => boolean = ({ closed }) => !closed,
  ) {
    this.#words = words
    this.#work = work
    this.#allowed = allowed
  }

  check(model: Readonly<Model>): boolean {
    return this.#allowed(model)
  }

  async run(model: Model, real: Real): Promise<void> {
    await this.#work(model, real)
    model.now = real.time.now
    await compare(model, real)
  }

  toString(): string {
    return this.#words
  }
}

const intentOf = (model: Model, index: number): Intent => {
  const intent = model.intents[index]
  if (intent === undefined) throw new TypeError('no such intent')
  return intent
}

/** `create()`: predicts its result from the record and the service. */
function create(index: number, fault: Fault): Command {
  return new Step(`create(${NAMES[index]}) while ${fault}`, async (model, real) => {
    const intent = intentOf(model, index)
    arm(real.sandbox, fault)
    const said = await real.time.run(told(real.client.orders.create(request(index), options(index))))
    const { state } = intent
    if (state === 'created') return must(said === 'done', `a created order was told '${said}'`)
    // Behind the refusal of an old key, the given `fetch` may have bought the order.
    const isHidden = state === 'rejected' && !inWindow(model, intent.key.since) && isListed(intent, index)
    if (isHidden) {
      intent.state = 'created'
      return must(said === 'done', `an order in the list was told '${said}'`)
    }
    const late = state === 'open' ? !inWindow(model, intent.key.since) : !takeKey(model, intent, index)
    if (late) {
      const expected = state === 'rejected' ? 'invalid_request no' : 'unresolved_order unknown'
      return must(said === expected, `an order past its window was told '${said}'`)
    }
    const heard = send(model, intent, fault)
    // After another refusal, it stays refused with its key: no retry is left for another one.
    settle(intent, heard, state === 'open')
    const expected = intent.state === 'created' ? 'done' : intent.state === 'rejected' ? ' no' : ' unknown'
    must(said.endsWith(expected), `told '${said}' instead of '${expected}'`)
  })
}

function createAnonymous(): Command {
  return new Step('create() without a name', async (model, real) => {
    real.sandbox.faults.clear()
    const paid = model.balance >= PRICE
    const order = { serviceId: 'svc_standard', target: '@nobody', quantity: 1 }
    const said = await real.time.run(told(real.client.orders.create(order)))
    if (paid) {
      model.balance -= PRICE
      model.anonymous++
    }
    must(said === (paid ? 'done' : 'payment_required no'), `told '${said}'`)
  })
}

/** `recover()` without faults, or with every request lost. */
function recover(fault: 'none' | 'lost'): Command {
  return new Step(`recover() while ${fault}`, async (model, real) => {
    real.sandbox.faults.clear()
    if (fault === 'lost') real.sandbox.faults.add({ times: 1_000, action: { type: 'drop' } })
    const outcomes = await real.time.run(all(real.client.orders.recover({ concurrency: 1 })))
    // Repeatable orders come first, those near the end of their window before others.
    for (const { record, outcome } of outcomes) {
      const index = NAMES.findIndex((name) => record.slot === `${name.slice(0, 3)}:${name}`)
      if (index < 0) continue
      const intent = intentOf(model, index)
      if (intent.state === 'created') continue
      must(intent.state === 'open', `recover() spoke of ${NAMES[index]}, which is ${intent.state}`)
      if (inWindow(model, intent.key.since) && !intent.held) settle(intent, send(model, intent, fault), true)
      else if (fault === 'none' && isListed(intent, index)) intent.state = 'created'
      const expected: readonly string[] = {
        created: ['created'],
        rejected: ['rejected'],
        open: ['still_open', 'needs_attention'],
        none: [],
      }[intent.state]
      must(
        expected.includes(outcome),
        `recover() told ${outcome} of ${NAMES[index]}, which is ${intent.state}`,
      )
    }
    for (const [index, intent] of model.intents.entries())
      if (intent.state === 'open')
        must(
          outcomes.some(({ record }) => record.slot.endsWith(`:${NAMES[index]}`)),
          `recover() said nothing of ${NAMES[index]}`,
        )
  })
}

function resolve(index: number, as: 'created' | 'abandoned'): Command {
  return new Step(
    `resolve(${NAMES[index]}, ${as})`,
    async (model, real) => {
      const intent = intentOf(model, index)
      real.sandbox.faults.clear()
      const orders = real.sandbox.orders().filter(({ target }) => target === request(index).target)
      const orderId = orders.at(-1)?.id ?? 'ord_none'
      const said = await real.time.run(
        told(
          as === 'created'
            ? real.client.orders.resolve(nameOf(index), { as, orderId })
            : real.client.orders.resolve(nameOf(index), { as }),
        ),
      )
      if (as === 'created') {
        must((said === 'done') === isListed(intent, index), `told '${said}'`)
        if (said === 'done') Object.assign(intent, { state: 'created', held: false })
        return
      }
      must(said === 'done', `told '${said}'`)
      // A person who abandons an order abandons all its keys.
      takeNextKey(intent)
      Object.assign(intent, { state: 'rejected', held: false, first: { generation: 0, since: 0 } })
    },
    (model) => !model.closed && intentOf(model, index).state === 'open' && isReference(index),
  )
}

function forget(index: number): Command {
  return new Step(`forget(${NAMES[index]})`, async (model, real) => {
    const intent = intentOf(model, index)
    const said = await real.time.run(told(real.client.orders.forget(nameOf(index))))
    if (intent.state === 'open') return must(said !== 'done', 'an open order was forgotten')
    must(said === 'done', `told '${said}'`)
    Object.assign(intent, unknownIntent())
  })
}

function passes(by: number): Command {
  return new Step(`${by} ms pass`, async (_model, { time }) => void (await time.advance(by)), always)
}

function topUp(amount: number): Command {
  const work = async (model: Model, { sandbox }: Real): Promise<void> => {
    sandbox.topUp(sandbox.customerId, amount)
    model.balance += amount
  }
  return new Step(`top up ${amount}`, work, always)
}

const emptied = new Step(
  'somebody else empties the wallet',
  async (model, { sandbox }) => {
    sandbox.setBalance(sandbox.customerId, 0)
    model.balance = 0
  },
  always,
)

const lists = new Step('list()', async (model, { time, client, sandbox }) => {
  sandbox.faults.clear()
  const orders = await time.run(client.orders.list({ limit: 2 }).toArray({ max: 1000 }))
  const made = model.intents.reduce((sum, { bought }) => sum + bought.size, model.anonymous)
  const ids = new Set(orders.map(({ id }) => id))
  must(ids.size === made, `${orders.length} orders are listed instead of ${made}`)
  const { amount } = await time.run(client.balance.retrieve())
  must(amount === model.balance, `the balance is ${amount}`)
})

const prunes = new Step('prune', async (model, { store, sandbox }) => {
  const everything = Number.MAX_SAFE_INTEGER
  await store.prune(scopeOf(sandbox.baseUrl, 'shop'), {
    createdBefore: everything,
    rejectedBefore: everything,
  })
  for (const intent of model.intents)
    if (intent.state === 'created' || intent.state === 'rejected') Object.assign(intent, unknownIntent())
})

const closes = new Step('close()', async (model, { time, client }) => {
  await time.run(client.close())
  model.closed = true
  const said = await time.run(told(client.orders.create(request(0))))
  must(said.startsWith('configuration'), `a closed client said '${said}'`)
})

const opens = new Step(
  'open anew',
  async (model, real) => {
    real.client = connect(real)
    model.closed = false
  },
  ({ closed }) => closed,
)

const anIntent = fc.nat(NAMES.length - 1)

/** All commands, with their weights. */
export const commands = (maxCommands: number): fc.Arbitrary<Iterable<Command>> =>
  fc.commands(
    [
      fc.tuple(anIntent, fc.constantFrom(...FAULT_NAMES)).map(([index, fault]) => create(index, fault)),
      anIntent.map((index) => create(index, 'none')),
      anIntent.map((index) => create(index, 'answer lost')),
      fc.constant(createAnonymous()),
      fc.constantFrom<'none' | 'lost'>('none', 'none', 'lost').map(recover),
      fc
        .tuple(fc.nat(1), fc.constantFrom<'created' | 'abandoned'>('created', 'abandoned'))
        .map(([index, as]) => resolve(index, as)),
      anIntent.map(forget),
      fc.constantFrom(MOMENT, HOUR).map(passes),
      fc.constantFrom(PRICE, 3 * PRICE).map(topUp),
      ...[emptied, lists, prunes, closes, opens].map((step) => fc.constant(step)),
    ],
    { maxCommands, size: 'max' },
  )

/** A new world, with the model's state. */
export function setup(): { readonly model: Model; readonly real: Real } {
  const time = new VirtualTime()
  const sandbox = createSandbox({
    balance: START,
    now: () => time.now,
    sleep: (milliseconds) => time.sleep(sandbox, milliseconds),
    services: [{ productId: 'svc_standard', amount: PRICE }],
  })
  const store = new MemoryStore()
  const parts = { time, sandbox, store }
  const intents = NAMES.map((): Intent => ({ ...unknownIntent(), bought: new Set() }))
  return {
    model: { balance: START, now: time.now, intents, anonymous: 0, closed: false },
    real: { ...parts, client: connect(parts) },
  }
}

/** Runs this many drawn runs. Returns the report of a shrunk failure, if any. */
export async function checkModel(runs: number, seed: number): Promise<string | undefined> {
  const property = fc.asyncProperty(commands(40), async (drawn) => {
    await fc.asyncModelRun(setup, drawn)
  })
  const details = await fc.check(property, { numRuns: runs, seed })
  return details.failed ? `${fc.defaultReportMessage(details)}\n${String(details.errorInstance)}` : undefined
}
