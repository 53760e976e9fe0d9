/** Places one order. */
import type { CreateOptions } from '../../call-options.ts'
import { defined, ownValue } from '../../defined.ts'
import {
  type CustomerOrderingError,
  type ErrorFacts,
  InvalidResponseError,
  isCustomerOrderingError,
  RequestAbortedError,
  type SupportReference,
  TimeoutError,
} from '../../errors/classes.ts'
import { chargedSentence } from '../../errors/messages.ts'
import { type CallSettings, noTrail } from '../../http/call.ts'
import { Deadline, GRACE, Interruption } from '../../http/deadline.ts'
import { answerFacts, infoLater } from '../../http/request.ts'
import { differingFields, isNameless } from '../../identity/keys.ts'
import { attachInfo, type ResponseInfo } from '../../response-info.ts'
import { issuesText } from '../../schemas/check.ts'
import type { CreateOrderRequest, Order } from '../../schemas/order.ts'
import { callSettings, readArguments } from '../../settings/arguments.ts'
import { timingOf } from '../protocol/keys.ts'
import { unknownStep } from '../protocol/rules.ts'
import { claim } from '../protocol/transitions.ts'
import {
  type CreateJob,
  type OrderContext,
  type OrdersContext,
  orderEvent,
  SENDING,
} from '../record/context.ts'
import { type Intent, readIntent } from '../record/intent.ts'
import type { FoundRecord } from '../record/journal.ts'
import { type JournalRecord, orderOf } from '../record/record.ts'
import { drive } from '../sending/drive.ts'
import { argumentError, named, refusedError, sentError, unclaimedError } from '../sending/order-errors.ts'
import { proveCreated, type Sent } from '../sending/send.ts'
import { findListed, readOrder } from './look-up.ts'

export interface OrderReply<T> {
  readonly value: T
  /** Creates the facts only when they are read, because few callers read them. */
  readonly info: () => ResponseInfo
  readonly attempts: number
  readonly replayed: boolean | undefined
  /** True if the order is in the store. */
  readonly remembered: boolean
}

/** @param check throws if the order must not be placed */
export async function createOrder<Output>(
  context: OrdersContext<Output>,
  request: CreateOrderRequest,
  options?: CreateOptions,
  check?: (intent: Intent) => void,
): Promise<OrderReply<Output>> {
  // Read all arguments before the first await, so that later changes to them have no effect.
  const { connection, defaults, lifetime } = context
  const { runtime } = connection
  let settings = defaults
  let deadline = new Deadline(runtime, settings.totalTimeout, undefined)
  let intent: Intent
  try {
    const read = readArguments.create(options)
    const { idempotencyKey, allowDuplicate } = read
    settings = callSettings(defaults, read)
    deadline = new Deadline(runtime, settings.totalTimeout, settings.signal)
    const duplicateKey = allowDuplicate === true ? runtime.randomId() : undefined
    const keyIsUndefined = idempotencyKey === undefined && Object.hasOwn(Object(options), 'idempotencyKey')
    intent = readIntent(runtime.deriveId, request, { idempotencyKey, duplicateKey, keyIsUndefined })
    check?.(intent)
  } catch (error) {
    const key = ownValue(options, 'idempotencyKey')
    throw await lifetime.use(() => argumentError(context, error, request, key, deadline))
  }
  const job: CreateJob = {
    command: 'create',
    rowId: intent.rowId,
    intent,
    settings,
    deadline,
    startedAt: runtime.now(),
    callId: runtime.randomId(),
    takeOver: false,
    unlisted: undefined,
  }
  return await lifetime.use(() => runJob(context, job))
}

/**
 * Reads the order's record, claims the order in the store, sends it, and stores the outcome. The
 * rules are in docs/protocol.md.
 */
async function runJob<Output>(context: OrdersContext<Output>, job: CreateJob): Promise<OrderReply<Output>> {
  const { reporter } = context.connection
  const { settings, deadline } = job
  let placed: OrderReply<Order> | undefined
  let value: Output
  try {
    placed = await place(context, job)
    context.journal.pruneHourly('create')
    const { info } = placed
    const rest = { ...settings, totalTimeout: Math.max(GRACE, deadline.remaining()) }
    value = await fitOrder(context, placed.value, SENDING.create.operation, rest, () => {
      const { attempts, supportReference, ...answered } = info()
      return { attempts, ...answerFacts(answered), ...supportReference }
    })
  } catch (thrown) {
    const error = named(job, thrown instanceof Steered ? thrown.known : thrown)
    const own: Partial<CustomerOrderingError> = isCustomerOrderingError(error) ? error : {}
    const { code, charged, status, attempts = 0, idempotencyKey, orderId } = own
    const { externalOrderId } = job.intent
    const known = { code, charged, status, idempotencyKey, orderId, externalOrderId }
    const told = defined({ ...known, remembered: placed?.remembered })
    reporter.settled({ ...orderEvent(job), durationMs: deadline.elapsed(), ok: false, attempts, ...told })
    throw thrown instanceof Steered ? thrown.error : error
  }
  const { info, attempts, remembered } = placed
  if (reporter.watched) {
    const { supportReference, ...answered } = info()
    const paid = { ok: true, attempts, charged: 'yes', remembered, durationMs: deadline.elapsed() } as const
    const { status } = answerFacts(answered)
    reporter.settled({ ...orderEvent(job), ...paid, ...supportReference, ...defined({ status }) })
  }
  attachInfo(value, info)
  return { ...placed, value }
}

