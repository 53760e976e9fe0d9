/** Reads records, all of them or one by its name. */
import type { OrderName, RememberedQuery } from '../../call-options.ts'
import { type CustomerOrderingError, RequestAbortedError, TimeoutError } from '../../errors/classes.ts'
import type { CallSettings } from '../../http/call.ts'
import { Deadline, Interruption } from '../../http/deadline.ts'
import { rowIdOf, slotOf } from '../../identity/keys.ts'
import type { OrderContext } from '../record/context.ts'
import type { Found, Which } from '../record/journal.ts'
import { isPending, type OrderRecord, publicRecord, type Unusable, unusableError } from '../record/record.ts'

export async function* remembered(
  context: OrderContext,
  query: RememberedQuery,
): AsyncGenerator<OrderRecord, void, undefined> {
  if ('since' in query) {
    yield* records(context, query.since)
    return
  }
  const { record } = await findNamed(context, 'orders.remembered', query, context.defaults, EVERYWHERE)
  if (record !== undefined) yield publicRecord(record)
}

/**
 * Yields each record once: the store may repeat rows that change between pages. Throws at the end if
 * a record was unreadable: a normal end would hide that record.
 */
export async function* records(
  { journal }: OrderContext,
  which: Which,
): AsyncGenerator<OrderRecord, void, undefined> {
  const seen = new Set<string>()
  let unusable: Unusable | undefined
  for await (const { row, record } of journal.records(which)) {
    if (seen.has(row.id)) continue
    seen.add(row.id)
    if (typeof record === 'string') unusable = record
    else if (which !== 'open' || isPending(record)) yield publicRecord(record)
  }
  if (unusable !== undefined) throw unusableError(unusable)
}

export function slotNamed(name: OrderName): string {
  return 'externalOrderId' in name
    ? slotOf(name.externalOrderId, undefined, String)
    : slotOf(undefined, name.idempotencyKey, String)
}

/** The record that a person has named, and the time that is left for what the person wants. */
export type Named = Found & { readonly deadline: Deadline }

/** Where to search for a key that is not the name of its order. */
export const EVERYWHERE: readonly Which[] = ['open', 0]

/** By default, a key is searched for among the open orders: few, however large the store. */
export async function findNamed(
  context: OrderContext,
  operation: string,
  name: OrderName,
  settings: CallSettings,
  places: readonly Which[] = EVERYWHERE.slice(0, 1),
): Promise<Named> {
  const { connection, journal } = context
  const deadline = new Deadline(connection.runtime, settings.totalTimeout, settings.signal)
  const found = await journal.load(rowIdOf(connection.runtime.deriveId, slotNamed(name)), deadline)
  const isDone = found instanceof Interruption || found.record !== undefined || 'externalOrderId' in name
  const other = isDone
    ? undefined
    : await deadline.race(withKey(context, name.idempotencyKey, deadline, places))
  const named = other ?? found
  if (named instanceof Interruption) throw interrupted(named, operation, name, settings)
  return { ...named, deadline }
}

/** The errors of an order without a reference name only its key. */
async function withKey(
  { journal }: OrderContext,
  key: string,
  deadline: Deadline,
  places: readonly Which[],
): Promise<Found | Interruption | undefined> {
  let unusable: Unusable | undefined
  for (const which of places) {
    for await (const { row, record } of journal.records(which)) {
      const over = deadline.over()
      if (over !== undefined) return over
      if (record === 'unanswered') throw unusableError(record)
      if (typeof record === 'string') unusable = record
      else if (record.key === key) return { id: row.id, row, record }
    }
  }
  // The key may be the key of the record that cannot be read.
  if (unusable !== undefined) throw unusableError(unusable)
  return undefined
}

function interrupted(
  { why }: Interruption,
  operation: string,
  name: OrderName,
  { signal }: CallSettings,
): CustomerOrderingError {
  const facts = { charged: 'unknown', attempts: 0, ...name } as const
  const did = 'This call placed no order and changed no record. An earlier call may have charged the wallet.'
  if (why === 'aborted') {
    const what = `${operation}() was aborted by the caller's signal. ${did} If you still need the result, call again.`
    return new RequestAbortedError(what, { ...facts, cause: signal?.reason })
  }
  const what = `${operation}() could not read the store within totalTimeout. ${did} Repair the store or allow more time, then call again.`
  return new TimeoutError(what, { ...facts, deadline: 'total' })
}
