/** Rows and pages of a list for tests of pagination. */
import type { FetchedPage } from '../../../src/lists/prefetch.ts'
import type { ResponseInfo } from '../../../src/response-info.ts'

export interface Row {
  readonly id: string
}

export const info: ResponseInfo = { headers: new Headers(), attempts: 1, durationMs: 0, status: 200 }

export const rows = (count: number, from = 0): Row[] =>
  Array.from({ length: count }, (_, i) => ({ id: `r${from + i}` }))

export const idsOf = (items: readonly Row[]): string[] => items.map(({ id }) => id)

export const fetched = (items: readonly Row[], more: Partial<FetchedPage<Row>> = {}): FetchedPage<Row> => ({
  items,
  ids: idsOf(items),
  info,
  ...more,
})
