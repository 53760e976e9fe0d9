import { StoreError } from '../../errors/classes.ts'
import type { RowPage, StoredRow } from '../store.ts'
import type { Row } from './session.ts'
import { fromStored } from './text.ts'

export function toRow(scope: string, found: Row): StoredRow {
  const { id, version, open, state, created_at: createdAt, updated_at: updatedAt, data } = found
  if (
    typeof id !== 'string' ||
    (open !== 'true' && open !== 'false') ||
    (state !== 'open' && state !== 'created' && state !== 'rejected') ||
    typeof data !== 'string'
  ) {
    throw new StoreError(
      'The database returned a row that the order store did not write. ' +
        'Check that nothing else writes to its tables.',
    )
  }
  return {
    scope,
    id: fromStored(id),
    version: Number(version),
    open: open === 'true',
    state,
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
    data: fromStored(data),
  }
}

export function toPage(
  scope: string,
  found: readonly Row[],
  limit: number,
  cursor: (last: StoredRow) => string,
): RowPage {
  const rows = found.slice(0, limit).map((row) => toRow(scope, row))
  const last = rows.at(-1)
  return found.length <= limit || last === undefined ? { rows } : { rows, next: cursor(last) }
}

export function fromCursor(after: string): readonly [updatedAt: string, id: string] {
  const [, updatedAt, id] = /^(\d{1,16}) (.*)$/s.exec(after) ?? []
  if (updatedAt === undefined || id === undefined) {
    throw new StoreError('The option `after` must be the `next` of a page that this store returned.')
  }
  return [updatedAt, id]
}

/**
 * Rounds a time up, and limits it to the safe integers. Every stored time is a safe integer, so
 * comparisons have the same result.
 */
export function wholeTime(time: number): string {
  if (Number.isNaN(time))
    throw new StoreError('A time passed to PostgresStore is NaN. Pass milliseconds since 1970.')
  return String(Math.min(Math.max(Math.ceil(time), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER))
}
