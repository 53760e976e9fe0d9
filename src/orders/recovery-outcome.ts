import { defined } from '../defined.ts'
import { type AnyCustomerOrderingError, isCustomerOrderingError } from '../errors.ts'
import { checkNow } from '../schemas/check.ts'
import { type Order, orderSchema } from '../schemas/order.ts'
import type { StoredRow } from '../stores/store.ts'
import { OUTCOMES, type OutcomeKind } from './outcome.ts'
import { isPending, type JournalRecord, type OrderRecord, publicRecord } from './record.ts'

/** Why a person must resolve a record. */
export type AttentionReason =
  /**
   * Older than the safe-retry window, or the clock went back: the service may have forgotten the
   * key.
   */
  | 'past_window'
  /** The caller's signal aborted the call, so recovery does not repeat it. */
  | 'aborted'
  /**
   * Refused after an attempt with an unknown outcome. A charge for that attempt may be the reason
   * for the refusal.
   */
  | 'refused_after_doubt'
  /** The key belongs to another payload, which may have been bought. */
  | 'conflict'
  /** Sent under another API key. The service may scope keys by API key. */
  | 'api_key_changed'
  /**
   * The order exists, but the client could not read it: its record contains neither the order's id
   * nor the request, or reading the order failed (outcome `created`).
   */
  | 'unreadable'
  /** The stored record is damaged. */
  | 'corrupt'
  /** The stored record was written by a newer version of this package. */
  | 'newer_version'

/** The outcome of an order that exists. */
export interface RecoveredOrder<Output = Order> {
  /** An order exists and was paid. */
  readonly outcome: 'created'
  /** What is remembered of the order. */
  readonly record: OrderRecord
  /** The order. */
  readonly order: Output
  readonly error?: undefined
  readonly reason?: undefined
}

/** The outcome of an order that exists and cannot be read. */
export interface UnreadableOrder {
  /** An order exists and was paid. `record.order` has its id, if known. */
  readonly outcome: 'created'
  /** What is remembered of the order. */
  readonly record: OrderRecord
  readonly order?: undefined
  /** Why the order could not be read, if a read was attempted or your own schema rejected it. */
  readonly error?: AnyCustomerOrderingError
  /** The order cannot be read. */
  readonly reason: 'unreadable'
}

/** The outcome of a record without an order. */
export interface RecoveredRecord {
  /**
   * `rejected`: closed without an order. `in_progress`: a live call or the service is working on
   * it. `still_open`: the outcome is still unknown, for example because the service could not be
   * reached; try again later.
   */
  readonly outcome: 'rejected' | 'in_progress' | 'still_open'
  /** What is remembered of the order. */
  readonly record: OrderRecord
  readonly order?: undefined
  /** The error of the last request, if that is why the record is still open. */
  readonly error?: AnyCustomerOrderingError
  readonly reason?: undefined
}

/** The outcome of a record that a person must resolve. */
export interface RecordInNeed {
  /** Recovery has no safe step left. A person must decide. */
  readonly outcome: 'needs_attention'
  /** What is remembered of the order. */
  readonly record: OrderRecord
  readonly order?: undefined
  /** The error of the last request, if there was one. */
  readonly error?: AnyCustomerOrderingError
  /** Why a person must resolve the record. */
  readonly reason: AttentionReason
}

/**
 * Outcome of one record, narrowed by `outcome`. For `created`, `order` is present unless `reason`
 * is `'unreadable'`. `Output` is the type of your own schema, if the client has one.
 */
export type RecoveryOutcome<Output = Order> =
  | RecoveredOrder<Output>
  | UnreadableOrder
  | RecoveredRecord
  | RecordInNeed

/**
 * Reads an existing order with the caller's own schema. Throws an error of this package if the
 * schema rejects the order.
 */
export type Finish<Output> = (order: Order, record: OrderRecord | undefined) => Promise<Output>

