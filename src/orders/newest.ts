/** The newest version of an order's record. The row of one without a name may have the next one like it by then. */
import { type Deadline, Interruption } from '../http/deadline.ts'
import type { OrderOutbox } from '../stores/store.ts'
import { isBusy, isFromFuture } from './conditions.ts'
import type { OrderContext } from './context.ts'
import { isAnonymous } from './identity.ts'
import type { Found, FoundRecord } from './journal.ts'
import { isPending, type RecordContent } from './record.ts'
import { apply, isKnown, type Proof } from './transitions.ts'

/**
 * Stores that an order exists, whatever became of its record meanwhile: `later` if the store could not take it now,
 * `displaced` if its row has the next order like it by now, which must not be forgotten over this one.
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

/** What a row has of the order that it had before; no record where that is another order by now. */
export async function loadNewest(
  { journal }: OrderContext,
  { id, record }: Pick<Found, 'id' | 'record'>,
  deadline: Deadline,
): Promise<Found | Interruption> {
  const found = await journal.load(id, deadline)
  if (found instanceof Interruption || found.record === undefined || record === undefined) return found
  return isAnother(found.record, record) ? { id } : found
}

/** True if a row has another order without a name than before. */
export function isAnother(newest: RecordContent, before: RecordContent): boolean {
  return isAnonymous(newest.slot) && newest.key !== before.key
}

/** A proof is worth more than the memory that the next order was refused, or that this one was given up. */
function isDisplaced(newest: RecordContent, mine: RecordContent): boolean {
  return isAnother(newest, mine) && (newest.state === 'created' || isPending(newest))
}

/**
 * What was found, its keys marked for good if it comes from the future. Where the store does not take the mark, this call
 * goes by it all the same.
 */
export async function withTrustedTimes<F extends Found>(
  { connection, journal }: OrderContext,
  found: F,
  deadline: Deadline,
  store?: OrderOutbox,
): Promise<F> {
  const { runtime } = connection
  const now = runtime.now()
  if (found.record === undefined || !isFromFuture(found.record, now)) return found
  const { createdAt, updatedAt, version, ...record } = found.record
  const busy = isBusy(found.record, now)
  const content = apply(record, { type: 'distrusted', busy, claim: runtime.randomId() })
  const marked = { ...found, record: { ...content, createdAt, updatedAt, version } }
  if (!isPending(content)) return marked
  const written = await journal.write(found, content, deadline, store)
  return written.result === 'written' ? { ...marked, ...written.found } : marked
}
