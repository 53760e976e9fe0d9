/** Finds orders at the service: by id, or by reference in the list. */
import type { EchoedField } from '../../call-options.ts'
import { defined } from '../../defined.ts'
import { type AnyCustomerOrderingError, type ErrorFacts, UnresolvedOrderError } from '../../errors/classes.ts'
import { statusRow } from '../../errors/statuses.ts'
import type { CallSettings } from '../../http/call.ts'
import { Deadline } from '../../http/deadline.ts'
import { segment } from '../../http/path.ts'
import { READ_ITEM, type ReadCall, type Reply, read } from '../../http/request.ts'
import { type Checked, checkNow, wrong } from '../../schemas/check.ts'
import { type Order, orderSchema } from '../../schemas/order.ts'
import { type Parse, withId } from '../../schemas/shape.ts'
import { type Asked, differencesFound, echoOf, sourceSystemOf } from '../protocol/outcome.ts'
import { ORDERS_PATH, type OrderContext, SENDING } from '../record/context.ts'
import type { Found, FoundRecord } from '../record/journal.ts'
import { isPending, type JournalRecord, publicRecord, recordFacts } from '../record/record.ts'
import { proveCreated } from '../sending/send.ts'
import { type AttentionReason, failureOf, outcomeOf, type RecoveryOutcome } from './recovery-outcome.ts'
import { type ListedOrder, scanOrders } from './scan.ts'

const { operation: RECOVER } = SENDING.recover

/** A record whose request is not safe to send. */
export interface Lookup {
  readonly found: FoundRecord
  readonly reason: AttentionReason
}

/** How often the list is read: one read can miss rows that move during the read. */
export const SWEEPS = 2
export const MAX_PAGES = 200
/** Milliseconds for which a record is not looked up again after a lookup stopped at `MAX_PAGES`. */
const CUT_PAUSE = 15 * 60 * 1000

/** The read of one order by its id, without the settings. */
export function orderRead<T>(
  operation: string,
  orderId: string,
  parse: Parse<T>,
): Omit<ReadCall<T>, 'settings'> {
  return {
    ...READ_ITEM,
    endpoint: { operation, method: 'GET', permission: 'orders:read', missing: 'order' },
    path: `${ORDERS_PATH}/${segment('orderId', orderId)}`,
    parse: withId('id', orderId, parse),
  }
}

/** @param record which the order must not contradict */
export async function readOrder(
  context: OrderContext,
  operation: string,
  orderId: string,
  charged: 'unknown' | 'yes',
  settings: CallSettings,
  record?: JournalRecord,
): Promise<Reply<Order>> {
  const order = orderRead(operation, orderId, (body) => readable(body, record))
  const names = { ...recordFacts(record), orderId }
  return await read(context.connection, { ...order, settings, charged, names })
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
  found: FoundRecord,
  settings: CallSettings,
): Promise<RecoveryOutcome> {
  const orderId = found.record.order?.id ?? ''
  try {
    const once = { ...settings, maxRetries: 0 }
    const { value: order } = await readOrder(context, RECOVER, orderId, 'yes', once, found.record)
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
  { id, record }: FoundRecord,
  body: string,
  settings: CallSettings,
): Promise<ListedOrder | undefined> {
  const { cuts } = context.journal.shared
  const { operation } = SENDING.create
  // Another call may have bought the order since the record was read.
  const scan = { operation, settings, charged: 'unknown', record } as const
  dropOldCuts(context)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    let pages = 0
    let hasReferences = false
    let doubt: UnresolvedOrderError | undefined
    if (cuts.has(id)) throw cutError(record)
    for await (const page of scanOrders(context, scan)) {
      for (const listed of page) {
        hasReferences ||= listed.externalOrderId !== undefined
        if (listed.externalOrderId !== record.externalOrderId) continue
        const differs = differencesFound({ ...record, body }, listed)
        if (differs.length === 0) return listed
        doubt ??= doubtError(record, listed.id, differs)
      }
      if (++pages < MAX_PAGES) continue
      cuts.set(id, context.connection.runtime.monotonic())
      throw doubt ?? cutError(record)
    }
    if (doubt !== undefined) throw doubt
    if (pages > 0 && !hasReferences) throw unreferencedError(record)
  }
  return undefined
}

