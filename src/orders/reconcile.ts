import { defined } from '../defined.ts'
import { isCustomerOrderingError } from '../errors.ts'
import type { CallSettings } from '../http/call.ts'
import type { Order } from '../schemas/order.ts'
import type { OrderContext } from './context.ts'
import { contradiction, type ListedOrder } from './evidence.ts'
import { scanOrders } from './look-up.ts'
import { type JournalRecord, type OrderRecord, publicRecord } from './record.ts'
import type { Finish } from './recovery-outcome.ts'
import { records } from './remembered.ts'
import { type Unusable, unusableError } from './row.ts'

/**
 * One line of a reconciliation: an order known to both sides, to one side only, or with another amount than remembered.
 * `only_local` means that the list did not show the order, which proves nothing: lists lag and rows move.
 */
export type Reconciled<Output = Order> =
  | {
      readonly kind: 'matched' | 'amount_differs'
      readonly record: OrderRecord
      /** As the list shows it, in the type of your own schema if the client has one; absent where it does not fit. */
      readonly order?: Output
    }
  | { readonly kind: 'only_local'; readonly record: OrderRecord; readonly order?: undefined }
  | {
      readonly kind: 'only_remote'
      readonly record?: undefined
      /** As the list shows it, in the type of your own schema if the client has one; absent where it does not fit. */
      readonly order?: Output
    }

/** What to compare. */
export interface ReconcileSettings<Output> {
  readonly settings: CallSettings
  readonly sourceSystem?: string | undefined
  /** Reports only records written since then, milliseconds since 1970; default all. */
  readonly since: number
  readonly finish: Finish<Output>
  /** Throws once the client is closed, which must not wait for a whole walk. */
  readonly checkOpen: () => void
}

const SWEEPS = 2

/**
 * Compares remembered orders with the service's list. Matches by order id, and by the caller's reference where the
 * service echoes it; never by amount, time or target, which is how somebody else's order would be adopted.
 */
export async function* reconcile<Output>(
  context: OrderContext,
  options: ReconcileSettings<Output>,
): AsyncGenerator<Reconciled<Output>, void, undefined> {
  const byId = new Map<string, JournalRecord>()
  const byReference = new Map<string, JournalRecord>()
  const local = new Set<JournalRecord>()
  const older = new Set<JournalRecord>()
  let unusable: Unusable | undefined
  // All of them: an older order that the store knows is not one that only the service has.
  for await (const record of records(context, { since: 0 })) {
    options.checkOpen()
    if (typeof record === 'string') {
      unusable = record
      continue
    }
    const { state, order, externalOrderId } = record
    // An archived anonymous order stands under two names until its slot is used again.
    if (state === 'rejected' || (order?.id !== undefined && byId.has(order.id))) continue
    if (record.updatedAt >= options.since) local.add(record)
    else older.add(record)
    if (order?.id !== undefined) byId.set(order.id, record)
    // Where the id is known, another order with the same reference is another order, and nobody's here.
    else if (externalOrderId !== undefined) byReference.set(externalOrderId, record)
  }
  const reported = new Set<string>()
  const { deriveId } = context.connection.runtime
  const scan = {
    operation: 'orders.reconcile',
    settings: options.settings,
    money: 'none',
    sourceSystem: options.sourceSystem,
    checkOpen: options.checkOpen,
  } as const
  for (let sweep = 0; sweep < SWEEPS && (sweep === 0 || local.size > 0); sweep++) {
    for await (const listed of scanOrders(context, scan)) {
      if (reported.has(listed.id)) continue
      reported.add(listed.id)
      const reference = listed.externalOrderId ?? ''
      const candidate = byId.get(listed.id) ?? byReference.get(reference)
      // An order that is not what was asked for is somebody else's, also where it was taken for this one before.
      const other = candidate && contradiction(deriveId, candidate, listed, 'list')
      const record = other === undefined ? candidate : undefined
      if (record !== undefined) {
        local.delete(record)
        byReference.delete(reference)
      }
      if (record !== undefined && older.has(record)) continue
      const order = listed.order && (await readable(listed.order, options.finish))
      yield { ...compare(record, listed), ...defined({ order }) }
    }
  }
  // Open records belong to recovery: whether they exist at the service is not known on this side either.
  for (const record of local) yield { kind: 'only_local', record: publicRecord(record) }
  // Some of those without a record here may belong to one that cannot be read.
  if (unusable !== undefined) throw unusableError(unusable)
}

/** The order as the caller's own schema reads it, if it does. */
async function readable<Output>(order: Order, finish: Finish<Output>): Promise<Output | undefined> {
  try {
    return await finish(order, undefined)
  } catch (error) {
    if (!isCustomerOrderingError(error) || error.code === 'aborted') throw error
    return undefined
  }
}

function compare(
  record: JournalRecord | undefined,
  { order }: ListedOrder,
): Exclude<Reconciled<never>, { readonly kind: 'only_local' }> {
  if (record === undefined) return { kind: 'only_remote' }
  const remembered = record.order?.amount
  const differs = remembered !== undefined && order !== undefined && order.amount !== remembered
  return { kind: differs ? 'amount_differs' : 'matched', record: publicRecord(record) }
}
