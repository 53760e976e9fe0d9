/** Reads the service's whole list of orders. */
import { defined, isObject, ownValue } from '../../defined.ts'
import type { CallSettings, Endpoint } from '../../http/call.ts'
import { queryString } from '../../http/path.ts'
import { READ_PAGE, read } from '../../http/request.ts'
import { DEFAULT_LIMIT } from '../../lists/prefetch.ts'
import { Progress, saysEnd } from '../../lists/walk.ts'
import { checkNow, wrong } from '../../schemas/check.ts'
import { envelopeOf } from '../../schemas/list.ts'
import { type Order, orderSchema } from '../../schemas/order.ts'
import { type Echo, echoOf } from '../protocol/outcome.ts'
import { ORDERS_PATH, type OrderContext } from '../record/context.ts'
import { type JournalRecord, recordFacts } from '../record/record.ts'

export interface ListedOrder extends Echo {
  readonly id: string
  readonly amount?: unknown
  /** The whole order, if it matches the schema. */
  readonly order?: Order
}

interface ScanOptions {
  readonly operation: string
  readonly settings: CallSettings
  /** What the error of a read reports about the wallet. */
  readonly charged: 'unknown' | undefined
  readonly sourceSystem?: string | undefined
  /** The order of a create(), which refuses unreadable rows, and completes even if the client is closed. */
  readonly record?: JournalRecord
}

const MOST_OVERLAP = 10

/**
 * Yields pages. Assumes nothing about the order of rows, the envelope, or whether the service respects
 * `limit`. Pages overlap, because rows may move during the scan: if a row was removed, the next page
 * would otherwise skip a row. Ids may repeat.
 */
export async function* scanOrders(
  context: OrderContext,
  { operation, settings, charged, sourceSystem, record }: ScanOptions,
): AsyncGenerator<readonly ListedOrder[], void, undefined> {
  const endpoint: Endpoint = { operation, method: 'GET', permission: 'orders:read' }
  const limit = DEFAULT_LIMIT
  const seen = new Set<string>()
  const progress = new Progress()
  let offset = 0
  let frontier = 0
  let isWhole = false
  while (true) {
    if (record === undefined) context.lifetime.check('unknown')
    const { value, info } = await read(context.connection, {
      ...READ_PAGE,
      endpoint,
      path: ORDERS_PATH,
      query: queryString({ limit, offset, sourceSystem }),
      settings,
      charged,
      names: recordFacts(record),
      parse: (body) => {
        const found = envelopeOf(body, 'id', context.listEnvelope)
        if (record === undefined || !('value' in found)) return found
        const { items, hasMore } = found.value
        if (items.length === 0 && hasMore) return wrong('has no rows, but announces more')
        return items.every(readRow) ? found : wrong('has a row without an id that is a string')
      },
    })
    const { items, total, hasMore } = value
    const received = items.length
    if (received === 0) return
    const page = items.map(readRow).filter((listed) => listed !== undefined)
    const known = seen.size
    for (const { id } of page) seen.add(id)
    const isNew = seen.size > known
    // Believe only the first page: a service that ignores `offset` may compute the end from it.
    if (offset === 0) isWhole = saysEnd({ end: received, received, asked: limit, total, hasMore })
    yield page
    // Do not count a page that lies within the overlap: it has no new rows even if the service
    // respects `offset`.
    if (isNew || offset + received > frontier) {
      progress.take(
        isNew,
        page.map(({ id }) => id),
      )
      // Stop at an announced end only after two consecutive pages without new rows.
      if (progress.stale > 1 && isWhole) return
      // A service that limits `offset` repeats a page, and announces more. create() must not believe it.
      if (progress.isOver(info, charged ?? 'no') && !(record && hasMore)) return
    }
    frontier = Math.max(frontier, offset + received)
    offset += advanceBy(received)
  }
}

export function advanceBy(received: number): number {
  return received - Math.min(MOST_OVERLAP, Math.floor(received / 4))
}

function readRow(row: unknown): ListedOrder | undefined {
  const id = ownValue(row, 'id')
  if (!isObject(row) || typeof id !== 'string') return undefined
  const checked = checkNow(orderSchema, row)
  const order = 'value' in checked ? checked.value : undefined
  return { id, amount: ownValue(row, 'amount'), ...defined({ order, ...echoOf(row) }) }
}
