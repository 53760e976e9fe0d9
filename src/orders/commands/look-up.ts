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
import { ORDERS_PATH, type OrderContext, SENDING } from '../record/context.ts'
import type { FoundRecord } from '../record/journal.ts'
import { isPending, type JournalRecord, publicRecord, recordFacts } from '../record/record.ts'
import { proveCreated } from '../sending/send.ts'
import { type AttentionReason, failureOf, outcomeOf, type RecoveryOutcome } from './recovery-outcome.ts'

/** A record whose request is not safe to send. */
export interface Lookup {
  readonly found: FoundRecord
  readonly reason: AttentionReason
}

/** How often the list is read: one read can miss rows that move during the read. */
const SWEEPS = 2
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
 * Searches for an order that was refused, but may have been bought by a hidden retry. Returns undefined
 * only if the whole list was read twice, shows references, and does not have the order's.
 *
 * @param body the request, which the record no longer has
 */
export async function findListed(
  context: OrderContext,
  record: JournalRecord,
  body: string,
  settings: CallSettings,
): Promise<ListedOrder | undefined> {
  const { operation } = SENDING.create
  // The record says that nothing was charged, and a failed look-up does not change that.
  const scan = { operation, settings, charged: 'no', checkOpen: () => {} } as const
  let pages = 0
  let isEmpty = true
  let hasReferences = false
  for (let sweep = 0; sweep < SWEEPS; sweep++)
    for await (const page of scanOrders(context, scan)) {
      for (const listed of page) {
        isEmpty = false
        if (listed.externalOrderId === undefined) continue
        hasReferences = true
        if (listed.externalOrderId !== record.externalOrderId) continue
        const differs = differencesFound({ ...record, body }, listed)
        if (differs.length > 0) throw doubtError(record, listed.id, differs)
        return listed
      }
      if (++pages === SWEEPS * MAX_PAGES) throw cutError(record)
    }
  if (!isEmpty && !hasReferences) throw unreferencedError(record)
  return undefined
}

/**
 * A listed order proves a charge if every field that it repeats fits the record. If only the reference
 * fits, the order is doubtful: another integration of the same customer may use the same references.
 * A missing order proves nothing: the list may lag.
 *
 * @param reachable false if the service was just found to be unreachable, so that nothing is read
 */
export async function* lookUp(
  context: OrderContext,
  lookups: readonly Lookup[],
  reachable: boolean,
  options: Pick<ScanOptions, 'operation' | 'settings' | 'checkOpen'>,
): AsyncGenerator<RecoveryOutcome, void, undefined> {
  const { journal, connection } = context
  const { runtime, reporter } = connection
  // Kept in memory, because writing a record could make a concurrent call's write fail.
  const { cuts } = journal.shared
  const startedAt = runtime.monotonic()
  for (const [id, time] of cuts) if (startedAt - time >= CUT_PAUSE) cuts.delete(id)
  const wanted = new Map<string, FoundRecord>()
  for (const { found } of lookups) {
    const { externalOrderId } = found.record
    if (externalOrderId !== undefined && !cuts.has(found.id)) wanted.set(externalOrderId, found)
  }
  const doubts = new Map<string, UnresolvedOrderError>()
  let looked = reachable
  let error: AnyCustomerOrderingError | undefined
  const common = commonSourceSystem([...wanted.values()])
  let sourceSystem = common
  try {
    for (let sweep = 0; looked && sweep < SWEEPS && wanted.size > 0; sweep++) {
      let pages = 0
      let rows = 0
      for await (const page of scanOrders(context, { ...options, charged: 'unknown', sourceSystem })) {
        rows += page.length
        for (const listed of page) {
          const { externalOrderId = '' } = listed
          const found = wanted.get(externalOrderId)
          if (found === undefined) continue
          const differs = differencesFound(found.record, listed)
          // In a list of all source systems, an order that shows none may be of another one.
          const isOwn = sourceSystem === common || listed.sourceSystem !== undefined
          const doubted: readonly EchoedField[] = isOwn ? differs : [...differs, 'sourceSystem']
          if (doubted.length > 0) {
            doubts.set(externalOrderId, doubtError(found.record, listed.id, doubted))
            continue
          }
          const proof = { orderId: listed.id, order: listed.order }
          const { record } = await proveCreated(context, found, proof, storeTime(context))
          wanted.delete(externalOrderId)
          yield outcomeOf(record, listed)
        }
        if (wanted.size === 0 || ++pages === MAX_PAGES) break
      }
      // The service may have given its orders another source system than the requests name.
      if (rows === 0) sourceSystem = undefined
      if (pages !== MAX_PAGES) continue
      for (const { id } of wanted.values()) cuts.set(id, runtime.monotonic())
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
    const { id, record: before } = found
    const { externalOrderId } = before
    const isCut = cuts.has(id)
    if (externalOrderId !== undefined && !isCut && !wanted.has(externalOrderId)) continue
    // The look-up may have taken minutes, in which another call or a person has settled the order.
    const newest = (await journal.newest(id, storeTime(context)))?.record ?? before
    if (!isPending(newest) || newest.key !== before.key) {
      yield outcomeOf(newest)
      continue
    }
    const record = publicRecord(newest)
    const doubt = doubts.get(externalOrderId ?? '')
    if (doubt !== undefined) yield { outcome: 'needs_attention', record, reason: 'doubtful', error: doubt }
    else if (isCut) yield { outcome: 'needs_attention', record, reason, error: cutError(newest) }
    else if (externalOrderId === undefined) yield { outcome: 'needs_attention', record, reason }
    else if (!looked) yield { outcome: 'still_open', record, ...defined({ error }) }
    else yield { outcome: 'needs_attention', record, reason, ...defined({ error }) }
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

function unreferencedError(record: JournalRecord): UnresolvedOrderError {
  return new UnresolvedOrderError(
    `The service refused the order, but the fetch of this client may have repeated the request and bought it. GET ${ORDERS_PATH} shows no references, so the order may exist. Find out, then settle it with orders.resolve(), or forget() it and call again.`,
    mayBeCharged(record),
  )
}

/** What the list shows, or may show, counts for more than an earlier refusal. */
function mayBeCharged(record: JournalRecord): ErrorFacts {
  return { ...recordFacts(record), charged: record.state === 'created' ? 'yes' : 'unknown' }
}

/** A request's own source system narrows the list, if all requests have the same one. */
function commonSourceSystem(wanted: readonly FoundRecord[]): string | undefined {
  const systems = new Set(wanted.map(({ record }) => sourceSystemOf(record)))
  return systems.size === 1 ? [...systems][0] : undefined
}

function storeTime({ connection }: OrderContext): Deadline {
  return new Deadline(connection.runtime, STORE_TIME, undefined)
}

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
      progress.take(
        isNew,
        page.map(({ id }) => id),
      )
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
  const order = 'value' in checked ? checked.value : undefined
  return { id, amount: ownValue(row, 'amount'), ...defined({ order, ...echoOf(row) }) }
}
