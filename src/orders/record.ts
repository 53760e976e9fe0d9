import { defined } from '../defined.ts'
import { StoreError } from '../errors.ts'
import type { Order } from '../schemas/order.ts'
import type { StoredRow } from '../stores/store.ts'

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
  readonly kind: RejectionKind
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
  readonly state: RecordState
  /** True if an attempt under the current key may have reached the service and no trustworthy answer came back. */
  readonly ambiguous: boolean
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
 * Layout of `data`. A higher number is a newer package's and is never touched. A row gets a higher one where it has a value
 * that this layout does not know, such as another `hold`: an older package would take it for damaged. A new optional field
 * needs none, if an older package may leave it alone.
 */
const LAYOUT = 1

/** Marks rows whose record was forgotten: nothing is remembered, yet the row's version still goes on. */
const FORGOTTEN = 'forgotten'

/**
 * Encrypts and decrypts what is at rest. Each may take ten seconds, but no more than 450 ms past the end of the call.
 * `decrypt` must throw for a text that it cannot open.
 */
export interface Codec {
  /**
   * Returns a well-formed text that is not empty, such as base64; otherwise, or if it throws, no order is sent. What it
   * throws becomes the `cause` of the `StoreError` as it is, so it must not name secrets.
   */
  encrypt(text: string): string | Promise<string>
  decrypt(text: string): string | Promise<string>
}

const SEALED = 'sealed:'

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

/** A row that a store can keep. Fields that a newer package added to the same layout are kept. */
export async function encodeRecord(
  scope: string,
  id: string,
  record: JournalRecord,
  codec: Codec | undefined,
): Promise<StoredRow> {
  const { version, createdAt, updatedAt, ...content } = record
  const text = textOf(content)
  return {
    scope,
    id,
    version,
    open: isPending(record),
    state: record.state,
    createdAt,
    updatedAt,
    data: codec === undefined ? text : SEALED + (await encrypted(codec, text)),
  }
}

/** What is not a text, or cannot come back as it was, would be a record that nobody can read. */
async function encrypted(codec: Codec, text: string): Promise<string> {
  const sealed: unknown = await codec.encrypt(text)
  if (!isStorable(sealed)) throw new TypeError('encrypt() of the codec did not return a well-formed text')
  return sealed
}

/** True for a text that every store gives back as it was. */
export function isStorable(sealed: unknown): sealed is string {
  return typeof sealed === 'string' && sealed !== '' && !/[\ud800-\udfff]/u.test(sealed)
}

/** A record as JSON; where its order is nested too deeply for this engine, with the order's documented fields only. */
function textOf(content: { readonly order?: Partial<Order> }): string {
  try {
    return JSON.stringify({ layout: LAYOUT, ...content })
  } catch (error) {
    if (content.order === undefined) throw error
    const { id, status, amount } = content.order
    return JSON.stringify({ layout: LAYOUT, ...content, order: defined({ id, status, amount }) })
  }
}

/** A row that stands for no record: nothing was ever remembered under its name, yet nobody can begin with its first version. */
export function emptyRow(scope: string, id: string, now: number): StoredRow {
  const times = { createdAt: now, updatedAt: now }
  return { scope, id, version: 1, open: false, state: 'rejected', ...times, data: FORGOTTEN }
}

/**
 * The row that stands for a forgotten record. It stays as long as a refusal does: a write that was given up before must
 * not begin the order anew.
 */
export function forgottenRow(row: StoredRow, now: number): StoredRow {
  return { ...row, version: row.version + 1, open: false, state: 'rejected', updatedAt: now, data: FORGOTTEN }
}

/** Why a row cannot be used; `unanswered`: the codec did not say what is in it. */
export type Unusable = 'corrupt' | 'newer_version' | 'unanswered'

