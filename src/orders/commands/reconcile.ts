import type { EchoedField } from '../../call-options.ts'
import { defined } from '../../defined.ts'
import type { CallSettings } from '../../http/call.ts'
import type { Order } from '../../schemas/order.ts'
import type { OrderContext } from '../record/context.ts'
import { type JournalRecord, type OrderRecord, publicRecord } from '../record/record.ts'
import { type Unusable, unusableError } from '../record/row.ts'
import { differences } from '../sending/evidence.ts'
import { type Finish, failureOf } from './recovery-outcome.ts'
import { records } from './remembered.ts'
import { type ListedOrder, scanOrders } from './scan-orders.ts'

/**
 * One line of a reconciliation between the store and the service's order list. `only_local` means
 * that the list did not contain the order. The order may still exist: the list may lag, and its
 * rows may move during a read.
 */
export type Reconciled<Output = Order> =
  | {
      readonly kind: 'matched' | 'amount_differs'
      readonly record: OrderRecord
      /**
       * The listed order, parsed by your own schema if you set one. Absent if the schema rejects
       * it.
       */
      readonly order?: Output
    }
  | {
      /**
       * The listed order has the record's reference, but another service, target or quantity. It may
       * be an order of another integration.
       */
      readonly kind: 'doubtful'
      readonly record: OrderRecord
      readonly order?: Output
      /** The fields that differ, as `despite` of `orders.resolve()` names them. */
      readonly differs: readonly EchoedField[]
    }
  | { readonly kind: 'only_local'; readonly record: OrderRecord; readonly order?: undefined }
  | {
      readonly kind: 'only_remote'
      readonly record?: undefined
      /**
       * The listed order, parsed by your own schema if you set one. Absent if the schema rejects
       * it.
       */
      readonly order?: Output
    }

export interface ReconcileSettings<Output> {
  readonly settings: CallSettings
  readonly sourceSystem?: string | undefined
  /** Milliseconds since 1970. Only records written since this time are reported. */
  readonly since: number
  readonly finish: Finish<Output>
  /** Throws once the client is closed. */
  readonly checkOpen: () => void
}

const SWEEPS = 2

/**
 * Matches orders by order id or by the caller's reference. A match by amount, time or target could
 * match an order of another integration.
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
  // Read all records, or an order with an older record would be reported as `only_remote`.
  for await (const record of records(context, { since: 0 })) {
    options.checkOpen()
    if (typeof record === 'string') {
      unusable = record
      continue
    }
    const { state, order, externalOrderId } = record
    // Two records may name the same order. Only the first record is matched.
    if (state === 'rejected' || (order?.id !== undefined && byId.has(order.id))) continue
    if (record.updatedAt >= options.since) local.add(record)
    else older.add(record)
    if (order?.id !== undefined) byId.set(order.id, record)
    // Match by reference only if the id is unknown: an order with another id is another order.
    else if (externalOrderId !== undefined) byReference.set(externalOrderId, record)
  }
  const reported = new Set<string>()
  const doubtful = new Set<JournalRecord>()
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
      const differs = candidate === undefined ? [] : differences(deriveId, candidate, listed)
      // An order that contradicts the record's request belongs to another caller, even if the
      // record has the order's id. Only with the record's reference, it may still be the order.
      const isNamed = reference !== '' && reference === candidate?.externalOrderId
      const record = differs.length === 0 || isNamed ? candidate : undefined
      if (record !== undefined && differs.length === 0) {
        local.delete(record)
        doubtful.delete(record)
        byReference.delete(reference)
      }
      if (record !== undefined && older.has(record)) continue
      const order = listed.order && (await readable(listed.order, options.finish))
      if (record === undefined || differs.length === 0)
        yield { ...compare(record, listed), ...defined({ order }) }
      else {
        doubtful.add(record)
        yield { kind: 'doubtful', record: publicRecord(record), differs, ...defined({ order }) }
      }
    }
  }
  for (const record of local)
    if (!doubtful.has(record)) yield { kind: 'only_local', record: publicRecord(record) }
  // Some orders reported as `only_remote` may belong to a record that cannot be read.
  if (unusable !== undefined) throw unusableError(unusable)
}

async function readable<Output>(order: Order, finish: Finish<Output>): Promise<Output | undefined> {
  try {
    return await finish(order, undefined)
  } catch (error) {
    failureOf(error)
    return undefined
  }
}

function compare(
  record: JournalRecord | undefined,
  { order }: ListedOrder,
): Exclude<Reconciled<never>, { readonly kind: 'only_local' | 'doubtful' }> {
  if (record === undefined) return { kind: 'only_remote' }
  const remembered = record.order?.amount
  const differs = remembered !== undefined && order !== undefined && order.amount !== remembered
  return { kind: differs ? 'amount_differs' : 'matched', record: publicRecord(record) }
}
