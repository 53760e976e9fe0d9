import { defined, isObject } from '../defined.ts'
import { parseJson } from '../schemas/check.ts'
import type { Order } from '../schemas/order.ts'
import { isAnonymous } from './identity.ts'

/**
 * `open`: the outcome is unknown. `created`: an order exists and was charged. `rejected`: the
 * record is closed without an order. {@link RejectionKind} shows whether one may have been bought.
 */
export type RecordState = 'open' | 'created' | 'rejected'

/**
 * Why a record is closed without an order:
 * - `refused`: the service refused the order (400, 402, 404, 422);
 * - `not_processed`: the service did not process the request (such as 401, 403, 425, 429), or the
 *   request never reached it;
 * - `conflict`: the key belongs to another payload, which may have been bought;
 * - `cancelled`: the call ended before anything was sent;
 * - `abandoned`: a person closed the record with `resolve()`.
 */
export type RejectionKind = 'refused' | 'not_processed' | 'conflict' | 'cancelled' | 'abandoned'

/** Why an order was not placed. */
export interface Rejection {
  /** The reason. */
  readonly kind: RejectionKind
  /** HTTP status of the refusal. */
  readonly status?: number
  /** Machine-readable code from the service's response. */
  readonly code?: string
}

/** What the store remembers of an order. */
export interface OrderRecord {
  /** The order's name: `ref:<externalOrderId>`, `key:<Idempotency-Key>` or `anon:<fingerprint>`. */
  readonly slot: string
  /** The current Idempotency-Key. */
  readonly key: string
  /** Number of the current key, counted from 0. */
  readonly generation: number
  /** `open` until the outcome is known, then `created` or `rejected`. */
  readonly state: RecordState
  /** True if an attempt under the current key may have been charged, and its outcome is unknown. */
  readonly ambiguous: boolean
  /** Your own reference for the order. */
  readonly externalOrderId?: string
  /** The request, until the record is closed. */
  readonly request?: Readonly<Record<string, unknown>>
  /** Why `recover()` looks the order up and does not send it. */
  readonly hold?: Hold
  /**
   * The order as the service returned it. Has only an `id` if nothing else in the response was
   * readable. Absent if no response was readable.
   */
  readonly order?: Partial<Order>
  /** Why the record was closed without an order. */
  readonly rejection?: Rejection
  /** Number of HTTP requests that finished calls have made for the order. */
  readonly attempts: number
  /**
   * When a call first sent the current key, or was about to send it, in milliseconds since 1970.
   * Absent before that, and again if the service certainly processed no request with the key. 0 if
   * unknown because a clock went back.
   */
  readonly firstSentAt?: number
  /**
   * Time by which the call that claimed the record ends, in milliseconds since 1970. Absent once
   * the call has stored its outcome.
   */
  readonly busyUntil?: number
  /** When the record was first written, in milliseconds since 1970. */
  readonly createdAt: number
  /** Every write of the record increases the version by 1. */
  readonly version: number
}

/**
 * `derived`: computed from the reference and the account, so that every process sends the same key.
 */
export type KeyOrigin = 'caller' | 'derived' | 'random'

/**
 * Why recovery must not repeat a request: the caller aborted it, or the service refused it after an
 * attempt with an unknown outcome.
 */
export type Hold = 'aborted' | 'refused'

export interface FirstKey {
  /** Milliseconds since 1970. 0 if the key must not be sent again. */
  readonly sentAt: number
  readonly rejection?: Rejection
  /**
   * True if the service refused a body under the key, and no attempt before the refusal was
   * ambiguous.
   */
  readonly refused: boolean
}

export interface JournalRecord extends Omit<OrderRecord, 'request'> {
  readonly keyOrigin: KeyOrigin
  /** Highest generation that was ever used. Absent if that is the current generation. */
  readonly highest?: number
  /**
   * Shows whether the first key may be sent again. Present while a later key is current, if the
   * first key is derived or a person abandoned the order.
   */
  readonly first?: FirstKey
  /** Equal for equal payloads. Ignores `metadata`. */
  readonly fingerprint: string
  /** Salted tag of each field, to name the fields in a conflict after the body was dropped. */
  readonly fields: Readonly<Record<string, string>>
  /** Canonical JSON. Dropped once the request need not be sent again or compared. */
  readonly body?: string
  /**
   * Time by which all calls end whose claims another call took over, in milliseconds since 1970.
   * Until then, they may still send the order.
   */
  readonly othersUntil?: number
  /** 32-bit tag of the API key that sends `key`. Empty until a call claims the record. */
  readonly apiKeyTag: string
  /**
   * Random id of the call that last wrote the record. After a lost response, it shows which write
   * was stored.
   */
  readonly claim: string
  /** True if `order` is complete, or has the part that the option `remember` selects. */
  readonly readable: boolean
  /**
   * True if the service refused a body under `key`, and no attempt before the refusal was
   * ambiguous.
   */
  readonly refused: boolean
  /**
   * True if the service reported that `key` belongs to another payload, and no refusal stored here
   * explains this. That payload may have been bought.
   */
  readonly foreign: boolean
  /** Milliseconds since 1970. */
  readonly updatedAt: number
}

export type RecordContent = Omit<JournalRecord, 'version' | 'createdAt' | 'updatedAt'>

/** Includes a conflict, because the payload that owns the key may have been bought. */
export function isPending(record: Pick<JournalRecord, 'state' | 'readable' | 'rejection'>): boolean {
  if (record.state === 'rejected') return record.rejection?.kind === 'conflict'
  return record.state === 'open' || !record.readable
}

export function highestGeneration({
  generation,
  highest = 0,
}: Pick<JournalRecord, 'generation' | 'highest'>): number {
  return Math.max(generation, highest)
}

export function publicRecord(record: JournalRecord): OrderRecord {
  const { slot, key, generation, state, ambiguous, externalOrderId, order, rejection, hold } = record
  const request = parseJson(record.body ?? '')?.json
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
    ...(isObject(request) && { request }),
    ...defined({ externalOrderId, order, rejection, hold, firstSentAt, busyUntil }),
  }
}

/** True if a call without a reference or key continues this order instead of buying another. */
export function isAskedAgain(record: Pick<JournalRecord, 'slot' | 'state' | 'readable'>): boolean {
  return (
    isAnonymous(record.slot) && (record.state === 'open' || (record.state === 'created' && !record.readable))
  )
}
