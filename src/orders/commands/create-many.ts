/** Places many orders at the same time. */
import type { CreateManyOptions, CreateManyRow, RequestOptions } from '../../call-options.ts'
import { defined, isObject } from '../../defined.ts'
import { type AnyCustomerOrderingError, type Charged, isCustomerOrderingError } from '../../errors/classes.ts'
import { abortedError } from '../../http/failures.ts'
import { isNameless } from '../../identity/keys.ts'
import type { CreateOrderRequest, Order } from '../../schemas/order.ts'
import { refuseArgument } from '../../settings/arguments.ts'
import type { OrdersContext } from '../record/context.ts'
import type { Intent } from '../record/intent.ts'
import { orderCall } from '../sending/order-errors.ts'
import { concurrently } from './concurrently.ts'
import { createOrder } from './create.ts'

/** A row whose order exists and was paid. */
export interface CreateManySuccess<Output> {
  /** True: `order` exists. */
  readonly ok: true
  /** The row's request, as the source provided it. */
  readonly request: CreateOrderRequest
  /** The order, new or remembered. */
  readonly order: Output
  /**
   * True if the order existed before this row was placed, as far as is known; false if this row created
   * it; undefined if that is unknown.
   */
  readonly replayed: boolean | undefined
  /** The wallet was charged, during this run or before it. */
  readonly charged: 'yes'
}

/** A row that failed. */
export interface CreateManyFailure {
  /** False: `error` shows why. */
  readonly ok: false
  /** The row's request, as the source provided it. */
  readonly request: CreateOrderRequest
  /** Why the row failed. */
  readonly error: AnyCustomerOrderingError
  /** Whether the wallet was charged for this order. */
  readonly charged: Charged
}

/** Result of one row, narrowed by `ok`. */
export type CreateManyResult<Output = Order> = CreateManySuccess<Output> | CreateManyFailure

/** When the caller leaves the loop, the run waits for the orders in progress, so that none is ambiguous. */
export async function* createMany<Output>(
  context: OrdersContext<Output>,
  rows: Iterable<CreateManyRow> | AsyncIterable<CreateManyRow>,
  { concurrency = 8, onProgress, ...call }: Partial<CreateManyOptions>,
): AsyncGenerator<CreateManyResult<Output>, void, undefined> {
  const { signal } = call
  const progress = { completed: 0, created: 0, replayed: 0, failed: 0 }
  yield* concurrently(rows, {
    concurrency,
    work: (row: CreateManyRow) => placeRow(context, row, call),
    signal,
    aborted: () => {
      const call = orderCall('create', { charged: 'unknown' }, signal)
      return abortedError({ ...call, change: ' with the same rows' })
    },
    stop: undefined,
    onResult: (result) => {
      progress.completed++
      progress[!result.ok ? 'failed' : result.replayed === true ? 'replayed' : 'created']++
      return onProgress?.({ ...progress })
    },
  })
}

/** Returns an error of this package as a result, so that a failed row does not end the run. */
async function placeRow<Output>(
  context: OrdersContext<Output>,
  row: CreateManyRow,
  call: RequestOptions,
): Promise<CreateManyResult<Output>> {
  // Throws instead of returning a result, so that a run stops reading rows once the client is
  // closed.
  context.lifetime.check('unknown')
  const { request, idempotencyKey } = isKeyed(row) ? row : { request: row, idempotencyKey: undefined }
  try {
    const options = { ...call, ...defined({ idempotencyKey }) }
    const check = (intent: Intent): void => checkRow(row, intent)
    const { value, replayed } = await createOrder(context, request, options, check)
    return { ok: true, request, order: value, replayed, charged: 'yes' }
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    return { ok: false, request, error, charged: error.charged }
  }
}

function checkRow(row: CreateManyRow, { slot }: Intent): void {
  const names = isKeyed(row) ? Object.keys(row) : []
  // A misspelled key would be lost, and the order sent under another one.
  const further = names.find((name) => name !== 'request' && name !== 'idempotencyKey')
  const use = 'use { request, idempotencyKey } as the row'
  if (further !== undefined) refuseArgument(`is not known in a row: ${use}`, further)
  if (isNameless(slot)) refuseArgument(`is missing: set it, or ${use}`, 'metadata.externalOrderId')
}

function isKeyed(row: CreateManyRow): row is Exclude<CreateManyRow, CreateOrderRequest> {
  const has = (name: string): boolean => isObject(row) && Object.hasOwn(row, name)
  return !has('serviceId') && (has('idempotencyKey') || has('request'))
}

/** Result of `await client.orders.createMany(rows)`. Lists failed rows and counts all others. */
export interface CreateManySummary {
  /** Number of placed rows that `replayed` does not count. */
  readonly created: number
  /** Number of rows whose order existed before, as far as is known. */
  readonly replayed: number
  /** Number of rows that failed: the length of `failures`. */
  readonly failed: number
  /** The failed rows. Each shows whether the wallet was charged. */
  readonly failures: readonly CreateManyFailure[]
}

export async function createManySummary(
  results: AsyncIterable<CreateManyResult<unknown>>,
): Promise<CreateManySummary> {
  const count = { created: 0, replayed: 0 }
  const failures: CreateManyFailure[] = []
  for await (const result of results) {
    if (!result.ok) failures.push(result)
    else if (result.replayed === true) count.replayed++
    else count.created++
  }
  return { ...count, failed: failures.length, failures }
}
