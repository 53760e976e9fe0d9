import { defined } from '../defined.ts'
import type { CallSettings } from '../http/call.ts'
import { type JournalRecord, type OrderRecord, publicRecord } from '../idempotency/record.ts'
import type { Order } from '../schemas/order.ts'
import type { OrderContext } from './order-context.ts'
import { type ListedOrder, scanOrders } from './scan-orders.ts'

/**
 * One line of a reconciliation: an order known to both sides, to one side only, or with another amount than remembered.
 * `only_local` means that the list did not show the order, which proves nothing: lists lag and rows move.
 */
export interface Reconciled {
  readonly kind: 'matched' | 'only_local' | 'only_remote' | 'amount_differs'
  readonly record?: OrderRecord
  readonly order?: Order
}

/** What to compare. */
export interface ReconcileSettings {
  readonly settings: CallSettings
  readonly sourceSystem?: string | undefined
  /** Only records written since then, milliseconds since 1970; default all. */
  readonly since: number
}

const SWEEPS = 2

/**
 * Compares remembered orders with the service's list. Matches by order id, and by the caller's reference where the
 * service echoes it; never by amount, time or target, which is how somebody else's order would be adopted.
 */
export async function* reconcile(
  context: OrderContext,
  options: ReconcileSettings,
): AsyncGenerator<Reconciled, void, undefined> {
  const byId = new Map<string, JournalRecord>()
  const byReference = new Map<string, JournalRecord>()
  const local = new Set<JournalRecord>()
  for await (const row of context.journal.rows({ since: options.since })) {
    const { record } = await context.journal.open(row)
    if (record === undefined || record.state === 'rejected') continue
    // An archived anonymous order stands under two names until its slot is used again.
    if (record.order?.id !== undefined && byId.has(record.order.id)) continue
    local.add(record)
    if (record.order?.id !== undefined) byId.set(record.order.id, record)
    if (record.externalOrderId !== undefined) byReference.set(record.externalOrderId, record)
  }
  const reported = new Set<string>()
  for (let sweep = 0; sweep < SWEEPS && (sweep === 0 || local.size > 0); sweep++) {
    const scan = {
      operation: 'orders.reconcile',
      settings: options.settings,
      sourceSystem: options.sourceSystem,
    }
    for await (const listed of scanOrders(context, scan)) {
      if (reported.has(listed.id)) continue
      reported.add(listed.id)
      const record =
        byId.get(listed.id) ??
        (listed.externalOrderId === undefined ? undefined : byReference.get(listed.externalOrderId))
      if (record !== undefined) local.delete(record)
      yield compare(record, listed)
    }
  }
  // Open records belong to recovery: whether they exist at the service is not known on this side either.
  for (const record of local) yield { kind: 'only_local', record: publicRecord(record) }
}

function compare(record: JournalRecord | undefined, listed: ListedOrder): Reconciled {
  const order = defined({ order: listed.order })
  if (record === undefined) return { kind: 'only_remote', ...order }
  const remembered = record.order?.amount
  const differs = remembered !== undefined && listed.order !== undefined && listed.order.amount !== remembered
  return { kind: differs ? 'amount_differs' : 'matched', record: publicRecord(record), ...order }
}
