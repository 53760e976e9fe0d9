/** The lists of the service: requests their pages, and reads the rows. */
import type { ListOptions, ListOrdersParams } from '../call-options.ts'
import { isObject } from '../defined.ts'
import type { CallSettings, Connection, Endpoint } from '../http/call.ts'
import { queryString } from '../http/path.ts'
import { READ_PAGE, read } from '../http/request.ts'
import type { Lifetime } from '../lifetime.ts'
import type { Checked } from '../schemas/check.ts'
import { envelopeOf, type ListEnvelope } from '../schemas/list.ts'
import type { Reader } from '../schemas/shape.ts'
import { callSettings, readArguments } from '../settings/arguments.ts'
import { Pages } from './pages.ts'
import type { FetchedPage } from './prefetch.ts'

export interface ListEndpoint<T> extends Reader<T> {
  readonly endpoint: Endpoint
  readonly path: string
  /** Name of the field that identifies a row. */
  readonly identifier: string
}

type Rows<T> = Omit<FetchedPage<T>, 'info'>

interface ListContext {
  readonly connection: Connection
  readonly lifetime: Lifetime
  readonly defaults: CallSettings
  readonly listEnvelope: ((body: unknown) => ListEnvelope) | undefined
}

export function listPages<T>(
  { connection, defaults, lifetime, listEnvelope }: ListContext,
  list: ListEndpoint<T>,
  { limit, offset = 0, sourceSystem }: ListOrdersParams,
  options: ListOptions | undefined,
): Pages<T> {
  const { prefetch, ...call } = readArguments.listCall(options)
  const settings = callSettings(defaults, call)
  return new Pages<T>(
    async (at) => {
      lifetime.check()
      const { value, info } = await read<Rows<T>>(connection, {
        ...READ_PAGE,
        endpoint: list.endpoint,
        path: list.path,
        query: queryString({ limit, offset: at.offset === 0 ? undefined : at.offset, sourceSystem }),
        settings: { ...settings, signal: at.signal },
        parse: (body) => {
          const found = envelopeOf(body, list.identifier, listEnvelope)
          return 'issues' in found ? found : parseRows(found.value, list)
        },
      })
      return { ...value, info }
    },
    { offset, limit, prefetch, signal: settings.signal },
  )
}

function parseRows<T>(
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
