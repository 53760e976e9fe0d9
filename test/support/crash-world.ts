import { isCustomerOrderingError } from '../../src/errors.ts'
import { Reporter } from '../../src/hooks.ts'
import type { CallSettings } from '../../src/http/call.ts'
import type { AttemptRequest, AttemptResult, Transport } from '../../src/http/transport.ts'
import { readIntent } from '../../src/idempotency/intent.ts'
import { Journal } from '../../src/idempotency/journal.ts'
import { liveCalls } from '../../src/idempotency/live.ts'
import type { InsertResult, OrderStore, StoredRow } from '../../src/idempotency/store.ts'
import { enqueueOrder } from '../../src/resources/enqueue.ts'
import type { OrderContext } from '../../src/resources/order-context.ts'
import { placeOrder } from '../../src/resources/place-order.ts'
import { type RecoverSettings, recover } from '../../src/resources/recover.ts'
import {
  createSandbox,
  type Sandbox,
  type SandboxOptions,
  type SandboxReply,
} from '../../src/sandbox/index.ts'
import type { CreateOrderRequest, Order } from '../../src/schemas/order.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import { type LoggedCall, type LoggedIntent, RunRecorder, recoveredOf, type Told } from './run-log.ts'
import { storeOver } from './store-over.ts'
import { VirtualTime } from './virtual-time.ts'

/** What happens at one effect of a process. A process "dies" by never hearing anything again. */
export type Mishap =
  /** It dies before the effect. */
  | 'before'
  /** The effect takes place, and the process dies before it hears so. */
  | 'after'
  /** Requests: it dies at once; the request arrives a while later. */
  | 'flying'
  /** The effect takes place and its answer is lost: the store fails, the connection is reset. The process lives on. */
  | 'unacknowledged'
  /** The effect does not take place, and an error says so. */
  | 'failed'
  /** Nothing is heard of the effect; the store applies a write long after it was given up. */
  | 'late'

/** An effect that a process has on the world outside of it. */
export type EffectKind = 'get' | 'insert' | 'update' | 'send' | 'fetch'

export const DEATHS: ReadonlySet<Mishap> = new Set(['before', 'after', 'flying'])

/** How one order is named, and for which account. */
export interface OrderNaming {
  readonly name: string
  readonly account: string | undefined
  readonly externalOrderId?: string
  readonly idempotencyKey?: string
}

export const TOTAL_TIMEOUT = 120_000
export const SAFE_RETRY_WINDOW: number = 20 * 60_000
export const MAX_RETRIES = 4
/** How long a request flies whose sender died, and how long a hanging store takes. */
const FLIGHT = 3000
const LATENESS = 30_000

const SCOPE = 'world'
const SETTINGS: CallSettings = {
  signal: undefined,
  timeout: 30_000,
  totalTimeout: TOTAL_TIMEOUT,
  maxRetries: MAX_RETRIES,
  headers: {},
}

/** A service, a store that survives everything, and processes that can die at each of their effects. */
export class CrashWorld {
  readonly time: VirtualTime = new VirtualTime()
  readonly log: RunRecorder = new RunRecorder()
  readonly sandbox: Sandbox
  readonly store: MemoryStore = new MemoryStore()
  readonly naming: OrderNaming
  readonly intent: LoggedIntent
  readonly #request: CreateOrderRequest
  #processes = 0

  constructor(naming: OrderNaming, options: SandboxOptions) {
    this.naming = naming
    const server = {}
    this.sandbox = createSandbox({
      ...options,
      now: () => this.time.now,
      sleep: (milliseconds) => this.time.sleep(server, milliseconds),
    })
    const { externalOrderId, idempotencyKey, name } = naming
    this.#request = {
      serviceId: 'svc_standard',
      target: name,
      quantity: 1,
      ...(externalOrderId === undefined ? {} : { metadata: { externalOrderId } }),
    }
    const { deriveId } = this.time.runtime(server, 0)
    const { slot } = readIntent(deriveId, this.#request, { idempotencyKey })
    this.intent = this.log.intent(name, [slot])
  }

  /** Starts a process; `mishaps` says what happens at which of its effects, counted from 0. */
  start(mishaps: ReadonlyMap<number, Mishap> = new Map()): Process {
    return new Process(this, ++this.#processes, mishaps)
  }

  /** The request that every process of this world makes. */
  get request(): CreateOrderRequest {
    return this.#request
  }

  /** The record as it is now. */
  get record() {
    const ids = new Set(
      this.log.rows.filter(({ record }) => record?.slot === this.intent.slots[0]).map(({ id }) => id),
    )
    return this.log.rows.findLast(({ id }) => ids.has(id))?.record
  }
}

/** One process over the world's store: a client, as far as placing and recovering orders goes. */
export class Process {
  /** The effects that it had so far. */
  readonly effects: EffectKind[] = []
  died = false
  readonly #world: CrashWorld
  readonly #context: OrderContext
  readonly #mishaps: ReadonlyMap<number, Mishap>
  /** Settles when the process dies. */
  readonly #death: Promise<'died'>
  #die: (why: 'died') => void = () => {}
  #call: LoggedCall | undefined

