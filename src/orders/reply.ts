import { defined } from '../defined.ts'
import { Interruption } from '../http/deadline.ts'
import { answerFacts, noHeaders } from '../http/info.ts'
import { segment } from '../http/path.ts'
import type { ResponseInfo } from '../response-info.ts'
import { checkNow } from '../schemas/check.ts'
import { type Order, orderSchema } from '../schemas/order.ts'
import type { PlacedOrder } from './context.ts'
import type { OrderCall } from './engine.ts'
import { differingRequestFields } from './intent.ts'
import type { FoundRecord } from './journal.ts'
import { copyOf, type LiveCall, whyNotJoin } from './live.ts'
import { readOrder } from './look-up.ts'
import { rememberedOrder } from './newest.ts'
import type { JournalRecord } from './record.ts'
import { apply } from './transitions.ts'

export interface OrderReply<T> {
  readonly value: T
  readonly info: OrderInfo
}

/** Creates `Headers` only when they are read, because few callers read them. */
export interface OrderInfo extends Omit<ResponseInfo, 'headers'> {
  headers(): Headers
}

export interface Placed extends OrderReply<Order> {
  readonly remembered: boolean
}

interface Told {
  readonly key: string | undefined
  readonly answered: Pick<OrderInfo, 'status' | 'requestId' | 'headers'> | undefined
  readonly attempts: number
  readonly replayed: boolean | undefined
  readonly remembered: boolean
}

/** For a call that did not send the order because the order already existed. */
const WAS_THERE: Omit<Told, 'key'> = {
  answered: undefined,
  attempts: 0,
  replayed: true,
  remembered: true,
}

export function replyOf(
  { intent, deadline }: OrderCall,
  order: Order,
  { key, answered, attempts, replayed, remembered }: Told,
): Placed {
  const { externalOrderId } = intent
  const supportReference = { orderId: order.id, ...defined({ idempotencyKey: key, externalOrderId }) }
  return {
    value: order,
    remembered,
    info: {
      ...answered,
      attempts,
      durationMs: deadline.elapsed(),
      supportReference,
      ...defined({ idempotencyKey: key, replayed }),
      headers: answered?.headers ?? noHeaders,
    },
  }
}

export async function joinedReply(call: OrderCall, twin: LiveCall<PlacedOrder>): Promise<Placed | undefined> {
  const { errors, intent, deadline } = call
  const reason = whyNotJoin(intent, twin)
  if (reason === 'key') throw errors.conflict(['idempotencyKey'], undefined)
  if (reason === 'payload')
    throw errors.conflict(differingRequestFields(twin.request, intent.request), undefined)
  if (reason === 'anonymous') throw errors.duplicate(undefined)
  const placed = await deadline.race(twin.ended.then(copyOf))
  if (placed instanceof Interruption) throw errors.interrupted(placed, 'unknown', twin.idempotencyKey)
  if (placed === undefined) return undefined
  // The other call used another key. Read the record to find out whether that is a conflict.
  if (intent.idempotencyKey !== undefined && intent.idempotencyKey !== placed.key) return undefined
  return replyOf(call, placed.order, { ...WAS_THERE, key: placed.key })
}

export function rememberedReply(call: OrderCall, record: JournalRecord): Placed {
  const checked = checkNow(orderSchema, record.order)
  if (!('value' in checked)) throw call.errors.unresolved(record, 'unreadable')
  return replyOf(call, checked.value, { ...WAS_THERE, key: record.key })
}

/** Reads the order by its id: the service may have forgotten the key. */
export async function readReply(call: OrderCall, found: FoundRecord): Promise<Placed> {
  const { context, deadline, errors } = call
  const { record } = found
  const orderId = record.order?.id ?? ''
  if (!isSegment(orderId)) throw errors.unresolved(record, 'unreadable')
  const settings = { ...call.settings, totalTimeout: Math.max(1, deadline.remaining()) }
  const read = await readOrder(context, 'orders.retrieve', orderId, 'charged', settings, record)
  const order = rememberedOrder(context, read.value)
  const facts = { sent: undefined, orderId, attempts: 0, claim: record.claim }
  const content = apply(record, { type: 'proven', order, ...facts })
  const { result } = await context.journal.settle(found, content, deadline)
  const info = read.info()
  const { attempts, headers } = info
  const answered = { ...answerFacts(info), headers: () => headers }
  const remembered = result === 'written' || result === 'lost'
  return replyOf(call, read.value, { key: record.key, answered, attempts, replayed: true, remembered })
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

function isSegment(orderId: string): boolean {
  try {
    segment('orderId', orderId)
    return true
  } catch {
    return false
  }
}

/** False for an order with another payload, which a later call placed under the same name. */
export function mayReturn(newest: JournalRecord, fingerprint: string): boolean {
  return newest.fingerprint === fingerprint && newest.state === 'created' && newest.readable
}
