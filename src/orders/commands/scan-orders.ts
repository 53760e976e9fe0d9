/** Reads the service's list of orders to its end. */
import { defined } from '../../defined.ts'
import type { CallSettings, Endpoint } from '../../http/call.ts'
import { queryString } from '../../http/path.ts'
import { READ_PAGE, read } from '../../http/request.ts'
import { Progress, saysEnd } from '../../lists/walk.ts'
import { checkNow } from '../../schemas/check.ts'
import { envelopeOf } from '../../schemas/list.ts'
import { type Order, orderSchema } from '../../schemas/order.ts'
import { ORDERS_PATH, type OrderContext } from '../record/context.ts'
import { type Echo, echoOf } from '../sending/evidence.ts'

export interface ListedOrder extends Echo {
  readonly id: string
  /** The whole order, if it matches the schema. */
  readonly order?: Order
}

export interface ScanOptions {
  readonly operation: string
  readonly settings: CallSettings
  /** What the error of a read reports about the wallet. */
  readonly charged: 'unknown' | 'no' | undefined
  readonly sourceSystem?: string | undefined
  /** Called before each page. Throws once the client is closed. */
  readonly checkOpen: () => void
  /** Default: no limit. */
  readonly maxPages?: number
  /** Called if the scan stops at `maxPages`. */
  readonly onCut?: () => void
}

/** The documented default of `limit` (API document), so that no service rejects it as too large. */
const PAGE_SIZE = 50
const MOST_OVERLAP = 10

/**
 * Assumes nothing about the order of rows, the envelope, or whether the service respects `limit`.
 * Pages overlap, because rows may move during the scan: if a row was removed, the next page would
 * otherwise skip a row. Ids may repeat.
 */
export async function* scanOrders(
  context: OrderContext,
  options: ScanOptions,
): AsyncGenerator<ListedOrder, void, undefined> {
  const endpoint: Endpoint = { operation: options.operation, method: 'GET', permission: 'orders:read' }
  const seen = new Set<string>()
  let offset = 0
  let frontier = 0
  const progress = new Progress()
  for (let page = 0; page < (options.maxPages ?? Number.POSITIVE_INFINITY); page++) {
    options.checkOpen()
    const { value: envelope, info } = await read(context.connection, {
      ...READ_PAGE,
      endpoint,
      path: ORDERS_PATH,
      query: queryString({ limit: PAGE_SIZE, offset, sourceSystem: options.sourceSystem }),
      settings: options.settings,
      charged: options.charged,
      parse: (body) => envelopeOf(body, 'id', context.listEnvelope),
    })
    const { items: rows, total, hasMore } = envelope
    if (rows.length === 0) return
    let unseen = 0
    for (const row of rows) {
      const listed = readRow(row)
      if (listed === undefined) continue
      if (!seen.has(listed.id)) unseen++
      seen.add(listed.id)
      yield listed
    }
    const received = rows.length
    // Do not count a page that lies within the overlap: it has no new rows even if the service
    // respects `offset`.
    if (unseen > 0 || offset + received > frontier) {
      progress.take(unseen > 0)
      const extent = { total, hasMore, end: Math.max(seen.size, received), received, asked: PAGE_SIZE }
      // Stop at an announced end only after two consecutive pages without new rows.
      if ((progress.stale > 1 && saysEnd(extent)) || progress.isOver(info, options.charged ?? 'no')) return
    }
    frontier = Math.max(frontier, offset + received)
    offset += advanceBy(received)
  }
  options.onCut?.()
}

export function advanceBy(received: number): number {
  return received - Math.min(MOST_OVERLAP, Math.floor(received / 4))
}

function readRow(row: unknown): ListedOrder | undefined {
  if (typeof row !== 'object' || row === null || !('id' in row) || typeof row.id !== 'string')
    return undefined
  const checked = checkNow(orderSchema, row)
  const order = !('value' in checked) ? undefined : checked.value
  return { id: row.id, ...defined({ order, ...echoOf(row) }) }
}