  constructor(world: CrashWorld, number: number, mishaps: ReadonlyMap<number, Mishap>) {
    this.#world = world
    this.#mishaps = mishaps
    this.#death = new Promise((resolve) => {
      this.#die = resolve
    })
    const { time, sandbox, naming } = world
    const runtime = time.runtime(this, number)
    const store = this.#storeOf(world.store)
    this.#context = {
      connection: {
        baseUrl: sandbox.baseUrl,
        transport: this.#transport(),
        credentials: { get: () => sandbox.apiKey, rotates: false },
        headers: {},
        runtime,
        reporter: new Reporter({}, undefined, 'off'),
      },
      journal: new Journal({ store, scope: SCOPE, codec: undefined, runtime }),
      live: liveCalls(store, SCOPE),
      server: sandbox.baseUrl,
      account: naming.account,
      safeRetryWindow: SAFE_RETRY_WINDOW,
      idempotencyScope: 'apiKey',
      remember: 'order',
      listEnvelope: undefined,
      retention: { created: 1e12, rejected: 1e12 },
    }
  }

  /** Calls `create()` and notes what the caller is told. */
  async create(): Promise<LoggedCall> {
    const { request, naming } = this.#world
    const { idempotencyKey } = naming
    return await this.#run('create', async () => ({
      told: await placeOrder(this.#context, request, {
        settings: SETTINGS,
        idempotencyKey,
        finish: async ({ value }) => value,
      }).then(({ value }): Told => ({ charged: 'yes', orderId: value.id }), toldBy),
    }))
  }

  /** Calls `enqueue()`, which tells nothing of the wallet. */
  async enqueue(): Promise<LoggedCall> {
    const { request, naming } = this.#world
    const { idempotencyKey } = naming
    return await this.#run('enqueue', async () => {
      await enqueueOrder(this.#context, request, { idempotencyKey }, SETTINGS).catch(toldBy)
      return {}
    })
  }

  /** Runs `recover()` to its end and notes its outcomes. */
  async recover(options: Partial<RecoverSettings<Order>> = {}): Promise<LoggedCall> {
    return await this.#run('recover', async (call) => {
      const { log, naming, time } = this.#world
      const all = recover(this.#context, {
        settings: SETTINGS,
        replay: 'safe',
        takeOver: false,
        finish: async (order) => order,
        checkOpen: () => {},
        ...options,
      })
      for await (const outcome of all) {
        // The dead tell nothing.
        if (this.died) break
        log.said(call, recoveredOf(naming.name, outcome, time.now))
      }
      return {}
    })
  }

  async #run(
    kind: 'create' | 'enqueue' | 'recover',
    action: (call: LoggedCall) => Promise<Pick<LoggedCall, 'told'>>,
  ): Promise<LoggedCall> {
    const { log, time, naming } = this.#world
    const call = log.call({
      kind,
      ...(kind === 'recover' ? {} : { intent: naming.name }),
      time: time.now,
      wall: time.now,
      totalTimeout: TOTAL_TIMEOUT,
      maxRetries: MAX_RETRIES,
      repeatsFor: SAFE_RETRY_WINDOW - SETTINGS.timeout,
      sendsFor: SAFE_RETRY_WINDOW,
    })
    this.#call = call
    const end = await time.run(Promise.race([action(call), this.#death]))
    if (end === 'died') {
      call.died = true
      return call
    }
    log.ended(call, time.now, end)
    return call
  }

  /** Ends the process: it hears of nothing any more and has no further effect. */
  kill(): void {
    if (this.died) return
    this.died = true
    this.#world.time.drop(this)
    this.#die('died')
  }

  /** Lets an effect take place, or what the plan has instead. `leave` runs when the effect leaves the process. */
  async #effect<T>(kind: EffectKind, leave: () => () => Promise<T>, lost: () => T): Promise<T> {
    if (this.died) return await forEver<T>()
    const mishap = this.#mishaps.get(this.effects.length)
    this.effects.push(kind)
    const { time } = this.#world
    if (mishap !== undefined && !DEATHS.has(mishap) && kind !== 'send' && kind !== 'fetch' && this.#call)
      this.#call.storeTrouble = true
    switch (mishap) {
      case 'before':
        this.kill()
        return await forEver<T>()
      case 'after':
        // The answer is on its way while the process dies, so whatever the effect takes, it hears nothing.
        this.#detached(leave())
        return await forEver<T>()
      case 'flying':
        this.kill()
        void time.sleep(time, FLIGHT).then(leave())
        return await forEver<T>()
      case 'unacknowledged':
        await leave()()
        return lost()
      case 'failed':
        return lost()
      case 'late':
        void time.sleep(time, LATENESS).then(leave())
        return await forEver<T>()
      default: {
        const result = await leave()()
        return this.died ? await forEver<T>() : result
      }
    }
  }

  /** Applies an effect for a process that dies when it has taken place. */
  #detached(apply: () => Promise<unknown>): void {
    apply().then(
      () => this.kill(),
      () => this.kill(),
    )
  }

  #storeOf(store: MemoryStore): OrderStore {
    const { log } = this.#world
    const broken = (): never => {
      throw new Error('the store lost its connection')
    }
    const insert = async (row: StoredRow): Promise<InsertResult> => {
      const result = await store.insert(row)
      if (result.inserted) log.row(row)
      return result
    }
    const update = async (row: StoredRow, expectedVersion: number): Promise<boolean> => {
      const updated = await store.update(row, expectedVersion)
      if (updated) log.row(row)
      return updated
    }
    return storeOver(store, {
      durability: 'device',
      get: (scope, id) => this.#effect('get', () => () => store.get(scope, id), broken),
      insert: (row) => this.#effect('insert', () => insert.bind(undefined, row), broken),
      update: (row, version) => this.#effect('update', () => update.bind(undefined, row, version), broken),
    })
  }

  #transport(): Transport {
    return async (request) => {
      const order = request.method === 'POST'
      return await this.#effect(
        order ? 'send' : 'fetch',
        () => (order ? this.#send(request) : this.#read(request)),
        () => RESET,
      )
    }
  }

  #read(request: AttemptRequest): () => Promise<AttemptResult> {
    const { log, sandbox } = this.#world
    const call = this.#call?.id
    const path = request.url.slice(sandbox.baseUrl.length)
    const logged = log.read({ path, ...(call === undefined ? {} : { call }) })
    return async () => {
      const result = await this.#exchange(request)
      logged.answered = result.kind === 'answer' && result.status === 200 && result.problem === undefined
      return result
    }
  }

  #send(request: AttemptRequest): () => Promise<AttemptResult> {
    const { log, sandbox, naming, time } = this.#world
    const call = this.#call?.id
    const sender = call === undefined ? {} : { call }
    const key = request.headers['idempotency-key'] ?? ''
    const intent = naming.name
    // Its window decides whether the key may be sent again, and whether another one takes its place.
    const times = { time: time.now, wall: time.now }
    const logged = log.request({ intent, key, body: request.body ?? '', ...times, ...sender })
    return async () => {
      const result = await this.#exchange(request, ({ request: { charged } }) => {
        const charge = sandbox.ledger.findLast(({ idempotencyKey }) => idempotencyKey === key)
        if (!charged || charge === undefined) return
        log.charge({ intent, key, orderId: charge.orderId, requestedAt: logged.at, ...sender })
      })
      if (result.kind === 'answer') {
        const code = /"code":"(\w+)"/.exec(result.text)?.[1]
        log.answered(logged, result.status, code, result.problem === undefined && !this.died)
      }
      return result
    }
  }

  async #exchange(
    request: AttemptRequest,
    onHandled: (reply: SandboxReply) => void = () => {},
  ): Promise<AttemptResult> {
    const { sandbox, time } = this.#world
    const handled = sandbox
      .handle({
        method: request.method,
        url: request.url,
        headers: request.headers,
        body: request.body ?? '',
      })
      .then((reply) => {
        onHandled(reply)
        return reply
      })
    let cancel: () => void = () => {}
    const timeout = new Promise<'timeout'>((resolve) => {
      cancel = time.setTimer(this, () => resolve('timeout'), request.timeout)
    })
    const reply = await Promise.race([handled, timeout])
    cancel()
    return reply === 'timeout' ? { kind: 'timeout' } : resultOf(reply)
  }
}

const RESET: AttemptResult = {
  kind: 'failed',
  unsent: false,
  closed: true,
  detail: { name: 'Error', code: 'ECONNRESET', syscall: 'read' },
}

/** What a transport makes of a reply. */
function resultOf({ delivery, status, headers, body }: SandboxReply): AttemptResult {
  const answer = { kind: 'answer', status, headers: new Headers(headers) } as const
  switch (delivery.type) {
    case 'complete':
      return { ...answer, text: body }
    case 'cut':
      return { ...answer, text: body.slice(0, delivery.after), problem: 'cut' }
    case 'drop':
      return RESET
    default:
      throw new Error(`this world has no ${delivery.type}`)
  }
}

/** What a failed call tells. Anything but one of our errors is a failure of the harness or a bug. */
export function toldBy(error: unknown): Told {
  if (!isCustomerOrderingError(error)) throw error
  const { charged, code, orderId } = error
  return { charged, code, ...(orderId === undefined ? {} : { orderId }) }
}

function forEver<T>(): Promise<T> {
  return new Promise<T>(() => {})
}
