import { StoreError } from '../errors/classes.ts'
import type { RowPage, StoredRow } from './store.ts'

/** The columns of a row, as a database returns them. */
export interface Columns {
  readonly id?: unknown
  readonly version?: unknown
  readonly open?: unknown
  readonly state?: unknown
  readonly createdAt?: unknown
  readonly updatedAt?: unknown
  readonly data?: unknown
}

export function toRow(scope: string, columns: Columns): StoredRow {
  const { id, version, open, state, createdAt, updatedAt, data } = columns
  if (
    typeof id !== 'string' ||
    typeof version !== 'number' ||
    (state !== 'open' && state !== 'created' && state !== 'rejected') ||
    typeof createdAt !== 'number' ||
    typeof updatedAt !== 'number' ||
    typeof data !== 'string'
  ) {
    throw new StoreError(
      'The database returned a row that the order store did not write. ' +
        'Check that nothing else writes to its tables.',
    )
  }
  return { scope, id, version, open: Boolean(open), state, createdAt, updatedAt, data }
}

/** `found` has one row beyond the limit if there is a next page. */
export function toPage(
  found: readonly StoredRow[],
  limit: number,
  cursor: (last: StoredRow) => string,
): RowPage {
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  return found.length <= limit || last === undefined ? { rows } : { rows, next: cursor(last) }
}

/** The cursor of `list`: rows written at the same time sort by id. */
export function listCursor({ updatedAt, id }: StoredRow): string {
  return `${updatedAt} ${id}`
}

export function fromListCursor(after: string): readonly [updatedAt: number, id: string] {
  const [, updatedAt, id] = /^(\d{1,16}) (.*)$/s.exec(after) ?? []
  if (updatedAt === undefined || id === undefined) {
    throw new StoreError('The option `after` must be the `next` of a page that this store returned.')
  }
  return [Number(updatedAt), id]
}
