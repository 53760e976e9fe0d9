/** The lists of the service: requests their pages, and reads the rows. */
import type { ListOptions, ListOrdersParams } from '../call-options.ts'
import { isObject } from '../defined.ts'
import type { Charged } from '../errors/classes.ts'
import type { CallSettings, Connection, Endpoint } from '../http/call.ts'
import { queryString } from '../http/path.ts'
import { READ_PAGE, read } from '../http/request.ts'
import type { Lifetime } from '../lifetime.ts'
import type { Checked } from '../schemas/check.ts'
import { envelopeOf, type ListEnvelope } from '../schemas/list.ts'
import type { Reader } from '../schemas/shape.ts'
import { callSettings, readArguments } from '../settings/arguments.ts'
import { Pages } from './pages.ts'
import type { FetchedPage, FetchPage } from './prefetch.ts'

export interface ListEndpoint<T> extends Reader<T> {
  readonly endpoint: Endpoint
  readonly path: string
  /** Name of the field that identifies a row. */
  readonly identifier: string
}

type Rows<T> = Omit<FetchedPage<T>, 'info'>

interface ListContext {
  readonly connection: Connection
  readonly lifetime: Pick<Lifetime, 'check'>
  readonly listEnvelope: ((body: unknown) => ListEnvelope) | undefined
}

interface ListCall {
  readonly settings: CallSettings
  readonly sourceSystem: string | undefined
  /** What errors report about the wallet, for a search for an order. */
  readonly charged: Charged | undefined
}

export function listPages<T>(
  context: ListContext & { readonly defaults: CallSettings },
  list: ListEndpoint<T>,
  { limit, offset = 0, sourceSystem }: ListOrdersParams,
  options: ListOptions | undefined,
): Pages<T> {
  const { prefetch, ...call } = readArguments.listCall(options)
  const settings = callSettings(context.defaults, call)
  const fetch = pageFetcher(context, list, { settings, sourceSystem, charged: undefined })
  return new Pages<T>(fetch, { offset, limit, prefetch, signal: settings.signal })
}

export function pageFetcher<T>(
  { connection, lifetime, listEnvelope }: ListContext,
  { endpoint, path, ...rows }: ListEndpoint<T>,
  { settings, sourceSystem, charged }: ListCall,
): FetchPage<T> {
  return async ({ offset, limit, signal }) => {
    lifetime.check()
    const { value, info } = await read<Rows<T>>(connection, {
      ...READ_PAGE,
      endpoint,
      path,
      query: queryString({ limit, offset: offset === 0 ? undefined : offset, sourceSystem }),
      settings: { ...settings, signal },
      charged,
      parse: (body) => {
        const found = envelopeOf(body, rows.identifier, listEnvelope)
        return 'issues' in found ? found : parseRows(found.value, rows)
      },
    })
    return { ...value, info }
  }
}

function parseRows<T>(
  { items, total, hasMore }: ListEnvelope,
  { parse, allRight, identifier }: Omit<ListEndpoint<T>, 'endpoint' | 'path'>,
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
