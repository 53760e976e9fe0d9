import type { Charged } from '../errors.ts'
import type { CallEvent } from '../hooks.ts'
import type { Connection, Endpoint } from '../http/call.ts'
import type { ListEnvelope } from '../schemas/list.ts'
import type { Order } from '../schemas/order.ts'
import type { Journal } from './journal.ts'
import type { LiveCalls } from './live.ts'
import type { OrderRecord } from './record.ts'

/**
 * Shared by all order methods: the journal, the connection, and the options that determine keys.
 */
export interface OrderContext {
  readonly connection: Connection
  readonly journal: Journal
  /** Calls of this process that are placing orders. */
  readonly live: LiveCalls<PlacedOrder>
  /** Labels from which keys are derived. */
  readonly server: string
  readonly account: string | undefined
  /** Milliseconds from the first send during which a key may be sent again. */
  readonly safeRetryWindow: number
  /** Scope of keys at the service: one API key, or all API keys of a customer. */
  readonly idempotencyScope: 'apiKey' | 'customer'
  /** How much of a created order is remembered. */
  readonly remember: 'order' | 'id'
  /** The caller's function that finds the rows of a list response, if set. */
  readonly listEnvelope: ((body: unknown) => ListEnvelope) | undefined
  /** Milliseconds for which closed records are remembered. */
  readonly retention: { readonly created: number; readonly rejected: number }
}

/** The result that a call shares with concurrent calls for the same order. */
export interface PlacedOrder {
  readonly order: Order
  readonly key: string | undefined
}

export const CREATE_ORDER: Endpoint = {
  operation: 'orders.create',
  method: 'POST',
  permission: 'orders:write',
  missing: 'service_or_customer',
}

export const ORDERS_PATH = '/v1/orders'

/**
 * What a record proves about the wallet. A conflict closes the record but proves nothing: the
 * payload that owns the key may have been bought.
 */
export function chargedOf(record: Pick<OrderRecord, 'state' | 'rejection'>): Charged {
  if (record.state === 'created') return 'yes'
  return record.state === 'open' || record.rejection?.kind === 'conflict' ? 'unknown' : 'no'
}

/** The facts of a record for an error: its names, and what it proves about the wallet. */
export interface RecordFacts {
  readonly charged: Charged
  readonly idempotencyKey: string | undefined
  readonly externalOrderId: string | undefined
  readonly orderId: string | undefined
}

export function recordFacts(record: OrderRecord | undefined): RecordFacts {
  return {
    charged: record === undefined ? 'unknown' : chargedOf(record),
    idempotencyKey: record?.key,
    externalOrderId: record?.externalOrderId,
    orderId: record?.order?.id,
  }
}

export function orderEvent(callId: string, operation: string): Omit<CallEvent, 'idempotencyKey'> {
  return { callId, operation, method: CREATE_ORDER.method, path: ORDERS_PATH }
}
