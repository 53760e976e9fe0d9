/** What the store remembers of an order, and its row: JSON, encrypted if the client has a codec. */
import { bare, defined } from '../../defined.ts'
import { type Charged, type ErrorFacts, StoreError } from '../../errors/classes.ts'
import { type Fingerprint, hashOf } from '../../identity/keys.ts'
import type { Codec } from '../../options.ts'
import type { Order } from '../../schemas/order.ts'
import type { StoredRow } from '../../stores/store.ts'

/**
 * `open`: the outcome is unknown.
 *
 * `created`: an order exists and was charged. `rejected`: the record is closed without an order,
 * and nothing was charged.
 */
export type RecordState = 'open' | 'created' | 'rejected'

/**
 * Why a record is closed without an order:
 * - `refused`: the service refused the order (400, 402, 404, 422);
 * - `not_processed`: the service did not process the request (such as 401, 403, 425, 429), or the
 *   request never reached it;
 * - `cancelled`: the call ended before anything was sent;
 * - `abandoned`: a person closed the record with `resolve()`.
 */
export type RejectionKind = 'refused' | 'not_processed' | 'cancelled' | 'abandoned'

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
  /** The order's name: `ref:<externalOrderId>`, `key:<Idempotency-Key>` or `anon:<digest>`. */
  readonly slot: string
  /** The current Idempotency-Key. Empty for an order that only `resolve()` has recorded. */
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
   * The order as the service returned it.
   *
   * Has only an `id` if nothing else in the response was readable. Absent if no response was
   * readable.
   */
  readonly order?: Partial<Order>
  /** Why the record was closed without an order. */
  readonly rejection?: Rejection
  /** Number of HTTP requests that finished calls have made for the order. */
  readonly attempts: number
  /**
   * When a call first sent the current key, or was about to send it, in milliseconds since 1970.
   *
   * Absent before that, and again if the service certainly processed no request with the key. 0 if
   * unknown because a clock went back.
   */
  readonly firstSentAt?: number
  /**
   * Time by which the call that claimed the record ends, in milliseconds since 1970.
   *
   * Absent once the call has stored its outcome.
   */
  readonly busyUntil?: number
  /** When the record was first written, in milliseconds since 1970. */
  readonly createdAt: number
  /** Every write of the record increases the version by 1. */
  readonly version: number
}

/** Who chose the key. A derived key is the same in every process, even without the store. */
export type KeyOrigin = 'caller' | 'derived' | 'random'

/**
 * Why recovery must not repeat the request of an open record:
 * - `aborted`: the caller's signal aborted the call;
 * - `refused`: the service refused the order after an attempt with an unknown outcome, which may
 *   have emptied the wallet and so caused the refusal;
 * - `conflict`: the key belongs to another payload, which may have been bought.
 */
export type Hold = 'aborted' | 'refused' | 'conflict'

/** In a record that was just made, an unknown field is undefined. In a stored one, it is absent. */
type Unknown<T> = { [Name in keyof T]: undefined extends T[Name] ? T[Name] | undefined : T[Name] }

export interface JournalRecord extends Unknown<Omit<OrderRecord, 'request'>> {
  readonly origin: KeyOrigin
  /** Highest generation that was ever used. Absent if that is the current generation. */
  readonly highest?: number | undefined
  /** First send of the derived first key while a later key is current. 0: must not be sent again. */
  readonly firstKeySentAt?: number | undefined
  /** How the service refused the derived first key, while a later key is current. */
  readonly firstRejection?: Rejection | undefined
  /**
   * True if a `fetch` may have repeated a request of this order, so that behind its refusal the order may
   * have been bought.
   */
  readonly maybeHidden?: true | undefined
  /** Empty for an order that only `resolve()` has recorded: its payload is unknown. */
  readonly fingerprint: Fingerprint
  /** Canonical JSON. Dropped once the request need not be sent again. */
  readonly body?: string | undefined
  /** Until then, calls whose claims were taken over may still send the order. */
  readonly othersUntil?: number | undefined
  /** 32-bit tag of the API key that sends `key`. */
  readonly apiKeyTag: string
  /** Random id of the call that last wrote the record. Shows which of two writes was stored. */
  readonly claim: string
  readonly updatedAt: number
}

