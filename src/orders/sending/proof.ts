/** Stores that an order exists and was charged. */
import type { Deadline } from '../../http/deadline.ts'
import type { Order } from '../../schemas/order.ts'
import { isAnother, isProven, type Proof, prove } from '../protocol/transitions.ts'
import type { OrderContext } from '../record/context.ts'
import type { FoundRecord } from '../record/journal.ts'
import type { JournalRecord } from '../record/record.ts'

export interface Proven {
  /** The record with the proof, as it is or would be stored. */
  readonly record: JournalRecord
  /** False if the store has no record of the proof. */
  readonly remembered: boolean
  /** True if the row has a later order without a reference or key. */
  readonly isDisplaced: boolean
}

export async function proveCreated(
  { journal }: OrderContext,
  mine: FoundRecord,
  proof: Proof,
  deadline: Deadline,
  signal?: AbortSignal,
): Promise<Proven> {
  let isDisplaced = false
  const stored = await journal.writeProof(
    mine,
    (newest) => {
      // The proof must not overwrite a later order that may have been bought, in the same row.
      isDisplaced = isAnother(newest, mine.record) && newest.state !== 'rejected'
      return isDisplaced || isProven(newest, proof) ? undefined : prove(newest, proof)
    },
    deadline,
    signal,
  )
  if (stored !== undefined && !isDisplaced) return { record: stored, remembered: true, isDisplaced }
  return { record: { ...mine.record, ...prove(mine.record, proof) }, remembered: false, isDisplaced }
}

/** Stores an order that was found in the list or read by its id. */
export async function proveFound(
  context: OrderContext,
  found: FoundRecord,
  { id, order }: { readonly id: string; readonly order?: Order | undefined },
  deadline: Deadline,
  signal?: AbortSignal,
): Promise<Proven> {
  const proof: Proof = {
    sent: undefined,
    order: order && rememberedOrder(context, order),
    orderId: id,
    attempts: 0,
    claim: context.connection.runtime.randomId(),
  }
  return await proveCreated(context, found, proof, deadline, signal)
}

export function rememberedOrder(context: OrderContext, order: Order): Partial<Order> {
  return context.remember === 'order' ? order : { id: order.id, status: order.status, amount: order.amount }
}
