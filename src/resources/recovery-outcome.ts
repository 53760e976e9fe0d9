import { defined } from '../defined.ts'
import type { CustomerOrderingError } from '../errors.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import type { FoundRecord } from '../idempotency/journal.ts'
import { type JournalRecord, type OrderRecord, publicRecord } from '../idempotency/record.ts'
import type { StoredRow } from '../idempotency/store.ts'
import { check } from '../schemas/check.ts'
import { type Order, orderSchema } from '../schemas/order.ts'
import { type OrderContext, rememberedOrder } from './order-context.ts'
import { storable } from './record-endings.ts'
import type { ListedOrder } from './scan-orders.ts'

/** Why a record needs a person. */
export type AttentionReason =
  /** Older than the safe-retry window, or the clock went back; the service may have forgotten the key. */
  | 'past_window'
  /** The caller's signal ended the call, so repeating it is not recovery's to decide. */
  | 'aborted'
  /** Refused after an attempt whose ending is not known; the refusal may exist because that attempt was charged. */
  | 'refused_after_doubt'
  /** Sent with another API key; the service may keep keys apart by API key. */
  | 'api_key_changed'
  /** The order exists, but nothing readable came back, and its id is not known. */
  | 'unreadable'
  /** The stored record is damaged. */
  | 'corrupt'
  /** The stored record was written by a newer version of this package. */
  | 'newer_version'

/** What became of one record. */
export interface RecoveryOutcome {
  /**
   * `created`: an order exists; `rejected`: closed without one by its own call; `in_progress`: a live call or the
   * service is at work on it; `still_open`: the service could not be asked, try again later; `needs_attention`: nothing
   * safe is left to do without a person, see `reason`.
   */
  readonly outcome: 'created' | 'rejected' | 'in_progress' | 'still_open' | 'needs_attention'
  readonly record: OrderRecord
  readonly order?: Order
  /** What the service or the connection answered, where that is why the record is still open. */
  readonly error?: CustomerOrderingError
  readonly reason?: AttentionReason
}

/** How long one look at the store may take, milliseconds. */
const LOOK = 5000

/** The outcome of a record that is settled. */
export function settledOutcome(record: JournalRecord): RecoveryOutcome {
  const view = publicRecord(record)
  if (record.state === 'rejected') return { outcome: 'rejected', record: view }
  const checked = check(orderSchema, record.order)
  const order = checked instanceof Promise || !('value' in checked) ? undefined : checked.value
  return { outcome: 'created', record: view, ...defined({ order }) }
}

/** What can be said of a row whose record cannot be read. */
export function unreadableRecord(row: StoredRow): OrderRecord {
  const { version, createdAt, state } = row
  return {
    slot: `row:${row.id}`,
    key: '',
    generation: 0,
    state,
    ambiguous: true,
    attempts: 0,
    createdAt,
    version,
  }
}

/** The newest version of a record; undefined if there is none, or if it cannot be read. */
export async function newestRecord(context: OrderContext, id: string): Promise<JournalRecord | undefined> {
  const deadline = new Deadline(context.connection.runtime, LOOK, undefined)
  const found = await context.journal.load(id, deadline).catch(() => undefined)
  return found === undefined || found instanceof Interruption ? undefined : found.record
}

/** Stores that an order exists and reports it. */
export async function markCreated(
  context: OrderContext,
  found: FoundRecord,
  { order, id: orderId }: ListedOrder,
): Promise<RecoveryOutcome> {
  const { runtime } = context.connection
  await context.journal.prove(
    found,
    (newest) => {
      if (newest.state === 'created' && newest.readable) return undefined
      const { body, busyUntil: _busyUntil, hold: _hold, rejection: _rejection, ...rest } = newest
      return {
        ...rest,
        claim: runtime.randomId(),
        state: 'created',
        ambiguous: false,
        readable: order !== undefined,
        order: order === undefined ? { id: orderId } : storable(rememberedOrder(context, order)),
        // Without the order itself, the body is still needed to ask for it again.
        ...(order === undefined ? defined({ body }) : {}),
      }
    },
    new Deadline(runtime, LOOK, undefined),
  )
  const record = (await newestRecord(context, found.id)) ?? found.record
  return { outcome: 'created', record: publicRecord(record), ...defined({ order }) }
}
