/** The row of a record: JSON, encrypted if the client has a codec. */
import { defined, isObject } from '../../defined.ts'
import { StoreError } from '../../errors/classes.ts'
import { canonicalJson } from '../../identity/canonical.ts'
import {
  type Derive,
  derivedKey,
  differingFields,
  digestOf,
  fingerprintOf,
  isNameless,
  referenceIn,
  rowIdOf,
  slotOf,
} from '../../identity/keys.ts'
import type { Codec } from '../../options.ts'
import { parseJson } from '../../schemas/check.ts'
import type { StoredRow } from '../../stores/store.ts'
import { isPending, type JournalRecord, type RecordContent } from './record.ts'

/**
 * Layout of `data`. Increase the number for a new value of a known field, such as another `hold`:
 * otherwise, older versions of this package report the row as damaged. A new optional field needs
 * no new number if older versions may ignore the field.
 */
const LAYOUT = 1

const FORGOTTEN = 'forgotten'

const SEALED = 'sealed:'

/** Whose keys and rows a record must have. */
export interface RecordOwner {
  readonly derive: Derive
  readonly server: string
  readonly account: string | undefined
}

/** Keeps fields that a newer version of this package added to the same layout. */
export async function encodeRecord(
  scope: string,
  id: string,
  record: JournalRecord,
  codec: Codec | undefined,
): Promise<StoredRow> {
  const { version, createdAt, updatedAt, ...content } = record
  const { state } = content
  const text = textOf(content)
  const data = codec === undefined ? text : SEALED + (await encrypted(codec, text))
  return { scope, id, version, open: isPending(record), state, createdAt, updatedAt, data }
}

/** Rejects a value that a store may change, because the record could then never be decrypted. */
async function encrypted(codec: Codec, text: string): Promise<string> {
  const sealed: unknown = await codec.encrypt(text)
  if (!isStorable(sealed))
    throw new TypeError('codec.encrypt() must return a non-empty string without lone surrogates')
  return sealed
}

/** True for a non-empty string without lone surrogates, which every store returns unchanged. */
function isStorable(sealed: unknown): sealed is string {
  return typeof sealed === 'string' && sealed !== '' && !/[\ud800-\udfff]/u.test(sealed)
}

function textOf(content: RecordContent): string {
  try {
    return JSON.stringify({ layout: LAYOUT, ...content })
  } catch (error) {
    // JSON.stringify() fails if the order is nested too deeply. Then store only its main fields.
    if (content.order === undefined) throw error
    const { id, status, amount } = content.order
    return JSON.stringify({ layout: LAYOUT, ...content, order: defined({ id, status, amount }) })
  }
}

/**
 * The row without a record. Increases the version instead of removing the row, and occupies a row
 * that does not exist yet, so that the store rejects an abandoned write that would reopen the order.
 */
export function emptyRow(scope: string, id: string, now: number, row?: StoredRow): StoredRow {
  const { version = 0, createdAt = now } = row ?? {}
  const written = { version: version + 1, createdAt, updatedAt: now }
  return { scope, id, ...written, open: false, state: 'rejected', data: FORGOTTEN }
}

/** `unanswered`: the codec did not decrypt the row in time. */
export type Unusable = 'corrupt' | 'newer_version' | 'unanswered'

export async function decodeRow(
  row: StoredRow,
  codec: Codec | undefined,
  owner: RecordOwner,
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
  if (layout !== LAYOUT || !isContent(fields) || fields.state !== row.state) return 'corrupt'
  const { version, createdAt, updatedAt } = row
  return belongs(fields, row.id, owner) ? { ...fields, version, createdAt, updatedAt } : 'corrupt'
}

type Fits = (value: unknown) => boolean

const isText: Fits = (value) => typeof value === 'string'
const isCount: Fits = (value) => Number.isSafeInteger(value) && Number(value) >= 0
const isTime: Fits = (value) => value === undefined || Number.isFinite(value)
const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isObject(value) && !Array.isArray(value)
const oneOf =
  (...values: readonly unknown[]): Fits =>
  (value) =>
    values.includes(value)

function isRejection(value: unknown): boolean {
  return value === undefined || (isFields(value) && isText(value['kind']))
}

/** The fields on which a decision depends. A record without one of them must not be sent. */
const FIELDS: Readonly<Partial<Record<keyof RecordContent, Fits>>> = {
  slot: isText,
  key: isText,
  origin: oneOf('caller', 'derived', 'random'),
  generation: isCount,
  highest: (value) => value === undefined || isCount(value),
  state: oneOf('open', 'created', 'rejected'),
  ambiguous: oneOf(true, false),
  attempts: isCount,
  firstSentAt: isTime,
  firstKeySentAt: isTime,
  busyUntil: isTime,
  othersUntil: isTime,
  fingerprint: (value) => isFields(value) && Object.values(value).every(isText),
  apiKeyTag: isText,
  claim: isText,
  order: (value) => value === undefined || isFields(value),
  rejection: isRejection,
  firstRejection: isRejection,
  hold: oneOf(undefined, 'aborted', 'refused', 'conflict'),
}

function isContent(
  fields: Readonly<Record<string, unknown>>,
): fields is RecordContent & Record<string, unknown> {
  for (const [name, fits] of Object.entries(FIELDS)) if (!fits(fields[name])) return false
  const { state, body, rejection } = fields
  if (state === 'open') return isText(body)
  return state === 'created' || rejection !== undefined
}

/**
 * Detects a record that something other than this package has changed. Sending such a record could
 * buy another order, or the same order twice.
 */
function belongs(record: RecordContent, id: string, { derive, server, account }: RecordOwner): boolean {
  const { slot, key, origin, generation, body } = record
  const externalOrderId = referenceIn(slot)
  if (rowIdOf(derive, slot) !== id || record.externalOrderId !== externalOrderId) return false
  if (slot.startsWith('key:') && slot !== `key:${key}`) return false
  if (origin === 'derived') {
    if (externalOrderId === undefined || account === undefined) return false
    if (derivedKey(derive, { server, account, externalOrderId, generation }) !== key) return false
  }
  return body === undefined || isOf(record, body, derive)
}

/** True if the body is what was asked for: the record's reference, fields and name. */
function isOf({ slot, fingerprint }: RecordContent, body: string, derive: Derive): boolean {
  const request = parseJson(body)?.json
  if (!isFields(request)) return false
  const members = new Map<string, string>()
  if (canonicalJson(request, members) !== body) return false
  const { metadata } = request
  if ((isFields(metadata) ? metadata['externalOrderId'] : undefined) !== referenceIn(slot)) return false
  if (isNameless(slot) && slotOf(undefined, undefined, () => digestOf(derive, members)) !== slot) return false
  return differingFields(fingerprint, fingerprintOf(derive, slot, members)).length === 0
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

export function unusableError(why: Unusable): StoreError {
  const { what, next } = UNUSABLE[why]
  return new StoreError(
    `${what} This call did not send that order; an earlier call may have charged the wallet. ${next}`,
    { charged: 'unknown' },
  )
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
      const opened = await Promise.resolve(sealed)
        .then((given) => codec.decrypt(given))
        .catch(() => undefined)
      if (opened !== text) throw new RoundTripError()
      proven = true
      return sealed
    },
    decrypt: (text) => codec.decrypt(text),
  }
}
