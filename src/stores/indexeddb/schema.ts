import { isObject } from '../../defined.ts'
import { StoreError } from '../../errors/classes.ts'
import type { StoredRow } from '../store.ts'

/** Every change of the schema increments this number, and drops nothing. */
export const SCHEMA_VERSION = 1

export const ROWS = 'rows'

/**
 * The object store `marks` has one entry, a random string. A different string shows that the
 * database was deleted and created again.
 */
export const MARKS = 'marks'
export const MARK = 'mark'

/**
 * Indexes of {@link ROWS}. Entries of `open` and `list` are unique, as cursors require. An index
 * omits rows that lack an indexed field, so `open` contains no closed rows, and `closed` no open
 * rows.
 */
const INDEXES = {
  open: ['scope', 'openId'],
  list: ['scope', 'updatedAt', 'id'],
  closed: ['scope', 'closedState', 'updatedAt'],
} as const

export type RowIndex = keyof typeof INDEXES

/**
 * A stored row. Each row has one extra field for an index, because an index key cannot be a
 * boolean.
 */
interface IndexedRow extends StoredRow {
  /** A copy of `id`. Only open rows have this field. */
  readonly openId?: string
  /** A copy of `state`. Only closed rows have this field. */
  readonly closedState?: string
}

export function createSchema(database: IDBDatabase, mark: string): void {
  const rows = database.createObjectStore(ROWS, { keyPath: ['scope', 'id'] })
  for (const [name, keyPath] of Object.entries(INDEXES)) rows.createIndex(name, [...keyPath])
  database.createObjectStore(MARKS).add(mark, MARK)
}

export function toIndexed({
  scope,
  id,
  version,
  open,
  state,
  createdAt,
  updatedAt,
  data,
}: StoredRow): IndexedRow {
  const row = { scope, id, version, open, state, createdAt, updatedAt, data }
  return open ? { ...row, openId: id } : { ...row, closedState: state }
}

export function toRow(found: unknown): StoredRow {
  if (isObject(found)) {
    const { scope, id, version, open, state, createdAt, updatedAt, data } = found
    if (
      typeof scope === 'string' &&
      typeof id === 'string' &&
      typeof version === 'number' &&
      typeof open === 'boolean' &&
      (state === 'open' || state === 'created' || state === 'rejected') &&
      typeof createdAt === 'number' &&
      typeof updatedAt === 'number' &&
      typeof data === 'string'
    ) {
      return { scope, id, version, open, state, createdAt, updatedAt, data }
    }
  }
  throw new StoreError(
    'The order store in IndexedDB contains a value that it did not write. Check that nothing else ' +
      'writes to its database, and that every page runs the same version of customer-ordering-sdk.',
  )
}
