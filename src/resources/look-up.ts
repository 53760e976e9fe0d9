import { defined } from '../defined.ts'
import { type CustomerOrderingError, isCustomerOrderingError } from '../errors.ts'
import type { CallSettings } from '../http/call.ts'
import { segment } from '../http/path.ts'
import { ADDRESS_ONLY, MAX_ITEM_BYTES, type Reply, read } from '../http/read.ts'
import type { FoundRecord } from '../idempotency/journal.ts'
import { publicRecord } from '../idempotency/record.ts'
import { type Checked, checkNow } from '../schemas/check.ts'
import { type Order, orderSchema } from '../schemas/order.ts'
import { withId } from './context.ts'
import { type Asked, contradiction, echoOf } from './evidence.ts'
import { ORDERS_PATH, type OrderContext } from './order-context.ts'
import { type AttentionReason, markCreated, type RecoveryOutcome } from './recovery-outcome.ts'
import { scanOrders } from './scan-orders.ts'

/** A record to be looked up, because repeating its request is not safe. */
export interface Lookup {
  readonly found: FoundRecord
  readonly reason: AttentionReason
}

/** Codes of errors after which looking again later may find what was sought. */
const PASSING: ReadonlySet<string> = new Set(['connection', 'timeout', 'server', 'rate_limit'])
/** Statuses of which the same is true: the service did not look at the request, or not in time. */
const PASSING_STATUSES: ReadonlySet<number | undefined> = new Set([408, 425])
const MAX_PAGES = 200
/** A second sweep, because rows move while the list is read; more would prove no more. */
const SWEEPS = 2

/**
 * Reads the order with this id.
 * @param asked what is known of it, which the order must not contradict
 */
export async function readOrder(
  context: OrderContext,
  operation: string,
  orderId: string,
  money: 'in_doubt' | 'charged',
  settings: CallSettings,
  asked?: Asked,
): Promise<Reply<Order>> {
  return await read(context.connection, {
    ...ADDRESS_ONLY,
    endpoint: { operation, method: 'GET', permission: 'orders:read', missing: 'order' },
    path: `${ORDERS_PATH}/${segment('orderId', orderId)}`,
    settings,
    maxBytes: MAX_ITEM_BYTES,
    repeatable: true,
    money,
    parse: withId('id', orderId, (body) => readable(context, body, asked)),
  })
}

function readable({ connection }: OrderContext, body: unknown, asked: Asked | undefined): Checked<Order> {
  const checked = checkNow(orderSchema, body)
  if (!('value' in checked) || asked === undefined) return checked
  const field = contradiction(connection.runtime.deriveId, asked, echoOf(checked.value), 'response')
  return field === undefined ? checked : { issues: [{ path: field, message: 'is not what was sent' }] }
}

/** Reads an order that is known to exist by its id. */
export async function lookUpById(
  context: OrderContext,
  operation: string,
  found: FoundRecord,
  orderId: string,
  settings: CallSettings,
): Promise<RecoveryOutcome> {
  try {
    const once = { ...settings, maxRetries: 0 }
    const { value: order } = await readOrder(context, operation, orderId, 'charged', once, found.record)
    return await markCreated(context, found, { id: order.id, order })
  } catch (error) {
    if (!isCustomerOrderingError(error) || error.code === 'aborted') throw error
    return { outcome: 'created', record: publicRecord(found.record), reason: 'unreadable', error }
  }
}

/** Looks records up in the order list by their reference: found is proof, not found is none. */
export async function* lookUp(
  context: OrderContext,
  operation: string,
  lookups: readonly Lookup[],
  settings: CallSettings,
  { reachable, checkOpen }: { readonly reachable: boolean; readonly checkOpen: () => void },
): AsyncGenerator<RecoveryOutcome, void, undefined> {
  // Rows without a reference ask for what is never put in.
  const wanted = new Map<string | undefined, Lookup>()
  for (const lookup of lookups) {
    const { externalOrderId } = lookup.found.record
    if (externalOrderId !== undefined) wanted.set(externalOrderId, lookup)
  }
  const { deriveId } = context.connection.runtime
  const scan = { operation, settings, money: 'in_doubt', maxPages: MAX_PAGES, checkOpen } as const
  let looked = reachable
  let error: CustomerOrderingError | undefined
  try {
    for (let sweep = 0; sweep < SWEEPS && wanted.size > 0 && reachable; sweep++) {
      for await (const listed of scanOrders(context, scan)) {
        const lookup = wanted.get(listed.externalOrderId)
        // Another integration of the same customer may use the same references.
        if (lookup === undefined || contradiction(deriveId, lookup.found.record, listed, 'list')) continue
        wanted.delete(listed.externalOrderId)
        yield await markCreated(context, lookup.found, listed)
        if (wanted.size === 0) break
      }
    }
  } catch (caught) {
    if (!isCustomerOrderingError(caught) || caught.code === 'aborted') throw caught
    // A client that was closed meanwhile ends the walk; an API key that could not be had is a failure as any other.
    checkOpen()
    error = caught
    looked = !PASSING.has(caught.code) && !PASSING_STATUSES.has(caught.status)
  }
  for (const { found, reason } of lookups) {
    const { externalOrderId } = found.record
    const record = publicRecord(found.record)
    if (externalOrderId === undefined) yield { outcome: 'needs_attention', record, reason }
    else if (wanted.has(externalOrderId))
      yield looked
        ? { outcome: 'needs_attention', record, reason, ...defined({ error }) }
        : { outcome: 'still_open', record, ...defined({ error }) }
  }
}
