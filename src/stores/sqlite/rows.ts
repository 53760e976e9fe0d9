import { StoreError } from '../../errors/classes.ts'
import type { RowPage, StoredRow } from '../store.ts'

export function toRow(scope: string, found: unknown, utf8: TextDecoder): StoredRow {
  const row: Readonly<Record<string, unknown>> =
    typeof found === 'object' && found !== null ? { ...found } : {}
  const { id, state, data } = row
  if (
    typeof id !== 'string' ||
    (state !== 'open' && state !== 'created' && state !== 'rejected') ||
    !(data instanceof Uint8Array)
  ) {
    throw new StoreError(
      'The database returned a row that the order store did not write. Check that nothing else ' +
        'writes to its tables. If you passed a connection, it must return rows as objects.',
    )
  }
  return {
    scope,
    id,
    // The caller's connection may return integers as BigInt.
    version: Number(row['version']),
    open: Number(row['open']) === 1,
    state,
    createdAt: Number(row['created_at']),
    updatedAt: Number(row['updated_at']),
    data: utf8.decode(data),
  }
}

export function toPage(
  found: readonly StoredRow[],
  limit: number,
  cursor: (last: StoredRow) => string,
): RowPage {
  if (found.length <= limit) return { rows: found }
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  return last === undefined ? { rows } : { rows, next: cursor(last) }
}

export function fromCursor(after: string): readonly [updatedAt: number, id: string] {
  const space = after.indexOf(' ')
  const updatedAt = Number(after.slice(0, space))
  if (space < 1 || Number.isNaN(updatedAt)) {
    throw new StoreError('The option `after` must be the `next` of a page that this store returned.')
  }
  return [updatedAt, after.slice(space + 1)]
}
