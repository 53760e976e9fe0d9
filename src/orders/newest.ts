import { Deadline, GRACE, Interruption } from '../http/deadline.ts'
import type { Order } from '../schemas/order.ts'
import type { OrderContext } from './context.ts'
import type { ListedOrder } from './evidence.ts'
import { isAnonymous } from './identity.ts'
import type { Found, FoundRecord } from './journal.ts'
import { isPending, type JournalRecord, publicRecord, type RecordContent } from './record.ts'
import { createdOutcome, type RecoveryOutcome } from './recovery-outcome.ts'
import { apply, isKnown, type Proof } from './transitions.ts'

const READ_TIMEOUT = 5000

/**
 * `later`: the proof is still being stored in the background. `displaced`: the row now contains a
 * later order, because identical orders without a reference share one row.
 */
export async function proveCreated(
  { journal }: OrderContext,
  mine: FoundRecord,
  proof: Proof,
  deadline: Deadline,
  signal?: AbortSignal,
): Promise<'stored' | 'later' | 'displaced'> {
  let displaced = false
  const contentOver = (newest: RecordContent): RecordContent | undefined => {
    displaced = isDisplaced(newest, mine.record)
    if (displaced || isKnown(newest, proof)) return undefined
    return apply(newest, { type: 'proven', ...proof })
  }
  const stored = await journal.prove(mine, contentOver, deadline, signal)
  return !stored ? 'later' : displaced ? 'displaced' : 'stored'
}

/** The result has no record if the row now contains another order. */
export async function loadNewest(
  { journal }: OrderContext,
  { id, record }: Pick<Found, 'id' | 'record'>,
  deadline: Deadline,
): Promise<Found | Interruption> {
  const found = await journal.load(id, deadline)
  if (found instanceof Interruption || found.record === undefined || record === undefined) return found
  return isAnother(found.record, record) ? { id } : found
}

/** Identical orders without a reference share one row, but have different keys. */
export function isAnother(newest: RecordContent, before: RecordContent): boolean {
  return isAnonymous(newest.slot) && newest.key !== before.key
}

/** A proof of `mine` may overwrite a later order only if that order was certainly not bought. */
function isDisplaced(newest: RecordContent, mine: RecordContent): boolean {
  return isAnother(newest, mine) && (newest.state === 'created' || isPending(newest))
}

export async function newestRecord(
  context: OrderContext,
  known: Pick<Found, 'id' | 'record'>,
  deadline: Deadline = lookOf(context),
): Promise<JournalRecord | undefined> {
  const found = await loadNewest(context, known, deadline).catch(() => undefined)
  return found === undefined || found instanceof Interruption ? undefined : found.record
}

function lookOf({ connection }: OrderContext): Deadline {
  return new Deadline(connection.runtime, READ_TIMEOUT, undefined)
}

/**
 * Gives the read its own time, because the write before it may have used all of the call's time.
 */
function lookAfter(deadline: Deadline): Deadline {
  return deadline.over() === undefined ? deadline.grace(2 * GRACE, READ_TIMEOUT) : deadline.grace()
}

export async function markCreated(
  context: OrderContext,
  found: FoundRecord,
  { order, id: orderId }: ListedOrder,
  deadline?: Deadline,
): Promise<RecoveryOutcome> {
  const { runtime } = context.connection
  const proof: Proof = {
    sent: undefined,
    order: order && rememberedOrder(context, order),
    orderId,
    attempts: 0,
    claim: runtime.randomId(),
  }
  const end = deadline ?? lookOf(context)
  const proven = await proveCreated(context, found, proof, end, deadline?.signal)
  // No record of this order is left in the store, so report the order from the proof.
  if (proven === 'displaced') {
    const record = { ...found.record, ...apply(found.record, { type: 'proven', ...proof }) }
    return createdOutcome(publicRecord(record), order)
  }
  const look = deadline === undefined ? lookOf(context) : lookAfter(deadline)
  const record = (await newestRecord(context, found, look)) ?? found.record
  return createdOutcome(publicRecord(record), order)
}

export function rememberedOrder(context: OrderContext, order: Order): Partial<Order> {
  return context.remember === 'order' ? order : { id: order.id, status: order.status, amount: order.amount }
}
