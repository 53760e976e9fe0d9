import { getEventListeners } from 'node:events'
import { defined } from '../../../src/defined.ts'
import {
  type BodyText,
  type Codec,
  type CreateOrderRequest,
  CustomerOrderingClient,
  MemoryStore,
  type OrderStore,
  type RecoveryOutcome,
  type RequestOptions,
  type ResponseHeaders,
  type Runtime,
  type StoredRow,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from '../../../src/index.ts'
import { messageOf, respond } from '../../../src/sandbox/http/fetch.ts'
import type { SandboxReply } from '../../../src/sandbox/index.ts'
import { walked } from '../../support/leaks.ts'
import {
  type LoggedCall,
  type LoggedRead,
  type LoggedRequest,
  recoveredOf,
  type Told,
  toldBy,
} from '../../support/run-log.ts'
import { Draw } from '../../support/seeds.ts'
import { writesNoted } from '../../support/stores.ts'
import { CLOCK_SKEW } from '../core.ts'
import { ELSEWHERE } from './faults.ts'
import { type EffectKind, LONGEST_FLIGHT, type Mishap } from './mishaps.ts'
import { HERE, optionsOf, payloadOf, requestOf, type Step } from './plan.ts'
import type { Intent, World } from './world.ts'

/** The header with the number of a call, which identifies its requests. */
const CALL_HEADER = 'x-call'
/** One in this many seeds searches every property of every error for an API key, all the printed form. */
const WALKED_SHARE = 8

/** A call that has neither ended nor died. */
export interface Running {
  readonly logged: LoggedCall
  readonly process: Process
  readonly intent: Intent | undefined
  /** Number of purchases of the intent that are permitted because of this call. */
  anew: number
  readonly signal: AbortSignal | undefined
  /** Its first read of the record. A read that it stops waiting for does not count. */
  look: FirstLook | undefined
  /**
   * True if its first read found the order open. Then it requests this order, whatever happens to
   * it meanwhile.
   */
  asksForOpen: boolean
}

/** A read of a record, with the calls that may have made it. */
interface FirstLook {
  /** True if it certainly belongs to them. */
  readonly certain: boolean
  /** True once the process has the response. */
  heard: boolean
}

type CallEnd = Pick<LoggedCall, 'told' | 'succeeded'>

const SUCCEEDED: CallEnd = { succeeded: true }

interface CallFacts {
  readonly intent?: Intent | undefined
  readonly idempotencyKey?: string | undefined
  readonly payload?: string
  readonly decision?: LoggedCall['decision']
  readonly anew?: number
  readonly signal?: AbortSignal | undefined
}

/** One process of a worker: a client with its own memory and the world's store. */
export class Process {
  died = false
  readonly effects: EffectKind[] = []
  /** What the process has learnt, if something chooses the order of all effects. */
  history = ''
  readonly name: string
  readonly #world: World
  readonly #number: number
  readonly #draw: Draw
  readonly #client: CustomerOrderingClient
  readonly #worker: number
  readonly #now = (): number => this.#world.time.now + this.#world.offset(this.#worker)
  readonly #death: Promise<'died'>
  readonly #running = new Set<Running>()
  #die: (why: 'died') => void = () => {}
  /** Number of the first effect at which the store failed. */
  #firstTrouble = Number.POSITIVE_INFINITY
  /** When the process wakes, and its total sleep. */
  #wakes = 0
  #slept = 0
  /** Number of effects of the store and the codec that have not responded, without those of mishaps. */
  #pending = 0

  constructor(world: World, worker: number, number: number) {
    this.#world = world
    this.name = `worker ${worker + 1}, process ${number}`
    this.#worker = worker
    this.#number = number
    this.#draw = new Draw(world.plan.seed, number)
    this.#death = new Promise((resolve) => {
      this.#die = resolve
    })
    const { plan, sandbox, time } = world
    const random = new Draw(world.plan.seed, -number)
    const runtime: Runtime = {
      ...time.runtime(this, number),
      now: this.#now,
      monotonic: () => this.#monotonic,
      random: () => random.next(),
    }
    const own = world.plan.stores === 'own' ? new MemoryStore() : undefined
    const options = {
      ...optionsOf(plan),
      baseUrl: sandbox.baseUrl,
      apiKey: world.rotates ? () => world.apiKey(worker) : sandbox.apiKey,
      store: this.#storeOf(() => own ?? world.store),
      ...(plan.whole ? { fetch: this.#fetch } : { transport: this.#transport }),
      ...(plan.sealed ? { codec: this.#codec } : {}),
    }
    this.#client = new CustomerOrderingClient(options, runtime)
  }

  async create(intent: Intent, step: Extract<Step, { kind: 'create' }>, anew: boolean): Promise<void> {
    const { plan } = intent
    // Without any name, another payload is another order.
    const anonymous = plan.externalOrderId === undefined && plan.idempotencyKey === undefined
    const request = requestOf(plan, anonymous ? 1 : step.quantity, step.note)
    // Without a reference, another key is another order.
    const otherKey = step.otherKey && plan.externalOrderId !== undefined
    const idempotencyKey = otherKey ? `other-${plan.name}` : plan.idempotencyKey
    const { abortAfter } = step
    const given = abortAfter === undefined ? undefined : this.#abort(abortAfter)
    if (anew) intent.logged.wanted++
    const action = async (call: RequestOptions): Promise<{ readonly told: Told }> => {
      const told = await this.#client.orders
        .create(request, { ...call, ...defined({ signal: given, idempotencyKey }) })
        .then(({ id }): Told => ({ charged: 'yes', orderId: id }), this.#toldBy)
      if (given !== undefined) this.#world.log.leftovers += getEventListeners(given, 'abort').length
      return { told }
    }
    const facts = { intent, idempotencyKey, payload: payloadOf(request), anew: anew ? 1 : 0, signal: given }
    await this.#run('create', facts, action)
  }

  async list(limit: number): Promise<ReadonlySet<string>> {
    const ids = new Set<string>()
    for await (const { id } of this.#client.orders.list({ limit })) ids.add(id)
    return ids
  }

  /** Runs `recover()` to its end and logs its outcomes. */
  async recover(options: { readonly takeOver: boolean }): Promise<void> {
    await this.#run('recover', {}, async (call, logged) => {
      const world = this.#world
      const report = (outcome: RecoveryOutcome): void => {
        // Dead processes report nothing.
        if (this.died) return
        const { record, reason } = outcome
        // The orders in a list were bought earlier.
        world.observe()
        world.note(
          this.name,
          () => `recover(): ${record.slot} ${outcome.outcome}${reason === undefined ? '' : `, ${reason}`}`,
        )
        world.log.said(logged, recoveredOf(world.intentOf(record), outcome, this.#now()))
      }
      try {
        for await (const outcome of this.#client.orders.recover({ ...call, ...options })) report(outcome)
      } catch (error) {
        return { told: this.#toldBy(error) }
      }
      return {}
    })
  }

  /** Closes the intent's record with a person's findings. */
  async resolve(intent: Intent, orderId: string | undefined, isOwn: boolean): Promise<void> {
    const record = this.#world.recordOf(intent)
    if (record === undefined) return
    const { externalOrderId } = intent.plan
    const name = externalOrderId === undefined ? { idempotencyKey: record.key } : { externalOrderId }
    const decision = orderId === undefined ? {} : { orderId, isOwn }
    // A person who knows the order confirms it even if the service has changed its fields.
    const despite = isOwn
      ? (['externalOrderId', 'serviceId', 'quantity', 'target', 'sourceSystem'] as const)
      : []
    const resolution =
      orderId === undefined ? ({ as: 'abandoned' } as const) : ({ as: 'created', orderId, despite } as const)
    await this.#run('resolve', { intent, decision }, (call) =>
      this.#client.orders.resolve(name, resolution, call).then(() => SUCCEEDED, this.#refusedBy),
    )
  }

  /** The clock that stops while the process sleeps. */
  get #monotonic(): number {
    return this.#world.time.now - this.#slept
  }

  /** When the process wakes, or last woke. 0 if it never slept. */
  get wakesAt(): number {
    return this.#wakes
  }

  get sleepsFor(): number {
    return Math.max(0, this.#wakes - this.#world.time.now)
  }

  #sleep(milliseconds: number): void {
    const { time, log } = this.#world
    this.#wakes = Math.max(this.#wakes, time.now) + milliseconds
    this.#slept += milliseconds
    time.postpone(this, milliseconds)
    log.clocksDiffer = true
    for (const { logged } of this.#running) logged.storeTrouble = true
  }

  /** Kills the process: it receives nothing more and has no further effect. */
  kill(): void {
    if (this.died) return
    this.died = true
    this.#world.note(this.name, () => 'dies')
    this.#world.time.drop(this)
    for (const running of this.#running) {
      Object.assign(running.logged, { died: true, diedAt: this.#world.log.next() })
      this.#world.running.delete(running)
    }
    this.#running.clear()
    this.#die('died')
  }

  async close(): Promise<void> {
    await Promise.race([this.#client.close(), this.#death])
  }

  async #run(
    kind: LoggedCall['kind'],
    { intent, idempotencyKey, payload, decision, anew = 0, signal }: CallFacts,
    action: (options: RequestOptions, logged: LoggedCall) => Promise<CallEnd>,
  ): Promise<void> {
    const { log, plan } = this.#world
    const { totalTimeout, maxRetries, safeRetryWindow, timeout } = plan.client
    this.#world.observe()
    const logged = log.call({
      ...{ kind, process: this.#number, time: this.#monotonic, wall: this.#now() },
      ...defined({ intent: intent?.logged.name, idempotencyKey, payload, decision }),
      ...{ totalTimeout, maxRetries, attempt: timeout },
      repeatsFor: safeRetryWindow - timeout - CLOCK_SKEW,
      sendsFor: safeRetryWindow - CLOCK_SKEW,
    })
    // A call that waits for another one's order receives the result of that call's writes.
    for (const { logged: other, intent: same } of this.#running)
      if (other.storeTrouble === true && same === intent) logged.storeTrouble = true
    const running: Running = {
      ...{ logged, process: this, intent, anew, signal },
      ...{ look: undefined, asksForOpen: false },
    }
    if (signal?.aborted === true) logged.abortedAt = log.next()
    this.#running.add(running)
    this.#world.running.add(running)
    this.#world.note(this.name, () => `${kind}() ${intent?.logged.name ?? ''}, call ${logged.id}`)
    const end = await Promise.race([
      action({ headers: { [CALL_HEADER]: String(logged.id) } }, logged),
      this.#death,
    ])
    if (end === 'died') return
    // The store, or the codec, took longer than the call could wait.
    if (this.#pending > 0 && this.#running.size === 1 && this.#isOver(running)) logged.storeTrouble = true
    this.#running.delete(running)
    this.#world.running.delete(running)
    this.#world.observe()
    log.ended(logged, this.#monotonic, end)
    this.#world.note(this.name, () => `call ${logged.id} ends: ${JSON.stringify(end)}`)
  }

  #abort(after: number): AbortSignal {
    const controller = new AbortController()
    if (after === 0) controller.abort(GIVEN_UP)
    else this.#world.time.setTimer(this, () => this.#fire(controller), after)
    return controller.signal
  }

  #refusedBy = (error: unknown): CallEnd => ({ told: this.#toldBy(error) })

  #fire(controller: AbortController): void {
    const { log } = this.#world
    for (const { signal, logged } of this.#running)
      if (signal === controller.signal) logged.abortedAt ??= log.next()
    controller.abort(GIVEN_UP)
  }

  /** Logs a failed call. An error of another package is a bug. */
  #toldBy = (error: unknown): Told => {
    const told = toldBy(error)
    const { log, plan } = this.#world
    log.printed.push(String(error), JSON.stringify(error))
    // The details of an error do not depend on the sequence of events, so checking every eighth is
    // enough.
    if (plan.seed % WALKED_SHARE === 0) log.printed.push(walked(error))
    return told
  }

  /**
   * One effect outside the process. It may be lost or late in transit, and so may its response.
   * `leave` is called when it leaves the process. Its result is called when the effect happens.
   */
  #effect<T>(
    kind: EffectKind,
    leave: () => () => Promise<T>,
    lost: (unsent: boolean) => T,
    patience?: AbortSignal,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.died) return
      const world = this.#world
      const { plan, time, offers } = world
      const number = this.effects.push(kind) - 1
      const name = `${this.#number}.${number}`
      // Draw the same number of values for every effect, so that omitting one mishap changes no
      // other.
      const next = (): number => this.#draw.next()
      const [whether, which, way, back] = [next(), next(), next(), next()]
      const drawn = world.troubled ? this.#mishapOf(number, kind, whether, which) : undefined
      const remote = kind === 'send' || kind === 'fetch'
      const instant = plan.latency === 0 || world.without.has('latency')
      // A slower store counts as failing: a call waits for it only until briefly after its end.
      const longest = instant ? 0 : remote ? plan.latency : Math.min(plan.latency, 100)
      const out = Math.floor(way * longest)
      // Half of the responses come with the effect. In the other half, other effects happen in
      // between.
      const home = back < 0.5 ? 0 : Math.floor((back - 0.5) * 2 * longest)
      const happen = (mishap: Mishap | undefined) => {
        if (this.died) return
        const isAwaited = !remote && mishap === undefined
        if (isAwaited) this.#pending++
        if (mishap !== undefined) {
          world.mishaps.push(name)
          world.note(this.name, () => `${kind} ${name}: ${mishap}`)
          if (!remote) this.#storeTrouble()
        }
        const tell = (how: () => T): void => {
          if (this.died) return
          if (this.sleepsFor > 0) return void time.setTimer(this, () => tell(how), this.sleepsFor)
          if (isAwaited) this.#pending--
          try {
            const result = how()
            if (offers !== undefined) this.history += `${time.now} ${kind} ${JSON.stringify(result)}\n`
            resolve(result)
          } catch (error) {
            if (offers !== undefined) this.history += `${time.now} ${kind} ${error}\n`
            reject(error)
          }
        }
        if (mishap === 'crash before') return this.kill()
        if (mishap === 'failed' || mishap === 'unsent')
          return void time.setTimer(this, () => tell(() => lost(mishap === 'unsent')), out)
        const take = leave()
        if (mishap === 'hangs') return
        if (mishap === 'lasts') {
          world.underWay++
          let flies = true
          const arrive = (): void => {
            if (flies) take().finally(() => world.underWay--)
            flies = false
          }
          patience?.addEventListener('abort', arrive, { once: true })
          // A process that sleeps or dies does not keep its request in the network.
          time.setTimer(world, arrive, plan.client.timeout)
          return
        }
        const away =
          mishap === 'late' || mishap === 'crash while it flies'
            ? lateness(way)
            : mishap === 'slow'
              ? Math.floor(way * SLOWEST)
              : out
        world.underWay++
        time.setTimer(
          world,
          () => {
            const heard = mishap === 'resent' ? take().then(take) : take()
            heard.then((result) => {
              world.underWay--
              switch (mishap) {
                case 'late':
                case 'crash while it flies':
                  return
                case 'crash after':
                  return this.kill()
                case 'sleeps':
                  this.#sleep(lateness(back) * 15)
                  return tell(() => result)
                case 'unacknowledged':
                  return void time.setTimer(this, () => tell(() => lost(false)), home)
                default:
                  if (home === 0 && mishap !== 'slow answer' && kind !== 'send') return tell(() => result)
                  return void time.setTimer(
                    this,
                    () => tell(() => result),
                    mishap === 'slow answer' ? lateness(back) : home,
                  )
              }
            }, reject)
          },
          away,
        )
      }
      // Lists are also read in the background, by pruning.
      if (offers === undefined || kind === 'list') happen(drawn)
      else offers.push({ process: this, kind, happen })
    })
  }

  #mishapOf(effect: number, kind: EffectKind, whether: number, which: number): Mishap | undefined {
    const { plan, without, strategy } = this.#world
    const mishap = strategy(this.#number, effect, kind, whether, which)
    if (mishap === undefined || without.has(`mishap:${this.#number}.${effect}`)) return undefined
    if (mishap === 'resent' && this.#sendsOnce) return undefined
    // The client never accepts evidence from a caller's fetch that nothing was sent.
    return mishap === 'unsent' && plan.whole ? 'failed' : mishap
  }

  /** The calls for an anonymous order that may be making their first read here. */
  #firstLook(): FirstLook | undefined {
    const calls = [...this.#running].filter((running) => {
      const { kind } = running.logged
      const { externalOrderId, idempotencyKey } = running.intent?.plan ?? {}
      if (kind !== 'create' || externalOrderId !== undefined || idempotencyKey !== undefined) return false
      return running.look === undefined || (!running.look.heard && this.#isOver(running))
    })
    if (calls.length === 0) return undefined
    // After a store failure, an earlier call may read in the background. A call may also end before
    // a record is unsealed, so that it has not read it.
    const { sealed } = this.#world.plan
    const certain = this.#running.size === 1 && this.#firstTrouble >= this.effects.length && !sealed
    const look: FirstLook = { certain, heard: false }
    for (const call of calls) call.look = look
    return look
  }

  /**
   * A call that finds its order open or unreadable requests this one, and a call that finds it
   * created requests the next.
   */
  #hear(look: FirstLook, row: StoredRow | undefined): void {
    look.heard = true
    for (const call of this.#running) {
      const { logged } = call.intent ?? {}
      if (call.look !== look || logged === undefined) continue
      if (row?.open === true && row.state !== 'rejected' && look.certain) {
        call.asksForOpen = true
        logged.wanted -= call.anew
        call.anew = 0
      } else if (row?.state === 'created' && !row.open && call.anew === 0) {
        logged.wanted++
        call.anew = 1
      }
    }
  }

  /**
   * True if a call's time is over, or its caller has aborted: it no longer waits for its earlier
   * requests.
   */
  #isOver({ logged, signal }: Running): boolean {
    return signal?.aborted === true || this.#monotonic - logged.time >= logged.totalTimeout
  }

  #storeTrouble(): void {
    this.#firstTrouble = Math.min(this.#firstTrouble, this.effects.length)
    for (const { logged } of this.#running) logged.storeTrouble = true
  }

  /**
   * Does not encrypt, so that stored data can be checked, but takes time and fails like an
   * encryption service.
   */
  readonly #codec: Codec = {
    encrypt: (text) => {
      this.#world.storing(this.#number, text)
      return this.#seal(text)
    },
    decrypt: (text) => this.#seal(text),
  }

  #seal(text: string): Promise<string> {
    const gone = (): never => {
      throw new Error('the key service is gone')
    }
    return this.#effect('seal', () => () => Promise.resolve(text), gone)
  }

  #storeOf(there: () => MemoryStore): OrderStore {
    const world = this.#world
    const broken = (): never => {
      throw new Error('the store lost its connection')
    }
    const applied = (row: StoredRow): void => {
      world.observe()
      if (this.#running.size === 0) for (const { logged } of world.running) logged.disturbed = true
      world.log.row(row)
      // The call that sent an order stores that it exists, perhaps in the background and unseen by
      // the next call.
      if (row.state === 'created')
        for (const { logged } of this.#running)
          if (logged.kind === 'create' && !world.log.requests.some(({ call }) => call === logged.id))
            logged.disturbed = true
      world.log.printed.push(row.data)
      if (world.trace !== undefined) {
        const { slot, state, generation, ambiguous, hold, rejection } = world.log.rows.at(-1)?.record ?? {}
        const facts = JSON.stringify({ state, generation, ambiguous, hold, rejection })
        world.note('store', () => `${slot} version ${row.version}: ${facts}, by ${this.name}`)
      }
    }
    return {
      durability: world.plan.account === undefined || world.plan.stores === 'own' ? 'memory' : 'device',
      get: (scope, id) => {
        let look: FirstLook | undefined
        const row = this.#effect(
          'get',
          () => {
            look = this.#firstLook()
            return () => there().get(scope, id)
          },
          broken,
        )
        // Runs before code that awaits it continues.
        const heard = (answer: StoredRow | undefined): void => {
          if (look !== undefined) this.#hear(look, answer)
        }
        row.then(heard, () => {})
        return row
      },
      insert: (row) => this.#effect('insert', () => () => writesNoted(there(), applied).insert(row), broken),
      update: (row, version) => {
        world.storing(this.#number, row.data)
        return this.#effect('update', () => () => writesNoted(there(), applied).update(row, version), broken)
      },
      listOpen: (scope, options) =>
        this.#effect('list', () => () => there().listOpen(scope, options), broken),
      list: (scope, options) => this.#effect('list', () => () => there().list(scope, options), broken),
      prune: async (scope, options) => {
        if (this.died) return await new Promise<number>(() => {})
        const before = await there().list(scope, { limit: 1000 })
        const pruned = await there().prune(scope, options)
        for (const { id } of before.rows)
          if ((await there().get(scope, id)) === undefined) world.log.removed(id)
        return pruned
      },
      close: () => there().close(),
    }
  }

  /** Logs a request that leaves. The returned function passes it to the service. */
  #leave(
    { method, url, body }: Pick<TransportRequest, 'method' | 'url' | 'body'>,
    headers: TransportRequest['headers'],
    send: () => Promise<SandboxReply>,
  ): { readonly request: LoggedRequest | LoggedRead; readonly arrive: () => Promise<SandboxReply> } {
    const world = this.#world
    const call = headers[CALL_HEADER]
    if (method !== 'POST') {
      const path = url.slice(world.sandbox.baseUrl.length)
      const read = world.log.read({ path, ...(call && { call: Number(call) }) })
      return { request: read, arrive: () => send().then((reply) => world.shown(reply)) }
    }
    const asked = JSON.parse(body ?? '') as CreateOrderRequest
    const { target } = asked
    world.observe()
    const order = world.log.request({
      intent: target ?? '',
      payload: payloadOf(asked),
      key: headers['idempotency-key'] ?? '',
      body: body ?? '',
      wall: this.#now(),
      time: world.time.now,
      ...(call && { call: Number(call) }),
    })
    world.note(this.name, () => `call ${call} sends ${target} with key ${order.key}`)
    world.flying.add(order)
    return {
      request: order,
      arrive: () => {
        order.resent = !world.flying.delete(order)
        const pending = send()
        const entry = world.sandbox.requests.at(-1)
        if (entry !== undefined) world.arrived(order, entry)
        return pending.then((reply) => world.shown(reply))
      },
    }
  }

  /** Logs the response to a request when it reaches the process. */
  #answered(request: LoggedRequest | LoggedRead | undefined, reply: SandboxReply, whole: boolean): void {
    if (request === undefined || this.died) return
    if ('path' in request) {
      request.answered = whole && reply.status === 200
      return
    }
    if (reply.request.faults.includes('otherOrder')) {
      this.#world.note(this.name, () => `hears of another order: ${reply.body}`)
      request.misled = true
      return
    }
    const code = /"(?:code|error)":"(\w+)"/.exec(reply.body)?.[1]
    this.#world.observe()
    this.#world.log.answered(request, reply.status, code, whole)
    request.answeredTime = this.#world.time.now
    this.#world.note(this.name, () => `hears ${reply.status} ${code ?? ''}${whole ? '' : ', not as a whole'}`)
  }

  readonly #transport: Transport = {
    send: async (request) => {
      const { method, url, headers, body = '', signal } = request
      this.#tries(headers)
      let left: LoggedRequest | LoggedRead | undefined
      const reply = await this.#effect<SandboxReply | typeof RESET>(
        method === 'POST' ? 'send' : 'fetch',
        () => {
          const leaving = this.#leave(request, headers, () =>
            this.#world.sandbox.handle({ method, url, headers, body }),
          )
          left = leaving.request
          return leaving.arrive
        },
        (unsent) => (unsent ? UNREACHABLE : RESET),
        signal,
      )
      if (reply instanceof Error) throw reply
      const { delivery } = reply
      if (delivery.type === 'stall') return await new Promise(() => {})
      if (delivery.type === 'drop') throw RESET
      if (delivery.type === 'refuse') throw UNREACHABLE
      if (!signal.aborted) this.#answered(left, reply, delivery.type === 'complete')
      return responseOf(reply)
    },
    whyUnsent: (error) => error === UNREACHABLE && 'unreachable',
    // Without this, the client does not rely on a refusal: something may have sent the request twice.
    sendsOnce: () => this.#sendsOnce,
  }

  /** False for a caller's fetch, too. */
  get #sendsOnce(): boolean {
    const { whole, resends } = this.#world.plan
    return !whole && !resends && this.#number % 4 > 0
  }

  /** Logs an attempt that begins the window of its key even if nothing leaves. */
  #tries({ 'idempotency-key': key, [CALL_HEADER]: call }: TransportRequest['headers']): void {
    if (key === undefined || call === undefined || this.#sendsOnce) return
    this.#world.log.hidden.push({ key, wall: this.#now(), call: Number(call) })
  }

  #fetch = (input: RequestInfo | URL, init?: RequestInit): Promise<Response> =>
    this.#send(new Request(input, init))

  async #send(request: Request): Promise<Response> {
    const { signal } = request
    const message = await messageOf(request)
    const { hostname } = new URL(request.url)
    // Another address accepts the same customer's orders, but does not know the keys of the first
    // one.
    const key = hostname === ELSEWHERE ? message.headers['idempotency-key'] : undefined
    const there = key === undefined ? {} : { 'idempotency-key': `${ELSEWHERE} ${key}` }
    const url = request.url.replace(hostname, HERE)
    let left: LoggedRequest | LoggedRead | undefined
    const { cache, plan } = this.#world
    this.#tries(message.headers)
    const kept = request.cache === 'no-store' ? undefined : cache.get(url)
    if (kept !== undefined) return await respond(kept, signal, request.url)
    const exchange = this.#effect<SandboxReply | undefined>(
      request.method === 'POST' ? 'send' : 'fetch',
      () => {
        // Do not pass the signal: a request that was sent arrives.
        const { method, body } = message
        const sent = { method, url, body, headers: { ...message.headers, ...there } }
        const leaving = this.#leave(sent, message.headers, () => this.#world.sandbox.handle(sent))
        left = leaving.request
        return leaving.arrive
      },
      () => undefined,
      signal,
    )
    const reply = await untilAborted(exchange, signal)
    if (reply === undefined) throw new TypeError('fetch failed', { cause: RESET })
    const { type } = reply.delivery
    if (plan.cached && request.method === 'GET' && reply.status === 200) cache.set(url, reply)
    if (type !== 'stall' && type !== 'drop' && type !== 'refuse')
      this.#answered(left, reply, type === 'complete')
    const response = await respond(reply, signal, request.url)
    const location = response.headers.get('location')
    const follows = request.redirect === 'follow' && (response.status === 307 || response.status === 308)
    if (!follows || location === null) return response
    const { method, headers, body } = message
    const next = new URL(location, request.url)
    return await this.#send(
      new Request(next, { method, headers, signal, ...(method === 'GET' ? {} : { body }) }),
    )
  }
}

