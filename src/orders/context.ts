import type { Charged } from '../errors.ts'
import type { Connection, Endpoint } from '../http/call.ts'
import type { ListEnvelope } from '../schemas/list.ts'
import type { Order } from '../schemas/order.ts'
import type { Journal } from './journal.ts'
import type { LiveCalls } from './live.ts'
import type { OrderRecord } from './record.ts'

/** What the order methods share: the journal, the connection, and the options that decide about keys. */
export interface OrderContext {
  readonly connection: Connection
  readonly journal: Journal
  /** Calls of this process that are placing orders. */
  readonly live: LiveCalls<PlacedOrder>
  /** Labels that keys are derived from. */
  readonly server: string
  readonly account: string | undefined
  /** Milliseconds from the first send during which a key may be sent again. */
  readonly safeRetryWindow: number
  /** Whose keys the service remembers: one API key's, or all of a customer's. */
  readonly idempotencyScope: 'apiKey' | 'customer'
  /** How much of a created order is remembered. */
  readonly remember: 'order' | 'id'
  /** Finds the rows of a list answer, where the caller says how. */
  readonly listEnvelope: ((body: unknown) => ListEnvelope) | undefined
  /** How long closed records are kept, milliseconds. */
  readonly retention: { readonly created: number; readonly rejected: number }
}

/** What a call that placed an order tells its twins. */
export interface PlacedOrder {
  readonly order: Order
  readonly key: string | undefined
}

/** `POST /v1/orders`. */
export const CREATE_ORDER: Endpoint = {
  operation: 'orders.create',
  method: 'POST',
  permission: 'orders:write',
  missing: 'service_or_customer',
}

/** Path of the orders. */
export const ORDERS_PATH = '/v1/orders'

/** What a record says about the wallet. A key that belongs to an unseen payload says nothing, even when closed. */
export function chargedOf(record: Pick<OrderRecord, 'state' | 'rejection'>): Charged {
  if (record.state === 'created') return 'yes'
  return record.state === 'open' || record.rejection?.kind === 'conflict' ? 'unknown' : 'no'
}

export function moneySentence(charged: Charged): string {
  return `The wallet ${{ no: 'was not', yes: 'was', unknown: 'may have been' }[charged]} charged.`
}
