import { defined, isObject } from '../defined.ts'
import { StoreError } from '../errors/classes.ts'
import type { Codec } from '../options.ts'
import type { Order } from '../schemas/order.ts'
import type { StoredRow } from '../stores/store.ts'
import { isPending, type JournalRecord } from './record.ts'

/**
 * Layout of `data`. Increase the number for a new value of a known field, such as another `hold`:
 * otherwise, older versions of this package report the row as damaged. A new optional field needs
 * no new number if older versions may ignore the field.
 */
const LAYOUT = 1

const FORGOTTEN = 'forgotten'

const SEALED = 'sealed:'

/** Keeps fields that a newer version of this package added to the same layout. */
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

/** Rejects a value that a store may change, because the record could then never be decrypted. */
async function encrypted(codec: Codec, text: string): Promise<string> {
  const sealed: unknown = await codec.encrypt(text)
  if (!isStorable(sealed))
    throw new TypeError('codec.encrypt() must return a non-empty string without lone surrogates')
  return sealed
}

/** True for a non-empty string without lone surrogates, which every store returns unchanged. */
export function isStorable(sealed: unknown): sealed is string {
  return typeof sealed === 'string' && sealed !== '' && !/[\ud800-\udfff]/u.test(sealed)
}

function textOf(content: { readonly order?: Partial<Order> }): string {
  try {
    return JSON.stringify({ layout: LAYOUT, ...content })
  } catch (error) {
    // JSON.stringify() fails if the order is nested too deeply. Then store only its main fields.
    if (content.order === undefined) throw error
    const { id, status, amount } = content.order
    return JSON.stringify({ layout: LAYOUT, ...content, order: defined({ id, status, amount }) })
  }
}

/** Occupies the row, so that the store rejects an insert that an earlier call abandoned. */
export function emptyRow(scope: string, id: string, now: number): StoredRow {
  const times = { createdAt: now, updatedAt: now }
  return { scope, id, version: 1, open: false, state: 'rejected', ...times, data: FORGOTTEN }
}

/**
 * Increases the version instead of removing the row, so that the store rejects an abandoned write
 * that would reopen the order.
 */
export function forgottenRow(row: StoredRow, now: number): StoredRow {
  return { ...row, version: row.version + 1, open: false, state: 'rejected', updatedAt: now, data: FORGOTTEN }
}

/** `unanswered`: the codec did not decrypt the row in time. */
export type Unusable = 'corrupt' | 'newer_version' | 'unanswered'

export async function decodeRow(
  row: StoredRow,
  codec: Codec | undefined,
): Promise<JournalRecord | 'forgotten' | Unusable> {
  if (row.data === FORGOTTEN) return 'forgotten'
  let content: unknown
  try {
    const sealed = row.data.startsWith(SEALED)
    // Without a codec, encrypted data is not JSON, so the row is reported as corrupt.
    const text = sealed && codec !== undefined ? await codec.decrypt(row.data.slice(SEALED.length)) : row.data
    content = JSON.parse(text)
  } catch {
    return 'corrupt'
  }
  if (!isFields(content)) return 'corrupt'
  const { layout, ...fields } = content
  if (typeof layout === 'number' && layout > LAYOUT) return 'newer_version'
  const record = { ...fields, version: row.version, createdAt: row.createdAt, updatedAt: row.updatedAt }
  return layout === LAYOUT && isRecord(record) && record.state === row.state ? record : 'corrupt'
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

export function unusableError(why: Unusable, key?: string): StoreError {
  const { what, next } = UNUSABLE[why]
  return new StoreError(
    `${what} This call did not send that order; an earlier call may have charged the wallet. ${next}`,
    { charged: 'unknown', idempotencyKey: key },
  )
}

type Fits = (value: unknown) => boolean

const isText: Fits = (value) => typeof value === 'string'
const isFlag: Fits = (value) => typeof value === 'boolean'
const isCount: Fits = (value) => Number.isSafeInteger(value) && Number(value) >= 0
const isTime: Fits = (value) => Number.isFinite(value)
const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isObject(value) && !Array.isArray(value)
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
    isFields(value) && Object.values(value).every(fits)

const FIELDS: Readonly<Record<keyof JournalRecord, Fits>> = {
  slot: isText,
  key: isText,
  keyOrigin: oneOf('caller', 'derived', 'random'),
  generation: isCount,
  highest: optional(isCount),
  first: optional(isFirstKey),
  state: oneOf('open', 'created', 'rejected'),
  ambiguous: isFlag,
  externalOrderId: optional(isText),
  order: optional(isFields),
  rejection: optional(isRejection),
  attempts: isCount,
  firstSentAt: optional(isTime),
  busyUntil: optional(isTime),
  othersUntil: optional(isTime),
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
  if (!isFields(value)) return false
  const { kind, status, code } = value
  return isKind(kind) && optional(isCount)(status) && optional(isText)(code)
}

function isFirstKey(value: unknown): boolean {
  if (!isFields(value)) return false
  const { sentAt, rejection, refused } = value
  return isTime(sentAt) && optional(isRejection)(rejection) && isFlag(refused)
}

function isRecord(
  record: Readonly<Record<string, unknown>>,
): record is JournalRecord & Record<string, unknown> {
  for (const [name, fits] of Object.entries(FIELDS)) if (!fits(record[name])) return false
  if (record['state'] === 'open') return typeof record['body'] === 'string'
  return record['state'] === 'created' || record['rejection'] !== undefined
}

/** Does not quote the codec's own error, which may contain a secret. */
export class RoundTripError extends TypeError {
  constructor() {
    super('codec.decrypt() did not return the string that codec.encrypt() was given')
  }
}

/**
 * Makes the codec decrypt its first encrypted string before anything is stored. Without this check,
 * an unreadable record would be noticed only after its order was charged.
 */
export function withRoundTrip(codec: Codec): Codec {
  let proven = false
  return {
    encrypt: async (text) => {
      const sealed = await codec.encrypt(text)
      // `encrypted()` rejects a value that cannot be stored.
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
