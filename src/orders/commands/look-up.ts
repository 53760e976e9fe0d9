/** Finds orders at the service: by id, or by reference in the list. */
import type { EchoedField } from '../../call-options.ts'
import { defined, isObject, ownValue } from '../../defined.ts'
import { type AnyCustomerOrderingError, type ErrorFacts, UnresolvedOrderError } from '../../errors/classes.ts'
import { statusRow } from '../../errors/statuses.ts'
import type { CallSettings, Endpoint } from '../../http/call.ts'
import { Deadline } from '../../http/deadline.ts'
import { queryString, segment } from '../../http/path.ts'
import { READ_ITEM, READ_PAGE, type Reply, read } from '../../http/request.ts'
import { DEFAULT_LIMIT } from '../../lists/prefetch.ts'
import { Progress, saysEnd } from '../../lists/walk.ts'
import { type Checked, checkNow, wrong } from '../../schemas/check.ts'
import { envelopeOf } from '../../schemas/list.ts'
import { type Order, orderSchema } from '../../schemas/order.ts'
import { withId } from '../../schemas/shape.ts'
import { type Asked, differencesFound, type Echo, echoOf, sourceSystemOf } from '../protocol/outcome.ts'
import { ORDERS_PATH, type OrderContext } from '../record/context.ts'
import type { FoundRecord } from '../record/journal.ts'
import { type JournalRecord, publicRecord, recordFacts } from '../record/record.ts'
import { proveCreated } from '../sending/send.ts'
import { type AttentionReason, failureOf, outcomeOf, type RecoveryOutcome } from './recovery-outcome.ts'

/** A record whose request is not safe to send. */
export interface Lookup {
  readonly found: FoundRecord
  readonly reason: AttentionReason
  /** The request, if the record has none to compare with. */
  readonly body?: string
}

interface LookupOptions extends Omit<ScanOptions, 'sourceSystem'> {
  /** How often the list is read: one read can miss rows that move during the read. */
  readonly sweeps: number
  /** Default: no limit. */
  readonly maxPages?: number
}

export const MAX_PAGES = 200
/** Milliseconds for which a record is not looked up again after a lookup stopped at `MAX_PAGES`. */
const CUT_PAUSE = 15 * 60 * 1000
/** Milliseconds to store what a look-up has found. */
const STORE_TIME = 5000

/** @param asked known facts that the order must not contradict */
export async function readOrder(
  context: OrderContext,
  operation: string,
  orderId: string,
  charged: 'unknown' | 'yes',
  settings: CallSettings,
  asked?: Asked,
): Promise<Reply<Order>> {
  return await read(context.connection, {
    ...READ_ITEM,
    endpoint: { operation, method: 'GET', permission: 'orders:read', missing: 'order' },
    path: `${ORDERS_PATH}/${segment('orderId', orderId)}`,
    settings,
    charged,
    parse: withId('id', orderId, (body) => readable(body, asked)),
  })
}

function readable(body: unknown, asked: Asked | undefined): Checked<Order> {
  const checked = checkNow(orderSchema, body)
  if (!('value' in checked) || asked === undefined) return checked
  const { value } = checked
  const [field] = differencesFound(asked, { ...echoOf(value), id: value.id })
  return field === undefined ? checked : wrong('is not what was sent', field)
}

export async function lookUpById(
  context: OrderContext,
  operation: string,
  found: FoundRecord,
  settings: CallSettings,
): Promise<RecoveryOutcome> {
  const orderId = found.record.order?.id ?? ''
  try {
    const once = { ...settings, maxRetries: 0 }
    const { value: order } = await readOrder(context, operation, orderId, 'yes', once, found.record)
    const { record } = await proveCreated(context, found, { orderId: order.id, order }, storeTime(context))
    return outcomeOf(record, { order })
  } catch (error) {
    return outcomeOf(found.record, { error: failureOf(error) })
  }
}

/**
 * A listed order proves a charge if every field that it repeats fits the record. If only the reference
 * fits, the order is doubtful: another integration of the same customer may use the same references.
 * A missing order proves nothing: the list may lag.
 */