/** A framework's own error, which the caller must get unchanged. Hooks are told what is known. */
class Steered {
  readonly error: unknown
  readonly known: CustomerOrderingError

  constructor(error: unknown, known: CustomerOrderingError) {
    this.error = error
    this.known = known
  }
}

async function place(context: OrderContext, job: CreateJob): Promise<OrderReply<Order>> {
  const driven = await drive(context, job)
  if (driven.end === 'unclaimed') throw unclaimedError(job, driven)
  if (driven.end === 'sent') return sentReply(job, driven)
  const { step, found } = driven
  if (step.step === 'refuse') throw refusedError(job, step.because, found?.record)
  if (found?.record === undefined) throw new TypeError(`unreachable: ${step.step} without a record`)
  switch (step.step) {
    case 'tell':
      return rememberedReply(job, found.record)
    case 'read':
      return isNameless(job.intent.slot)
        ? await readOnce(context, job, found)
        : await readReply(context, job, found)
    case 'look_up':
      return await lookedUp(context, job, found)
    case 'nothing':
    case 'in_progress':
      throw new TypeError(`unreachable: ${step.step} in create()`)
    default:
      return unknownStep(step)
  }
}

/** Sends an order only after the whole list of the service was read and certainly does not have it. */
async function lookedUp(
  context: OrderContext,
  job: CreateJob,
  found: FoundRecord,
): Promise<OrderReply<Order>> {
  const settings = {
    ...job.settings,
    // A getter, because each page may use only the time that is left.
    get totalTimeout() {
      return Math.max(1, job.deadline.remaining())
    },
  }
  const listed = await findListed(context, found, job.intent.body, settings)
  if (listed === undefined) return await place(context, { ...job, unlisted: found.record.version })
  const evidence = { orderId: listed.id, order: listed.order, claim: job.callId }
  const { record, remembered } = await proveCreated(context, found, evidence, job.deadline)
  // The list shows what an earlier call bought, and this call may want another payload.
  if (!isSame(job, found.record)) throw refusedError(job, 'payload', record)
  const order = listed.order ?? orderOf(record)
  if (order === undefined) throw refusedError(job, 'unreadable', record)
  const told = { attempts: 0, replayed: true, remembered }
  return replyOf(job, order, record.key, told, infoLater(noTrail(false), 0))
}

function sentReply(job: CreateJob, sent: Sent): OrderReply<Order> {
  const { outcome, ending, attempts, record, remembered, replayed } = sent
  const order = outcome?.order
  if (order !== undefined)
    return replyOf(job, order, record.key, { attempts, replayed, remembered }, infoLater(ending.trail, 0))
  // Another call may have settled the record meanwhile: return its order instead of an error. But of the
  // nameless calls that sent nothing, only the one that has claimed the order to read it may return it.
  const mayTell = attempts > 0 || !isNameless(job.intent.slot)
  if (mayTell && isSame(job, record) && orderOf(record) !== undefined)
    return rememberedReply(job, record, attempts)
  const charged = record.state === 'created' ? 'yes' : sent.charged
  const error = sentError(job, sent, charged)
  // What was charged, and the key of an intended duplicate, must reach the caller.
  const passes = ending.end === 'steered' && charged !== 'yes' && job.intent.duplicateKey === undefined
  throw passes ? new Steered(ending.error, error) : error
}

function isSame({ intent }: CreateJob, { fingerprint }: JournalRecord): boolean {
  return differingFields(fingerprint, intent.fingerprint).length === 0
}

function rememberedReply(job: CreateJob, record: JournalRecord, attempts = 0): OrderReply<Order> {
  const order = orderOf(record)
  if (order === undefined) throw refusedError(job, 'unreadable', record)
  const told = { attempts, replayed: true, remembered: true }
  return replyOf(job, order, record.key, told, infoLater(noTrail(false), 0))
}

