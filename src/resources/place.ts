import type { CreateManyRow, CreateOptions, EnqueueOptions, RequestOptions } from '../call-options.ts'
import { defined, isUndefinedIn, ownValue } from '../defined.ts'
import { isCustomerOrderingError } from '../errors.ts'
import { Deadline } from '../http/deadline.ts'
import { answerFacts } from '../http/info.ts'
import { placeOrder } from '../orders/create.ts'
import type { CreateManyResult } from '../orders/create-many.ts'
import { enqueueOrder } from '../orders/enqueue.ts'
import { slotOfInvalid } from '../orders/intent.ts'
import { argumentError } from '../orders/place-order-errors.ts'
import type { OrderRecord } from '../orders/record.ts'
import { type OrderReply, responseInfoOf } from '../orders/reply.ts'
import { attachInfo } from '../response-info.ts'
import type { CreateOrderRequest } from '../schemas/order.ts'
import { callSettings, readArguments, refuseArgument } from '../settings/arguments.ts'
import { fitOrder, type OrdersContext } from './fit-order.ts'

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
  const { idempotencyKey, allowDuplicate, service, ...call } = read
  const settings = callSettings(context.defaults, call)
  const keyIsUndefined = isUndefinedIn(options, 'idempotencyKey')
  const reply = await context.lifetime.use(() =>
    placeOrder(context, request, {
      settings,
      idempotencyKey,
      keyIsUndefined,
      allowDuplicate,
      service,
      finish: ({ value, info }) => {
        const { journal, retention, connection } = context
        journal.pruneHourly(retention, connection.reporter)
        const { attempts, supportReference } = info
        const known = { attempts, ...answerFacts(info), ...supportReference }
        return fitOrder(context, value, 'orders.create', settings, known)
      },
    }),
  )
  attachInfo(reply.value, responseInfoOf(reply.info))
  return reply
}

export async function enqueue(
  context: OrdersContext<unknown>,
  request: CreateOrderRequest,
  options?: EnqueueOptions,
): Promise<OrderRecord> {
  let read: EnqueueOptions
  try {
    read = readArguments.enqueue(options)
  } catch (error) {
    throw await ofNamedOrder(context, error, request, options)
  }
  return await context.lifetime.use(() => enqueueOrder(context, request, read, context.defaults))
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
    if (idempotencyKey === undefined && request?.metadata?.externalOrderId === undefined)
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
