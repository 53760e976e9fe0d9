import type { CreateManyRow, CreateOptions, RequestOptions } from '../call-options.ts'
import { defined, isUndefinedIn, ownValue } from '../defined.ts'
import {
  type ErrorFacts,
  InvalidResponseError,
  isCustomerOrderingError,
  RequestAbortedError,
  type SupportReference,
  TimeoutError,
} from '../errors/classes.ts'
import { chargedSentence } from '../errors/messages.ts'
import type { CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { answerFacts } from '../http/request.ts'
import type { ListEndpoint } from '../lists/list-pages.ts'
import { type OrderReply, placeOrder, responseInfoOf } from '../orders/commands/create.ts'
import type { CreateManyResult } from '../orders/commands/create-many.ts'
import type { Finish } from '../orders/commands/recovery-outcome.ts'
import type { OrderContext } from '../orders/record/context.ts'
import { slotOfInvalid } from '../orders/record/intent.ts'
import { pruneHourly } from '../orders/record/retention.ts'
import { argumentError } from '../orders/sending/order-errors.ts'
import { attachInfo } from '../response-info.ts'
import { issuesText } from '../schemas/check.ts'
import type { CreateOrderRequest, Order } from '../schemas/order.ts'
import { callSettings, readArguments, refuseArgument } from '../settings/arguments.ts'
import type { ResourceContext } from './context.ts'

export interface OrdersContext<Output> extends ResourceContext, OrderContext {
  readonly list: ListEndpoint<Output>
}

export async function createOrder<Output>(
  context: OrdersContext<Output>,
  request: CreateOrderRequest,
  options?: CreateOptions,
): Promise<OrderReply<Output>> {
  let read: CreateOptions
  try {
    read = readArguments.create(options)
  } catch (error) {
    throw await ofNamedOrder(context, error, request, options)
  }
  const { idempotencyKey, allowDuplicate, ...call } = read
  const settings = callSettings(context.defaults, call)
  const keyIsUndefined = isUndefinedIn(options, 'idempotencyKey')
  const reply = await context.lifetime.use(() =>
    placeOrder(context, request, {
      settings,
      idempotencyKey,
      keyIsUndefined,
      allowDuplicate,
      finish: ({ value, info }) => {
        const { journal, retention, connection } = context
        pruneHourly(journal, retention, connection.runtime, connection.reporter)
        const { attempts, supportReference } = info
        const known = { attempts, ...answerFacts(info), ...supportReference }
        return fitOrder(context, value, 'orders.create', settings, known)
      },
    }),
  )
  attachInfo(reply.value, responseInfoOf(reply.info))
  return reply
}

/** Adds to the error whether an earlier call for the same order may have charged the wallet. */
function ofNamedOrder(
  context: OrdersContext<unknown>,
  error: unknown,
  request: unknown,
  options: unknown,
): Promise<unknown> {
  const slot = slotOfInvalid(request, ownValue(options, 'idempotencyKey'))
  const deadline = new Deadline(context.connection.runtime, context.defaults.totalTimeout, undefined)
  return argumentError(context, error, slot, deadline)
}

const KEYED_ROW = '{ request, idempotencyKey }'

/** Returns an error of this package as a result, so that a failed row does not end the run. */
export async function placeRow<Output>(
  context: OrdersContext<Output>,
  row: CreateManyRow,
  call: RequestOptions,
): Promise<CreateManyResult<Output>> {
  // Throws instead of returning a result, so that a run stops reading rows once the client is
  // closed.
  context.lifetime.check('unknown')
  const { request, idempotencyKey } = isKeyed(row) ? row : { request: row, idempotencyKey: undefined }
  try {
    if (!isKeyed(row)) {
      try {
        refuseMisshapenRow(row)
      } catch (error) {
        throw await ofNamedOrder(context, error, ownValue(row, 'request') ?? row, row)
      }
    }
    const unnamed = idempotencyKey === undefined && request?.metadata?.externalOrderId === undefined
    // A row with `toJSON()` may have a reference all the same.
    if (unnamed && slotOfInvalid(request, undefined) === undefined)
      refuseArgument(`is missing: set it, or use ${KEYED_ROW} as the row`, 'metadata.externalOrderId')
    const { value, info } = await createOrder(context, request, { ...call, ...defined({ idempotencyKey }) })
    return { ok: true, request, order: value, replayed: info.replayed, charged: 'yes' }
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    return { ok: false, request, error, charged: error.charged }
  }
}

function isKeyed(row: CreateManyRow): row is Exclude<CreateManyRow, CreateOrderRequest> {
  return (
    typeof row === 'object' &&
    row !== null &&
    !Object.hasOwn(row, 'serviceId') &&
    Object.hasOwn(row, 'idempotencyKey')
  )
}

/** Without this check, a row of the wrong shape would cause an error about missing order fields. */
function refuseMisshapenRow(row: unknown): void {
  if (typeof row !== 'object' || row === null)
    refuseArgument(`of createMany() must be an order request or ${KEYED_ROW}`, 'row')
  const isOrder = Object.hasOwn(row, 'serviceId')
  if (isOrder && Object.hasOwn(row, 'idempotencyKey'))
    refuseArgument(`belongs next to the request: make the row ${KEYED_ROW}`, 'idempotencyKey')
  if (!isOrder && Object.hasOwn(row, 'request'))
    refuseArgument(`is missing: make the row ${KEYED_ROW}`, 'idempotencyKey')
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
