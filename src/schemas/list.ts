import { bare, defined, isObject } from '../defined.ts'
import { anyObject, type Checked, wrong } from './check.ts'
import type { Order } from './order.ts'
import type { Service } from './service.ts'

/**
 * The content of a list response, whatever its envelope: the rows, and facts about the rest of the
 * list.
 */
export interface ListEnvelope {
  /** The rows of the page. */
  readonly items: unknown[]
  /** Number of rows in the whole list. */
  readonly total?: number
  /** True if more rows follow. */
  readonly hasMore?: boolean
}

/**
 * Response of `GET /v1/orders`. The API document does not show the envelope, so only the rows have
 * a type.
 */
export type OrderListResponse = readonly Order[] | { readonly [field: string]: unknown }

/**
 * Response of `GET /v1/services`. The API document does not show the envelope, so only the rows
 * have a type.
 */
export type ServiceListResponse = readonly Service[] | { readonly [field: string]: unknown }

const TOTALS = ['total', 'totalCount', 'total_count']
const MORE = ['hasMore', 'has_more', 'hasNext', 'has_next']
const PAGING = ['pagination', 'paging', 'meta', 'page', 'pageInfo', 'page_info']

/**
 * Finds the rows of a list response: the response itself if it is an array, otherwise its only
 * array property. If several properties are arrays, chooses the array whose elements all have the
 * identifier; if all those arrays are empty, the page is empty, unless objects in the response contain
 * rows. If no array or more than one qualifies, returns an issue instead of a guess.
 */
export function readEnvelope(body: unknown, identifier: string): Checked<ListEnvelope> {
  if (Array.isArray(body)) return { value: { items: body } }
  const fields = anyObject(body)
  if (fields === undefined) return wrong('is neither an array nor an object')
  const arrays = Object.values(fields).filter((value) => Array.isArray(value))
  const isEmpty = arrays.every((array) => array.length === 0)
  // The rows may be further down, beside an empty array of errors.
  if (arrays.length === 0 || (isEmpty && hasRows(fields, 4)))
    return wrong('has no array of rows; set the option listEnvelope to find them')
  // An empty array beside one without identifiers is not taken for the end of the list: the other
  // array may contain the rows, and recovery may send an order that is missing from the list.
  const candidates =
    arrays.length === 1 || isEmpty
      ? arrays.slice(0, 1)
      : arrays.filter((array) => array.length > 0 && array.every(hasIdentifier))
  const [items] = candidates
  if (items === undefined || candidates.length > 1)
    return wrong('has several arrays; set the option listEnvelope to choose one')
  const own = bare(fields)
  const places = [own, ...PAGING.map((name) => own[name]).filter(isRecord)]
  const total = first(
    places,
    TOTALS,
    (value): value is number => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0,
  )
  const hasMore = first(places, MORE, (value) => typeof value === 'boolean')
  return { value: { items, ...defined({ total, hasMore }) } }

  function hasRows(value: unknown, depth: number): boolean {
    if (Array.isArray(value)) return value.length > 0 && value.every(hasIdentifier)
    return depth > 0 && isRecord(value) && Object.values(value).some((inner) => hasRows(inner, depth - 1))
  }

  function hasIdentifier(row: unknown): boolean {
    return isRecord(row) && Object.hasOwn(row, identifier) && typeof row[identifier] === 'string'
  }
}

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

function first<T>(
  places: readonly Readonly<Record<string, unknown>>[],
  names: readonly string[],
  fits: (value: unknown) => value is T,
): T | undefined {
  for (const place of places)
    for (const name of names) {
      const value = Object.hasOwn(place, name) ? place[name] : undefined
      if (fits(value)) return value
    }
  return undefined
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && !Array.isArray(value)
}
