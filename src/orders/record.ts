import { defined } from '../defined.ts'
import type { Order } from '../schemas/order.ts'

/** `open`: the ending is not known; `created`: an order exists and was charged; `rejected`: nothing was bought. */
export type RecordState = 'open' | 'created' | 'rejected'

/**
 * Why a record is closed without an order:
 * - `refused`: the service refused it (400, 402, 404, 422); heard again under the first key, it leads to a new key;
 * - `not_processed`: the service did not look at it (401, 403, 425, 429 and the like), or it was surely never sent;
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
  /** Machine-readable code out of the service's answer. */
  readonly code?: string
}

/** What is remembered of an intent. */
export interface OrderRecord {
  /** Name of the intent: `ref:<externalOrderId>`, `key:<Idempotency-Key>` or `anon:<fingerprint>`. */
  readonly slot: string
  /** The Idempotency-Key of the current generation. */
  readonly key: string
  /** Which key of the intent this is, from 0 on. */
  readonly generation: number
  /** `open` until the outcome is known, then `created` or `rejected`. */
  readonly state: RecordState
  /** True if an attempt under the current key may have reached the service and no trustworthy answer came back. */
  readonly ambiguous: boolean
  /** Your own reference of the order. */
  readonly externalOrderId?: string
  /** The order as the service returned it; only `id` may be known where the answer was flawed. Absent if never readable. */
  readonly order?: Partial<Order>
  /** Of an open record: the refusal that an order heard before it was asked for again with `orders.enqueue`. */
  readonly rejection?: Rejection
  /** HTTP requests made for the intent, by ended calls. */
  readonly attempts: number
  /**
   * When the current key was first sent (or was about to be), milliseconds since 1970, by whatever call; absent if it never
   * was, or if the service looked at no request that carried it; 0 if nobody knows, because a clock went back.
   */
  readonly firstSentAt?: number
  /** Until when the call that claimed the record may still be at work, milliseconds since 1970; absent once it ended. */
  readonly busyUntil?: number
  /** Milliseconds since 1970. */
  readonly createdAt: number
  /** One more with every write. */
  readonly version: number
}

/** Who chose the key. A key given by the caller is never changed. */
export type KeyOrigin = 'caller' | 'derived' | 'random'

/** Why recovery must not repeat the request by itself: the caller stopped it, or it was refused when that proved nothing. */
export type Hold = 'aborted' | 'refused'

/** What is kept of the first key of an order while a later one is the current one. */
export interface FirstKey {
  /** When it was first sent, milliseconds since 1970; 0 if it must not be sent again. */
  readonly sentAt: number
  /** What the service said under it last. */
  readonly rejection?: Rejection
  /** True if the service cleanly refused every body that this store sent under it. */
  readonly refused: boolean
}

/** The whole record, as the journal keeps it. */
export interface JournalRecord extends OrderRecord {
  readonly keyOrigin: KeyOrigin
  /** The highest generation whose key was ever taken, where that is not the current one. */
  readonly highest?: number
  /** The first key of an order whose current key is a later one. Only derived keys have one: no random key is sent again. */
  readonly first?: FirstKey
  /** Keys that the caller replaced by another, or gave up: the service may forget them at any moment, so none is sent again. */
  readonly left?: readonly string[]
  /** Identity of the payload without `metadata`. */
  readonly fingerprint: string
  /** Short salted tag per field, so that a conflict can name fields when the body is gone. */
  readonly fields: Readonly<Record<string, string>>
  /** Canonical request body; only while the record may have to be sent again. */
  readonly body?: string
  /** 32-bit tag of the API key that sent the current key; empty if none did. */
  readonly apiKeyTag: string
  /** Random id of the call that wrote the record last, so that a write whose answer was lost is recognised. */
  readonly claim: string
  /** True if `order` is the whole order as returned (or as much of it as `remember` keeps). */
  readonly readable: boolean
  /** True if the service cleanly refused a body under the current key. */
  readonly refused: boolean
  /** True if the service said that the current key belongs to a payload that this store never saw refused. */
  readonly foreign: boolean
  readonly hold?: Hold
  /** When the record was last written, milliseconds since 1970. */
  readonly updatedAt: number
}

/** What a write sets; version and times are the journal's. */
export type RecordContent = Omit<JournalRecord, 'version' | 'createdAt' | 'updatedAt'>

/**
 * True if something is left to find out: the ending, the order itself, or what was bought under a key in conflict. Such
 * records are listed, and never removed.
 */
export function isPending(record: Pick<JournalRecord, 'state' | 'readable' | 'rejection'>): boolean {
  if (record.state === 'rejected') return record.rejection?.kind === 'conflict'
  return record.state === 'open' || !record.readable
}

/**
 * True if no call has claimed the record for sending since it was opened: nothing is in doubt, however old the record is
 * and whichever API key sends it. Every claim sets the tag, in the write that allows the call to send.
 */
export function isUnsent(record: Pick<JournalRecord, 'state' | 'apiKeyTag'>): boolean {
  return record.state === 'open' && record.apiKeyTag === ''
}

/** The highest generation whose key the order has ever taken. */
export function highestGeneration({
  generation,
  highest = 0,
}: Pick<JournalRecord, 'generation' | 'highest'>): number {
  return Math.max(generation, highest)
}

/** The public view of a record: what a caller may rely on, and nothing of the journal's own. */
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
