import type { CreateManyProgress, CreateManyRow } from '../../call-options.ts'
import { type AnyCustomerOrderingError, type Charged, RequestAbortedError } from '../../errors/classes.ts'
import type { CreateOrderRequest, Order } from '../../schemas/order.ts'

/** A row whose order exists and was paid. */
export interface CreateManySuccess<Output> {
  /** True: `order` exists. */
  readonly ok: true
  /** The row's request, as the source provided it. */
  readonly request: CreateOrderRequest
  /** The order, new or remembered. */
  readonly order: Output
  /**
   * True if the order existed before this row was placed, false if this row created it, undefined
   * if that is unknown.
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

/** Resolves even if the row fails. A rejection ends the run. */
export type PlaceRow<Output> = (row: CreateManyRow) => Promise<CreateManyResult<Output>>

export interface CreateManySettings {
  /** Maximum number of orders in progress plus results not yet read, to bound the memory used. */
  readonly concurrency: number
  readonly onProgress: ((progress: CreateManyProgress) => void) | undefined
  readonly signal: AbortSignal | undefined
}

const ABORTED =
  'orders.createMany was aborted. Its orders may have been charged. Call again with the same rows.'

/**
 * When the caller leaves the loop, the run waits for the orders in progress, so that no order is
 * left ambiguous. It does not wait for the source's next row, which may never come.
 */
export async function* createMany<Output>(
  rows: Iterable<CreateManyRow> | AsyncIterable<CreateManyRow>,
  place: PlaceRow<Output>,
  { concurrency, onProgress, signal }: CreateManySettings,
): AsyncGenerator<CreateManyResult<Output>, void, undefined> {
  const source = Symbol.asyncIterator in rows ? rows[Symbol.asyncIterator]() : rows[Symbol.iterator]()
  const ready: CreateManyResult<Output>[] = []
  const progress = { completed: 0, created: 0, replayed: 0, failed: 0 }
  let working = 0
  let reading = false
  let ended = false
  /** True once the source has ended or thrown: then its `return()` must not be called. */
  let exhausted = false
  let failure: { readonly error: unknown } | undefined
  let wake: () => void = () => {}

  const settle = (result: CreateManyResult<Output>): void => {
    working--
    progress.completed++
    if ('error' in result) progress.failed++
    else if (result.replayed === true) progress.replayed++
    else progress.created++
    ready.push(result)
    try {
      onProgress?.({ ...progress })
    } catch (error) {
      // End the run, but yield the ready results first.
      fail(error)
    }
    wake()
  }
  const fail = (error: unknown): void => {
    ended = true
    failure ??= { error }
    wake()
  }
  const readRow = async (): Promise<void> => {
    reading = true
    try {
      const next = await source.next()
      if (next.done === true) exhausted = true
      // Do not place a row that arrives after the end: the caller would never see its result.
      if (ended) return
      if (next.done === true) ended = true
      else {
        working++
        place(next.value).then(settle, (error) => {
          working--
          fail(error)
        })
      }
    } catch (error) {
      exhausted = true
      fail(error)
    } finally {
      reading = false
      wake()
    }
  }

  const onAbort = (): void => {
    ended = true
    failure ??= { error: new RequestAbortedError(ABORTED, { charged: 'unknown', cause: signal?.reason }) }
    wake()
  }
  if (signal?.aborted === true) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    for (;;) {
      if (!ended && !reading && working + ready.length < concurrency) {
        void readRow()
        continue
      }
      const result = ready.shift()
      if (result !== undefined) {
        yield result
        continue
      }
      if (ended && working === 0) break
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    if (failure !== undefined) throw failure.error
  } finally {
    signal?.removeEventListener('abort', onAbort)
    ended = true
    while (working > 0) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    if (!exhausted) {
      const returned = (async () => await source.return?.())()
      // A generator that waits for a row returns only after that row, which may never come.
      if (reading) returned.catch(() => {})
      // Throw the first error, not an error of `return()`.
      else if (failure !== undefined) await returned.catch(() => {})
      else await returned
    }
  }
}

/** Result of `await client.orders.createMany(rows)`. Lists failed rows and counts all others. */
export interface CreateManySummary {
  /** Number of orders that this run created, including those whose `replayed` is undefined. */
  readonly created: number
  /** Number of rows whose order existed before the row was placed. */
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
