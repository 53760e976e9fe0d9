/** Places one order. */
import { defined } from '../../defined.ts'
import { type CustomerOrderingError, isCustomerOrderingError } from '../../errors/classes.ts'
import type { SettledEvent } from '../../hooks.ts'
import type { CallSettings } from '../../http/call.ts'
import { Deadline } from '../../http/deadline.ts'
import { answerFacts, factsOf, headersLater, noHeaders } from '../../http/request.ts'
import { differingFields } from '../../identity/keys.ts'
import type { ResponseInfo } from '../../response-info.ts'
import type { CreateOrderRequest, Order } from '../../schemas/order.ts'
import { unknownStep } from '../protocol/rules.ts'
import { CREATE_ORDER, type Job, type OrderContext, orderEvent } from '../record/context.ts'
import { type Intent, readIntent, slotOfInvalid } from '../record/intent.ts'
import type { FoundRecord } from '../record/journal.ts'
import { type JournalRecord, orderOf } from '../record/record.ts'
import { drive, type EndStep } from '../sending/drive.ts'
import { proveFound } from '../sending/evidence.ts'
import {
  argumentError,
  doubtfulError,
  named,
  type Placing,
  refusedError,
  sentError,
  unclaimedError,
  unresolvedError,
} from '../sending/order-errors.ts'
import type { Sent } from '../sending/send.ts'
import { isListed, readOrder } from './look-up.ts'

export interface OrderReply<T> {
  readonly value: T
  readonly info: OrderInfo
}

/** Creates `Headers` only when they are read, because few callers read them. */
export interface OrderInfo extends Omit<ResponseInfo, 'headers'> {
  headers(): Headers
}

export interface PlaceOrderOptions<Output> {
  readonly settings: CallSettings
  readonly idempotencyKey?: string | undefined
  readonly keyIsUndefined?: boolean | undefined
  readonly allowDuplicate?: boolean | undefined
  /** Parses the order with the caller's schema. Hooks get the settled event only after that. */
  finish(reply: OrderReply<Order>): Promise<Output>
}

interface Placed extends OrderReply<Order> {
  /** True if the order is in the store. */
  readonly remembered: boolean
}

/**
 * Reads the order's record, claims the order in the store, sends it, and stores the outcome. The
 * rules are in docs/protocol.md.
 */
export async function placeOrder<Output>(
  context: OrderContext,
  request: CreateOrderRequest,
  { settings, allowDuplicate, finish, ...names }: PlaceOrderOptions<Output>,
): Promise<OrderReply<Output>> {
  // Read all arguments before the first await, so that later changes to them have no effect.
  const { runtime } = context.connection
  const duplicateKey = allowDuplicate === true ? runtime.randomId() : undefined
  const deadline = new Deadline(runtime, settings.totalTimeout, settings.signal)
  let intent: Intent
  try {
    intent = readIntent(runtime.deriveId, request, { ...names, duplicateKey })
  } catch (error) {
    throw await argumentError(context, error, slotOfInvalid(request, names.idempotencyKey), deadline)
  }
  const { operation } = CREATE_ORDER
  const { rowId } = intent
  const callId = runtime.randomId()
  const job: Job = {
    command: 'create',
    operation,
    rowId,
    intent,
    settings,
    deadline,
    callId,
    takeOver: false,
    isNotListed: false,
  }
  const placing: Placing = { intent, signal: settings.signal }
  let placed: Placed | undefined
  try {
    placed = await place(context, job, placing)
    const value = await finish(placed)
    const { info, remembered } = placed
    const { attempts, status, supportReference } = info
    report(context, job, {
      ok: true,
      attempts,
      charged: 'yes',
      remembered,
      ...supportReference,
      ...defined({ status }),
    })
    return { value, info }
  } catch (thrown) {
    const error = named(placing, thrown)
    const own: Partial<CustomerOrderingError> = isCustomerOrderingError(error) ? error : {}
    const { code, charged, status, attempts = 0, idempotencyKey, orderId } = own
    const { externalOrderId } = intent
    const known = { idempotencyKey, orderId, externalOrderId, remembered: placed?.remembered }
    report(context, job, { ok: false, attempts, ...defined({ code, charged, status, ...known }) })
    throw error
  }
}

async function place(context: OrderContext, job: Job, placing: Placing): Promise<Placed> {
  const driven = await drive(context, job)
  switch (driven.end) {
    case 'unclaimed':
      throw unclaimedError(placing, driven, job.deadline)
    case 'sent':
      return sentReply(job, placing, driven)
    case 'ruled':
      return await ruledReply(context, job, placing, driven.step, driven.found)
  }
}

