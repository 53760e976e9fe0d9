/** The row of a record: JSON, encrypted if the client has a codec. */
import { defined } from '../../defined.ts'
import { StoreError } from '../../errors/classes.ts'
import { hashOf } from '../../identity/keys.ts'
import type { Codec } from '../../options.ts'
import type { StoredRow } from '../../stores/store.ts'
import { isPending, type JournalRecord, type RecordContent } from './record.ts'

/**
 * Layout of `data`. A new value of a known field, such as another `hold`, needs a new number. A new
 * optional field needs none if older versions of this package may ignore it.
 */
const LAYOUT = 1

const FORGOTTEN = 'forgotten'

const SEALED = 'sealed:'

export async function encodeRecord(
  scope: string,
  id: string,
  record: JournalRecord,
  codec: Codec | undefined,
): Promise<StoredRow> {
  const { version, createdAt, updatedAt, ...content } = record
  const { state } = content
  const text = withSum(scope, id, textOf(content))
  const data = codec === undefined ? text : SEALED + (await codec.encrypt(text))
  return { scope, id, version, open: isPending(record), state, createdAt, updatedAt, data }
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
 * Adds a hash of the row's place and of the whole record. Whatever else changed a row, copied it, or
 * stored it under another server or account, could make its order be bought twice.
 */
function withSum(scope: string, id: string, json: string): string {
  return `${json.slice(0, -1)},"sum":${hashOf(scope, id, json)}}`
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
    const json = `${text.slice(0, text.lastIndexOf(',"sum":'))}}`
    const isWhole = withSum(scope, id, json) === text
    return isWhole && content.state === row.state ? { ...content, version, createdAt, updatedAt } : 'corrupt'
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

export function unusableError(why: Unusable): StoreError {
  const { what, next } = UNUSABLE[why]
  return new StoreError(
    `${what} This call did not send that order; an earlier call may have charged the wallet. ${next}`,
    { charged: 'unknown' },
  )
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
