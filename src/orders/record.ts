import { defined } from '../defined.ts'
import type { Order } from '../schemas/order.ts'
import { isAnonymous } from './identity.ts'

/**
 * `open`: the outcome is unknown. `created`: an order exists and was charged. `rejected`: nothing
 * was bought.
 */
export type RecordState = 'open' | 'created' | 'rejected'

/**
 * Why a record is closed without an order:
 * - `refused`: the service refused it (400, 402, 404, 422). If the refusal repeats under the first
 *   key, the order moves to a new key;
 * - `not_processed`: the service did not process it (401, 403, 425, 429 and the like), or it was
 *   certainly never sent;
 * - `conflict`: the key belongs to another payload, which may have been bought;
 * - `cancelled`: the call ended before anything was sent;
 * - `abandoned`: a person closed it with `resolve()`.
 */
export type RejectionKind = 'refused' | 'not_processed' | 'conflict' | 'cancelled' | 'abandoned'

/** Why an order was not bought. */
export interface Rejection {
  /** Why the order was not placed. */
  readonly kind: RejectionKind
  /** HTTP status of the refusal. */
  readonly status?: number
  /** Machine-readable code from the service's response. */
  readonly code?: string
}

/** What the store remembers of an intent. */
export interface OrderRecord {
  /** Name of the intent: `ref:<externalOrderId>`, `key:<Idempotency-Key>` or `anon:<fingerprint>`. */
  readonly slot: string
  /** The Idempotency-Key of the current generation. */
  readonly key: string
  /** Number of the intent's current key, counted from 0. */
  readonly generation: number
  /** `open` until the outcome is known, then `created` or `rejected`. */
  readonly state: RecordState
  /**
   * True if an attempt under the current key may have reached the service and no trustworthy
   * response came back.
   */
  readonly ambiguous: boolean
  /** Your own reference for the order. */
  readonly externalOrderId?: string
  /**
   * The order as the service returned it. If the response was flawed, `order` may have only an
   * `id`. Absent if the order was never readable.
   */
  readonly order?: Partial<Order>
  /**
   * Why a rejected order was not bought. On an open record: the refusal before the order was
   * enqueued again with `orders.enqueue`.
   */
  readonly rejection?: Rejection
  /** Number of HTTP requests that finished calls have made for the intent. */
  readonly attempts: number
  /**
   * When a call first sent the current key, or was about to, in milliseconds since 1970. Absent if
   * no call did, or if the service processed no request with the key. 0 if unknown, because a clock
   * went back.
   */
  readonly firstSentAt?: number
  /**
   * Time until which the call that claimed the record may still be running, in milliseconds since
   * 1970. Absent once that call has ended.
   */
  readonly busyUntil?: number
  /** When the record was first written, in milliseconds since 1970. */
  readonly createdAt: number
  /** Version of the record, which every write increases by 1. */
  readonly version: number
}

/** Who chose the key. A caller's key is never changed. */
export type KeyOrigin = 'caller' | 'derived' | 'random'

/**
 * Why recovery must not repeat the request on its own: the caller aborted the request, or the
 * service refused the order after an ambiguous attempt.
 */
export type Hold = 'aborted' | 'refused'

/** Facts about the first key of an order while a later key is current. */
export interface FirstKey {
  /**
   * When the key was first sent, in milliseconds since 1970. 0 if the key must not be sent again.
   */
  readonly sentAt: number
  /** The service's last refusal under the first key. */
  readonly rejection?: Rejection
  /** True if the service cleanly refused every body that this store sent under the first key. */
  readonly refused: boolean
}

/** The whole record, as the journal stores it. */
export interface JournalRecord extends OrderRecord {
  readonly keyOrigin: KeyOrigin
  /** The highest generation that was ever used, if it is not the current generation. */
  readonly highest?: number
  /**
   * Facts about the first key while a later key is current. Stored only for derived keys: an
   * earlier random key is never sent again.
   */
  readonly first?: FirstKey
  /**
   * The caller's keys that the order no longer uses. The service may forget them at any moment, so
   * they are never sent again.
   */
  readonly left?: readonly string[]
  /** Identity of the payload without `metadata`. */
  readonly fingerprint: string
  /**
   * Short salted tag of each field, so that a conflict can name fields after the body was dropped.
   */
  readonly fields: Readonly<Record<string, string>>
  /** Canonical request body; only while the record may have to be sent again. */
  readonly body?: string
  /**
   * 32-bit tag of the API key that sent the current key; empty if the current key was never sent.
   */
  readonly apiKeyTag: string
  /**
   * Random id of the call that last wrote the record. It identifies a write whose response was
   * lost.
   */
  readonly claim: string
  /** True if `order` is the whole order as returned (or the part that `remember` selects). */
  readonly readable: boolean
  /** True if the service cleanly refused a body under the current key. */
  readonly refused: boolean
  /**
   * True if the service reported that the current key belongs to another payload, and this store
   * has no refusal of that payload.
   */
  readonly foreign: boolean
  readonly hold?: Hold
  /** When the record was last written, in milliseconds since 1970. */
  readonly updatedAt: number
}

/** The fields that a write sets. The journal sets version and times. */
export type RecordContent = Omit<JournalRecord, 'version' | 'createdAt' | 'updatedAt'>

/**
 * True if something is still unknown: the outcome, the order itself, or what was bought under a key
 * in conflict. Such records are listed by `unresolved()` and never removed.
 */
export function isPending(record: Pick<JournalRecord, 'state' | 'readable' | 'rejection'>): boolean {
  if (record.state === 'rejected') return record.rejection?.kind === 'conflict'
  return record.state === 'open' || !record.readable
}

/**
 * True if no call has claimed the record for sending since it was opened. Such a record is
 * unambiguous, whatever its age and whichever API key sends it: every claim sets the API key tag in
 * the write that permits the send.
 */
export function isUnsent(record: Pick<JournalRecord, 'state' | 'apiKeyTag'>): boolean {
  return record.state === 'open' && record.apiKeyTag === ''
}

export function highestGeneration({
  generation,
  highest = 0,
}: Pick<JournalRecord, 'generation' | 'highest'>): number {
  return Math.max(generation, highest)
}

/** The public view of a record: the fields that a caller may rely on. */
export function publicRecord(record: JournalRecord): OrderRecord {
  const { slot, key, generation, state, ambiguous, externalOrderId, order, rejection } = record
  const { attempts, firstSentAt, busyUntil, createdAt, version } = record
  return {
    slot,
    key,
    generation,
    state,
    ambiguous,
    attempts,
    createdAt,
    version,
    ...defined({ externalOrderId, order, rejection, firstSentAt, busyUntil }),
  }
}

/**
 * True if a call without a reference or key continues the stored order instead of placing another
 * identical order: the stored order is still open, or it was created but never readable.
 */
export function isAskedAgain(record: Pick<JournalRecord, 'slot' | 'state' | 'readable'>): boolean {
  return (
    isAnonymous(record.slot) && (record.state === 'open' || (record.state === 'created' && !record.readable))
  )
}
