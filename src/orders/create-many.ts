import { type AnyCustomerOrderingError, type Charged, RequestAbortedError } from '../errors.ts'
import type { CreateManyProgress, CreateManyRow } from '../options.ts'
import type { CreateOrderRequest, Order } from '../schemas/order.ts'

/** A row whose order exists and was paid. */
export interface CreateManySuccess<Output> {
  /** True: `order` exists. */
  readonly ok: true
  /** The row's order, as the source gave it. */
  readonly request: CreateOrderRequest
  /** The order, new or remembered. */
  readonly order: Output
  /**
   * True if the order existed before, false if this call created it, undefined if nobody can know.
   */
  readonly replayed: boolean | undefined
  /** The wallet was charged, by this run or before. */
  readonly charged: 'yes'
}

/** A row that ended in an error. */
export interface CreateManyFailure {
  /** False: `error` says why. */
  readonly ok: false
  /** The row's order, as the source gave it. */
  readonly request: CreateOrderRequest
  /** Why the row failed. */
  readonly error: AnyCustomerOrderingError
  /** Whether the wallet was charged for this order. */
  readonly charged: Charged
}

/** What became of one row, told apart by `ok`. */
export type CreateManyResult<Output = Order> = CreateManySuccess<Output> | CreateManyFailure

/** One row placed: never rejects with one of our errors, so that one row's failure is its own. */
export type PlaceRow<Output> = (row: CreateManyRow) => Promise<CreateManyResult<Output>>

/** How many rows are at work, and who is told. */
export interface CreateManySettings {
  /** Most orders at work or waiting to be taken by the caller. */
  readonly concurrency: number
  readonly onProgress: ((progress: CreateManyProgress) => void) | undefined
  readonly signal: AbortSignal | undefined
}

/**
 * Places rows as long as the caller takes results: a row is read only when fewer than `concurrency` are at work or
 * waiting to be taken, so memory stays the same over any number of rows. Results come as they are ready. Leaving the
 * loop ends the source without waiting for it, and waits for the orders at work, so that none is left in doubt; the signal
 * ends those, too. A row that the source gives after that is not placed.
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
  /** No further row is read. */
  let ended = false
  /** The source has ended by itself, so that it is not told to end. */
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
      // The caller's own error ends the iteration, after the results that are there.
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
      // Nobody waits for a row that comes after the end; it is not placed, so a rerun will.
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
    failure ??= {
      error: new RequestAbortedError('orders.createMany was ended. Run it again for the rest.', {
        cause: signal?.reason,
      }),
    }
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
      // A generator that waits for its next row ends only after that, which may be never.
      if (reading) returned.catch(() => {})
      // What went wrong first is what the caller hears of.
      else if (failure !== undefined) await returned.catch(() => {})
      else await returned
    }
  }
}

/** What `await client.orders.createMany(rows)` gives. It keeps the rows that failed, and of the others only their number. */
export interface CreateManySummary {
  /** Orders made by this run, as far as anybody can know. */
  readonly created: number
  /** Orders that existed before. */
  readonly replayed: number
  /** Rows that ended in an error: as many as `failures`. */
  readonly failed: number
  /** Rows that ended in an error, with what is known of the wallet. */
  readonly failures: readonly CreateManyFailure[]
}

/** Places all rows. */
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
