/** Reads records, all of them or one by its name. */
import type { OrderName, RememberedQuery } from '../../call-options.ts'
import {
  type CustomerOrderingError,
  InvalidRequestError,
  RequestAbortedError,
  TimeoutError,
} from '../../errors/classes.ts'
import type { CallSettings } from '../../http/call.ts'
import { Deadline, Interruption } from '../../http/deadline.ts'
import { checkIdempotencyKey, rowIdOf, slotOf } from '../../identity/keys.ts'
import type { Job, OrderContext } from '../record/context.ts'
import type { Found, Which } from '../record/journal.ts'
import {
  isPending,
  type JournalRecord,
  type OrderRecord,
  publicRecord,
  recordFacts,
  type Unusable,
  unusableError,
} from '../record/record.ts'

export async function* remembered(
  context: OrderContext,
  query: RememberedQuery,
  settings: CallSettings,
): AsyncGenerator<OrderRecord, void, undefined> {
  if ('since' in query) {
    if (!Number.isFinite(query.since)) throw invalid('since', 'must be a time in milliseconds since 1970')
    yield* views(context, { since: query.since })
    return
  }
  const call = namedCall(context, 'orders.remembered', settings)
  const { record } = await findNamed(context, query, call, EVERYWHERE)
  if (record !== undefined) yield publicRecord(record)
}

export async function* unresolved(context: OrderContext): AsyncGenerator<OrderRecord, void, undefined> {
  yield* views(context, { open: true })
}

/**
 * Yields each record once: the store may repeat rows that change between pages. Throws at the end if
 * a record was unreadable: a normal end would hide that record.
 */
async function* views({ journal }: OrderContext, which: Which): AsyncGenerator<OrderRecord, void, undefined> {
  const seen = new Set<string>()
  let unusable: Unusable | undefined
  for await (const row of journal.rows(which)) {
    if (seen.has(row.id)) continue
    seen.add(row.id)
    const record = await journal.decode(row)
    if (record === 'forgotten') continue
    if (typeof record === 'string') unusable = record
    else if (!('open' in which) || isPending(record)) yield publicRecord(record)
  }
  if (unusable !== undefined) throw unusableError(unusable)
}

/** A call that is about one named order. */
export type NamedCall = Pick<Job, 'operation' | 'settings' | 'deadline'>

export function namedCall(
  { connection }: OrderContext,
  operation: string,
  settings: CallSettings,
): NamedCall {
  const deadline = new Deadline(connection.runtime, settings.totalTimeout, settings.signal)
  return { operation, settings, deadline }
}

export function nameField(name: OrderName): 'externalOrderId' | 'idempotencyKey' {
  return 'externalOrderId' in name ? 'externalOrderId' : 'idempotencyKey'
}

export function slotNamed(name: OrderName): string {
  return 'externalOrderId' in name
    ? slotOf(name.externalOrderId, undefined, String)
    : slotOf(undefined, name.idempotencyKey, String)
}

/** Where to search for a key that is not the name of its order. */
export const EVERYWHERE: readonly Which[] = [{ open: true }, { since: 0 }]

/** By default, a key is searched for among the open orders: few, however large the store. */
export async function findNamed(
  context: OrderContext,
  name: OrderName,
  call: NamedCall,
  places: readonly Which[] = EVERYWHERE.slice(0, 1),
): Promise<Found> {
  const field = nameField(name)
  const value: unknown = 'externalOrderId' in name ? name.externalOrderId : name.idempotencyKey
  if (typeof value !== 'string' || value.trim() === '') throw invalid(field, 'must be a non-blank string')
  const bad = field === 'idempotencyKey' ? checkIdempotencyKey(value) : undefined
  if (bad !== undefined) throw invalid(field, bad)
  const id = rowIdOf(context.connection.runtime.deriveId, slotNamed(name))
  const found = await context.journal.load(id, call.deadline)
  if (found instanceof Interruption) throw interrupted(found, name, call)
  if (found.record !== undefined || field === 'externalOrderId') return found
  const open = await call.deadline.race(withKey(context, value, call, places))
  if (open instanceof Interruption) throw interrupted(open, name, call)
  return open ?? found
}

/** The errors of an order without a reference name only its key. */
async function withKey(
  { journal }: OrderContext,
  key: string,
  { deadline }: NamedCall,
  places: readonly Which[],
): Promise<Found | Interruption | undefined> {
  for (const which of places) {
    for await (const row of journal.rows(which)) {
      const over = deadline.over()
      if (over !== undefined) return over
      const record = await journal.decode(row)
      if (record === 'unanswered') throw unusableError(record)
      if (typeof record === 'object' && record.key === key) return { id: row.id, row, record }
    }
  }
  return undefined
}

function interrupted(
  { why }: Interruption,
  name: OrderName,
  { operation, settings }: NamedCall,
): CustomerOrderingError {
  const facts = { charged: 'unknown', attempts: 0, ...name } as const
  const did = 'This call placed no order and changed no record. An earlier call may have charged the wallet.'
  return why === 'aborted'
    ? new RequestAbortedError(
        `${operation}() was aborted by the caller's signal. ${did} If you still need the result, call again.`,
        { ...facts, cause: settings.signal?.reason },
      )
    : new TimeoutError(
        `${operation}() could not read the store within totalTimeout. ${did} Repair the store or allow more time, then call again.`,
        { ...facts, deadline: 'total' },
      )
}

/** @param record determines `charged` of the error */
export function invalid(
  path: string,
  message: string,
  record?: JournalRecord,
  attempts = 0,
): InvalidRequestError {
  const known = record === undefined ? {} : recordFacts(record)
  return new InvalidRequestError(`${path} ${message}. Nothing was changed.`, {
    issues: [{ path, message }],
    attempts,
    ...known,
  })
}