async function ruledReply(
  context: OrderContext,
  job: Job,
  placing: Placing,
  step: EndStep,
  { id, row, record }: Partial<FoundRecord>,
): Promise<Placed> {
  if (step.step === 'refuse') throw refusedError(placing, step.because, record)
  if (id === undefined || row === undefined || record === undefined)
    throw new TypeError(`unreachable: ${step.step} without a record`)
  switch (step.step) {
    case 'tell':
      return rememberedReply(job, placing, record)
    case 'read':
      return await readReply(context, job, placing, { id, row, record })
    case 'look_up': {
      const listed = await isListed(context, job, { id, row, record })
      if (listed === undefined) return await place(context, { ...job, isNotListed: true }, placing)
      if (listed === 'doubtful') throw doubtfulError(placing, record)
      return rememberedReply(job, placing, listed)
    }
    case 'nothing':
    case 'in_progress':
      throw new TypeError(`unreachable: ${step.step} in create()`)
    default:
      return unknownStep(step)
  }
}

function sentReply(job: Job, placing: Placing, sent: Sent): Placed {
  const { order, ending, attempts, record, remembered, replayed } = sent
  if (order !== undefined) {
    const { trail } = ending
    const answered = { ...factsOf(trail), headers: headersLater(trail) }
    return replyOf(job, order, record.key, { attempts, replayed, remembered, ...answered })
  }
  // Another call may have settled the record while this call was sending. If the order exists,
  // return it instead of an error.
  const { fingerprint } = record
  const isSame = differingFields(fingerprint, placing.intent.fingerprint).length === 0
  if (isSame && orderOf(record) !== undefined) return rememberedReply(job, placing, record)
  const charged = record.state === 'created' ? 'yes' : sent.charged
  throw sentError(placing, sent, charged)
}

function rememberedReply(job: Job, placing: Placing, record: JournalRecord): Placed {
  const order = orderOf(record)
  if (order === undefined) throw unresolvedError(placing, 'unreadable', record)
  return replyOf(job, order, record.key, {
    attempts: 0,
    replayed: true,
    remembered: true,
    headers: noHeaders,
  })
}

/** Reads the order by its id: the service may have forgotten the key. */
async function readReply(
  context: OrderContext,
  job: Job,
  placing: Placing,
  found: FoundRecord,
): Promise<Placed> {
  const { deadline } = job
  const { record } = found
  const orderId = record.order?.id
  if (orderId === undefined) throw unresolvedError(placing, 'unreadable', record)
  const settings = { ...job.settings, totalTimeout: Math.max(1, deadline.remaining()) }
  const read = await readOrder(context, 'orders.retrieve', orderId, 'charged', settings, record)
  const { remembered } = await proveFound(context, found, { id: orderId, order: read.value }, deadline)
  const info = read.info()
  const { attempts, headers } = info
  const told = { attempts, replayed: true, remembered, ...answerFacts(info), headers: () => headers }
  return replyOf(job, read.value, record.key, told)
}

type Told = Pick<OrderInfo, 'attempts' | 'headers' | 'status' | 'requestId'> & {
  readonly replayed: boolean | undefined
  readonly remembered: boolean
}

function replyOf(
  { intent, deadline }: Job,
  order: Order,
  key: string,
  { remembered, replayed, ...answered }: Told,
): Placed {
  const names = defined({ idempotencyKey: key || undefined, externalOrderId: intent?.externalOrderId })
  const supportReference = { orderId: order.id, ...names }
  const { idempotencyKey } = names
  const durationMs = deadline.elapsed()
  const info = { ...answered, durationMs, supportReference, ...defined({ idempotencyKey, replayed }) }
  return { value: order, remembered, info }
}

function report(
  { connection }: OrderContext,
  { callId, operation, deadline }: Job,
  ending: Omit<SettledEvent, keyof ReturnType<typeof orderEvent> | 'durationMs'>,
): void {
  if (!connection.reporter.watched) return
  connection.reporter.settled({
    ...orderEvent(callId, operation),
    durationMs: deadline.elapsed(),
    ...ending,
  })
}

/**
 * Do not nest this function in another: its closure would keep the call's request and signal in
 * memory for as long as the caller keeps the order.
 */
export function responseInfoOf(info: OrderInfo): () => ResponseInfo {
  return () => {
    const { headers, ...rest } = info
    return { ...rest, headers: headers() }
  }
}
