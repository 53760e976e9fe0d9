import type { EchoedField, ReconcileParams } from '../../call-options.ts'
import { defined } from '../../defined.ts'
import type { CustomerOrderingError } from '../../errors/classes.ts'
import type { CallSettings } from '../../http/call.ts'
import { Interruption } from '../../http/deadline.ts'
import { abortedError, UNKNOWN_CALL } from '../../http/failures.ts'
import { checkReference, rowIdOf, slotOf } from '../../identity/keys.ts'
import type { Order } from '../../schemas/order.ts'
import { differencesFound } from '../protocol/outcome.ts'
import { ORDERS_PATH, type OrderContext, type OrdersContext } from '../record/context.ts'
import {
  type JournalRecord,
  type OrderRecord,
  publicRecord,
  type Unusable,
  unusableError,
  unusableIn,
} from '../record/record.ts'
import { fitOrder } from './create.ts'
import { SWEEPS, storeTime } from './look-up.ts'
import { MARKS, RecordIndex } from './record-index.ts'
import { failureOf } from './recovery-outcome.ts'
import { type ListedOrder, scanOrders } from './scan.ts'

interface Compared<Output> {
  /** The listed order, parsed by your own schema if you set one. Absent if the schema rejects it. */
  readonly order?: Output
}

/**
 * One line of a reconciliation between the store and the service's order list.
 *
 * `doubtful`: the listed order has the record's reference, but other fields differ, so it may be an
 * order of another integration. `differs` names the fields as `despite` of `orders.resolve()` does.
 *
 * `only_local`: the list did not contain the order. It may still exist: the list may lag, and its
 * rows may move during a read. Or a record with another reference has the order's id, too.
 */
export type Reconciled<Output = Order> =
  | (Compared<Output> & { readonly kind: 'matched' | 'amount_differs'; readonly record: OrderRecord })
  | (Compared<Output> & {
      readonly kind: 'doubtful'
      readonly record: OrderRecord
      readonly differs: readonly EchoedField[]
    })
  | (Compared<Output> & { readonly kind: 'only_remote'; readonly record?: undefined })
  | { readonly kind: 'only_local'; readonly record: OrderRecord; readonly order?: undefined }

const OPERATION = 'orders.reconcile'
/** Milliseconds to read one record. */
const READ_TIME = 20_000

/**
 * Matches orders by order id or by the caller's reference.
 *
 * A match by amount, time or target could match an order of another integration.
 */
export async function* reconcile<Output>(
  context: OrdersContext<Output>,
  { since = 0, sourceSystem }: ReconcileParams,
  settings: CallSettings,
): AsyncGenerator<Reconciled<Output>, void, undefined> {
  const checkOpen = (): void => context.lifetime.check('unknown')
  const index = new RecordIndex()
  const missed: Missed = { why: undefined }
  // Read all records, or an order with an older record would be reported as `only_remote`.
  for await (const { row, record } of context.journal.records(0)) {
    checkOpen()
    if (settings.signal?.aborted === true) throw aborted(settings.signal)
    if (typeof record === 'string') missed.why = record
    else if (record.state !== 'rejected')
      index.add(nameOf(record), row.id, record.updatedAt < since ? MARKS.older : 0)
  }
  index.seal()
  const reported = new Set<string>()
  const scan = { operation: OPERATION, settings, charged: undefined, sourceSystem }
  for (let sweep = 0; sweep < SWEEPS && (sweep === 0 || index.unmarked().next().done !== true); sweep++) {
    for await (const page of scanOrders(context, scan)) {
      for (const listed of page) {
        if (reported.has(listed.id)) continue
        reported.add(listed.id)
        const reconciled = await reconciledWith(context, index, listed, settings, missed)
        if (reconciled !== undefined) yield reconciled
      }
    }
  }
  for (const position of index.unmarked()) {
    checkOpen()
    if (settings.signal?.aborted === true) throw aborted(settings.signal)
    const record = await load(context, index.rowIdOf(position), missed)
    if (record !== undefined && record.state !== 'rejected')
      yield { kind: 'only_local', record: publicRecord(record) }
  }
  // Some orders reported as `only_remote` may belong to a record that cannot be read.
  if (missed.why !== undefined) throw unusableError(missed.why)
}

/** Why a record could not be read, which the run tells at its end. */
interface Missed {
  why: Unusable | undefined
}

