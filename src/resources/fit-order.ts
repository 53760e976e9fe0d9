import { bare, defined } from '../defined.ts'
import { type ErrorFacts, InvalidResponseError, type SupportReference } from '../errors.ts'
import { type CallSettings, noTrail } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { chargedSentence, errorOf } from '../http/failures.ts'
import type { ListEndpoint } from '../lists/envelope.ts'
import type { OrderContext } from '../orders/context.ts'
import { orderCall } from '../orders/place-order-errors.ts'
import type { Finish } from '../orders/recovery-outcome.ts'
import { issuesText } from '../schemas/check.ts'
import type { Order } from '../schemas/order.ts'
import type { ResourceContext } from './context.ts'

export interface OrdersContext<Output> extends ResourceContext, OrderContext {
  readonly list: ListEndpoint<Output>
}

/** Parses a paid order with the caller's own schema, which may be slow or reject the order. */
export async function fitOrder<Output>(
  { list, connection }: OrdersContext<Output>,
  order: Order,
  operation: string,
  settings: CallSettings,
  known: SupportReference & Pick<ErrorFacts, 'attempts' | 'status' | 'requestId'>,
): Promise<Output> {
  const checked = list.parse(order)
  const deadline = new Deadline(connection.runtime, settings.totalTimeout, settings.signal)
  const parsed = checked instanceof Promise ? await deadline.race(checked) : checked
  if (parsed instanceof Interruption) {
    const { attempts = 0, orderId, idempotencyKey, externalOrderId } = bare(known)
    const paid = { charged: 'yes', orderId, idempotencyKey, externalOrderId } as const
    const trail = { ...noTrail(true), attempts }
    throw errorOf({ end: parsed.why, trail }, orderCall(operation, paid, settings.signal))
  }
  if ('value' in parsed) return parsed.value
  const { issues } = parsed
  throw new InvalidResponseError(
    `${operation}: the order does not match schemas.order: ${issuesText(issues)}.` +
      ` ${chargedSentence('yes')} Correct the schema, then call again.`,
    { ...known, charged: 'yes', issues },
  )
}

export function finishOf<Output>(
  context: OrdersContext<Output>,
  operation: string,
  settings: CallSettings,
): Finish<Output> {
  return (order, record) =>
    fitOrder(context, order, operation, settings, {
      orderId: order.id,
      ...defined({ idempotencyKey: record?.key, externalOrderId: record?.externalOrderId }),
    })
}
