import type {
  CreateManyOptions,
  CreateManyRow,
  CreateOptions,
  ListOptions,
  ListOrdersParams,
  OrderName,
  ReconcileParams,
  RecoverOptions,
  RememberedQuery,
  RequestOptions,
  Resolution,
  WaitForOptions,
} from '../call-options.ts'
import { Lazy, listOf, once } from '../lazy.ts'
import { type ListEndpoint, listPages } from '../lists/list-pages.ts'
import type { Pages } from '../lists/pages.ts'
import type { OrderOf, Schemas } from '../options.ts'
import { createOrder } from '../orders/commands/create.ts'
import {
  type CreateManyResult,
  type CreateManySummary,
  createMany,
  createManySummary,
} from '../orders/commands/create-many.ts'
import { orderRead } from '../orders/commands/look-up.ts'
import { type Reconciled, reconcile } from '../orders/commands/reconcile.ts'
import { recover } from '../orders/commands/recover.ts'
import {
  type RecoveryOutcome,
  type RecoverySummary,
  recoverySummary,
} from '../orders/commands/recovery-outcome.ts'
import { records, remembered } from '../orders/commands/remembered.ts'
import { forget, resolve } from '../orders/commands/resolve.ts'
import { waitForOrder } from '../orders/commands/wait-for.ts'
import { ORDERS_PATH, type OrderContext, type OrdersContext } from '../orders/record/context.ts'
import type { OrderRecord } from '../orders/record/record.ts'
import { attachInfo } from '../response-info.ts'
import { type CreateOrderRequest, orderSchema } from '../schemas/order.ts'
import { reader } from '../schemas/shape.ts'
import { callSettings, readArguments, refuseArgument } from '../settings/arguments.ts'
import { type ResourceContext, retrieve } from './context.ts'

const LIST = { operation: 'orders.list', method: 'GET', permission: 'orders:read' } as const

/** Places each order once, reads orders, and settles orders without a known outcome. */
export class Orders<S extends Schemas = Schemas> {
  readonly #context: ResourceContext & OrdersContext<OrderOf<S>>
  readonly #list: ListEndpoint<OrderOf<S>>

  /** @internal */
  constructor(context: ResourceContext & OrderContext) {
    const rows = reader<OrderOf<S>>(orderSchema, context.schemas.order)
    this.#list = { endpoint: LIST, path: ORDERS_PATH, identifier: 'id', ...rows }
    this.#context = { ...context, parse: rows.parse }
  }

