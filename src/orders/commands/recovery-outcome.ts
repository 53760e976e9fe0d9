import { defined } from '../../defined.ts'
import { type AnyCustomerOrderingError, isCustomerOrderingError } from '../../errors/classes.ts'
import type { Order } from '../../schemas/order.ts'
import { OUTCOMES, type OutcomeKind } from '../protocol/outcome.ts'
import {
  type Hold,
  type JournalRecord,
  type OrderRecord,
  orderOf,
  publicRecord,
  type UnusableRow,
  unusableError,
} from '../record/record.ts'

/** Why a person must resolve a record. */
export type AttentionReason =
  | Hold
  /**
   * The service may have forgotten the key: the safe-retry window is over, or the clock went back.
   */
  | 'past_window'
  /** The order was sent with another API key. The service may scope idempotency keys by API key. */
  | 'api_key_changed'
  /**
   * The service lists an order with the same reference, but with another service, target or
   * quantity.
   *
   * `error.orderId` is its id.
   */
  | 'doubtful'
  /** The order exists, but the client could not read it. */
  | 'unreadable'
  /** The stored record is damaged, or was written with another codec. */
  | 'corrupt'
  /** The stored record was written by a newer version of this package. */
  | 'newer_version'

/** The outcome of an order that exists and was read. */
export interface RecoveredOrder<Output = Order> {
  /** An order exists and was paid. */
  readonly outcome: 'created'
  /** What is remembered of the order. */
  readonly record: OrderRecord
  /** The order, or what your own schema returns for it. */
  readonly order: Output
  readonly error?: undefined
  readonly reason?: undefined
}

interface WithoutOrder {
  /** What is remembered of the order. */
  readonly record: OrderRecord
  readonly order?: undefined
  /** The last error of a request, a lookup, your own schema or the store, if there was one. */
  readonly error?: AnyCustomerOrderingError
}

/** The outcome of a record that a person must resolve. */
export interface RecordInNeed extends WithoutOrder {
  /** Recovery cannot settle the record safely. A person must decide. */
  readonly outcome: 'needs_attention'
  /** Why a person must resolve the record. */
  readonly reason: AttentionReason
}

/**
 * Outcome of one record, narrowed by `outcome` and `reason`.
 *
 * - `created`: an order exists and was paid. `order` is present unless `reason` is `unreadable`: then
 *   the order could not be read, and `record.order` has its id, if known;
 * - `rejected`: the record is closed without an order;
 * - `in_progress`: another call, or the service, is still working on the order;
 * - `still_open`: the outcome is unknown, for example because the service was unreachable. Run
 *   recovery again later;
 * - `needs_attention`: a person must resolve the record.
 *
 * `Output` is the type that your own schema returns, if you set one.
 */
export type RecoveryOutcome<Output = Order> =
  | RecoveredOrder<Output>
  | (WithoutOrder & { readonly outcome: 'created'; readonly reason: 'unreadable' })
  | (WithoutOrder & {
      readonly outcome: 'rejected' | 'in_progress' | 'still_open'
      readonly reason?: undefined
    })
  | RecordInNeed

/** What a request or a read has shown of a record. */
interface Shown {
  readonly order?: Order | undefined
  readonly error?: AnyCustomerOrderingError | undefined
  readonly kind?: OutcomeKind | undefined
}

export function outcomeOf(stored: JournalRecord, { order, error, kind }: Shown = {}): RecoveryOutcome {
  const record = publicRecord(stored)
  const why = defined({ error })
  if (stored.state === 'created') {
    const known = order ?? orderOf(stored)
    return known === undefined
      ? { outcome: 'created', record, reason: 'unreadable', ...why }
      : { outcome: 'created', record, order: known }
  }
  if (stored.state === 'rejected') return { outcome: 'rejected', record, ...why }
  const hold = kind && OUTCOMES[kind].hold
  // The caller's abort ends the run, and says nothing of the order.
  if (hold !== undefined && hold !== 'aborted')
    return { outcome: 'needs_attention', record, reason: hold, ...why }
  return { outcome: kind === 'in_progress' ? 'in_progress' : 'still_open', record, ...why }
}

/** Rethrows what must end the whole run: the caller's abort, or an error that other code threw. */
export function failureOf(error: unknown): AnyCustomerOrderingError {
  if (!isCustomerOrderingError(error) || error.code === 'aborted') throw error
  return error
}

/** The outcome of a row that cannot be read. Only a codec that did not respond may respond later. */
export function unusableOutcome({ row, why }: UnusableRow): RecoveryOutcome {
  const { id, version, createdAt, state } = row
  const unknown = { key: '', generation: 0, ambiguous: true, attempts: 0 } as const
  const record = { slot: `row:${id}`, ...unknown, state, createdAt, version }
  return why === 'unanswered'
    ? { outcome: 'still_open', record, error: unusableError(why) }
    : { outcome: 'needs_attention', record, reason: why }
}

/** Result of `await client.orders.recover()`. Lists only the orders that a person must resolve. */
export interface RecoverySummary {
  /** Number of orders that exist and were paid. */
  readonly created: number
  /** Number of records that are closed without an order. */
  readonly rejected: number
  /** Number of orders that another call, or the service, is still working on. */
  readonly inProgress: number
  /** Number of orders whose outcome is still unknown. Run recovery again later. */
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
