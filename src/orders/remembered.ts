import {
  type CustomerOrderingError,
  InvalidRequestError,
  RequestAbortedError,
  TimeoutError,
} from '../errors/classes.ts'
import type { CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { type OrderContext, recordFacts } from './context.ts'
import { checkIdempotencyKey, rowIdOf } from './identity.ts'
import type { Found } from './journal.ts'
import { isPending, type JournalRecord, type OrderRecord, publicRecord } from './record.ts'
import { type Unusable, unusableError } from './row.ts'

/** The records to read: one by name, or all written since a time in milliseconds since 1970. */
export type RememberedQuery = OrderName | { readonly since: number }

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
  const deadline = deadlineOf(context, settings)
  const look = { operation: 'orders.remembered', settings, deadline, attempts: 0 }
  const found = await lookFor(context, query, look)
  if (found.record !== undefined) yield publicRecord(found.record)
}

export async function* unresolved(context: OrderContext): AsyncGenerator<OrderRecord, void, undefined> {
  yield* views(context, { open: true })
}

/** Throws at the end if a record was unreadable: a normal end would hide that record. */
async function* views(
  context: OrderContext,
  which: { readonly open: true } | { readonly since: number },
): AsyncGenerator<OrderRecord, void, undefined> {
  let unusable: Unusable | undefined
  for await (const record of records(context, which)) {
    if (typeof record === 'string') unusable = record
    else if (!('open' in which) || isPending(record)) yield publicRecord(record)
  }
  if (unusable !== undefined) throw unusableError(unusable)
}

/** Yields each record once. The store may repeat rows that change between pages. */
export async function* records(
  context: OrderContext,
  which: { readonly open: true } | { readonly since: number },
): AsyncGenerator<JournalRecord | Unusable, void, undefined> {
  const seen = new Set<string>()
  for await (const row of context.journal.rows(which)) {
    if (seen.has(row.id)) continue
    seen.add(row.id)
    const record = await context.journal.decode(row)
    if (record !== 'forgotten') yield record
  }
}

/** Names one remembered order: by the caller's reference or by its Idempotency-Key. */
export type OrderName = { readonly externalOrderId: string } | { readonly idempotencyKey: string }

export interface NamedLook {
  readonly operation: string
  readonly settings: CallSettings
  readonly deadline: Deadline
  /** Number of HTTP requests that the call has made so far. */
  readonly attempts: number
}

export async function lookFor(context: OrderContext, name: OrderName, look: NamedLook): Promise<Found> {
  return await inTime(findRecord(context, name, look.deadline), name, look)
}

async function inTime<T>(reading: Promise<T | Interruption>, name: OrderName, look: NamedLook): Promise<T> {
  const found = await look.deadline.race(reading)
  if (found instanceof Interruption) throw interrupted(found, name, look)
  return found
}

async function findRecord(
  context: OrderContext,
  name: OrderName,
  deadline: Deadline,
): Promise<Found | Interruption> {
  const { journal, connection } = context
  const { runtime } = connection
  const field = nameField(name)
  const value: unknown = 'externalOrderId' in name ? name.externalOrderId : name.idempotencyKey
  if (typeof value !== 'string' || value.trim() === '') throw invalid(field, 'must be a non-blank string')
  if (field === 'idempotencyKey') {
    const bad = checkIdempotencyKey(value)
    if (bad !== undefined) throw invalid(field, bad)
  }
  const id = rowIdOf(runtime.deriveId, `${field === 'externalOrderId' ? 'ref' : 'key'}:${value}`)
  const found = await journal.load(id, deadline)
  if (found instanceof Interruption || found.record !== undefined || field === 'externalOrderId') return found
  // An unsettled order without a name, or with a reference, is found by its key, too: there are few
  // of them, and a person must be able to settle each.
  for await (const row of journal.rows({ open: true })) {
    const over = deadline.over()
    if (over !== undefined) return over
    const record = await journal.decode(row)
    if (record === 'unanswered') throw unusableError(record)
    if (typeof record === 'object' && record.key === value) return { id: row.id, row, record }
  }
  return found
}

export function nameField(name: OrderName): 'externalOrderId' | 'idempotencyKey' {
  return 'externalOrderId' in name ? 'externalOrderId' : 'idempotencyKey'
}

export function deadlineOf({ connection }: OrderContext, { totalTimeout, signal }: CallSettings): Deadline {
  return new Deadline(connection.runtime, totalTimeout, signal)
}

function interrupted(
  { why }: Interruption,
  name: OrderName,
  { operation, settings, attempts }: NamedLook,
): CustomerOrderingError {
  const facts = { charged: 'unknown', attempts, ...name } as const
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
