import { MemoryStore, type StoredRow } from '../../../src/index.ts'
import {
  createSandbox,
  type Sandbox,
  type SandboxReply,
  type SandboxRequest,
} from '../../../src/sandbox/index.ts'
import { type LoggedIntent, type LoggedRequest, RunRecorder } from '../../support/run-log.ts'
import { afterMicrotasks, nextLoop, VirtualTime } from '../../support/virtual-time.ts'
import { namelessSlot, recordOf, type StoredRecord, scopeOf } from '../core.ts'
import { type EffectKind, type Mishap, mishapAt, type Strategy } from './mishaps.ts'
import { HERE, type IntentPlan, type Plan, requestOf } from './plan.ts'
import { Process, type Running } from './process.ts'

/** Steps and mishaps that a run omits, to shrink a failing run. */
export type Without = ReadonlySet<string>

export interface Intent {
  readonly plan: IntentPlan
  readonly logged: LoggedIntent
}

export interface Offer {
  readonly process: Process
  readonly kind: EffectKind
  readonly happen: (mishap: Mishap | undefined) => void
}

interface Processing {
  readonly logged: LoggedRequest
  readonly entry: SandboxRequest
}

const START = new VirtualTime().now
/**
 * In one in this many seeds, time passes only after a turn of the event loop, which also detects
 * rejections that are handled too late. All seeds detect unhandled rejections at the end.
 */
const LOOPS_SHARE = 4
const SERVICES = [{ productId: 'svc_standard', amount: 250 }] as const

/** A service, a store that survives unless the plan changes it, and workers that start and end. */
export class World {
  readonly plan: Plan
  readonly time: VirtualTime
  readonly log: RunRecorder = new RunRecorder()
  readonly sandbox: Sandbox
  /** The store of all processes, unless each has its own. */
  store: MemoryStore = new MemoryStore()
  readonly cache: Map<string, SandboxReply> = new Map()
  readonly intents: readonly Intent[]
  readonly without: Without
  readonly strategy: Strategy
  /** A description of the events, kept only if requested. */
  readonly trace: string[] | undefined
  /** Mishaps that happened, by their names in {@link Without}. */
  readonly mishaps: string[] = []
  readonly rotates: boolean
  readonly apiKeys: string[]
  /** Effects that wait for a choice, if something chooses the order of all effects. */
  offers: Offer[] | undefined
  /** False from the moment when mishaps end. */
  troubled = true
  /** Requests and writes in transit, including those of dead processes. */
  underWay = 0
  readonly flying: Set<LoggedRequest> = new Set()
  readonly running: Set<Running> = new Set()
  readonly #workers: (Process | undefined)[] = []
  readonly #all: Process[] = []
  readonly #offsets: number[] = []
  readonly #keysInUse: number[] = []
  readonly #processing = new Set<Processing>()
  #charges = 0
  #backup: readonly StoredRow[] = []

  constructor(
    plan: Plan,
    without: Without,
    trace: string[] | undefined,
    strategy: Strategy = (_process, _effect, kind, ...drawn) => mishapAt(plan, kind, ...drawn),
  ) {
    this.plan = plan
    const loops = plan.whole || plan.seed % LOOPS_SHARE === 0
    this.time = new VirtualTime(loops ? nextLoop : afterMicrotasks)
    this.rotates = plan.steps.some(({ kind }) => kind === 'rotate')
    this.without = without
    this.strategy = strategy
    this.trace = trace
    this.log.everyAbort = true
    const server = {}
    this.sandbox = createSandbox({
      seed: plan.seed,
      apiKey: 'personal_k1x0r9w7',
      organizationApiKey: 'organization_key',
      baseUrl: `https://${HERE}`,
      services: SERVICES,
      behaviour: plan.server,
      balance: plan.balance,
      faults: plan.faults.filter((_, index) => !without.has(`fault:${index}`)),
      now: () => this.time.now,
      sleep: (milliseconds) => this.time.sleep(server, milliseconds),
    })
    this.log.listsReferences =
      plan.server.orderFields?.includes('metadata') === true &&
      plan.shows === undefined &&
      plan.server.ordering !== 'random' &&
      plan.server.ignoreOffset !== true
    this.apiKeys = [this.sandbox.apiKey]
    this.log.storesDiffer = plan.stores === 'own'
    for (let order = 0; order < plan.otherOrders; order++) this.addOrder(`other-${order}`)
    this.intents = plan.intents.map((intent) => {
      const { name, externalOrderId, idempotencyKey } = intent
      const slot =
        externalOrderId !== undefined
          ? `ref:${externalOrderId}`
          : idempotencyKey !== undefined
            ? `key:${idempotencyKey}`
            : namelessSlot(requestOf(intent, 1, undefined))
      return { plan: intent, logged: this.log.intent(name, [slot]) }
    })
  }

  /** Logs an event. Its description is built only if requested. */
  note(who: string, what: () => string): void {
    this.trace?.push(`${String(Math.round(this.time.now - START)).padStart(8)} ms  ${who}: ${what()}`)
  }