const GIVEN_UP = 'the caller has given up'

/** Maximum duration of a slow effect, in milliseconds. A store is given up after ten seconds. */
const SLOWEST = 9500

/** How late an effect happens that nothing waits for any more. */
function lateness(part: number): number {
  return 11_000 + Math.floor(part * part * (LONGEST_FLIGHT - 12_000))
}

const failed = (code: string, syscall: string): Error =>
  Object.assign(new Error(`${syscall} ${code}`), { code, syscall })
const RESET = failed('ECONNRESET', 'read')
const UNREACHABLE = failed('ECONNREFUSED', 'connect')

/** Headers with lower-case names. The platform's class is slow, because it checks them. */
function answerHeaders(headers: SandboxReply['headers']): ResponseHeaders {
  return {
    get: (name) => headers[name] ?? null,
    forEach: (each) => {
      for (const [name, value] of Object.entries(headers)) each(value, name)
    },
  }
}

function responseOf({ delivery, status, headers, body }: SandboxReply): TransportResponse {
  const text = 'after' in delivery ? body.slice(0, delivery.after) : body
  const isWhole = delivery.type === 'complete' || (delivery.type === 'cut' && delivery.cleanly)
  const read: BodyText = { text, problem: isWhole ? undefined : 'cut' }
  let discard = (): void => {}
  const stalled = new Promise<BodyText>((resolve) => {
    discard = () => resolve(read)
  })
  if (delivery.type !== 'stallBody') discard()
  return { status, headers: answerHeaders(headers), read: () => stalled, discard }
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then((value) => {
      signal.removeEventListener('abort', abort)
      resolve(value)
    }, reject)
  })
}
