import { defined } from '../defined.ts'
import { StoreError } from '../errors.ts'
import type { Codec } from '../options.ts'
import type { Order } from '../schemas/order.ts'
import type { StoredRow } from '../stores/store.ts'
import { isPending, type JournalRecord } from './record.ts'

/**
 * Layout of `data`. A higher number is a newer package's and is never touched. A row gets a higher one where it has a value
 * that this layout does not know, such as another `hold`: an older package would take it for damaged. A new optional field
 * needs none, if an older package may leave it alone.
 */
const LAYOUT = 1

/** Marks rows whose record was forgotten: nothing is remembered, yet the row's version still goes on. */
const FORGOTTEN = 'forgotten'

const SEALED = 'sealed:'

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
    { charged: 'unknown', idempotencyKey: key },
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

/** A codec that cannot open what it seals. Says nothing of what it threw, which may hold a secret. */
export class RoundTripError extends TypeError {
  constructor() {
    super('decrypt() of the codec did not return the text that encrypt() was given')
  }
}

/**
 * A codec that opens the first text it seals before anybody stores it: a record that nobody can
 * read would be found out only after its order was charged. A failure is tried again.
 */
export function withRoundTrip(codec: Codec): Codec {
  let proven = false
  return {
    encrypt: async (text) => {
      const sealed = await codec.encrypt(text)
      // What is no text is refused by whoever asked for one.
      if (proven || !isStorable(sealed)) return sealed
      if (!(await opens(codec, sealed, text))) throw new RoundTripError()
      proven = true
      return sealed
    },
    decrypt: (text) => codec.decrypt(text),
  }
}

async function opens(codec: Codec, sealed: string, text: string): Promise<boolean> {
  try {
    return (await codec.decrypt(sealed)) === text
  } catch {
    return false
  }
}