export type RecordContent = Omit<JournalRecord, 'version' | 'createdAt' | 'updatedAt'>

/** Whether the wallet was charged for the order of a record. Without a record, nothing was sent. */
export function chargedOf(record: Pick<JournalRecord, 'state'> | undefined): Charged {
  if (record?.state === 'created') return 'yes'
  return record?.state === 'open' ? 'unknown' : 'no'
}

/** The remembered order, or undefined if no response was readable. */
export function orderOf({ state, order }: Pick<JournalRecord, 'state' | 'order'>): Order | undefined {
  if (state !== 'created' || order === undefined) return undefined
  // An order that did not match the schema is stored as its id alone.
  const isWhole = Object.hasOwn(order, 'status') && Object.hasOwn(order, 'amount')
  return isWhole ? (order as Order) : undefined
}

/** True while recovery may have work to do: the outcome is unknown, or the order was never read. */
export function isPending(record: Pick<JournalRecord, 'state' | 'order'>): boolean {
  return record.state === 'open' || (record.state === 'created' && orderOf(record) === undefined)
}

export function publicRecord(record: JournalRecord): OrderRecord {
  const { slot, key, generation, state, ambiguous, attempts, createdAt, version } = record
  const { externalOrderId, body, order, rejection, hold, firstSentAt, busyUntil } = record
  const view = { slot, key, generation, state, ambiguous, attempts, createdAt, version }
  const request: OrderRecord['request'] = body === undefined ? undefined : JSON.parse(body)
  return { ...view, ...defined({ externalOrderId, request, order, rejection, hold, firstSentAt, busyUntil }) }
}

/** What an error says of a record. */
export function recordFacts(
  record: Unknown<OrderRecord> | undefined,
): ErrorFacts & { readonly charged: Charged } {
  return {
    charged: chargedOf(record),
    // Empty if only `resolve()` has recorded the order.
    idempotencyKey: record?.key || undefined,
    externalOrderId: record?.externalOrderId,
    orderId: record?.order?.id,
  }
}

/**
 * Layout of `data`. A new value of a known field, such as another `hold`, needs a new number. A new
 * optional field needs none if older versions of this package may ignore it.
 */
const LAYOUT = 1

const FORGOTTEN = 'forgotten'

const SEALED = 'sealed:'

/** The columns of the row are not part of its text. */
export function encodeRecord(
  scope: string,
  id: string,
  record: JournalRecord,
  codec: Codec | undefined,
): StoredRow | Promise<StoredRow> {
  const { version, createdAt, updatedAt, state } = record
  const content = { ...record, version: undefined, createdAt: undefined, updatedAt: undefined }
  const open = textOf(content).slice(0, -1)
  const layout = `,"layout":${LAYOUT}`
  const data = open + layout + sumOf(scope, id, open, layout)
  const row = { scope, id, version, open: isPending(record), state, createdAt, updatedAt, data }
  if (codec === undefined) return row
  const sealed = async (): Promise<StoredRow> => ({ ...row, data: SEALED + (await codec.encrypt(data)) })
  return sealed()
}

function textOf(content: RecordContent): string {
  try {
    return JSON.stringify(content)
  } catch (error) {
    // JSON.stringify() fails if the order is nested too deeply. Then store only its main fields.
    if (content.order === undefined) throw error
    const { id, status, amount } = content.order
    return JSON.stringify({ ...content, order: defined({ id, status, amount }) })
  }
}

/**
 * Returns the end of a row's text: a hash of the row's place and of the whole record. Whatever else
 * changed a row, copied it, or stored it under another server or account, could make its order be
 * bought twice.
 */
function sumOf(scope: string, id: string, ...text: readonly string[]): string {
  return `,"sum":${hashOf(scope, id, ...text, '}')}}`
}

