/** What every command on orders needs, and what one call wants. */
import type { CallEvent } from '../../hooks.ts'
import type { CallSettings, Endpoint } from '../../http/call.ts'
import type { Deadline } from '../../http/deadline.ts'
import type { Lifetime } from '../../lifetime.ts'
import type { Schemas } from '../../options.ts'
import type { Parse } from '../../schemas/shape.ts'
import type { Settings } from '../../settings/resolve.ts'
import type { Intent } from './intent.ts'
import type { Journal } from './journal.ts'

export interface OrderContext
  extends Omit<Settings<Schemas>, 'options' | 'schemas' | 'store' | 'codec' | 'retention'> {
  readonly journal: Journal
  readonly lifetime: Lifetime
}

/** Also knows how the caller's own schema reads an order. */
export interface OrdersContext<Output> extends OrderContext {
  readonly parse: Parse<Output>
}

/** One call of `create()`, or the recovery of one record. */
export interface Job {
  readonly command: 'create' | 'recover'
  /** What the caller wants. Undefined for recovery, which sends what the record has. */
  readonly intent: Intent | undefined
  readonly rowId: string
  readonly settings: CallSettings
  readonly deadline: Deadline
  /** When the call began, also if it has looked its order up since. */
  readonly startedAt: number
  /** Random id of the call, in its events and in the records that it writes. */
  readonly callId: string
  /** True to claim records even if a call of another process may still be placing their orders. */
  readonly takeOver: boolean
  /** Version of the record whose order this call did not find in the service's whole list. */
  readonly unlisted: number | undefined
}

export interface CreateJob extends Job {
  readonly command: 'create'
  readonly intent: Intent
}

const create: Endpoint = {
  operation: 'orders.create',
  method: 'POST',
  permission: 'orders:write',
  missing: 'service_or_customer',
}
/** How each command sends an order. */
export const SENDING: Readonly<Record<Job['command'], Endpoint>> = {
  create,
  recover: { ...create, operation: 'orders.recover' },
}

export const ORDERS_PATH = '/v1/orders'

export function orderEvent({
  command,
  callId,
}: Pick<Job, 'command' | 'callId'>): Omit<CallEvent, 'idempotencyKey'> {
  const { operation, method } = SENDING[command]
  return { callId, operation, method, path: ORDERS_PATH }
}