/** The record of a row, `'forgotten'`, or why it cannot be used. */
export async function decodeRow(
  row: StoredRow,
  codec: Codec | undefined,
): Promise<JournalRecord | 'forgotten' | Unusable> {
  if (row.data === FORGOTTEN) return 'forgotten'
  let content: unknown
  try {
    const sealed = row.data.startsWith(SEALED)
    // Without a codec, a sealed text is no JSON.
    const text = sealed && codec !== undefined ? await codec.decrypt(row.data.slice(SEALED.length)) : row.data
    content = JSON.parse(text)
  } catch {
    return 'corrupt'
  }
  if (typeof content !== 'object' || content === null) return 'corrupt'
  const { layout, ...fields } = content as Readonly<Record<string, unknown>>
  if (typeof layout === 'number' && layout > LAYOUT) return 'newer_version'
  const record = { ...fields, version: row.version, createdAt: row.createdAt, updatedAt: row.updatedAt }
  return layout === LAYOUT && isRecord(record) && record.state === row.state ? record : 'corrupt'
}

const UNUSABLE: Readonly<Record<Unusable, { readonly what: string; readonly next: string }>> = {
  corrupt: {
    what: 'The stored record of this order cannot be read (damaged, or written with another codec).',
    next: 'Restore the row or the codec. Until then, look the order up at the service before anybody orders it again.',
  },
  newer_version: {
    what: 'The stored record of this order was written by a newer version of this package.',
    next: 'Update this package in all processes that share the store.',
  },
  unanswered: {
    what: 'The codec did not decrypt the stored record of this order in time.',
    next: 'Call again with the same request once it answers.',
  },
}

/** The error for a row that cannot be used: nothing may be sent over it, because nobody knows what it stood for. */
export function unusableError(why: Unusable, key?: string): StoreError {
  const { what, next } = UNUSABLE[why]
  return new StoreError(
    `${what} This call ordered nothing; an earlier one may have charged the wallet. ${next}`,
    {
      charged: 'unknown',
      ...defined({ idempotencyKey: key }),
    },
  )
}

type Fits = (value: unknown) => boolean

const isText: Fits = (value) => typeof value === 'string'
const isFlag: Fits = (value) => typeof value === 'boolean'
const isCount: Fits = (value) => Number.isSafeInteger(value) && Number(value) >= 0
const isTime: Fits = (value) => Number.isFinite(value)
const isObject: Fits = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const oneOf =
  (...values: readonly string[]): Fits =>
  (value) =>
    values.some((known) => known === value)
const optional =
  (fits: Fits): Fits =>
  (value) =>
    value === undefined || fits(value)
const allOf =
  (fits: Fits): Fits =>
  (value) =>
    isObject(value) && Object.values(value as object).every(fits)

/** What every field of a record must be; a field without a line does not compile. */
const FIELDS: Readonly<Record<keyof JournalRecord, Fits>> = {
  slot: isText,
  key: isText,
  keyOrigin: oneOf('caller', 'derived', 'random'),
  generation: isCount,
  highest: optional(isCount),
  first: optional(isFirstKey),
  left: optional(isTexts),
  state: oneOf('open', 'created', 'rejected'),
  ambiguous: isFlag,
  externalOrderId: optional(isText),
  order: optional(isObject),
  rejection: optional(isRejection),
  attempts: isCount,
  firstSentAt: optional(isTime),
  busyUntil: optional(isTime),
  fingerprint: isText,
  fields: allOf(isText),
  body: optional(isText),
  apiKeyTag: isText,
  claim: isText,
  readable: isFlag,
  refused: isFlag,
  foreign: isFlag,
  hold: optional(oneOf('aborted', 'refused')),
  createdAt: isTime,
  updatedAt: isTime,
  version: isCount,
}

const isKind = oneOf('refused', 'not_processed', 'conflict', 'cancelled', 'abandoned')

function isRejection(value: unknown): boolean {
  if (!isObject(value)) return false
  const { kind, status, code } = value as Readonly<Record<string, unknown>>
  return isKind(kind) && optional(isCount)(status) && optional(isText)(code)
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText)
}

function isFirstKey(value: unknown): boolean {
  if (!isObject(value)) return false
  const { sentAt, rejection, refused } = value as Readonly<Record<string, unknown>>
  return isTime(sentAt) && optional(isRejection)(rejection) && isFlag(refused)
}

function isRecord(value: object): value is JournalRecord {
  const record = value as Readonly<Record<string, unknown>>
  for (const [name, fits] of Object.entries(FIELDS)) if (!fits(record[name])) return false
  if (record['state'] === 'open') return typeof record['body'] === 'string'
  return record['state'] === 'created' || record['rejection'] !== undefined
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
