import { defined } from '../defined.ts'
import { type CustomerOrderingError, isCustomerOrderingError } from '../errors/classes.ts'
import type { SettledEvent } from '../hooks.ts'
import { answerOf } from '../http/attempt.ts'
import { askCredential, type CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { factsOf, headersLater } from '../http/info.ts'
import type { CreateOrderRequest, Order } from '../schemas/order.ts'
import { begunContent, refusalUnder, sameApiKey } from './claim.ts'
import { CLOCK_SKEW, type Facts } from './conditions.ts'
import { CREATE_ORDER, type OrderContext, orderEvent, type PlacedOrder } from './context.ts'
import {
  known,
  leaveBehind,
  type OrderCall,
  plainFacts,
  run,
  type Task,
  type Turn,
  unclaimedError,
  withTrustedTimes,
} from './engine.ts'
import { isAnonymous } from './identity.ts'
import { type Intent, isGenuine, readIntent, slotOfInvalid } from './intent.ts'
import type { Found, FoundRecord } from './journal.ts'
import { newestRecord } from './newest.ts'
import { argumentError, PlaceOrderErrors } from './place-order-errors.ts'
import { isAskedAgain, type JournalRecord } from './record.ts'
import {
  joinedReply,
  mayReturn,
  type OrderReply,
  type Placed,
  readReply,
  rememberedReply,
  replyOf,
} from './reply.ts'
import { unusableError } from './row.ts'
import { type Sends, type StepOf, unknownStep } from './rules.ts'
import type { Sent } from './send-order.ts'

export interface PlaceOrderOptions<Output> {
  readonly settings: CallSettings
  readonly idempotencyKey?: string | undefined
  readonly keyIsUndefined?: boolean | undefined
  readonly allowDuplicate?: boolean | undefined
  /** Parses the order with the caller's schema. Hooks get the settled event only after that. */
  finish(reply: OrderReply<Order>): Promise<Output>
}

/** First and longest wait, in milliseconds, between consecutive reads of a claimed record. */
const FIRST_LOOK = 50
const LONGEST_LOOK = 1000
/** Milliseconds for which a call waits for another process before it claims the order itself. */
const LONGEST_WAIT = 15_000

/**
 * Reads the order's record, claims the order in the store, sends it, and stores the outcome. The
 * rules are in docs/protocol.md.
 */
export function placeOrder<Output>(
  context: OrderContext,
  request: CreateOrderRequest,
  options: PlaceOrderOptions<Output>,
): Promise<OrderReply<Output>> {
  // Read all arguments before the first await, so that later changes to them have no effect.
  const { runtime } = context.connection
  const duplicateKey = options.allowDuplicate === true ? runtime.randomId() : undefined
  const { idempotencyKey, keyIsUndefined, settings } = options
  const deadline = new Deadline(runtime, settings.totalTimeout, settings.signal)
  let intent: Intent
  try {
    intent = readIntent(runtime.deriveId, request, { idempotencyKey, keyIsUndefined, duplicateKey })
  } catch (error) {
    return argumentError(context, error, slotOfInvalid(request, idempotencyKey), deadline).then((known) => {
      throw known
    })
  }
  const errors = new PlaceOrderErrors(intent, settings.signal, duplicateKey)
  return new Placement({ context, intent, settings, duplicateKey, deadline, errors }).place(options)
}

/** What the first read of the record found. */
interface Before {
  /** The record, if it was written before this call began. */
  readonly earlier: JournalRecord | undefined
  /** The unfinished anonymous order that this call continues. */
  readonly asked: JournalRecord | undefined
}

class Placement implements Task<'create', Placed> {
  readonly command = 'create'
  readonly deadline: Deadline
  readonly #call: OrderCall
  readonly #context: OrderContext
  readonly #intent: Intent
  readonly #settings: CallSettings
  readonly #callId: string
  readonly #startedAt: number
  #credential: string | null | undefined
  #before: Before | undefined
  /**
   * False after this call waited for an identical call that got no order: only a refusal from
   * before this call permits a new key.
   */
  #mayChangeKey = true
  #attempts = 0
  #losses = 0
  #interval = FIRST_LOOK / 2
  #waited = 0

  constructor(call: OrderCall) {
    const { runtime } = call.context.connection
    this.#call = call
    this.#context = call.context
    this.#intent = call.intent
    this.#settings = call.settings
    this.deadline = call.deadline
    this.#callId = runtime.randomId()
    this.#startedAt = runtime.now()
  }

  async place<Output>({ finish }: PlaceOrderOptions<Output>): Promise<OrderReply<Output>> {
    let placed: Placed | undefined
    try {
      placed = await this.#joinOrRun()
      const value = await finish(placed)
      const { info, remembered } = placed
      const { attempts, status, supportReference: names } = info
      this.#report({ ok: true, attempts, charged: 'yes', remembered, ...names, ...defined({ status }) })
      return { value, info }
    } catch (thrown) {
      const error = this.#call.errors.named(thrown)
      const own: Partial<CustomerOrderingError> = isCustomerOrderingError(error) ? error : {}
      const { code, charged, status, attempts, idempotencyKey, orderId } = own
      const { externalOrderId } = this.#intent
      const names = defined({ idempotencyKey, orderId, externalOrderId, remembered: placed?.remembered })
      const told = defined({ code, charged, status })
      this.#report({ ok: false, attempts: attempts ?? this.#attempts, ...told, ...names })
      throw error
    }
  }

  async #joinOrRun(): Promise<Placed> {
    const { live } = this.#context
    const { rowId, fingerprint, idempotencyKey, request } = this.#intent
    for (let twin = live.get(rowId); twin !== undefined; twin = live.get(rowId)) {
      const reply = await joinedReply(this.#call, twin)
      if (reply !== undefined) return reply
      this.#mayChangeKey = false
    }
    const leave = live.enter(rowId, { fingerprint, idempotencyKey, request })
    let placed: PlacedOrder | undefined
    try {
      const reply = await run(this.#context, this)
      placed = { order: reply.value, key: reply.info.idempotencyKey }
      return reply
    } finally {
      leave(placed)
    }
  }

  async look(interrupted: Interruption | undefined): Promise<Found> {
    const { rowId, slot } = this.#intent
    const loaded = interrupted ?? (await this.#context.journal.load(rowId, this.deadline))
    if (loaded instanceof Interruption) throw await this.#interruptedUnclaimed(loaded)
    const found = await withTrustedTimes(this.#context, loaded, this.deadline)
    const { record } = found
    if (record !== undefined && record.slot !== slot) throw unusableError('corrupt', record.key)
    this.#before ??= {
      earlier: this.#mayChangeKey && record !== undefined && this.#isOlder(record) ? record : undefined,
      asked: record !== undefined && isAskedAgain(record) ? record : undefined,
    }
    this.#interval = Math.min(LONGEST_LOOK, this.#interval * 2)
    if (this.#credential === undefined) this.#credential = await this.#askCredential(record)
    return found
  }

  facts({ record }: Found): Facts {
    const { deriveId } = this.#context.connection.runtime
    return {
      ...plainFacts(this.#context, this.#settings),
      wanted: this.#intent,
      sameApiKey: record === undefined || sameApiKey(this.#context, record, this.#credential ?? null),
      isGenuine: (found) => isGenuine(deriveId, this.#context, this.#intent.rowId, found),
      outwaited: pauseBefore(this.#interval, this.#waited) <= 0,
      asked: this.#before?.asked?.key,
    }
  }

  async perform(step: StepOf['create'], found: Found): Promise<Turn<Placed>> {
    const { record } = found
    switch (step.step) {
      case 'wait': {
        if (this.#waited === 0) this.#reportWait(known(found).record)
        const pause = pauseBefore(this.#interval, this.#waited)
        this.#waited += pause
        return { again: pause }
      }
      case 'tell':
        return { end: rememberedReply(this.#call, known(found).record) }
      case 'read':
        return { end: await readReply(this.#call, known(found)) }
      case 'refuse': {
        const about = step.because === 'replaced' ? this.#before?.asked : record
        throw this.#call.errors.refused(this.#context.connection.runtime.deriveId, step.because, about)
      }
      case 'send':
        return this.#send(step.as, found)
      default:
        return unknownStep(step)
    }
  }

  #send(as: Sends, found: Found): Turn<Placed> {
    const { row } = found
    // A new order must not inherit the times or `charged` of the earlier order in its row.
    const over: Found = as === 'new' ? { id: found.id, ...defined({ row }) } : found
    const send = begunContent(this.#context, this.#intent, over.record, as, this.#call.duplicateKey)
    // A repeated refusal moves the order to a new key. Count only a refusal under the same key that
    // came before this call.
    const earlier = as === 'stored' ? undefined : this.#before?.earlier
    return {
      over,
      send,
      how: {
        settings: this.#settings,
        callId: this.#callId,
        credential: this.#credential ?? null,
        earlier: earlier && refusalUnder(earlier, send),
        operation: CREATE_ORDER.operation,
        once: false,
      },
      sent: (sent, claimed) => this.#sent(sent, claimed, as === 'stored'),
      // From the second lost write on, wait, so that the other writers can finish.
      lost: () => ({ again: ++this.#losses > 1 ? this.#interval : 0 }),
      unwritten: async (written, content) => {
        throw await unclaimedError(this.#call, written, over, content)
      },
    }
  }

  /** @param continued true if an earlier call may have sent the order */
  async #sent(sent: Sent, claimed: FoundRecord, continued: boolean): Promise<Placed> {
    this.#attempts = sent.attempts
    const { order, attempts, record, remembered } = sent
    if (order !== undefined) {
      const { trail } = sent.ending
      const told = answerOf(trail.last)?.headers.get('idempotent-replayed')
      const replayed =
        continued || told === 'true' ? true : told === 'false' || sent.fresh ? false : undefined
      const answered = { ...factsOf(trail), headers: headersLater(trail) }
      const { key } = record
      return replyOf(this.#call, order, { key, answered, attempts, replayed, remembered })
    }
    // Another call may have settled the record while this call was sending. If the order exists,
    // return it instead of an error.
    const grace = this.deadline.grace()
    const newest = sent.overtaken ? await newestRecord(this.#context, claimed, grace) : undefined
    if (newest !== undefined && mayReturn(newest, this.#intent.fingerprint))
      return rememberedReply(this.#call, newest)
    const charged = newest?.state === 'created' ? 'yes' : sent.charged
    throw this.#call.errors.sent(sent, charged, this.#context.connection.runtime.now())
  }

  /** Without this event, the wait for another process would look like a hang. */
  #reportWait({ key }: JournalRecord): void {
    this.#context.connection.reporter.retry({
      ...orderEvent(this.#callId, CREATE_ORDER.operation),
      idempotencyKey: key,
      attempt: 0,
      reason: 'claimed',
      delayMs: Math.max(0, Math.min(LONGEST_WAIT, this.deadline.remaining())),
    })
  }

  /** A time far in the future counts as older: the clock was set back after that write. */
  #isOlder({ updatedAt }: JournalRecord): boolean {
    const ahead = updatedAt - this.#startedAt
    return ahead <= 0 || ahead > CLOCK_SKEW
  }

  /** Returns undefined if the order is remembered, so that no request is needed. */
  async #askCredential(record: JournalRecord | undefined): Promise<string | null | undefined> {
    if (record?.state === 'created' && record.readable && !isAnonymous(record.slot)) return undefined
    const asked = await askCredential(this.#context.connection.credentials, this.deadline)
    if (asked instanceof Interruption) throw await this.#interruptedUnclaimed(asked)
    if (asked === null || typeof asked === 'string') return asked
    const left = await leaveBehind(this.#call, this.#before?.asked)
    throw this.#call.errors.noCredential(asked.error, left.charged, left.record?.key)
  }

  #report(ending: Omit<SettledEvent, keyof ReturnType<typeof orderEvent> | 'durationMs'>): void {
    this.#context.connection.reporter.settled({
      ...orderEvent(this.#callId, CREATE_ORDER.operation),
      durationMs: this.deadline.elapsed(),
      ...ending,
    })
  }

  async #interruptedUnclaimed(interruption: Interruption): Promise<CustomerOrderingError> {
    const { charged, record } = await leaveBehind(this.#call, this.#before?.asked)
    return this.#call.errors.interrupted(interruption, charged, record?.key)
  }
}

/** Milliseconds until the next read of a claimed record. Zero or less once the wait is over. */
export function pauseBefore(look: number, waited: number): number {
  return Math.min(look, LONGEST_WAIT - waited)
}
