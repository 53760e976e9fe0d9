import type { ListRowsOptions, OrderStore, PruneOptions, RowPage, StoredRow } from '../store.ts'
import { seeded } from './seeded.ts'

/** Scope of the rows, unless a case sets another scope. */
export const SCOPE = 'https://api.example.com shop-eu'

/** Time of the suite's rows, milliseconds since 1970. */
export const WRITTEN_AT = 1_700_000_000_000

/** Times that make `prune` remove every closed row. */
export const EVERYTHING: PruneOptions = {
  createdBefore: Number.MAX_SAFE_INTEGER,
  rejectedBefore: Number.MAX_SAFE_INTEGER,
}

/** Maximum number of pages to read. If a store returns more pages, the case fails. */
const MOST_PAGES = 2_000

/** Returns the UUID for a number. The UUIDs do not sort in the order of the numbers. */
export function rowId(number: number): string {
  const next = seeded(number * 2_654_435_761)
  const hex = (length: number): string => Array.from({ length }, () => next(16).toString(16)).join('')
  const ordinal = number.toString(16).padStart(12, '0')
  return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${ordinal}`
}

/** Returns the row with the given number: new and open, unless `fields` override that. */
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

/** Returns the rows with the numbers 1 to `count`. */
export function makeRows(count: number, fields: Partial<StoredRow> = {}): StoredRow[] {
  return Array.from({ length: count }, (_, index) => makeRow(index + 1, fields))
}

/** Returns the next version of a row. */
export function nextVersion(row: StoredRow, fields: Partial<StoredRow> = {}): StoredRow {
  return { ...row, version: row.version + 1, updatedAt: row.updatedAt + 1, ...fields }
}

/** Inserts the rows, and throws if a row already exists. */
export async function insertAll(store: OrderStore, rows: readonly StoredRow[]): Promise<void> {
  const results = await Promise.all(rows.map((row) => store.insert(row)))
  const refused = results.findIndex((result) => !result.inserted)
  if (refused >= 0)
    throw new Error(`insert() found row ${rows[refused]?.id} in a store that should not have it yet`)
}

/** Updates the row from its previous version, and throws if the store returns false. */
export async function mustUpdate(store: OrderStore, row: StoredRow): Promise<void> {
  if (await store.update(row, row.version - 1)) return
  throw new Error(
    `update() to version ${row.version} resolved to false although the row has version ${row.version - 1}`,
  )
}

/** Reads all pages. `between` runs after each page except the last. */
export async function walk(
  readPage: (options: ListRowsOptions) => Promise<RowPage>,
  limit: number,
  between: (pagesRead: number) => Promise<void> = async () => {},
): Promise<StoredRow[]> {
  const rows: StoredRow[] = []
  let after: string | undefined
  for (let pagesRead = 1; pagesRead <= MOST_PAGES; pagesRead++) {
    const page = await readPage(after === undefined ? { limit } : { after, limit })
    if (page.rows.length > limit) throw new Error(`a page with limit ${limit} has ${page.rows.length} rows`)
    rows.push(...page.rows)
    if (page.next === undefined) return rows
    after = page.next
    await between(pagesRead)
  }
  throw new Error(`there is still a next page after ${MOST_PAGES} pages of ${limit} rows`)
}