/**
 * The row without a record. Increases the version instead of removing the row, and occupies a row
 * that does not exist yet, so that the store rejects an abandoned write that would reopen the order.
 */
export function emptyRow(scope: string, id: string, now: number, row?: StoredRow): StoredRow {
  const { version = now, createdAt = now } = row ?? {}
  const written = { version: version + 1, createdAt, updatedAt: now }
  return { scope, id, ...written, open: false, state: 'rejected', data: FORGOTTEN }
}

/** `unanswered`: the codec did not decrypt the row in time. */
export type Unusable = 'corrupt' | 'newer_version' | 'unanswered'

export async function decodeRow(
  row: StoredRow,
  codec: Codec | undefined,
): Promise<JournalRecord | 'forgotten' | Unusable> {
  const { scope, id, data, version, createdAt, updatedAt } = row
  if (data === FORGOTTEN) return 'forgotten'
  try {
    const sealed = data.startsWith(SEALED) && codec !== undefined
    // Without a codec, encrypted data is not JSON, so the row is reported as corrupt.
    const text = sealed ? await codec.decrypt(data.slice(SEALED.length)) : data
    const parsed: RecordContent & { readonly layout: number; readonly sum: number } = JSON.parse(text)
    const { layout, sum: _sum, ...content } = parsed
    if (layout > LAYOUT) return 'newer_version'
    const end = text.lastIndexOf(',"sum":')
    const isWhole = text.slice(end) === sumOf(scope, id, text.slice(0, end))
    if (!isWhole || content.state !== row.state) return 'corrupt'
    return bare({ ...content, version, createdAt, updatedAt })
  } catch {
    return 'corrupt'
  }
}

const UNUSABLE: Readonly<Record<Unusable, { readonly what: string; readonly next: string }>> = {
  corrupt: {
    what: 'The stored record of an order cannot be read (damaged, or written with another codec).',
    next: 'Restore the row or the codec. Before anyone places the order again, look it up at the service.',
  },
  newer_version: {
    what: 'The stored record of an order was written by a newer version of this package.',
    next: 'Update this package in all processes that share the store.',
  },
  unanswered: {
    what: 'The codec did not decrypt the stored record of an order in time.',
    next: 'Repeat this call unchanged once the codec responds.',
  },
}

export interface UnusableRow {
  readonly row: StoredRow
  readonly why: Unusable
}

/** Kept beside the errors, because an error must not show what is stored. */
const unusableRows = new WeakMap<object, UnusableRow>()

export function unusableError(why: Unusable, row?: StoredRow): StoreError {
  const { what, next } = UNUSABLE[why]
  const error = new StoreError(
    `${what} This call did not send that order; an earlier call may have charged the wallet. ${next}`,
    { charged: 'unknown' },
  )
  if (row !== undefined) unusableRows.set(error, { row, why })
  return error
}

/** The row that could not be read, if an error is about one. The store can be read. */
export function unusableIn(error: unknown): UnusableRow | undefined {
  return error instanceof StoreError ? unusableRows.get(error) : undefined
}

/**
 * Rejects an encrypted value that a store may change, and makes the codec decrypt its first one before
 * anything is stored: an unreadable record would be noticed only after its order was charged.
 */
export function checkedCodec(codec: Codec): Codec {
  let proven = false
  return {
    encrypt: async (text) => {
      const sealed: unknown = await codec.encrypt(text)
      if (typeof sealed !== 'string' || sealed === '' || /[\ud800-\udfff]/u.test(sealed))
        throw new TypeError('codec.encrypt() must return a non-empty string without lone surrogates')
      // Do not quote the codec's own error, which may contain a secret.
      const opened = proven || (await (async () => codec.decrypt(sealed))().catch(() => undefined)) === text
      if (!opened)
        throw new TypeError('codec.decrypt() did not return the string that codec.encrypt() was given')
      proven = true
      return sealed
    },
    decrypt: (text) => codec.decrypt(text),
  }
}
