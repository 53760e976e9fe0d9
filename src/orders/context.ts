import type { Charged } from '../errors/classes.ts'
import type { CallEvent } from '../hooks.ts'
import type { Connection, Endpoint } from '../http/call.ts'
import type { ListEnvelope } from '../schemas/list.ts'
import type { Order } from '../schemas/order.ts'
import type { Journal } from './journal.ts'
import type { LiveCalls } from './live.ts'
import type { OrderRecord } from './record.ts'

export interface OrderContext {
  readonly connection: Connection
  readonly journal: Journal
  readonly live: LiveCalls<PlacedOrder>
  readonly server: string
  readonly account: string | undefined
  /** Milliseconds. A key may be sent again for this long after it was first sent. */
  readonly safeRetryWindow: number
  readonly idempotencyScope: 'apiKey' | 'customer'
  readonly remember: 'order' | 'id'
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
 * A conflict closes the record but proves nothing: the payload that owns the key may have been
 * bought.
 */
export function chargedOf(record: Pick<OrderRecord, 'state' | 'rejection'>): Charged {
  if (record.state === 'created') return 'yes'
  return record.state === 'open' || record.rejection?.kind === 'conflict' ? 'unknown' : 'no'
}

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