function aborted(signal: AbortSignal): CustomerOrderingError {
  const endpoint = { operation: OPERATION, method: 'GET' }
  return abortedError({ ...UNKNOWN_CALL, endpoint, path: ORDERS_PATH, reason: signal.reason })
}

/** Undefined for an order whose record is too old to be reported. */
async function reconciledWith<Output>(
  context: OrdersContext<Output>,
  index: RecordIndex,
  listed: ListedOrder,
  settings: CallSettings,
  missed: Missed,
): Promise<Reconciled<Output> | undefined> {
  const found = await recordOf(context, index, listed, missed)
  // A person has confirmed that the order is this one, so fields may differ.
  const isConfirmed = found?.record.key === '' && found.record.order?.id === listed.id
  const differs = found === undefined || isConfirmed ? [] : differencesFound(found.record, listed)
  // An order that contradicts the record's request belongs to another caller. Only with the
  // record's reference, it may still be the order.
  const isNamed =
    listed.externalOrderId !== undefined && listed.externalOrderId === found?.record.externalOrderId
  const match = differs.length === 0 || isNamed ? found : undefined
  if (match?.position !== undefined) {
    index.mark(match.position, differs.length === 0 ? 'matched' : 'doubtful')
    // An adopted order may also have a record under its key, which is not reported. But of two references
    // with one order, one is wrong.
    if (differs.length === 0)
      for (const position of index.named(`id ${listed.id}`)) {
        if (position === match.position) continue
        const other = await load(context, index.rowIdOf(position), missed)
        if (other?.order?.id === listed.id && !(other.externalOrderId && match.record.externalOrderId))
          index.mark(position, 'matched')
      }
    if (index.is(match.position, 'older')) return undefined
  }
  const known = () => ({ orderId: listed.id })
  const parsed =
    listed.order &&
    (await fitOrder(context, listed.order, OPERATION, settings, known).catch(
      (error: unknown) => void failureOf(error),
    ))
  const order = defined({ order: parsed })
  if (match === undefined) return { kind: 'only_remote', ...order }
  const record = publicRecord(match.record)
  if (differs.length > 0) return { kind: 'doubtful', record, differs, ...order }
  return { kind: hasAmountOf(match.record, listed) ? 'matched' : 'amount_differs', record, ...order }
}

/** Match by reference only if the id is unknown: an order with another id is another order. */
function nameOf({ slot, order, externalOrderId }: JournalRecord): string {
  if (order?.id !== undefined) return `id ${order.id}`
  return externalOrderId === undefined ? slot : `reference ${externalOrderId}`
}

/** Reads the record of a listed order from the store, because the index keeps only its place. */
async function recordOf(
  context: OrderContext,
  index: RecordIndex,
  { id, externalOrderId = '' }: ListedOrder,
  missed: Missed,
): Promise<{ readonly position: number | undefined; readonly record: JournalRecord } | undefined> {
  let other: { readonly position: number; readonly record: JournalRecord } | undefined
  for (const name of [`id ${id}`, `reference ${externalOrderId}`]) {
    for (const position of index.named(name)) {
      if (index.is(position, 'matched')) continue
      const record = await load(context, index.rowIdOf(position), missed)
      if (record === undefined) continue
      const fits = record.order?.id === undefined ? nameOf(record) === name : record.order.id === id
      if (fits && (externalOrderId || record.externalOrderId) === record.externalOrderId)
        return { position, record }
      // Of two references with one order, the one that the service shows is right.
      if (fits) other ??= { position, record }
    }
  }
  if (other !== undefined) return other
  if (checkReference(externalOrderId)) return undefined
  // A call may have placed the order after the index was made.
  const rowId = rowIdOf(context.connection.runtime.deriveId, slotOf(externalOrderId, undefined, String))
  const record = await load(context, rowId, missed)
  return record?.order?.id === id ? { position: undefined, record } : undefined
}

async function load(
  context: OrderContext,
  rowId: string,
  missed: Missed,
): Promise<JournalRecord | undefined> {
  try {
    const found = await context.journal.load(rowId, storeTime(context, READ_TIME))
    if (found instanceof Interruption) throw unusableError('unanswered')
    return found.record
  } catch (error) {
    const unusable = unusableIn(error)
    if (unusable === undefined) throw error
    missed.why = unusable.why
    return undefined
  }
}

/** An amount that is not a number is not known. */
function hasAmountOf({ order: remembered }: JournalRecord, { amount }: ListedOrder): boolean {
  return remembered?.amount === undefined || typeof amount !== 'number' || amount === remembered.amount
}
