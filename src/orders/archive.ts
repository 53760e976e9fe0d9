/**
 * The slot of an order without reference and key serves the next order of the same payload once it was created. The order
 * before it stays under its key, in a row of its own.
 */
import { type Deadline, Interruption } from '../http/deadline.ts'
import type { OrderOutbox } from '../stores/store.ts'
import type { OrderContext } from './context.ts'
import { isBusy, isFromFuture } from './decision.ts'
import { isAnonymous, rowIdOf } from './identity.ts'
import type { Found, FoundRecord, Written } from './journal.ts'
import { isPending, type JournalRecord, type RecordContent } from './record.ts'
import { apply, isKnown, type Proof } from './transitions.ts'

/** Keeps an anonymous order under its key, where it stays when its slot serves another one. */
export function archiveOrder(
  context: OrderContext,
  record: RecordContent,
  deadline: Deadline,
): Promise<Written> {
  const slot = archiveSlot(record)
  return context.journal.write({ id: idOf(context, slot) }, { ...record, slot }, deadline)
}

/** Stores that an order exists, whatever became of its record meanwhile; false if that has to be done later. */
export function proveCreated(
  context: OrderContext,
  mine: FoundRecord,
  proof: Proof,
  deadline: Deadline,
  signal?: AbortSignal,
): Promise<boolean> {
  const { record } = mine
  const contentOver = (newest: JournalRecord): RecordContent | undefined =>
    isKnown(newest, proof) ? undefined : apply(newest, { type: 'proven', ...proof })
  return context.journal.prove(
    mine,
    // Another order must not be forgotten over this one.
    (newest) => (servesAnother(newest, record) ? undefined : contentOver(newest)),
    deadline,
    (newest) => {
      const slot = archiveSlot(record)
      const content = servesAnother(newest, record) ? contentOver(record) : undefined
      return content && { id: idOf(context, slot), content: { ...content, slot } }
    },
    signal,
  )
}

/** The newest version of an order's record, in its slot or, where that serves another order by now, under its key. */
export async function loadNewest(
  context: OrderContext,
  { id, record }: Pick<Found, 'id' | 'record'>,
  deadline: Deadline,
): Promise<Found | Interruption> {
  const found = await context.journal.load(id, deadline)
  if (found instanceof Interruption || found.record === undefined) return found
  if (record === undefined || !servesAnother(found.record, record)) return found
  return await context.journal.load(idOf(context, archiveSlot(record)), deadline)
}

/** True if an anonymous slot has another order than a call's. */
export function servesAnother(newest: JournalRecord, mine: JournalRecord): boolean {
  return isAnonymous(newest.slot) && newest.key !== mine.key
}

function archiveSlot({ key }: Pick<RecordContent, 'key'>): string {
  return `key:${key}`
}

function idOf({ connection }: OrderContext, slot: string): string {
  return rowIdOf(connection.runtime.deriveId, slot)
}

/**
 * What was found, its keys marked for good if it comes from the future. Where the store does not take the mark, this call
 * goes by it all the same.
 */
export async function withTrustedTimes<F extends Found>(
  context: OrderContext,
  found: F,
  deadline: Deadline,
  store?: OrderOutbox,
): Promise<F> {
  const { runtime } = context.connection
  const now = runtime.now()
  if (found.record === undefined || !isFromFuture(found.record, now)) return found
  const { createdAt, updatedAt, version, ...record } = found.record
  const busy = isBusy(found.record, now)
  const content = apply(record, { type: 'distrusted', busy, claim: runtime.randomId() })
  const marked = { ...found, record: { ...content, createdAt, updatedAt, version } }
  if (!isPending(content)) return marked
  const written = await context.journal.write(found, content, deadline, store)
  return written.result === 'written' ? { ...marked, ...written.found } : marked
}
