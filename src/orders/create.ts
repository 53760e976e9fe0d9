import { defined } from '../defined.ts'
import type { CustomerOrderingError } from '../errors.ts'
import { supportReference } from '../errors.ts'
import type { SettledEvent } from '../hooks.ts'
import { answerOf } from '../http/attempt.ts'
import { askCredential, type CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { answerFacts, factsOf, headersLater, noHeaders } from '../http/info.ts'
import { segment } from '../http/path.ts'
import type { ResponseInfo } from '../response-info.ts'
import { checkNow } from '../schemas/check.ts'
import { type CreateOrderRequest, type Order, orderSchema } from '../schemas/order.ts'
import type { Service } from '../schemas/service.ts'
import { begunContent, claimedContent, heardUnder, sameApiKey } from './claim.ts'
import { CLOCK_SKEW, type Facts, PLAIN_FACTS } from './conditions.ts'
import { CREATE_ORDER, ORDERS_PATH, type OrderContext, type PlacedOrder, rememberedOrder } from './context.ts'
import { isAnonymous } from './identity.ts'
import { differingRequestFields, type Intent, isGenuine, readIntent, slotOfInvalid } from './intent.ts'
import type { Found, FoundRecord } from './journal.ts'
import type { LiveCall } from './live.ts'
import { lookUp, readOrder } from './look-up.ts'
import { isAnother, withTrustedTimes } from './newest.ts'
import { argumentError, PlaceOrderErrors } from './place-order-errors.ts'
import { isUnsent, type JournalRecord, type Rejection } from './record.ts'
import { newestRecord } from './recovery-outcome.ts'
import { unusableError } from './row.ts'
import { decide, known, unknownStep } from './rules.ts'
import { sendOrder } from './send-order.ts'
import { apply } from './transitions.ts'
import { UnclaimedOrder } from './unclaimed.ts'

/** Options of one `create()`, checked and with all defaults filled in. */
export interface PlaceOrderOptions<Output> {
  readonly settings: CallSettings
  readonly idempotencyKey?: string | undefined
  readonly keyIsUndefined?: boolean | undefined
  readonly allowDuplicate?: boolean | undefined
  readonly service?: Service | undefined
  /** Makes the caller's result of the order; the call is over, and reported to hooks, only when that has ended. */
  finish(reply: OrderReply<Order>): Promise<Output>
}

/** An order, or what the caller's schema made of it, and what came with it. */
export interface OrderReply<T> {
  readonly value: T
  readonly info: OrderInfo
}

/** What came with an order. The headers are made when somebody asks, which is seldom. */
export interface OrderInfo extends Omit<ResponseInfo, 'headers'> {
  headers(): Headers
}

/**
 * What came with an order, for {@link attachInfo}. A function of the module: one that is made within a call would keep
 * what that call was given, its request and its signal among it, for as long as the caller keeps the order.
 */
export function responseInfoOf(info: OrderInfo): () => ResponseInfo {
  return () => {
    const { headers, ...rest } = info
    return { ...rest, headers: headers() }
  }
}

/** What an order repeats of the answer that it came in. */
type Answered = Pick<OrderInfo, 'status' | 'requestId' | 'headers'>

/** An order as a reply, and whether it is stored. */
interface Placed extends OrderReply<Order> {
  readonly remembered: boolean
}

/** First wait and longest wait between looks at a record that another process is working on, milliseconds. */
const FIRST_LOOK = 50
const LONGEST_LOOK = 1000
/** How long a call waits for another process's claim before it claims the order itself, milliseconds. */
const LONGEST_WAIT = 15_000

/**
 * Places one order: finds out whether it is a new intent, an old one or somebody's at work (docs/guide/concepts.md), claims
 * it durably, sends it, stores the ending, and returns or throws what is stored.
 */
export function placeOrder<Output>(
  context: OrderContext,
  request: CreateOrderRequest,
  options: PlaceOrderOptions<Output>,
): Promise<OrderReply<Output>> {
  // Everything the caller handed in is read before the first await: what it changes later changes nothing.
  const { runtime } = context.connection
  const duplicateKey = options.allowDuplicate === true ? runtime.randomId() : undefined
  const { idempotencyKey, keyIsUndefined, service, settings } = options
  let intent: Intent
  try {
    const further = { idempotencyKey, keyIsUndefined, duplicateKey, service }
    intent = readIntent(runtime.deriveId, request, further)
  } catch (error) {
    const deadline = new Deadline(runtime, settings.totalTimeout, settings.signal)
    return argumentError(context, error, slotOfInvalid(request, idempotencyKey), deadline).then((known) => {
      throw known
    })
  }
  return new Placement(context, intent, options, duplicateKey).run(options)
}

/** What a call knows of the record that it has claimed. */
interface Sending {
  /** The refusal that an earlier call heard under the same key. */
  readonly earlier: Rejection | undefined
  /** True if an earlier call may have sent it. */
  readonly continued: boolean
  /** True if it was enqueued and never sent. */
  readonly queued: boolean
  /** True if its key was never sent. */
  readonly unused: boolean
}

class Placement {
  readonly #context: OrderContext
  readonly #intent: Intent
  readonly #settings: CallSettings
  readonly #deadline: Deadline
  readonly #errors: PlaceOrderErrors
  readonly #unclaimed: UnclaimedOrder
  readonly #callId: string
  readonly #startedAt: number
  readonly #duplicateKey: string | undefined
  #credential: string | null | undefined
  /** The order without a name that was in doubt, or never readable, at the first look: this call asks for it again. */
  #asked: JournalRecord | undefined
  #attempts = 0

  constructor(
    context: OrderContext,
    intent: Intent,
    { settings }: { readonly settings: CallSettings },
    duplicateKey: string | undefined,
  ) {
    const { runtime } = context.connection
    this.#context = context
    this.#intent = intent
    this.#settings = settings
    this.#deadline = new Deadline(runtime, settings.totalTimeout, settings.signal)
    this.#errors = new PlaceOrderErrors(intent, settings.signal)
    this.#callId = runtime.randomId()
    this.#startedAt = runtime.now()
    this.#duplicateKey = duplicateKey
    this.#unclaimed = new UnclaimedOrder({
      context,
      intent,
      duplicateKey,
      deadline: this.#deadline,
      errors: this.#errors,
    })
  }

  async run<Output>({ finish }: PlaceOrderOptions<Output>): Promise<OrderReply<Output>> {
    let placed: Placed | undefined
    try {
      placed = await this.#run()
      const value = await finish(placed)
      const { info, remembered } = placed
      const { attempts, status, supportReference: names } = info
      this.#report({ ok: true, attempts, charged: 'yes', remembered, ...names, ...defined({ status }) })
      return { value, info }
    } catch (error) {
      // Reported to hooks and logger on its way to the caller.
      const { code, charged, status, attempts, idempotencyKey, orderId } =
        error as Partial<CustomerOrderingError>
      const { externalOrderId } = this.#intent
      const names = defined({ idempotencyKey, orderId, externalOrderId, remembered: placed?.remembered })
      const told = defined({ code, charged, status })
      this.#report({ ok: false, attempts: attempts ?? this.#attempts, ...told, ...names })
      throw error
    }
  }

  async #run(): Promise<Placed> {
    const { live } = this.#context
    const { rowId, fingerprint, idempotencyKey, request } = this.#intent
    let entitled = true
    for (let twin = live.get(rowId); twin !== undefined; twin = live.get(rowId)) {
      const reply = await this.#join(twin)
      if (reply !== undefined) return reply
      // This call was made before the twin's refusal, so it is not the second call that a new key needs.
      entitled = false
    }
    const leave = live.enter(rowId, { fingerprint, idempotencyKey, request })
    let placed: PlacedOrder | undefined
    try {
      const reply = await this.#place(entitled)
      placed = { order: reply.value, key: reply.info.idempotencyKey }
      return reply
    } finally {
      leave(placed)
    }
  }

  /** The order of a call of this process that is placing the same one; nothing if that call ended without it. */
  async #join(twin: LiveCall<PlacedOrder>): Promise<Placed | undefined> {
    const { idempotencyKey, request } = this.#intent
    const reason = whyNotJoin(this.#intent, twin)
    if (reason === 'key') throw this.#errors.conflict(['idempotencyKey'], undefined)
    if (reason === 'payload')
      throw this.#errors.conflict(differingRequestFields(twin.request, request), undefined)
    if (reason === 'anonymous') throw this.#errors.duplicate(undefined)
    const placed = await this.#deadline.race(twin.ended.then(copyOf))
    if (placed instanceof Interruption) throw this.#errors.interrupted(placed, 'unknown', twin.idempotencyKey)
    if (placed === undefined) return undefined
    // The twin went by a key of its own making: whether this call's key agrees is the record's to say.
    if (idempotencyKey !== undefined && idempotencyKey !== placed.key) return undefined
    return this.#reply(placed.order, undefined, 0, placed.key, true)
  }

  async #place(entitled: boolean): Promise<Placed> {
    const { journal } = this.#context
    let earlier: JournalRecord | undefined
    let first = true
    let losses = 0
    let notListed = false
    let waited = 0
    for (let look = FIRST_LOOK; ; look = Math.min(LONGEST_LOOK, look * 2)) {
      const loaded = await journal.load(this.#intent.rowId, this.#deadline)
      if (loaded instanceof Interruption) throw await this.#interruptedEarly(loaded)
      const found = await withTrustedTimes(this.#context, loaded, this.#deadline)
      const { record } = found
      if (record !== undefined && record.slot !== this.#intent.slot)
        throw unusableError('corrupt', record.key)
      if (first && entitled && record !== undefined && this.#isOlder(record)) earlier = record
      // Its row has the next one like it by now, so nobody can say here what became of the one that is asked for again.
      if (record !== undefined && this.#asked !== undefined && isAnother(record, this.#asked))
        throw this.#errors.unresolved(this.#asked, 'replaced')
      if (first && record !== undefined && isAskedAgain(record)) this.#asked = record
      first = false
      const credential = await this.#askCredential(record)
      const pause = pauseBefore(look, waited)
      const step = decide('create', found, this.#facts(record, credential, pause <= 0, notListed))
      switch (step.step) {
        case 'wait':
          if (waited === 0) this.#reportWait(known(found).record)
          await this.#wait(pause)
          waited += pause
          continue
        case 'tell':
          return this.#remembered(known(found).record)
        case 'read':
          return await this.#readById(known(found))
        case 'refuse':
          throw this.#errors.refused(this.#context.connection.runtime.deriveId, step.because, record)
        case 'look_up': {
          const bought = await this.#lookUp(known(found))
          if (bought !== undefined) return bought
          notListed = true
          continue
        }
        case 'send':
          break
        default:
          return unknownStep(step)
      }
      // A new intent in a used slot begins its own times, and the order before it says nothing about its money.
      const same = step.as === 'new' ? undefined : record
      const { totalTimeout } = this.#settings
      const further = { totalTimeout, duplicateKey: this.#duplicateKey }
      const begun = begunContent(this.#context, this.#intent, same, step.as, further)
      const content = claimedContent(this.#context, begun, this.#deadline.remaining(), credential)
      const base: Found = same === record ? found : { id: found.id, ...defined({ row: found.row }) }
      const written = await journal.write(base, content, this.#deadline)
      if (written.result === 'lost') {
        // Somebody else was faster, and the next look says who. A store that says so again and again is given time.
        if (++losses > 1) await this.#wait(look)
        continue
      }
      if (written.result !== 'written') throw await this.#unclaimed.notStored(written, base, content, same)
      // A refusal of another key, or of a call that ran beside this one, is none that this call heard again.
      const unsent = record !== undefined && isUnsent(record)
      const again = unsent || step.as !== 'stored'
      const sending = {
        earlier: again && earlier !== undefined ? heardUnder(earlier, content) : undefined,
        continued: step.as === 'stored' && !unsent,
        queued: unsent,
        unused: begun.firstSentAt === undefined,
      }
      return await this.#send(written.found, credential, sending)
    }
  }

  async #wait(milliseconds: number): Promise<void> {
    const interrupted = await this.#deadline.sleep(milliseconds)
    if (interrupted !== undefined) throw await this.#interruptedEarly(interrupted)
  }

  #facts(
    record: JournalRecord | undefined,
    credential: string | null,
    outwaited: boolean,
    isNotListed: boolean,
  ): Facts {
    const { connection, safeRetryWindow } = this.#context
    const { now, deriveId } = connection.runtime
    return {
      ...PLAIN_FACTS,
      now: now(),
      safeRetryWindow,
      totalTimeout: this.#settings.totalTimeout,
      wanted: this.#intent,
      sameApiKey: record === undefined || sameApiKey(this.#context, record, credential),
      isGenuine: (found) => isGenuine(deriveId, this.#context, this.#intent.rowId, found),
      outwaited,
      asked: this.#asked?.key,
      isNotListed,
    }
  }

  /** Says that the call waits for another process, which would look like a hang otherwise. */
  #reportWait({ key }: JournalRecord): void {
    this.#context.connection.reporter.retry({
      callId: this.#callId,
      operation: CREATE_ORDER.operation,
      method: CREATE_ORDER.method,
      path: ORDERS_PATH,
      idempotencyKey: key,
      attempt: 0,
      reason: 'claimed',
      delayMs: Math.max(0, Math.min(LONGEST_WAIT, this.#deadline.remaining())),
    })
  }

  /**
   * Looks an order up that looks never sent, and returns the one that the list shows. Ends the call if nobody can know.
   */
  async #lookUp(found: FoundRecord): Promise<Placed | undefined> {
    const deadline = this.#deadline
    const settings: CallSettings = {
      ...this.#settings,
      // Of each page: what is left then.
      get totalTimeout() {
        return Math.max(1, deadline.remaining())
      },
    }
    const checkOpen = (): void => {
      const over = deadline.over()
      if (over !== undefined) throw this.#errors.interrupted(over, 'unknown', found.record.key)
    }
    const lookups = [{ found, reason: 'past_window', unsent: true }] as const
    const conditions = { reachable: true, checkOpen }
    for await (const looked of lookUp(this.#context, CREATE_ORDER.operation, lookups, settings, conditions)) {
      if (looked.outcome === 'not_listed') return undefined
      if (looked.outcome !== 'created') throw looked.error ?? this.#errors.unresolved(found.record, 'window')
      const { key } = found.record
      const remembered = looked.record.state === 'created'
      // A store that did not take the proof still shows an order that looks never sent, and it would be bought again.
      if (looked.order !== undefined) return this.#reply(looked.order, undefined, 0, key, true, remembered)
      if (!remembered) throw this.#errors.unresolved({ ...found.record, state: 'created' }, 'unreadable')
    }
    return undefined
  }

  /**
   * True if the record was written before this call was made. One that is far ahead was, too: the clock went back since.
   */
  #isOlder({ updatedAt }: JournalRecord): boolean {
    const ahead = updatedAt - this.#startedAt
    return ahead <= 0 || ahead > CLOCK_SKEW
  }

  async #send(
    claimed: FoundRecord,
    credential: string | null,
    { earlier, continued, queued, unused }: Sending,
  ): Promise<Placed> {
    const sent = await sendOrder(this.#context, claimed, {
      settings: this.#settings,
      deadline: this.#deadline,
      callId: this.#callId,
      credential,
      earlier,
      queued,
      unused,
    })
    this.#attempts = sent.attempts
    if (sent.order !== undefined) {
      const { trail } = sent.ending
      const told = answerOf(trail.last)?.headers.get('idempotent-replayed')
      const replayed =
        continued || told === 'true' ? true : told === 'false' || sent.fresh ? false : undefined
      const answered = { ...factsOf(trail), headers: headersLater(trail) }
      return this.#reply(sent.order, answered, sent.attempts, sent.record.key, replayed, sent.remembered)
    }
    // Another call may have settled the record meanwhile; an order that exists is what the caller wants.
    const grace = this.#deadline.grace()
    const newest = sent.overtaken ? await newestRecord(this.#context, claimed, grace) : undefined
    if (newest !== undefined && mayReturn(newest, this.#intent.fingerprint)) return this.#remembered(newest)
    const charged = newest?.state === 'created' ? 'yes' : sent.charged
    throw this.#errors.sent(sent, charged, this.#context.connection.runtime.now())
  }

  /** The API key, where the record may lead to a request. */
  async #askCredential(record: JournalRecord | undefined): Promise<string | null> {
    const returned = record?.state === 'created' && record.readable && !isAnonymous(record.slot)
    if (this.#credential !== undefined) return this.#credential
    if (returned) return null
    const asked = await askCredential(this.#context.connection.credentials, this.#deadline)
    if (asked instanceof Interruption) throw await this.#interruptedEarly(asked)
    if (asked !== null && typeof asked === 'object') {
      const left = await this.#unclaimed.leaveBehind(this.#asked)
      throw this.#errors.noCredential(asked.error, left.charged, left.record?.key)
    }
    this.#credential = asked
    return asked
  }

  #remembered(record: JournalRecord): Placed {
    const checked = checkNow(orderSchema, record.order)
    if (!('value' in checked)) throw this.#errors.unresolved(record, 'unreadable')
    return this.#reply(checked.value, undefined, 0, record.key, true)
  }

  /** Reads an order that exists but whose answer was never readable and whose key may be forgotten. */
  async #readById(found: FoundRecord): Promise<Placed> {
    const { record } = found
    const orderId = record.order?.id ?? ''
    if (!isSegment(orderId)) throw this.#errors.unresolved(record, 'unreadable')
    const totalTimeout = Math.max(1, this.#deadline.remaining())
    const settings = { ...this.#settings, totalTimeout }
    const { value, info } = await readOrder(
      this.#context,
      'orders.retrieve',
      orderId,
      'charged',
      settings,
      record,
    )
    const order = rememberedOrder(this.#context, value)
    const facts = { sent: undefined, orderId, attempts: 0, claim: record.claim }
    const content = apply(record, { type: 'proven', order, ...facts })
    const { result } = await this.#context.journal.settle(found, content, this.#deadline)
    const came = info()
    const answered = { ...answerFacts(came), headers: () => came.headers }
    const remembered = result === 'written' || result === 'lost'
    return this.#reply(value, answered, came.attempts, record.key, true, remembered)
  }

  #reply(
    order: Order,
    /** Of the answer, where there was one. */
    answered: Answered | undefined,
    attempts: number,
    key: string | undefined,
    replayed: boolean | undefined,
    remembered = true,
  ): Placed {
    const { externalOrderId } = this.#intent
    const names = { orderId: order.id, ...defined({ idempotencyKey: key, externalOrderId }) }
    return {
      value: order,
      remembered,
      info: {
        ...answered,
        attempts,
        durationMs: this.#deadline.elapsed(),
        supportReference: supportReference(names),
        ...defined({ idempotencyKey: key, replayed }),
        headers: answered?.headers ?? noHeaders,
      },
    }
  }

  #report(ending: Omit<SettledEvent, 'callId' | 'operation' | 'method' | 'path' | 'durationMs'>): void {
    this.#context.connection.reporter.settled({
      callId: this.#callId,
      operation: CREATE_ORDER.operation,
      method: CREATE_ORDER.method,
      path: ORDERS_PATH,
      durationMs: this.#deadline.elapsed(),
      ...ending,
    })
  }

  /** The error of a call that ended before it claimed the record; what that says about the wallet is worth a moment more. */
  async #interruptedEarly(interruption: Interruption): Promise<CustomerOrderingError> {
    const { charged, record } = await this.#unclaimed.leaveBehind(this.#asked)
    return this.#errors.interrupted(interruption, charged, record?.key)
  }
}

/** Why a call must not take the order of a call beside it, which it meets under its own name. */
export function whyNotJoin(
  { slot, fingerprint, idempotencyKey }: Intent,
  twin: LiveCall<PlacedOrder>,
): 'key' | 'payload' | 'anonymous' | undefined {
  const bothKeys = idempotencyKey !== undefined && twin.idempotencyKey !== undefined
  if (bothKeys && twin.idempotencyKey !== idempotencyKey) return 'key'
  if (twin.fingerprint !== fingerprint) return 'payload'
  return isAnonymous(slot) ? 'anonymous' : undefined
}

/**
 * True if a call for an order without a name asks for the one that is stored, and not for another one like it: what became
 * of that one, or what it is, nobody has heard yet.
 */
export function isAskedAgain(record: Pick<JournalRecord, 'slot' | 'state' | 'readable'>): boolean {
  return (
    isAnonymous(record.slot) && (record.state === 'open' || (record.state === 'created' && !record.readable))
  )
}

/** How long a call waits before it looks again at a record that is claimed; nothing once it has waited long enough. */
export function pauseBefore(look: number, waited: number): number {
  return Math.min(look, LONGEST_WAIT - waited)
}

/**
 * True if a call whose own ending was overtaken returns the order that is there now: not one of another payload, which
 * somebody has ordered under this name once this call was refused.
 */
export function mayReturn(newest: JournalRecord, fingerprint: string): boolean {
  return newest.fingerprint === fingerprint && newest.state === 'created' && newest.readable
}

/** A twin's order as an object of its own, made before anybody who hears of it can change it. */
function copyOf(placed: PlacedOrder | undefined): PlacedOrder | undefined {
  try {
    return placed && { ...placed, order: structuredClone(placed.order) }
  } catch {
    // Nested too deeply to be copied: the record has as much of it as can be kept.
    return undefined
  }
}

/** False for an id that cannot be one. */
function isSegment(orderId: string): boolean {
  try {
    segment('orderId', orderId)
    return true
  } catch {
    return false
  }
}