  /** The living process of a worker. A dead one is restarted without memory. */
  process(worker: number): Process {
    const there = this.#workers[worker]
    if (there !== undefined && !there.died) return there
    const started = new Process(this, worker, this.#all.length + 1)
    this.#workers[worker] = started
    this.#all.push(started)
    return started
  }

  offset(worker: number): number {
    return this.#offsets[worker] ?? 0
  }

  apiKey(worker: number): string {
    return this.apiKeys[this.#keysInUse[worker] ?? 0] ?? this.sandbox.apiKey
  }

  jump(worker: number, by: number): void {
    this.#offsets[worker] = this.offset(worker) + by
    this.log.clocksDiffer = true
    for (const { logged, process } of this.running)
      if (process === this.#workers[worker]) logged.clockSet = true
  }

  /** An order of another integration with the same wallet. */
  addOrder(externalOrderId: string, as: { quantity?: number; target?: string } = {}): void {
    this.log.otherOrders++
    this.sandbox.addOrder({ quantity: 7, ...as, sourceSystem: 'elsewhere', metadata: { externalOrderId } })
  }

  /** Orders what an intent wants under another key, without the client. */
  async sell({ plan }: Intent, key: string): Promise<SandboxReply> {
    return await this.sandbox.handle({
      method: 'POST',
      url: `${this.sandbox.baseUrl}/v1/orders`,
      headers: {
        authorization: `Bearer ${this.apiKey(this.plan.workers)}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify(requestOf(plan, 1, undefined)),
    })
  }

  /** The response as the service shows it. */
  shown(reply: SandboxReply): SandboxReply {
    const { shows } = this.plan
    if (
      shows === undefined ||
      reply.status >= 300 ||
      (!reply.body.startsWith('{') && !reply.body.startsWith('['))
    )
      return reply
    const body = JSON.stringify(
      JSON.parse(reply.body, (name, value: unknown) => {
        if (shows === 'tidied' && name === 'target') return `@${String(value)}`
        return shows === 'counted' && name === 'quantity' ? Number(value) - 1 : value
      }),
    )
    return { ...reply, body }
  }

  async backUp(): Promise<void> {
    const scope = scopeOf(this.sandbox.baseUrl, this.plan.account)
    this.#backup = (await this.store.list(scope, { limit: 1000 })).rows
  }

  /** The store has what it had at the last backup, or nothing. */
  async lose(to: 'nothing' | 'backup'): Promise<void> {
    this.note('store', () => `is lost and has ${to} now`)
    const store = new MemoryStore()
    const rows = to === 'backup' ? this.#backup : []
    for (const row of rows) await store.insert(row)
    this.store = store
    this.log.lose(rows)
  }

  rotate(worker: number): void {
    if (this.apiKeys.length === 1)
      this.apiKeys.push(
        this.sandbox.addApiKey({ customer: this.sandbox.customerId, secret: 'personal_k2z8q5v3' }),
      )
    this.rotateToNewest(worker)
  }

  rotateToNewest(worker: number): void {
    this.log.rotated = this.apiKeys.length > 1
    this.#keysInUse[worker] = this.apiKeys.length - 1
  }

  get processes(): readonly Process[] {
    return this.#all
  }

  /** Intents by slot or key. */
  intentOf(record: { readonly slot: string; readonly key: string }): string {
    const named = this.intents.find(({ logged }) => logged.slots.includes(record.slot))
    if (named !== undefined) return named.logged.name
    const row = this.log.rows.find((each) => each.record?.key === record.key)?.record
    const known = this.intents.find(({ logged }) => row !== undefined && logged.slots.includes(row.slot))
    return known?.logged.name ?? record.slot
  }

  recordOf({ logged }: Intent): StoredRecord | undefined {
    return this.log.rows.findLast(({ record }) => record !== undefined && logged.slots.includes(record.slot))
      ?.record
  }

  /** A call had its order, which is still to be stored in the background. */
  hasBeenTold({ logged }: Intent): boolean {
    return this.log.calls.some(({ intent, told }) => intent === logged.name && told?.charged === 'yes')
  }

  /**
   * Another call, or a request in transit, may change the intent's record without the call's
   * knowledge.
   */
  isUncertain(intent: Intent): boolean {
    if (this.underWay > 0) return true
    for (const other of this.running) if (other.intent === undefined || other.intent === intent) return true
    return false
  }

  /** True if a request of a call that is over may still arrive. No claim tells a person of it. */
  hasStray({ logged }: Intent): boolean {
    if (this.underWay === 0) return false
    return [...this.flying].some(({ intent, call, givenUp }) => {
      const { endedAt, died } = this.log.calls[call ?? -1] ?? {}
      return intent === logged.name && (endedAt !== undefined || died === true || givenUp === true)
    })
  }

  /** Notes that a process begins to store a record: its time is now, and it may end the claim of its call. */
  storing(process: number, data: string): void {
    const record = recordOf({ data, version: 0, createdAt: 0, updatedAt: 0 })
    if (record === undefined || record.busyUntil !== undefined) return
    for (const request of this.flying)
      if (this.log.calls[request.call ?? -1]?.process === process && this.intentOf(record) === request.intent)
        request.givenUp = true
  }

  arrived(logged: LoggedRequest, entry: SandboxRequest): void {
    this.#processing.add({ logged, entry })
  }

  /** Logs every debit since the last check. */
  observe(): void {
    if (this.sandbox.ledger.length === this.#charges) return
    for (const charge of this.sandbox.ledger.slice(this.#charges)) {
      this.#charges++
      const found = [...this.#processing].find(
        ({ entry }) => entry.charged && entry.idempotencyKey === charge.idempotencyKey,
      )
      if (found === undefined) throw new Error('a debit without a request')
      this.#processing.delete(found)
      const { logged } = found
      this.note('service', () => `charges ${logged.intent}, order ${charge.orderId}`)
      this.log.charge({
        ...{ intent: logged.intent, key: logged.key, orderId: charge.orderId, requestedAt: logged.at },
        ...(logged.call === undefined ? {} : { call: logged.call }),
      })
    }
  }
}