export function settledOutcome(record: JournalRecord): RecoveryOutcome {
  const view = publicRecord(record)
  if (record.state === 'rejected') return { outcome: 'rejected', record: view }
  const checked = checkNow(orderSchema, record.order)
  const order = !('value' in checked) ? undefined : checked.value
  return createdOutcome(view, order)
}

export function createdOutcome(record: OrderRecord, order: Order | undefined): RecoveryOutcome {
  if (order === undefined) return { outcome: 'created', record, reason: 'unreadable' }
  return { outcome: 'created', record, order }
}

/** Returns the outcome of a record from the result of repeating its request. */
export function repeatedOutcome(
  newest: JournalRecord,
  order: Order | undefined,
  kind: OutcomeKind | undefined,
  error: AnyCustomerOrderingError | undefined,
): RecoveryOutcome {
  const why = defined({ error })
  const record = publicRecord(newest)
  if (newest.state === 'created') {
    if (order !== undefined) return createdOutcome(record, order)
    const settled = settledOutcome(newest)
    return settled.reason === 'unreadable' ? { ...settled, ...why } : settled
  }
  if (newest.state === 'rejected')
    return isPending(newest)
      ? { outcome: 'needs_attention', record, reason: 'conflict', ...why }
      : { outcome: 'rejected', record, ...why }
  if (kind === 'in_progress') return { outcome: 'in_progress', record, ...why }
  if (kind !== undefined && OUTCOMES[kind].hold === 'refused')
    return { outcome: 'needs_attention', record, reason: 'refused_after_doubt', ...why }
  return { outcome: 'still_open', record, ...why }
}

/** The outcome with the order as the caller's own schema returns it. */
export async function finished<Output>(
  outcome: RecoveryOutcome,
  finish: Finish<Output>,
): Promise<RecoveryOutcome<Output>> {
  if (outcome.order === undefined) return outcome
  const { record } = outcome
  try {
    return { outcome: 'created', record, order: await finish(outcome.order, record) }
  } catch (error) {
    return { outcome: 'created', record, reason: 'unreadable', error: failureOf(error) }
  }
}

/**
 * Returns an error that concerns only one order. Rethrows an error that ends a whole run: the
 * caller's abort, or an error that is not from this package.
 */
export function failureOf(error: unknown): AnyCustomerOrderingError {
  if (!isCustomerOrderingError(error) || error.code === 'aborted') throw error
  return error
}

/** A placeholder for a record that cannot be read. */
export function unreadableRecord(row: StoredRow): OrderRecord {
  const { version, createdAt, state } = row
  return {
    slot: `row:${row.id}`,
    key: '',
    generation: 0,
    state,
    ambiguous: true,
    attempts: 0,
    createdAt,
    version,
  }
}

/**
 * Result of `await client.orders.recover()`. It lists the orders that a person must resolve, and
 * only counts the others.
 */
export interface RecoverySummary {
  /** Orders that exist and were paid. */
  readonly created: number
  /** Records that are closed without an order. */
  readonly rejected: number
  /** Orders that a live call, or the service, is still working on. */
  readonly inProgress: number
  /** Orders whose outcome is still unknown: run recovery again later. */
  readonly stillOpen: number
  /** Orders that a person must resolve, each with the reason. */
  readonly needsAttention: readonly RecordInNeed[]
}

export async function recoverySummary(
  outcomes: AsyncIterable<RecoveryOutcome<unknown>>,
): Promise<RecoverySummary> {
  const count = { created: 0, rejected: 0, in_progress: 0, still_open: 0 }
  const needsAttention: RecordInNeed[] = []
  for await (const outcome of outcomes) {
    if (outcome.outcome === 'needs_attention') needsAttention.push(outcome)
    else count[outcome.outcome]++
  }
  const { created, rejected, in_progress: inProgress, still_open: stillOpen } = count
  return { created, rejected, inProgress, stillOpen, needsAttention }
}
