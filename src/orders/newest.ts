/**
 * Finds the newest version of an order's record. The row of an anonymous order may by now hold the
 * next identical order.
 */
import { Deadline, GRACE, Interruption } from '../http/deadline.ts'
import type { Order } from '../schemas/order.ts'
import type { OrderContext } from './context.ts'
import type { ListedOrder } from './evidence.ts'
import { isAnonymous } from './identity.ts'
import type { Found, FoundRecord } from './journal.ts'
import { isPending, type JournalRecord, publicRecord, type RecordContent } from './record.ts'
import { createdOutcome, type RecoveryOutcome } from './recovery-outcome.ts'
import { apply, isKnown, type Proof } from './transitions.ts'

/** Milliseconds that one read of the store may take. */
const LOOK = 5000

/**
 * Stores that an order exists, even if its record has changed since it was read. `later`: the store
 * has not accepted the write yet. `displaced`: the row holds the next identical order, which must not
 * be overwritten.
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

/** Reads a row again. The result has no record if the row now holds another order. */
export async function loadNewest(
  { journal }: OrderContext,
  { id, record }: Pick<Found, 'id' | 'record'>,
  deadline: Deadline,
): Promise<Found | Interruption> {
  const found = await journal.load(id, deadline)
  if (found instanceof Interruption || found.record === undefined || record === undefined) return found
  return isAnother(found.record, record) ? { id } : found
}

/** True if a row now holds a different anonymous order. */
export function isAnother(newest: RecordContent, before: RecordContent): boolean {
  return isAnonymous(newest.slot) && newest.key !== before.key
}

/**
 * True if the row now holds the next identical order, and a proof of `mine` must not overwrite it.
 * A proof may overwrite a refusal of the next order, or a decision to abandon `mine`.
 */
function isDisplaced(newest: RecordContent, mine: RecordContent): boolean {
  return isAnother(newest, mine) && (newest.state === 'created' || isPending(newest))
}

/** The newest version of a record. Undefined if there is none, or if it cannot be read. */
export async function newestRecord(
  context: OrderContext,
  known: Pick<Found, 'id' | 'record'>,
  deadline: Deadline = lookOf(context),
): Promise<JournalRecord | undefined> {
  const found = await loadNewest(context, known, deadline).catch(() => undefined)
  return found === undefined || found instanceof Interruption ? undefined : found.record
}

function lookOf({ connection }: OrderContext): Deadline {
  return new Deadline(connection.runtime, LOOK, undefined)
}

/** Time to read the result of a write that may have continued past the deadline of its call. */
function lookAfter(deadline: Deadline): Deadline {
  return deadline.over() === undefined ? deadline.grace(2 * GRACE, LOOK) : deadline.grace()
}

/**
 * Stores that an order exists and reports it.
 * @param deadline deadline of the call that waits for this; without it, each step may take as long
 * as one read
 */
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
  // The store no longer has a record of this order, so nothing in the store can contradict the
  // proof.
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