/**
 * Claims a nameless order before it is read. Of the calls that read it at the same time, only one may
 * return it: each of the others wants an order of its own. The write of what was read comes too late
 * to decide this: if it fails, the order must be returned nevertheless.
 */
export async function readOnce(
  context: OrderContext,
  job: CreateJob,
  found: FoundRecord,
): Promise<OrderReply<Order>> {
  const { journal } = context
  const { deadline, callId } = job
  const { record } = found
  const { now, until } = timingOf(context, job)
  const lease = { now, until, claim: callId, apiKeyTag: record.apiKeyTag }
  const written = await journal.write(found, claim(record, undefined, record, lease), deadline)
  if (written.result === 'lost') throw refusedError(job, 'duplicate', undefined)
  if (written.result !== 'written')
    throw unclaimedError(job, { end: 'unclaimed', why: written, charged: 'yes', record, key: record.key })
  const claimed = written.found
  try {
    return await readReply(context, job, claimed)
  } catch (error) {
    // Give the claim back, or the next call could not read the order until it ends.
    await journal.writeOutcome(claimed, record, deadline)
    throw error
  }
}

/** Reads the order by its id: the service may have forgotten the key. */
export async function readReply(
  context: OrderContext,
  job: CreateJob,
  found: FoundRecord,
): Promise<OrderReply<Order>> {
  const { deadline } = job
  const { record } = found
  const orderId = record.order?.id
  if (orderId === undefined) throw refusedError(job, 'unreadable', record)
  const settings = { ...job.settings, totalTimeout: Math.max(1, deadline.remaining()) }
  const read = await readOrder(context, 'orders.retrieve', orderId, 'yes', settings, record)
  const evidence = { orderId, order: read.value, claim: job.callId }
  const { record: stored, remembered, isDisplaced } = await proveCreated(context, found, evidence, deadline)
  // Another call took over the claim of a nameless order after its end, and returns the order.
  const isAnothers = isDisplaced || (remembered && stored.claim !== job.callId)
  if (isNameless(job.intent.slot) && isAnothers) throw refusedError(job, 'duplicate', undefined)
  const told = { attempts: read.info().attempts, replayed: true, remembered }
  return replyOf(job, read.value, record.key, told, read.info)
}

function replyOf(
  { intent, deadline }: CreateJob,
  order: Order,
  key: string,
  told: Pick<OrderReply<Order>, 'attempts' | 'replayed' | 'remembered'>,
  answered: () => ResponseInfo,
): OrderReply<Order> {
  const idempotencyKey = key === '' ? undefined : key
  const { externalOrderId } = intent
  const supportReference = { orderId: order.id, ...defined({ idempotencyKey, externalOrderId }) }
  const durationMs = deadline.elapsed()
  const { attempts, replayed } = told
  // No function in this one may use `intent` or `deadline`: the closure would keep the call's request and
  // signal in memory for as long as the caller keeps the order.
  const info = (): ResponseInfo => {
    const further = defined({ idempotencyKey, replayed })
    return { ...answered(), attempts, durationMs, supportReference, ...further }
  }
  return { value: order, ...told, info }
}

/**
 * Parses a paid order with the caller's own schema, which may be slow or reject the order. The
 * errors must not advise another call: without a reference or key, it would place a second order.
 */
export async function fitOrder<Output>(
  { parse, connection }: OrdersContext<Output>,
  order: Order,
  operation: string,
  settings: CallSettings,
  known: () => SupportReference & Pick<ErrorFacts, 'attempts' | 'status' | 'requestId'>,
): Promise<Output> {
  const checked = parse(order)
  const parsed =
    checked instanceof Promise
      ? await new Deadline(connection.runtime, settings.totalTimeout, settings.signal).race(checked)
      : checked
  if (!(parsed instanceof Interruption) && 'value' in parsed) return parsed.value
  const paid = { ...known(), charged: 'yes' } as const
  const told = (what: string): string =>
    `${operation}: ${what}. ${chargedSentence('yes')} Check schemas.order, then read the order with orders.retrieve().`
  if (parsed instanceof Interruption) {
    const cause: unknown = settings.signal?.reason
    throw parsed.why === 'aborted'
      ? new RequestAbortedError(told("the caller's signal aborted schemas.order"), { ...paid, cause })
      : new TimeoutError(told('schemas.order did not finish within totalTimeout'), paid)
  }
  const { issues } = parsed
  const what = `the order does not match schemas.order: ${issuesText(issues)}`
  throw new InvalidResponseError(told(what), { ...paid, issues })
}
