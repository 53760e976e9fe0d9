/** What every command on orders needs, and the endpoint that places them. */
import type { CallEvent } from '../../hooks.ts'
import type { Connection, Endpoint } from '../../http/call.ts'
import type { ListEnvelope } from '../../schemas/list.ts'
import type { Journal } from './journal.ts'
import type { LiveCalls } from './live.ts'
import type { Retention } from './retention.ts'

export interface OrderContext {
  readonly connection: Connection
  readonly journal: Journal
  readonly live: LiveCalls
  readonly server: string
  readonly account: string | undefined
  /** Milliseconds. A key may be sent again for this long after it was first sent. */
  readonly safeRetryWindow: number
  readonly idempotencyScope: 'apiKey' | 'customer'
  readonly remember: 'order' | 'id'
  readonly listEnvelope: ((body: unknown) => ListEnvelope) | undefined
  readonly retention: Retention
}

export const CREATE_ORDER: Endpoint = {
  operation: 'orders.create',
  method: 'POST',
  permission: 'orders:write',
  missing: 'service_or_customer',
}

export const ORDERS_PATH = '/v1/orders'

export function orderEvent(callId: string, operation: string): Omit<CallEvent, 'idempotencyKey'> {
  return { callId, operation, method: CREATE_ORDER.method, path: ORDERS_PATH }
}
