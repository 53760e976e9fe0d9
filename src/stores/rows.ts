import { StoreError } from '../errors/classes.ts'
import type { StoredRow } from './store.ts'
import { toText } from './strings.ts'

/**
 * The columns of a row, as a database returns them: strings may be bytes, numbers may be strings, and
 * a boolean may be a number.
 */
export type Columns = Readonly<Partial<Record<Exclude<keyof StoredRow, 'scope'>, unknown>>>

export function toRow(scope: string, columns: Columns): StoredRow {
  const [id, state, data] = [columns.id, columns.state, columns.data].map(toText)
  const numbers = [columns.version, columns.open, columns.createdAt, columns.updatedAt]
  const [version, open, createdAt, updatedAt] = numbers.map(toNumber)
  if (
    typeof id !== 'string' ||
    typeof version !== 'number' ||
    (open !== 0 && open !== 1) ||
    (state !== 'open' && state !== 'created' && state !== 'rejected') ||
    typeof createdAt !== 'number' ||
    typeof updatedAt !== 'number' ||
    typeof data !== 'string'
  ) {
    throw foreignRow()
  }
  return { scope, id, version, open: open === 1, state, createdAt, updatedAt, data }
}

function toNumber(value: unknown): unknown {
  if (typeof value === 'string' && /^\d+$/.test(value)) return Number(value)
  return typeof value === 'boolean' ? Number(value) : value
}

export function foreignRow(): StoreError {
  return new StoreError(
    'The order store contains a row that it did not write. Check that nothing else writes to its data, ' +
      'and that every process runs the same version of customer-ordering-sdk.',
  )
}