export async function* lookUp(
  context: OrderContext,
  lookups: readonly Lookup[],
  { sweeps, maxPages, ...options }: LookupOptions,
): AsyncGenerator<RecoveryOutcome, void, undefined> {
  const { runtime, reporter } = context.connection
  // Kept in memory, because writing a record could make a concurrent call's write fail.
  const { cuts } = context.journal.shared
  const startedAt = runtime.monotonic()
  for (const [id, time] of cuts) if (startedAt - time >= CUT_PAUSE) cuts.delete(id)
  const wanted = new Map<string, Lookup>()
  for (const lookup of lookups) {
    const { externalOrderId } = lookup.found.record
    if (externalOrderId !== undefined && !cuts.has(lookup.found.id)) wanted.set(externalOrderId, lookup)
  }
  const doubts = new Map<string, UnresolvedOrderError>()
  let looked = sweeps > 0
  let error: AnyCustomerOrderingError | undefined
  const scan = { ...options, sourceSystem: commonSourceSystem([...wanted.values()]) }
  try {
    for (let sweep = 0; sweep < sweeps && wanted.size > 0; sweep++) {
      let pages = 0
      for await (const page of scanOrders(context, scan)) {
        for (const listed of page) {
          const { externalOrderId = '' } = listed
          const lookup = wanted.get(externalOrderId)
          if (lookup === undefined) continue
          const { found, body } = lookup
          const differs = differencesFound({ ...found.record, ...defined({ body }) }, listed)
          if (differs.length > 0) {
            doubts.set(externalOrderId, doubtError(found.record, listed.id, differs))
            continue
          }
          const proof = { orderId: listed.id, order: listed.order }
          const { record } = await proveCreated(context, found, proof, storeTime(context))
          wanted.delete(externalOrderId)
          yield outcomeOf(record, listed)
        }
        if (wanted.size === 0 || ++pages === maxPages) break
      }
      if (pages !== maxPages) continue
      for (const { found } of wanted.values()) cuts.set(found.id, runtime.monotonic())
      const fields = { pages, orders: wanted.size, pauseMs: CUT_PAUSE }
      const what = 'the lookup reached its page limit; the rest of the order list was not searched'
      reporter.log('warn', what, fields)
      break
    }
  } catch (caught) {
    error = failureOf(caught)
    // Stop here if the read failed because the client was closed.
    options.checkOpen()
    const { code, status } = error
    looked =
      code !== 'connection' &&
      code !== 'timeout' &&
      (status === undefined || statusRow(status).repeat === 'none')
  }
  for (const { found, reason } of lookups) {
    const { externalOrderId = '' } = found.record
    const record = publicRecord(found.record)
    const doubt = doubts.get(externalOrderId)
    if (cuts.has(found.id))
      yield { outcome: 'needs_attention', record, reason, error: cutError(found.record) }
    else if (externalOrderId === '') yield { outcome: 'needs_attention', record, reason }
    else if (!wanted.has(externalOrderId)) continue
    else if (!looked) yield { outcome: 'still_open', record, ...defined({ error }) }
    else if (doubt === undefined) yield { outcome: 'needs_attention', record, reason, ...defined({ error }) }
    else yield { outcome: 'needs_attention', record, reason: 'doubtful', error: doubt }
  }
}

/** The list has an order with the record's reference and other fields. */
function doubtError(
  record: JournalRecord,
  orderId: string,
  differs: readonly EchoedField[],
): UnresolvedOrderError {
  const despite = differs.map((field) => `'${field}'`).join(', ')
  return new UnresolvedOrderError(
    `The service lists order ${orderId} with this reference, but with another ${differs.join(' and ')}, so it may be an order of another integration. If it is this order, the wallet was charged: settle it with orders.resolve(name, { as: 'created', orderId, despite: [${despite}] }).`,
    { ...mayBeCharged(record), orderId },
  )
}

function cutError(record: JournalRecord): UnresolvedOrderError {
  return new UnresolvedOrderError(
    `The lookup stopped after ${MAX_PAGES} pages of GET ${ORDERS_PATH} without finding the order, which may be on a later page. If it exists, the wallet was charged: find the order at the service, then settle it with orders.resolve().`,
    mayBeCharged(record),
  )
}

/** What the list shows, or may show, counts for more than an earlier refusal. */
function mayBeCharged(record: JournalRecord): ErrorFacts {
  return { ...recordFacts(record), charged: record.state === 'created' ? 'yes' : 'unknown' }
}

/** A request's own source system narrows the list, if all requests have the same one. */
function commonSourceSystem(lookups: readonly Lookup[]): string | undefined {
  const systems = new Set(lookups.map(({ found }) => sourceSystemOf(found.record)))
  return systems.size === 1 ? [...systems][0] : undefined
}

function storeTime({ connection }: OrderContext): Deadline {
  return new Deadline(connection.runtime, STORE_TIME, undefined)
}

export interface ListedOrder extends Echo {
  readonly id: string
  /** The whole order, if it matches the schema. */
  readonly order?: Order
}

interface ScanOptions {
  readonly operation: string
  readonly settings: CallSettings
  /** What the error of a read reports about the wallet. */
  readonly charged: 'unknown' | 'no' | undefined
  readonly sourceSystem?: string | undefined
  /** Called before each page. Throws once the client is closed. */
  readonly checkOpen: () => void
}

const MOST_OVERLAP = 10

/**
 * Yields pages. Assumes nothing about the order of rows, the envelope, or whether the service respects
 * `limit`. Pages overlap, because rows may move during the scan: if a row was removed, the next page
 * would otherwise skip a row. Ids may repeat.
 */
export async function* scanOrders(
  context: OrderContext,
  { operation, settings, charged, sourceSystem, checkOpen }: ScanOptions,
): AsyncGenerator<readonly ListedOrder[], void, undefined> {
  const endpoint: Endpoint = { operation, method: 'GET', permission: 'orders:read' }
  const limit = DEFAULT_LIMIT
  const seen = new Set<string>()
  const progress = new Progress()
  let offset = 0
  let frontier = 0
  let isWhole = false
  while (true) {
    checkOpen()
    const { value, info } = await read(context.connection, {
      ...READ_PAGE,
      endpoint,
      path: ORDERS_PATH,
      query: queryString({ limit, offset, sourceSystem }),
      settings,
      charged,
      parse: (body) => envelopeOf(body, 'id', context.listEnvelope),
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
      progress.take(isNew)
      // Stop at an announced end only after two consecutive pages without new rows.
      if ((progress.stale > 1 && isWhole) || progress.isOver(info, charged ?? 'no')) return
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
  return { id, ...defined({ order: 'value' in checked ? checked.value : undefined, ...echoOf(row) }) }
}
