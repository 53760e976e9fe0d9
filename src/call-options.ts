import type { CreateOrderRequest, Order } from './schemas/order.ts'

/**
 * Options of one call, always its last argument.
 *
 * `timeout`, `totalTimeout` and `maxRetries` default to the client's options.
 */
export interface RequestOptions {
  /**
   * Aborts the call, or the iteration of a list.
   *
   * The signal's reason becomes the error's `cause`. `AbortSignal.timeout()` is a time limit: the
   * call rejects with a `TimeoutError`.
   */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for one attempt, up to the last byte of the response. */
  readonly timeout?: number | undefined
  /** Milliseconds for the whole call; in lists, for each page. */
  readonly totalTimeout?: number | undefined
  /** Maximum number of retries, 0 to 100. */
  readonly maxRetries?: number | undefined
  /**
   * Headers of this call, which override the client's.
   *
   * The names that the client option `defaultHeaders` rejects are rejected here, too.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Options of `orders.create`. */
export interface CreateOptions extends RequestOptions {
  /**
   * Idempotency-Key to send, 1 to 255 visible ASCII characters, used unchanged.
   *
   * Use each key for one order only. Without an `externalOrderId`, the key also identifies the
   * order, and an explicit `undefined` is an error. Default: computed from the reference and the
   * client's `account` if both are set, otherwise random.
   */
  readonly idempotencyKey?: string | undefined
  /**
   * True to place a second order while an identical order is unresolved.
   *
   * Only for orders without a reference or key. To repeat such a call after an error, pass the
   * error's `idempotencyKey` instead. Default false.
   */
  readonly allowDuplicate?: boolean | undefined
}

/**
 * One row of `orders.createMany`: an order with a reference, or an order with its Idempotency-Key.
 */
export type CreateManyRow =
  | CreateOrderRequest
  | { readonly request: CreateOrderRequest; readonly idempotencyKey: string }

/** Progress of `orders.createMany`. */
export interface CreateManyProgress {
  /** Rows that have an outcome, including failures. */
  readonly completed: number
  /** Placed rows that `replayed` does not count. */
  readonly created: number
  /** Rows whose order existed before, as far as is known: their `replayed` is true. */
  readonly replayed: number
  /** Rows that failed. */
  readonly failed: number
}

/** Options of `orders.createMany`. Call options apply to each row. */
export interface CreateManyOptions extends RequestOptions {
  /** Maximum number of concurrent orders, a positive integer. Default 8. */
  readonly concurrency?: number | undefined
  /** Called after each row, and not awaited. If the function throws or rejects, the iteration ends. */
  readonly onProgress?: ((progress: CreateManyProgress) => void) | undefined
}

/** Options of `orders.waitFor`. */
export interface WaitForOptions<T = Order> extends RequestOptions {
  /**
   * Returns true to end the wait. You decide which statuses to wait for, because they are
   * undocumented.
   */
  readonly until: (order: T) => boolean | Promise<boolean>
  /** Milliseconds for the whole wait, not for one attempt. Default 120,000. */
  readonly timeout?: number | undefined
}

/** Options of `orders.recover`. */
export interface RecoverOptions extends RequestOptions {
  /** Maximum number of orders that are settled at the same time, a positive integer. Default 8. */
  readonly concurrency?: number | undefined
  /**
   * True to claim orders immediately, even if another process may still be placing them.
   *
   * This never causes a second charge. Set it when your program starts after a crash, if the other
   * process has certainly ended. Default false.
   */
  readonly takeOver?: boolean | undefined
}

/** Options of the `list` methods. Call options apply to each page. */
export interface ListOptions extends RequestOptions {
  /**
   * Number of pages to fetch ahead, 0 to 16.
   *
   * At most 1,000 items are fetched ahead, or one page if a page is larger. Items are returned in
   * the order of the list. Default 0: each page is fetched when it is needed.
   */
  readonly prefetch?: number | undefined
}

/** The part of a list to read. */
export interface ListParams {
  /**
   * Maximum number of items per page, a positive integer. Default: the service's default, which is
   * 50.
   */
  readonly limit?: number | undefined
  /** Number of items to skip, 0 or more. Default 0. */
  readonly offset?: number | undefined
}

/** The part of the order list to read. */
export interface ListOrdersParams extends ListParams {
  /** Only orders created by this integration. */
  readonly sourceSystem?: string | undefined
}

/** The orders that `orders.reconcile` compares. */
export interface ReconcileParams {
  /**
   * Reports only remembered orders written since this time, in milliseconds since 1970.
   *
   * Older remembered orders do not appear as `only_remote` either. Default 0: all.
   */
  readonly since?: number | undefined
  /** Only listed orders created by this integration. */
  readonly sourceSystem?: string | undefined
}

/** Names one remembered order: by the caller's reference or by its Idempotency-Key. */
export type OrderName = { readonly externalOrderId: string } | { readonly idempotencyKey: string }

/** The records to read: one by name, or all written since a time in milliseconds since 1970. */
export type RememberedQuery = OrderName | { readonly since: number }

/** The fields of a request that a service may repeat in the order. */
export type EchoedField = 'externalOrderId' | 'serviceId' | 'quantity' | 'target' | 'sourceSystem'

/** A person's decision: the order exists under this id, or the order is abandoned. */
export type Resolution = ConfirmedOrder | AbandonedOrder

/** The order exists. */
export interface ConfirmedOrder {
  /** Reads the order from the service and stores it as the outcome. */
  readonly as: 'created'
  /** Its id at the service. */
  readonly orderId: string
  /**
   * Request fields in which the order may differ: pass those that an error named, once you know
   * that the order is yours all the same.
   */
  readonly despite?: readonly EchoedField[] | undefined
}

/** Can cost a second charge: nobody looks for the order any more. */
export interface AbandonedOrder {
  /** Closes the record without an order. The next call for the reference buys again. */
  readonly as: 'abandoned'
}
