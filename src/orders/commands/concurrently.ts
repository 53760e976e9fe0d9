/** How several items are worked on at the same time. */
import { takeRejection } from '../../defined.ts'

export interface Work<Item, Result> {
  readonly concurrency: number
  readonly work: (item: Item) => Promise<Result>
  readonly signal: AbortSignal | undefined
  /** The error of a run whose signal has fired. */
  readonly aborted: () => Error
  /** Ends the work in progress, if the caller leaves the loop or the run fails. */
  readonly stop: (() => void) | undefined
  /** An error that it throws, or with which its promise rejects, ends the run. */
  readonly onResult?: (result: Result) => unknown
}

/**
 * Yields each result as soon as it is known. Leaving the loop waits for the work in progress, but
 * not for the source's next item, which may never come. If anything fails, the generator yields the
 * results of the other work in progress before it throws.
 */
export async function* concurrently<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  { concurrency, work, signal, aborted, stop, onResult }: Work<Item, Result>,
): AsyncGenerator<Result, void, undefined> {
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  const ready: { readonly result: Result }[] = []
  /** Items in progress. With the results not yet read, at most `concurrency`, to bound the memory. */
  let working = 0
  let reading = false
  let ended = false
  /** True once the source has ended or thrown: then its `return()` must not be called. */
  let exhausted = false
  let failure: { readonly error: unknown } | undefined
  let wake: () => void = () => {}

  const change = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve
    })
  const fail = (error: unknown): void => {
    ended = true
    failure ??= { error }
    stop?.()
    wake()
  }
  const begin = async (item: Item): Promise<void> => {
    working++
    try {
      const result = await work(item)
      ready.push({ result })
      takeRejection(onResult?.(result), fail)
    } catch (error) {
      fail(error)
    } finally {
      working--
      wake()
    }
  }
  const readItem = async (): Promise<void> => {
    reading = true
    try {
      const next = await source.next()
      if (next.done === true) exhausted = true
      // Do not begin an item that arrives after the end: the caller would never see its result.
      if (ended) return
      if (next.done === true) ended = true
      else void begin(next.value)
    } catch (error) {
      exhausted = true
      fail(error)
    } finally {
      reading = false
      wake()
    }
  }

  const onAbort = (): void => fail(aborted())
  if (signal?.aborted === true) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    for (;;) {
      if (!ended && !reading && working + ready.length < concurrency) {
        void readItem()
        continue
      }
      const next = ready.shift()
      if (next !== undefined) {
        yield next.result
        continue
      }
      if (ended && working === 0) break
      await change()
    }
    if (failure !== undefined) throw failure.error
  } finally {
    signal?.removeEventListener('abort', onAbort)
    ended = true
    if (working > 0) stop?.()
    while (working > 0) await change()
    if (!exhausted) {
      const returned = (async () => await source.return?.())()
      // A generator that waits for an item returns only after that item, which may never come.
      if (reading) returned.catch(() => {})
      // Throw the first error, not an error of `return()`.
      else if (failure !== undefined) await returned.catch(() => {})
      else await returned
    }
  }
}
