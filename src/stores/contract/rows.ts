import type { ListRowsOptions, OrderStore, PruneOptions, RowPage, StoredRow } from '../store.ts'
import { seeded } from './seeded.ts'

export const SCOPE = 'https://api.example.com shop-eu'

export const WRITTEN_AT = 1_700_000_000_000

/** Prunes every closed row, whatever its age. */
export const EVERYTHING: PruneOptions = {
  createdBefore: Number.MAX_SAFE_INTEGER,
  rejectedBefore: Number.MAX_SAFE_INTEGER,
}

const MAX_PAGES = 2_000

/** The UUIDs do not sort in the order of their numbers, so insertion order and id order differ. */
function rowId(number: number): string {
  const next = seeded(number * 2_654_435_761)
  const hex = (length: number): string => Array.from({ length }, () => next(16).toString(16)).join('')
  const ordinal = number.toString(16).padStart(12, '0')
  return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${ordinal}`
}

export function makeRow(number: number, fields: Partial<StoredRow> = {}): StoredRow {
  return {
    scope: SCOPE,
    id: rowId(number),
    version: 1,
    open: true,
    state: 'open',
    createdAt: WRITTEN_AT,
    updatedAt: WRITTEN_AT,
    data: `{"number":${number}}`,
    ...fields,
  }
}

export function makeRows(count: number, fields: Partial<StoredRow> = {}): StoredRow[] {
  return Array.from({ length: count }, (_, index) => makeRow(index + 1, fields))
}

export function nextVersion(row: StoredRow, fields: Partial<StoredRow> = {}): StoredRow {
  return { ...row, version: row.version + 1, updatedAt: row.updatedAt + 1, ...fields }
}

export async function insertAll(store: OrderStore, rows: readonly StoredRow[]): Promise<void> {
  const results = await Promise.all(rows.map((row) => store.insert(row)))
  const refused = results.findIndex((result) => !result.inserted)
  if (refused >= 0)
    throw new Error(`insert() of the new row ${rows[refused]?.id} resolved to inserted: false`)
}

export async function mustUpdate(store: OrderStore, row: StoredRow): Promise<void> {
  if (await store.update(row, row.version - 1)) return
  throw new Error(
    `update() to version ${row.version} resolved to false although the row has version ${row.version - 1}`,
  )
}

export async function walk(
  readPage: (options: ListRowsOptions) => Promise<RowPage>,
  limit: number,
  between: (pagesRead: number) => Promise<void> = async () => {},
): Promise<StoredRow[]> {
  const rows: StoredRow[] = []
  let after: string | undefined
  for (let pagesRead = 1; pagesRead <= MAX_PAGES; pagesRead++) {
    const page = await readPage(after === undefined ? { limit } : { after, limit })
    if (page.rows.length > limit) throw new Error(`a page with limit ${limit} has ${page.rows.length} rows`)
    rows.push(...page.rows)
    if (page.next === undefined) return rows
    after = page.next
    await between(pagesRead)
  }
  throw new Error(`\`next\` is still set on page ${MAX_PAGES} with limit ${limit}`)
}
