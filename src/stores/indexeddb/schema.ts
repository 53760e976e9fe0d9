import type { Values } from '../engine.ts'

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
}

export function createSchema(database: IDBDatabase, mark: string): void {
  const rows = database.createObjectStore(ROWS, { keyPath: ['scope', 'id'] })
  for (const [name, keyPath] of Object.entries(INDEXES)) rows.createIndex(name, [...keyPath])
  database.createObjectStore(MARKS).add(mark, MARK)
}

/**
 * Returns the row as it is stored.
 *
 * Each row has one extra field for an index, because an index key cannot be a boolean: `openId` is
 * a copy of `id` in open rows, and `closedState` a copy of `state` in closed rows.
 */
export function toIndexed(values: Values): object {
  const { scope, id, version, open, state, createdAt, updatedAt, data } = values
  const row = { scope, id, version, open, state, createdAt, updatedAt, data }
  return open ? { ...row, openId: id } : { ...row, closedState: state }
}
