import { defined } from '../defined.ts'
import {
  type ErrorFacts,
  InvalidResponseError,
  RequestAbortedError,
  type SupportReference,
  TimeoutError,
} from '../errors.ts'
import type { CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { chargedSentence } from '../http/failures.ts'
import type { ListEndpoint } from '../lists/envelope.ts'
import type { OrderContext } from '../orders/context.ts'
import type { Finish } from '../orders/recovery-outcome.ts'
import { issuesText } from '../schemas/check.ts'
import type { Order } from '../schemas/order.ts'
import type { ResourceContext } from './context.ts'

export interface OrdersContext<Output> extends ResourceContext, OrderContext {
  readonly list: ListEndpoint<Output>
}

/**
 * Parses a paid order with the caller's own schema, which may be slow or reject the order. The
 * errors must not advise another call: without a reference or key, it would place a second order.
 */
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
  const paid = { ...known, charged: 'yes' } as const
  const told = (what: string): string =>
    `${operation}: ${what}. ${chargedSentence('yes')} Check schemas.order, then read the order with orders.retrieve().`
  if (parsed instanceof Interruption) {
    const cause: unknown = settings.signal?.reason
    throw parsed.why === 'aborted'
      ? new RequestAbortedError(told("the caller's signal aborted schemas.order"), { ...paid, cause })
      : new TimeoutError(told('schemas.order did not finish within totalTimeout'), paid)
  }
  if ('value' in parsed) return parsed.value
  const { issues } = parsed
  const what = `the order does not match schemas.order: ${issuesText(issues)}`
  throw new InvalidResponseError(told(what), { ...paid, issues })
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
