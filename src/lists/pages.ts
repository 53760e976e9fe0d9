import { invalidArgument } from '../errors.ts'
import { Lazy } from '../lazy.ts'
import { attachInfo } from '../response-info.ts'
import { DEFAULT_LIMIT, type FetchPage, type Start } from './prefetch.ts'
import { type FoundPage, Walk } from './walk.ts'

/**
 * One page of a list. `for await (const order of page)` iterates its items and those of all later
 * pages. As JSON it has `items`, `offset`, `limit` and `total`. `responseInfo(page)` returns its
 * response info.
 */
export interface Page<T> extends AsyncIterable<T> {
  /** The items of the page, without rows that the pages just before it had. */
  readonly items: readonly T[]
  /** Zero-based offset of the request. */
  readonly offset: number
  /** Limit of the request. 50, the documented default, if the call set none. */
  readonly limit: number
  /** Rows in the whole list, if the service returns a total. */
  readonly total?: number
  /** Fetches the next page that has anything new. Undefined at the end of the list. */
  nextPage(): Promise<Page<T> | undefined>
}

/**
 * A list of the service, with pagination built in. `for await (const order of
 * client.orders.list())` iterates all items. `await client.orders.list()` fetches the first
 * {@link Page}.
 *
 * Nothing is fetched before that, each iteration starts afresh, and only one page is in memory,
 * plus those that `prefetch` keeps in flight. Leaving the loop cancels every request in flight. So
 * does the call's `signal`: the next step rejects with a `RequestAbortedError`, also in the middle
 * of a page.
 *
 * The list may change while it is read. A row that moves to the next page is returned once. If the
 * service returns a total, rows that moved to an earlier page are fetched as well; a row may come
 * twice if more rows vanish than a page holds. A service that caps `limit` or returns short pages
 * is read to the end. One that ignores `offset` causes an `InvalidResponseError` instead of an
 * endless loop.
 */
export class Pages<T> extends Lazy<T, Page<T>> {
  readonly #fetch: FetchPage<T>
  readonly #start: Start

  /** @internal */
  constructor(fetch: FetchPage<T>, start: Start) {
    super(
      () => itemsOf(fetch, start, new Walk(fetch, start)),
      () => firstPage(fetch, start),
    )
    this.#fetch = fetch
    this.#start = start
  }

  /** Iterates whole pages, without those that have nothing new. */
  pages(): AsyncIterable<Page<T>> {
    return {
      [Symbol.asyncIterator]: () => {
        const walk = new Walk(this.#fetch, this.#start)
        return iterate(walk, nothing, async () => {
          const found = await walk.next()
          return (
            found && {
              done: false,
              value: pageOf(this.#fetch, this.#start, found, walk.copy(this.#start)),
            }
          )
        })
      },
    }
  }

  /**
   * The first items as an array, at most `max`. Fetches no page that they do not need. The cap is
   * required: an array of a whole list could fill the memory.
   */
  async toArray(options: { readonly max: number }): Promise<T[]> {
    const max: unknown = options?.max
    if (!(Number.isSafeInteger(max) && Number(max) > 0)) {
      throw invalidArgument('max', 'must be a positive integer', 'toArray: ')
    }
    const wanted = Number(max)
    const start = { ...this.#start, wanted }
    const items: T[] = []
    for await (const item of itemsOf(this.#fetch, start, new Walk(this.#fetch, start)))
      if (items.push(item) === wanted) break
    return items
  }
}

/** The items of a page, then those of the rest of the walk. */
function itemsOf<T>(
  fetch: FetchPage<T>,
  start: Start,
  walk: Walk<T>,
  first: readonly T[] = [],
): AsyncIterableIterator<T> {
  const { signal } = start
  let items = first
  let position = 0
  const ready = (): IteratorYieldResult<T> | undefined => {
    if (position === items.length || signal?.aborted === true) return undefined
    const value = items[position++] as T
    // Dropped before its last item is handed out: the consumer may take hours with that item.
    if (position === items.length) {
      items = []
      position = 0
    }
    return { done: false, value }
  }
  return iterate(walk, ready, async () => {
    if (items.length === 0) items = (await walk.next())?.items ?? []
    const found = ready()
    // Once the signal has fired, items in memory are not ready any more. The next request reports
    // the error, and sends nothing.
    if (found === undefined && items.length > 0) {
      items = []
      walk.stop()
      await fetch({ offset: start.offset, limit: start.limit, signal })
    }
    return found
  })
}

/** The first page, also if it is empty. */
async function firstPage<T>(fetch: FetchPage<T>, start: Start): Promise<Page<T>> {
  const walk = new Walk(fetch, alone(start))
  return pageOf(fetch, start, await walk.first(), walk)
}

/** Pages ahead of a single page may never be read, and nobody could cancel their requests. */
function alone(start: Start): Start {
  return { ...start, prefetch: 0 }
}

/**
 * A page that can fetch the next one. The methods belong to the class, so that its JSON holds only
 * data.
 */
class ListPage<T> implements Page<T> {
  readonly items: readonly T[]
  readonly offset: number
  readonly limit: number
  declare readonly total?: number
  readonly #fetch: FetchPage<T>
  readonly #start: Start
  /** A walk that stays at the end of this page. */
  readonly #walk: Walk<T>

  constructor(
    fetch: FetchPage<T>,
    start: Start,
    { items, offset, total, info }: FoundPage<T>,
    walk: Walk<T>,
  ) {
    this.items = items
    this.offset = offset
    this.limit = start.limit ?? DEFAULT_LIMIT
    if (total !== undefined) this.total = total
    this.#fetch = fetch
    this.#start = start
    this.#walk = walk
    attachInfo(this, info)
  }

  async nextPage(): Promise<Page<T> | undefined> {
    const walk = this.#walk.copy(alone(this.#start))
    const found = await walk.next()
    return found && pageOf(this.#fetch, this.#start, found, walk)
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return itemsOf(this.#fetch, this.#start, this.#walk.copy(this.#start), this.items)
  }
}

// Set from outside: the bundler renames a class that names itself, and console.log shows that name.
function pageOf<T>(fetch: FetchPage<T>, start: Start, found: FoundPage<T>, walk: Walk<T>): Page<T> {
  return new ListPage(fetch, start, found, walk)
}

/**
 * An iterator whose `return()` also cancels the request that a pending `next()` waits for. A
 * generator's would not.
 * @param ready returns what can be handed out immediately
 */
function iterate<Value, T>(
  walk: Walk<T>,
  ready: () => IteratorYieldResult<Value> | undefined,
  step: () => Promise<IteratorYieldResult<Value> | undefined>,
): AsyncIterableIterator<Value> {
  let last: Promise<unknown> = Promise.resolve()
  /** Calls of `next()` that wait for their turn. */
  let waiting = 0
  let left = false
  const ended = (): void => {
    waiting--
  }
  return {
    next() {
      // Most items need no turn: they are in memory, and no earlier call waits.
      const found = waiting === 0 && !left ? ready() : undefined
      if (found !== undefined) return Promise.resolve(found)
      waiting++
      const result = last
        .then(() => (left ? undefined : step()))
        .then((value) => value ?? { done: true as const, value: undefined })
      last = result.then(ended, ended)
      return result
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