/**
 * A listed order proves a charge if every field that it repeats fits the record. If only the reference
 * fits, the order is doubtful: another integration of the same customer may use the same references.
 * A missing order proves nothing: the list may lag.
 *
 * @param reachable false if the service has just failed for one order after another, so that nothing is read
 */
export async function* lookUp(
  context: OrderContext,
  lookups: readonly Lookup[],
  reachable: boolean,
  settings: CallSettings,
): AsyncGenerator<RecoveryOutcome, void, undefined> {
  const { journal, connection, lifetime } = context
  const { runtime, reporter } = connection
  const scan = { operation: RECOVER, settings, charged: 'unknown' } as const
  // Kept in memory, because writing a record could make a concurrent call's write fail.
  const { cuts } = journal.shared
  dropOldCuts(context)
  const cutIds = new Set(lookups.flatMap(({ found }) => (cuts.has(found.id) ? found.id : [])))
  const wanted = new Map<string, FoundRecord>()
  for (const { found } of lookups) {
    const { externalOrderId } = found.record
    if (externalOrderId !== undefined && !cutIds.has(found.id)) wanted.set(externalOrderId, found)
  }
  const doubts = new Map<string, UnresolvedOrderError>()
  let looked = reachable
  let error: AnyCustomerOrderingError | undefined
  // A request's own source system narrows the list, if all requests have the same one.
  const systems = new Set([...wanted.values()].map(({ record }) => sourceSystemOf(record)))
  const common = systems.size === 1 ? [...systems][0] : undefined
  let sourceSystem = common
  try {
    for (let sweep = 0; looked && sweep < SWEEPS && wanted.size > 0; sweep++) {
      let pages = 0
      let rows = 0
      for await (const page of scanOrders(context, { ...scan, sourceSystem })) {
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
      for (const { id } of wanted.values()) {
        cuts.set(id, runtime.monotonic())
        cutIds.add(id)
      }
      const fields = { pages, orders: wanted.size, pauseMs: CUT_PAUSE }
      const what = 'the lookup reached its page limit; the rest of the order list was not searched'
      reporter.log('warn', what, fields)
      break
    }
  } catch (caught) {
    error = failureOf(caught)
    // Stop here if the read failed because the client was closed.
    lifetime.check('unknown')
    const { code, status } = error
    looked =
      code !== 'connection' &&
      code !== 'timeout' &&
      (status === undefined || statusRow(status).repeat === 'none')
  }
  let isReadable = true
  for (const { found, reason } of lookups) {
    lifetime.check('unknown')
    const { id, record: before } = found
    const { externalOrderId } = before
    const isCut = cutIds.has(id)
    if (externalOrderId !== undefined && !isCut && !wanted.has(externalOrderId)) continue
    // The look-up may have taken minutes, in which another call or a person has settled the order.
    const again: Found | undefined = isReadable ? await journal.newest(id, storeTime(context)) : undefined
    isReadable = again !== undefined
    const newest = again?.record ?? before
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
    `The lookup stopped after ${MAX_PAGES} pages of GET ${ORDERS_PATH} without finding the order, which may be on a later page. If it exists, the wallet was charged. Find it, then settle it with orders.resolve().`,
    mayBeCharged(record),
  )
}

function unreferencedError(record: JournalRecord): UnresolvedOrderError {
  return new UnresolvedOrderError(
    `The service refused the order, but a fetch may have bought it, and GET ${ORDERS_PATH} shows no references. Find it, then settle it with orders.resolve(), or forget() it and call again.`,
    mayBeCharged(record),
  )
}

/** What the list shows, or may show, counts for more than an earlier refusal. */
function mayBeCharged(record: JournalRecord): ErrorFacts {
  return { ...recordFacts(record), charged: record.state === 'created' ? 'yes' : 'unknown' }
}

function dropOldCuts({ journal, connection }: OrderContext): void {
  const { cuts } = journal.shared
  for (const [id, time] of cuts) if (connection.runtime.monotonic() - time >= CUT_PAUSE) cuts.delete(id)
}

/** The time to store what was found, or to read a record once more. No signal ends it. */
export function storeTime({ connection }: OrderContext, milliseconds = 5000): Deadline {
  return new Deadline(connection.runtime, milliseconds, undefined)
}
