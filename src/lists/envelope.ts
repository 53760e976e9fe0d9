import { defined, isObject } from '../defined.ts'
import type { Endpoint } from '../http/call.ts'
import { type Checked, wrong } from '../schemas/check.ts'
import { type ListEnvelope, readEnvelope } from '../schemas/list.ts'
import type { RowReader } from '../schemas/parse.ts'
import type { FetchedPage } from './prefetch.ts'

export interface ListEndpoint<T> extends RowReader<T> {
  readonly endpoint: Endpoint
  readonly path: string
  /** Name of the field that identifies a row. */
  readonly identifier: string
}

export type Rows<T> = Omit<FetchedPage<T>, 'info'>

export function envelopeOf(
  body: unknown,
  identifier: string,
  listEnvelope: ((body: unknown) => ListEnvelope) | undefined,
): Checked<ListEnvelope> {
  if (listEnvelope === undefined) return readEnvelope(body, identifier)
  let envelope: Partial<ListEnvelope> | null | undefined
  try {
    envelope = listEnvelope(body)
  } catch {
    return wrong('made the option listEnvelope throw')
  }
  const items: unknown = envelope?.items
  if (!Array.isArray(items)) return wrong('made the option listEnvelope return no array of items')
  const total = Number.isSafeInteger(envelope?.total) ? envelope?.total : undefined
  const hasMore = typeof envelope?.hasMore === 'boolean' ? envelope.hasMore : undefined
  // Copies the items, because `listEnvelope` may reuse its array for the next page.
  return { value: { items: Array.from<unknown>(items), ...defined({ total, hasMore }) } }
}

export function parseRows<T>(
  { items, total, hasMore }: ListEnvelope,
  { parse, allRight, identifier }: ListEndpoint<T>,
): Checked<Rows<T>> | Promise<Checked<Rows<T>>> {
  const rowsOf = (values: readonly T[]): Checked<Rows<T>> => {
    // Reads the ids from the raw rows, because the caller's schema may have renamed the field.
    const ids = items.map((row) => String(isObject(row) && row[identifier]))
    return { value: { items: values, ids, total, hasMore } }
  }
  if (allRight(items)) return rowsOf(items)
  const parsed: (Checked<T> | Promise<Checked<T>>)[] = []
  for (const row of items) {
    const checked = parse(row)
    parsed.push(checked)
    // Stops at the first invalid row: the issues of a million rows would take seconds and gigabytes
    // of memory.
    if (!(checked instanceof Promise) && 'issues' in checked) break
  }
  const whole = (rows: readonly Checked<T>[]): Checked<Rows<T>> => {
    const values: T[] = []
    for (const row of rows) {
      if ('issues' in row) {
        const at = (path: string): string => `[${values.length}]${/^($|\[)/.test(path) ? '' : '.'}${path}`
        return { issues: row.issues.map(({ path, message }) => ({ path: at(path), message })) }
      }
      values.push(row.value)
    }
    return rowsOf(values)
  }
  const ready = (row: Checked<T> | Promise<Checked<T>>): row is Checked<T> => !(row instanceof Promise)
  return parsed.every(ready) ? whole(parsed) : Promise.all(parsed).then(whole)
}
