import { defined } from '../defined.ts'
import {
  type Charged,
  type CustomerOrderingError,
  DuplicateOrderError,
  type ErrorFacts,
  IdempotencyConflictError,
  InvalidRequestError,
  InvalidResponseError,
  StoreError,
  supportReference,
  UnresolvedOrderError,
} from '../errors.ts'
import { askCredential, type CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { chargedSentence } from '../http/failure.ts'
import { segment } from '../http/path.ts'
import { errorOf, infoOf, MAX_ITEM_BYTES, type Reply, read } from '../http/read.ts'
import { type Action, decideAction } from '../idempotency/decision.ts'
import { differingFields, fieldTags, rowIdOf } from '../idempotency/identity.ts'
import { differingRequestFields, type Intent, readIntent } from '../idempotency/intent.ts'
import type { Found, FoundRecord, RecordContent } from '../idempotency/journal.ts'
import type { JournalRecord } from '../idempotency/record.ts'
import { checkQuantity } from '../quantity.ts'
import type { ResponseInfo } from '../response-info.ts'
import { check, issuesText } from '../schemas/check.ts'
import { type CreateOrderRequest, type Order, orderSchema } from '../schemas/order.ts'
import type { Service } from '../schemas/service.ts'
import {
  CREATE_ORDER,
  chargedOf,
  makeKey,
  ORDERS_PATH,
  type OrderContext,
  type PlacedOrder,
  sameApiKey,
  tagOf,
} from './order-context.ts'
import { type Sent, sendOrder } from './send-order.ts'

/** Options of one `create()`, checked and with all defaults filled in. */
export interface PlaceOrderOptions {
  readonly settings: CallSettings
  readonly idempotencyKey?: string | undefined
  readonly allowDuplicate?: boolean | undefined
  readonly service?: Service | undefined
}

/** First wait and longest wait between looks at a record that another process is working on, milliseconds. */
const FIRST_LOOK = 50
const LONGEST_LOOK = 1000

/**
 * Places one order: finds out whether it is a new intent, an old one or somebody's at work (design section 3), claims
 * it durably, sends it, stores the ending, and returns or throws what is stored.
 */
export function placeOrder(
  context: OrderContext,
  request: CreateOrderRequest,
  options: PlaceOrderOptions,
): Promise<Reply<Order>> {
  // Everything the caller handed in is read before the first await: what it changes later changes nothing.
  const { runtime } = context.connection
  const duplicateKey = options.allowDuplicate === true ? runtime.randomId() : undefined
  const intent = readIntent(runtime.deriveId, request, {
    idempotencyKey: options.idempotencyKey,
    duplicateKey,
  })
  checkService(intent, options.service)
  return new Placement(context, intent, options, duplicateKey).run()
}

class Placement {
  readonly #context: OrderContext
  readonly #intent: Intent
  readonly #settings: CallSettings
  readonly #deadline: Deadline
  readonly #callId: string
  readonly #duplicateKey: string | undefined
  #credential: string | null | undefined
  #attempts = 0

  constructor(
    context: OrderContext,
    intent: Intent,
    options: PlaceOrderOptions,
    duplicateKey: string | undefined,
  ) {
    this.#context = context
    this.#intent = intent
    this.#settings = options.settings
    this.#deadline = new Deadline(
      context.connection.runtime,
      options.settings.totalTimeout,
      options.settings.signal,
    )
    this.#callId = context.connection.runtime.randomId()
    this.#duplicateKey = duplicateKey
  }

  async run(): Promise<Reply<Order>> {
    const { live } = this.#context
    const intent = this.#intent
    let entitled = true
    for (let twin = live.get(intent.rowId); twin !== undefined; twin = live.get(intent.rowId)) {
      const otherKey =
        intent.idempotencyKey !== undefined &&
        twin.idempotencyKey !== undefined &&
        twin.idempotencyKey !== intent.idempotencyKey
      if (twin.fingerprint !== intent.fingerprint || otherKey) {
        const fields = otherKey ? ['idempotencyKey'] : differingRequestFields(twin.request, intent.request)
        throw this.#fail(this.#conflict(fields, { charged: 'unknown' }))
      }
      if (intent.slot.startsWith('anon:')) throw this.#fail(this.#duplicate(undefined))
      const placed = await this.#deadline.race(twin.ended)
      if (placed instanceof Interruption)
        throw this.#fail(this.#interrupted(placed, 'unknown', twin.idempotencyKey))
      if (placed !== undefined)
        return this.#reply(structuredClone(placed.order), { attempts: 0 }, placed.key, true)
      // This call was made before the twin's refusal, so it is not the second call that a new key needs.
      entitled = false
    }
    const leave = live.enter(intent.rowId, {
      fingerprint: intent.fingerprint,
      idempotencyKey: intent.idempotencyKey,
      request: intent.request,
    })
    let placed: PlacedOrder | undefined
    try {
      const reply = await this.#place(entitled)
      placed = { order: reply.value, key: reply.info.idempotencyKey }
      return reply
    } catch (error) {
      throw this.#fail(error)
    } finally {
      leave(placed)
    }
  }

  async #place(entitled: boolean): Promise<Reply<Order>> {
    const { journal, connection } = this.#context
    const intent = this.#intent
    let earlier: JournalRecord | undefined
    let first = true
    for (let look = FIRST_LOOK; ; ) {
      const found = await journal.load(intent.rowId, this.#deadline)
      if (found instanceof Interruption) throw await this.#interruptedEarly(found)
      const { record } = found
      if (first && entitled) earlier = record
      first = false
      const credential = await this.#askCredential(record)
      const action: Action | { readonly action: 'begin' } =
        record === undefined
          ? { action: 'begin' }
          : decideAction(record, intent, {
              now: connection.runtime.now(),
              safeRetryWindow: this.#context.safeRetryWindow,
              totalTimeout: this.#settings.totalTimeout,
              sameApiKey: sameApiKey(this.#context, record, credential),
            })
      if (action.action === 'wait') {
        const interrupted = await this.#deadline.sleep(look)
        if (interrupted !== undefined) throw this.#interrupted(interrupted, 'unknown', record?.key)
        look = Math.min(LONGEST_LOOK, look * 2)
        continue
      }
      if (record !== undefined) {
        if (action.action === 'return') return this.#remembered(record)
        if (action.action === 'conflict') throw this.#localConflict(record, action.over)
        if (action.action === 'duplicate') throw this.#duplicate(record)
        if (action.action === 'unresolved') throw this.#unresolved(record, action.because)
        if (action.action === 'read' && action.by === 'id') return await this.#readById(found, record)
        if (action.action === 'archive' && !(await this.#archive(record)))
          throw this.#storeFailed('failed', undefined, record)
      }
      const content = this.#claim(record, action, credential)
      // A new intent in a used slot begins its own times.
      const base: Found =
        action.action === 'archive' || (action.action === 'reopen' && action.key === 'fresh')
          ? { id: found.id, ...defined({ row: found.row }) }
          : found
      const written = await journal.write(base, content, this.#deadline)
      if (written.result === 'lost') continue
      if (written.result !== 'written') {
        const over = this.#deadline.over()
        if (written.result === 'doubt' && over !== undefined)
          throw this.#interrupted(over, 'unknown', content.key)
        throw this.#storeFailed(written.result, written.cause, record)
      }
      // A refusal of another key, or of a call that ran beside this one, is none that this call heard again.
      const heardBefore =
        action.action === 'reopen' && earlier?.key === content.key ? earlier.rejection : undefined
      const continued = action.action === 'continue' || action.action === 'read'
      return await this.#send(written.found, credential, heardBefore, continued)
    }
  }

  async #send(
    claimed: FoundRecord,
    credential: string | null,
    earlier: JournalRecord['rejection'],
    continued: boolean,
  ): Promise<Reply<Order>> {
    const sent = await sendOrder(this.#context, claimed, {
      settings: this.#settings,
      deadline: this.#deadline,
      callId: this.#callId,
      credential,
      earlier,
    })
    this.#attempts = sent.attempts
    if (sent.order !== undefined) {
      const info = infoOf(sent.ending.trail, 0)
      const told = info.headers.get('idempotent-replayed')
      const replayed =
        continued || told === 'true' ? true : told === 'false' || sent.fresh ? false : undefined
      return await this.#reply(sent.order, info, sent.record.key, replayed, sent.remembered)
    }
    // Another call may have settled the record meanwhile; an order that exists is what the caller wants.
    const newest = await this.#newest(claimed, sent)
    if (newest?.state === 'created' && newest.readable) return await this.#remembered(newest)
    throw this.#sendError(sent, newest?.state === 'created')
  }

  async #newest(claimed: FoundRecord, sent: Sent): Promise<JournalRecord | undefined> {
    if (sent.remembered || sent.charged === 'yes') return undefined
    const { runtime } = this.#context.connection
    try {
      const found = await this.#context.journal.load(claimed.id, new Deadline(runtime, 500, undefined))
      return found instanceof Interruption ? undefined : found.record
    } catch {
      // The ending is 'unknown' already, which is what an unreadable store means as well.
      return undefined
    }
  }

  /** The error of a call whose order could not be returned, with what is stored about the wallet. */
  #sendError(sent: Sent, createdElsewhere: boolean): CustomerOrderingError {
    const charged = createdElsewhere ? 'yes' : sent.charged
    const { ending, outcome, orderId, record } = sent
    const facts: ErrorFacts = {
      ...this.#facts(record),
      charged,
      attempts: sent.attempts,
      ...defined({ orderId }),
    }
    // A 201 was heard, so whatever the attempts to read the order ended with, that is what went wrong.
    const unreadable = sent.charged === 'yes' || outcome?.issues !== undefined
    if (unreadable && ending.end !== 'aborted') {
      const { status, requestId } = infoOf(ending.trail, 0)
      const why = outcome?.issues === undefined ? 'could not be read' : issuesText(outcome.issues)
      const answered = sent.charged === 'yes' ? 201 : (outcome?.status ?? status)
      return new InvalidResponseError(
        `POST ${ORDERS_PATH} was answered with ${answered}, but the order ${why}. ${chargedSentence(charged)}`,
        { ...facts, issues: outcome?.issues ?? [], ...defined({ status: answered, requestId }) },
      )
    }
    if (ending.end === 'done') throw new TypeError('unreachable: a finished call has its order')
    const error = errorOf(
      { ...ending, trail: { ...ending.trail, attempts: sent.attempts } },
      {
        endpoint: CREATE_ORDER,
        path: ORDERS_PATH,
        charged,
        idempotencyKey: record.key,
        externalOrderId: record.externalOrderId,
        orderId,
        now: this.#context.connection.runtime.now(),
        reason: this.#settings.signal?.reason,
      },
    )
    return error
  }

  /** The API key, where the record may lead to a request. */
  async #askCredential(record: JournalRecord | undefined): Promise<string | null> {
    const returned = record?.state === 'created' && record.readable && !record.slot.startsWith('anon:')
    if (this.#credential !== undefined) return this.#credential
    if (returned) return null
    const asked = await askCredential(this.#context.connection.credentials, this.#deadline)
    if (asked instanceof Interruption)
      throw this.#interrupted(asked, record === undefined ? 'no' : chargedOf(record), record?.key)
    if (asked !== null && typeof asked === 'object') {
      const charged = record === undefined ? 'no' : chargedOf(record)
      throw errorOf(
        {
          end: 'credentials',
          error: asked.error,
          trail: { attempts: 0, retries: 0, cutByDeadline: false, secrets: new Set() },
        },
        {
          endpoint: CREATE_ORDER,
          path: ORDERS_PATH,
          charged,
          idempotencyKey: record?.key ?? this.#intent.idempotencyKey,
          externalOrderId: this.#intent.externalOrderId,
          now: 0,
          reason: undefined,
        },
      )
    }
    this.#credential = asked
    return asked
  }

  /** The record as this call claims it; its write is what allows the call to send. */
  #claim(
    record: JournalRecord | undefined,
    action: Action | { readonly action: 'begin' },
    credential: string | null,
  ): RecordContent {
    const context = this.#context
    const { runtime } = context.connection
    const intent = this.#intent
    const now = runtime.now()
    const busyUntil = now + this.#deadline.remaining()
    const claim = runtime.randomId()
    if (record !== undefined && (action.action === 'continue' || action.action === 'read')) {
      const { hold: _hold, ...rest } = record
      // Whoever opened it may have sent it: nothing that this call hears is clean.
      return { ...rest, ambiguous: true, busyUntil, claim, apiKeyTag: tagOf(context, record.key, credential) }
    }
    const reopened =
      record !== undefined && action.action === 'reopen' && action.key !== 'fresh' ? record : undefined
    const given = action.action === 'reopen' && action.key === 'given'
    const { key, keyOrigin } =
      reopened !== undefined && !given
        ? reopened
        : this.#duplicateKey !== undefined
          ? { key: this.#duplicateKey, keyOrigin: 'random' as const }
          : intent.idempotencyKey !== undefined
            ? { key: intent.idempotencyKey, keyOrigin: 'caller' as const }
            : makeKey(context, intent.externalOrderId, 0)
    return {
      slot: intent.slot,
      key,
      keyOrigin,
      generation: (reopened?.generation ?? 0) + (given ? 1 : 0),
      state: 'open',
      ambiguous: false,
      attempts: reopened?.attempts ?? 0,
      firstSentAt: now,
      busyUntil,
      fingerprint: intent.fingerprint,
      fields: fieldTags(runtime.deriveId, key, intent.request),
      body: intent.body,
      apiKeyTag: tagOf(context, key, credential),
      claim,
      readable: false,
      refused: !given && reopened?.refused === true,
      foreign: !given && reopened?.foreign === true,
      ...defined({ externalOrderId: intent.externalOrderId }),
    }
  }

  /** Keeps a created anonymous order under its key, so that the slot can serve the next order of the same payload. */
  async #archive(record: JournalRecord): Promise<boolean> {
    const { journal, connection } = this.#context
    const slot = `key:${record.key}`
    const id = rowIdOf(connection.runtime.deriveId, slot)
    const written = await journal.write({ id }, { ...record, slot }, this.#deadline)
    // Lost means that an earlier call archived it already.
    return written.result === 'written' || written.result === 'lost'
  }

  #remembered(record: JournalRecord): Promise<Reply<Order>> {
    const checked = check(orderSchema, structuredClone(record.order))
    if (checked instanceof Promise || !('value' in checked)) throw this.#unresolved(record, 'unreadable')
    return this.#reply(checked.value, { attempts: 0 }, record.key, true)
  }

  /** Reads an order that exists but whose answer was never readable and whose key may be forgotten. */
  async #readById(found: Found, record: JournalRecord): Promise<Reply<Order>> {
    const { connection, journal } = this.#context
    const orderId = record.order?.id ?? ''
    const reply = await read(connection, {
      endpoint: { operation: 'orders.create', method: 'GET', permission: 'orders:read', missing: 'order' },
      path: `${ORDERS_PATH}/${segment('orderId', orderId)}`,
      settings: { ...this.#settings, totalTimeout: Math.max(1, this.#deadline.remaining()) },
      maxBytes: MAX_ITEM_BYTES,
      repeatable: true,
      money: 'charged',
      parse: (body) => check(orderSchema, body),
    })
    if (found.row !== undefined) {
      const { body: _body, busyUntil: _busyUntil, ...rest } = record
      const order =
        this.#context.remember === 'order'
          ? reply.value
          : { id: orderId, status: reply.value.status, amount: reply.value.amount }
      await journal.settle(
        { id: found.id, row: found.row, record },
        { ...rest, order, readable: true },
        this.#deadline,
      )
    }
    return await this.#reply(reply.value, reply.info, record.key, true)
  }

  async #reply(
    order: Order,
    known: Pick<ResponseInfo, 'attempts'> & Partial<ResponseInfo>,
    key: string | undefined,
    replayed: boolean | undefined,
    remembered = true,
  ): Promise<Reply<Order>> {
    const { connection } = this.#context
    const { externalOrderId } = this.#intent
    const durationMs = this.#deadline.elapsed()
    connection.reporter.settled({
      callId: this.#callId,
      operation: CREATE_ORDER.operation,
      method: CREATE_ORDER.method,
      path: ORDERS_PATH,
      ok: true,
      attempts: known.attempts,
      durationMs,
      charged: 'yes',
      orderId: order.id,
      remembered,
      ...defined({ idempotencyKey: key, externalOrderId, status: known.status }),
    })
    const reference = supportReference({
      orderId: order.id,
      ...defined({ idempotencyKey: key, externalOrderId }),
    })
    return {
      value: order,
      info: {
        headers: new Headers(),
        ...known,
        durationMs,
        supportReference: reference,
        ...defined({ idempotencyKey: key, replayed }),
      },
    }
  }

  /** Reports a failure to hooks and logger on its way to the caller. */
  #fail(error: unknown): unknown {
    const { code, charged, status, attempts, idempotencyKey, orderId } =
      error as Partial<CustomerOrderingError>
    this.#context.connection.reporter.settled({
      callId: this.#callId,
      operation: CREATE_ORDER.operation,
      method: CREATE_ORDER.method,
      path: ORDERS_PATH,
      ok: false,
      attempts: attempts ?? this.#attempts,
      durationMs: this.#deadline.elapsed(),
      ...defined({
        code,
        charged,
        status,
        idempotencyKey,
        orderId,
        externalOrderId: this.#intent.externalOrderId,
      }),
    })
    return error
  }

  #facts(record: Pick<JournalRecord, 'key' | 'order'> | undefined): ErrorFacts {
    return defined({
      idempotencyKey: record?.key ?? this.#intent.idempotencyKey,
      externalOrderId: this.#intent.externalOrderId,
      orderId: record?.order?.id,
    })
  }

  #localConflict(record: JournalRecord, over: 'payload' | 'key'): CustomerOrderingError {
    const { deriveId } = this.#context.connection.runtime
    const fields =
      over === 'key'
        ? ['idempotencyKey']
        : differingFields(record.fields, fieldTags(deriveId, record.key, this.#intent.request))
    return this.#conflict(fields, { ...this.#facts(record), charged: chargedOf(record) })
  }

  #conflict(fields: readonly string[], facts: ErrorFacts): CustomerOrderingError {
    const charged = facts.charged ?? 'unknown'
    return new IdempotencyConflictError(
      `This reference or key belongs to an order that differs in ${fields.join(', ') || 'its payload'}; nothing was sent for this call. ${chargedSentence(charged)} Another order needs a reference or key of its own.`,
      { ...this.#facts(undefined), ...facts, local: true, fields },
    )
  }

  #duplicate(record: JournalRecord | undefined): CustomerOrderingError {
    return new DuplicateOrderError(
      'An order with the same content and neither a reference nor a key is being placed right now; nothing was sent for this call. Give metadata.externalOrderId to tell orders apart, or allowDuplicate for a deliberate second one.',
      { ...this.#facts(record), charged: 'unknown' },
    )
  }

  #unresolved(
    record: JournalRecord,
    because: 'window' | 'age' | 'api_key' | 'unreadable',
  ): CustomerOrderingError {
    const why = {
      window:
        'is older than the safe-retry window (or the clock went back), so the service may have forgotten its key',
      age: 'was left alone for too long to tell whether this call means the same order or another one',
      api_key: 'was sent with another API key, and the service may keep keys apart by API key',
      unreadable: 'was created, but its answer was never readable',
    }[because]
    const charged = chargedOf(record)
    return new UnresolvedOrderError(
      `An earlier call for this order ${why}; nothing was sent for this call. The wallet ${charged === 'yes' ? 'was' : 'may have been'} charged: run orders.recover(), then settle what is left with orders.resolve().`,
      { ...this.#facts(record), charged },
    )
  }

  #storeFailed(
    result: 'failed' | 'doubt',
    cause: unknown,
    record: JournalRecord | undefined,
  ): CustomerOrderingError {
    const before = record === undefined ? 'no' : chargedOf(record)
    const charged = result === 'doubt' ? 'unknown' : before
    const what =
      result === 'failed'
        ? 'The order could not be stored'
        : 'The store did not confirm that the order is stored'
    return new StoreError(
      `${what}, so nothing was sent by this call. ${chargedSentence(charged)} Repair the store and call again.`,
      {
        ...this.#facts(record),
        charged,
        ...defined({ cause }),
      },
    )
  }

  /** The call ended before the record was read; what it says about the wallet is worth a moment more. */
  async #interruptedEarly(interruption: Interruption): Promise<CustomerOrderingError> {
    const grace = new Deadline(this.#context.connection.runtime, 500, undefined)
    const found = await this.#context.journal.load(this.#intent.rowId, grace)
    if (found instanceof Interruption) return this.#interrupted(interruption, 'unknown', undefined)
    const { record } = found
    return this.#interrupted(interruption, record === undefined ? 'no' : chargedOf(record), record?.key)
  }

  #interrupted(interruption: Interruption, charged: Charged, key: string | undefined): CustomerOrderingError {
    return errorOf(
      { end: interruption.why, trail: { attempts: 0, retries: 0, cutByDeadline: true, secrets: new Set() } },
      {
        endpoint: CREATE_ORDER,
        path: ORDERS_PATH,
        charged,
        idempotencyKey: key ?? this.#intent.idempotencyKey,
        externalOrderId: this.#intent.externalOrderId,
        now: 0,
        reason: this.#settings.signal?.reason,
      },
    )
  }
}

/** Checks the quantity against the service before anything is stored or sent. */
function checkService(intent: Intent, service: Service | undefined): void {
  if (service === undefined) return
  const { serviceId, quantity } = intent.request
  const refuse = (path: string, message: string): never => {
    throw new InvalidRequestError(`The order is not valid: ${path} ${message}. Nothing was sent.`, {
      issues: [{ path, message }],
    })
  }
  if (service.productId !== serviceId)
    refuse('serviceId', 'is not the productId of the service given in options.service')
  const checked = checkQuantity(service, quantity as number)
  if (!checked.ok) refuse('quantity', checked.message)
}