  /**
   * Places one order, paid from the wallet (permission `orders:write`).
   *
   * Give each order your own `metadata.externalOrderId`. Calls with the same reference are for the
   * same order: retries, restarts and several workers charge the wallet at most once, and all of
   * these calls return that order. After an error with `charged: 'unknown'`, make the same call
   * again. Never order again under another reference.
   *
   * Retries up to 4 times by default, with exponential backoff, within 120,000 ms (`totalTimeout`).
   *
   * @throws {InvalidRequestError} if an argument is wrong; nothing was sent
   * @throws {StoreError} if the order cannot be stored; nothing was sent
   * @throws {DuplicateOrderError} if an identical order without a reference or key is being placed
   * @throws {UnresolvedOrderError} if an earlier call for this order must be settled first; no
   *   order was sent (`charged`: `'unknown'` or `'yes'`)
   * @throws {IdempotencyConflictError} if the reference or key belongs to another order
   * @throws {ApiError} if the service refused the order: a subclass for each status
   * @throws {ConnectionError} or {@link TimeoutError} if no complete response arrived
   * @throws {InvalidResponseError} if the order was created but cannot be read (`charged: 'yes'`)
   * @throws {RequestAbortedError} if `signal` ended the call, which does not undo an order
   * @example
   * const order = await client.orders.create({
   *   serviceId: service.productId,
   *   target: '@someone',
   *   quantity: 100,
   *   metadata: { externalOrderId: 'invoice-4711' },
   * })
   */
  async create(request: CreateOrderRequest, options?: CreateOptions): Promise<OrderOf<S>> {
    return (await createOrder(this.#context, request, options)).value
  }

  /**
   * Places many orders with constant memory: rows are read as results are consumed.
   *
   * A failed row yields a result with its error and never stops the other rows. Every row needs a
   * reference or a key, so that a second run after a crash buys nothing twice. Leaving the loop
   * waits for the orders that are being placed; aborting `signal` ends their calls. You can use a
   * run once: iterate it, or await it to place all rows and get a summary.
   *
   * @throws {InvalidRequestError} if `rows` is not iterable
   * @throws {RequestAbortedError} after the last result, if `signal` ended the run ({@link TimeoutError}:
   *   at a time limit)
   * @example
   * for await (const result of client.orders.createMany(rows, { concurrency: 16 })) {
   *   if (!result.ok)
   *     console.error(result.request.metadata?.externalOrderId, result.error.code, result.charged)
   * }
   * @example
   * const { created, replayed, failures } = await client.orders.createMany(rows)
   */
  createMany(
    rows: Iterable<CreateManyRow> | AsyncIterable<CreateManyRow>,
    options?: CreateManyOptions,
  ): Lazy<CreateManyResult<OrderOf<S>>, CreateManySummary> {
    const settings = readArguments.createMany(options)
    const given: unknown = rows
    const isRows = typeof given === 'object' && given !== null
    if (!(isRows && (Symbol.asyncIterator in given || Symbol.iterator in given)))
      refuseArgument('must be iterable', 'rows')
    const run = () => {
      this.#context.lifetime.check('unknown')
      return createMany(this.#context, rows, settings)
    }
    return new Lazy(once('orders.createMany', run), createManySummary)
  }

  /**
   * Retrieves one order of this customer (permission `orders:read`).
   *
   * Its status is the source of truth for reconciliation (API document).
   *
   * @throws {NotFoundError} if this customer has no such order
   * @throws {InvalidResponseError} if the response contains another order
   * @example
   * const { status } = await client.orders.retrieve('ord_4f2a')
   */
  async retrieve(orderId: string, options?: RequestOptions): Promise<OrderOf<S>> {
    const { endpoint, path, parse } = orderRead('orders.retrieve', orderId, this.#context.parse)
    return await retrieve(this.#context, endpoint, path, parse, options)
  }

  /**
   * Lists the orders of this customer (permission `orders:read`), with pagination built in.
   *
   * The sort order is not documented.
   *
   * @throws {InvalidRequestError} if `limit` or `offset` is invalid
   * @example
   * for await (const order of client.orders.list()) console.log(order.id, order.status)
   * @example
   * const page = await client.orders.list({ limit: 20, offset: 40 })
   * console.log(page.items.length, page.total)
   */
  list(params?: ListOrdersParams, options?: ListOptions): Pages<OrderOf<S>> {
    return listPages(this.#context, this.#list, readArguments.listOrders(params), options)
  }

  /**
   * Polls an order until `until` returns true, and returns the order.
   *
   * Polls every 0.5 to 1 s at first, and slows down to every 15 to 30 s. A 404 in the first ten
   * seconds does not end the wait: the order may be too new to be read.
   *
   * @throws {TimeoutError} after `timeout` milliseconds (default 120,000); waiting again is safe
   * @throws {RequestAbortedError} if `signal` ended the wait
   * @example
   * await client.orders.waitFor(order.id, {
   *   until: ({ status }) => status === 'delivered',
   *   timeout: 600_000,
   * })
   */
  async waitFor(orderId: string, options: WaitForOptions<OrderOf<S>>): Promise<OrderOf<S>> {
    // The cast is safe: the compiler has checked the type of `until`, and the reader checks that it
    // is a function.
    const { until, timeout, ...call } = readArguments.waitFor(options) as Partial<WaitForOptions<OrderOf<S>>>
    if (until === undefined) return refuseArgument('must be a function', 'until')
    const settings = callSettings(this.#context.defaults, call)
    const { value, info } = await waitForOrder(this.#context, orderId, until, timeout ?? 120_000, settings)
    attachInfo(value, info)
    return value
  }

  /**
   * Reads the records of one order, or of all orders since a time (milliseconds since 1970).
   *
   * Sends nothing. `await` returns at most 10,000 records; iterate to read more.
   *
   * @throws {InvalidRequestError} unless exactly one field of `query` is set
   * @throws {StoreError} if the store cannot be read
   * @example
   * const [record] = await client.orders.remembered({ externalOrderId: 'invoice-4711' })
   */
  remembered(query: RememberedQuery): Lazy<OrderRecord, OrderRecord[]> {
    const which = readArguments.query(query)
    const { lifetime } = this.#context
    return listOf('orders.remembered', () => lifetime.each(remembered(this.#context, which)))
  }

  /**
   * Lists the remembered orders that are not settled: those that the next `recover()` works on.
   *
   * Sends nothing. `await` returns at most 10,000 records; iterate to read more.
   *
   * @throws {StoreError} if the store cannot be read
   * @example
   * for (const { key, externalOrderId = key, state } of await client.orders.unresolved())
   *   console.log(externalOrderId, state)
   */
  unresolved(): Lazy<OrderRecord, OrderRecord[]> {
    const { lifetime } = this.#context
    return listOf('orders.unresolved', () => lifetime.each(records(this.#context, 'open')))
  }

  /**
   * Settles orders that earlier calls have left without a known outcome.
   *
   * Reports those that need a person. Run it when your program starts.
   *
   * Many processes can run it at the same time, and a run that was killed can be repeated safely.
   * You can use a run once: leaving the loop ends it; `await` completes it and returns a summary.
   *
   * @throws {StoreError} if the store cannot be read
   * @throws {RequestAbortedError} if `signal` ended the run; running it again is safe ({@link TimeoutError}:
   *   at a time limit)
   * @example
   * const { created, stillOpen, needsAttention } = await client.orders.recover()
   * for (const { record, reason } of needsAttention) console.warn(record.externalOrderId, reason)
   * @example
   * for await (const { outcome, record, reason } of client.orders.recover())
   *   console.log(record.externalOrderId, outcome, reason)
   */
  recover(options?: RecoverOptions): Lazy<RecoveryOutcome<OrderOf<S>>, RecoverySummary> {
    const how = readArguments.recover(options)
    const { lifetime, connection } = this.#context
    const run = () => lifetime.each(connection.reporter.recovered(recover(this.#context, how)))
    return new Lazy(once('orders.recover', run), recoverySummary)
  }

  /**
   * Closes an order that `recover()` reports as `needs_attention`, as a person has decided.
   *
   * `{ as: 'abandoned' }` can lead to a second charge: the next call with the same reference buys
   * under a new key.
   *
   * @throws {InvalidRequestError} if there is no such record, or if the order from the service does
   *   not match the record
   * @throws {UnresolvedOrderError} if a call is working on the order, or, for `abandoned`, if a call
   *   whose claim was taken over may still send it: try again after `totalTimeout`
   * @throws {NotFoundError} if the service has no order with the id `orderId`
   * @throws {StoreError} if the decision could not be stored
   * @example
   * const name = { externalOrderId: 'invoice-4711' }
   * await client.orders.resolve(name, { as: 'created', orderId: 'ord_4f2a' })
   */
  async resolve(name: OrderName, resolution: Resolution, options?: RequestOptions): Promise<OrderRecord> {
    const which = readArguments.name(name)
    const decision = readArguments.resolution(resolution)
    const settings = callSettings(this.#context.defaults, readArguments.call(options))
    return await this.#context.lifetime.use(() => resolve(this.#context, which, decision, settings))
  }

  /**
   * Deletes the record of a settled order, for example at a customer's request.
   *
   * Also deletes the record of a paid order that could not be read, if its id is known: write it down.
   * Returns false if there was no record, or if another call changed the record at the same time.
   * After a deletion, the next call with the order's reference or key sends the order again.
   *
   * @throws {InvalidRequestError} if the order is not settled
   * @throws {TimeoutError} if the store was not read within `totalTimeout`; nothing was deleted
   * @throws {StoreError} if the store failed or did not confirm in time; calling again is safe
   * @example
   * await client.orders.forget({ externalOrderId: 'invoice-4711' })
   */
  async forget(name: OrderName): Promise<boolean> {
    const which = readArguments.name(name)
    return await this.#context.lifetime.use(() => forget(this.#context, which))
  }

  /**
   * Compares remembered orders with the service's whole list, by order id or by your reference.
   *
   * Changes nothing on either side. `await` returns at most 10,000 results; iterate to read more.
   *
   * @throws {StoreError} if the store cannot be read
   * @throws {ApiError} if the service refused to list the orders
   * @example
   * for await (const { kind, record, order } of client.orders.reconcile()) {
   *   if (kind !== 'matched') console.warn(kind, record?.externalOrderId, order?.id)
   * }
   */
  reconcile(
    params?: ReconcileParams,
    options?: RequestOptions,
  ): Lazy<Reconciled<OrderOf<S>>, Reconciled<OrderOf<S>>[]> {
    const which = readArguments.reconcile(params)
    const { lifetime, defaults } = this.#context
    const settings = callSettings(defaults, readArguments.call(options))
    return listOf('orders.reconcile', () => lifetime.each(reconcile(this.#context, which, settings)))
  }
}
