import { invalidArgument } from '../errors/classes.ts'
import { Lazy } from '../lazy.ts'
import { attachInfo } from '../response-info.ts'
import { DEFAULT_LIMIT, type FetchPage, type Start } from './prefetch.ts'
import { type FoundPage, Walk } from './walk.ts'

/**
 * One page of a list.
 *
 * `for await (const order of page)` iterates its items and those of all later pages. As JSON, a
 * page has `items`, `offset`, `limit` and `total`. `responseInfo(page)` returns facts about the
 * response.
 */
export interface Page<T> extends AsyncIterable<T> {
  /** The items of the page, without rows that the pages just before it returned. */
  readonly items: readonly T[]
  /** Zero-based offset of the request. */
  readonly offset: number
  /** Limit of the request, or the documented default of 50 if the call set none. */
  readonly limit: number
  /** Number of rows in the whole list, if the service returns a total. */
  readonly total?: number
  /** Fetches the next page with new items. Resolves with undefined at the end of the list. */
  nextPage(): Promise<Page<T> | undefined>
}

/**
 * A list of the service, with pagination built in.
 *
 * `for await (const order of client.orders.list())` iterates all items.
 * `await client.orders.list()` fetches the first {@link Page}.
 *
 * Nothing is fetched until you iterate or await, and each iteration starts from the beginning. Only
 * one page is in memory, plus the pages that `prefetch` requests early. Leaving the loop cancels
 * every request in flight. Aborting the call's `signal` does the same, and the next step
 * rejects with a `RequestAbortedError`, even in the middle of a page.
 *
 * The list may change while it is read. A row that moves to the next page is returned once. If the
 * service returns a total, rows that moved to an earlier page are fetched as well; a row may be
 * returned twice if more rows disappear than fit on a page. The list is read to its end even if the
 * service caps `limit` or returns short pages. If the service ignores `offset`, the iteration
 * rejects with an `InvalidResponseError`.
 */
export class Pages<T> extends Lazy<T, Page<T>> {
  /** Stays at the start of the list. Each iteration advances a copy. */
  readonly #walk: Walk<T>

  /** @internal */
  constructor(fetch: FetchPage<T>, start: Start) {
    const walk = new Walk(fetch, start)
    super(
      () => itemsOf(walk.copy()),
      async () => {
        const first = walk.copy()
        return pageOf(await first.page(), first)
      },
    )
    this.#walk = walk
  }

  /**
   * Iterates whole pages. Skips pages without new items.
   *
   * @throws {ApiError} from the iteration, if the service refused a page: a subclass per status
   * @example
   * for await (const { offset, items } of client.orders.list().pages()) {
   *   console.log(offset, items.length)
   * }
   */
  pages(): AsyncIterable<Page<T>> {
    return {
      [Symbol.asyncIterator]: () => {
        const walk = this.#walk.copy()
        return iterate(walk, nothing, async () => {
          const found = await walk.next()
          return found && { done: false, value: pageOf(found, walk.copy()) }
        })
      },
    }
  }

  /**
   * Returns the first items as an array, at most `max`.
   *
   * Fetches only as many pages as needed. `max` is required, because an array of a whole list could
   * exhaust memory.
   *
   * @throws {InvalidRequestError} if `max` is not a positive integer
   * @throws {ApiError} if the service refused a page: a subclass for each status
   * @example
   * const newest = await client.orders.list().toArray({ max: 500 })
   */
  async toArray(options: { readonly max: number }): Promise<T[]> {
    const max: unknown = options?.max
    if (!(Number.isSafeInteger(max) && Number(max) > 0)) {
      throw invalidArgument('max', 'must be a positive integer', 'toArray: ')
    }
    const wanted = Number(max)
    const items: T[] = []
    for await (const item of itemsOf(this.#walk.copy({ ...this.#walk.start, wanted })))
      if (items.push(item) === wanted) break
    return items
  }
}

function itemsOf<T>(walk: Walk<T>, first: readonly T[] = []): AsyncIterableIterator<T> {
  const { signal } = walk.start
  let items = first
  let position = 0
  const ready = (): IteratorYieldResult<T> | undefined => {
    if (position === items.length || signal?.aborted === true) return undefined
    // The cast is safe: the position is within the array.
    const value = items[position++] as T
    // Frees the page before returning its last item: the caller may spend hours on that item.
    if (position === items.length) {
      items = []
      position = 0
    }
    return { done: false, value }
  }
  return iterate(walk, ready, async () => {
    if (items.length === 0) items = (await walk.next())?.items ?? []
    const found = ready()
    // Once the signal has fired, items in memory are no longer returned. `page()` throws the error
    // and sends nothing.
    if (found === undefined && items.length > 0) {
      items = []
      walk.stop()
      await walk.page()
    }
    return found
  })
}

class ListPage<T> implements Page<T> {
  readonly items: readonly T[]
  readonly offset: number
  readonly limit: number
  declare readonly total?: number
  /** Stays at the end of this page. Each iteration and `nextPage()` advance a copy. */
  readonly #walk: Walk<T>

  constructor({ items, offset, total, info }: FoundPage<T>, walk: Walk<T>) {
    this.items = items
    this.offset = offset
    this.limit = walk.start.limit ?? DEFAULT_LIMIT
    if (total !== undefined) this.total = total
    this.#walk = walk
    attachInfo(this, info)
  }

  async nextPage(): Promise<Page<T> | undefined> {
    const walk = this.#walk.copy()
    const found = await walk.next(true)
    return found && pageOf(found, walk)
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return itemsOf(this.#walk.copy(), this.items)
  }
}

// `ListPage` does not create its own instances: the bundler would rename a class that refers to its
// own name, and console.log shows the name.
function pageOf<T>(found: FoundPage<T>, walk: Walk<T>): Page<T> {
  return new ListPage(found, walk)
}

/**
 * The `return()` of this iterator also cancels the request that a pending `next()` waits for.
 *
 * A generator's `return()` would not.
 * @param ready returns a value that is already in memory
 */
function iterate<Value, T>(
  walk: Walk<T>,
  ready: () => IteratorYieldResult<Value> | undefined,
  step: () => Promise<IteratorYieldResult<Value> | undefined>,
): AsyncIterableIterator<Value> {
  let last: Promise<void> | undefined
  /** Number of `next()` calls that wait for their turn. */
  let waiting = 0
  let left = false
  // An async function, so that the stack trace of an error contains the line of the caller's loop.
  const turn = async (): Promise<IteratorResult<Value>> => {
    const before = last
    let end = (): void => {}
    last = new Promise((resolve) => {
      end = resolve
    })
    waiting++
    try {
      // Also without an earlier step: V8 then shortens the stack trace to what the caller awaits.
      await before
      return (left ? undefined : await step()) ?? { done: true, value: undefined }
    } finally {
      waiting--
      end()
    }
  }
  return {
    next() {
      // Most items are returned immediately: they are in memory, and no earlier call is waiting.
      const found = waiting === 0 && !left ? ready() : undefined
      return found === undefined ? turn() : Promise.resolve(found)
    },
    async return() {
      left = true
      walk.stop()
      await last
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function nothing(): undefined {}
