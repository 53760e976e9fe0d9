import { invalidArgument } from '../errors.ts'
import { Lazy } from '../lazy.ts'
import { attachInfo } from '../response-info.ts'
import { DEFAULT_LIMIT, type FetchPage, type Start } from './prefetch.ts'
import { type FoundPage, Walk } from './walk.ts'

/**
 * One page of a list, and the list from there on: `for await (const order of page)` iterates its items and those of the
 * pages after it. As JSON it is `items`, `offset`, `limit` and `total`. `responseInfo(page)` gives what came with it.
 */
export interface Page<T> extends AsyncIterable<T> {
  /** What the page adds: rows that the pages just before it had already are left out. */
  readonly items: readonly T[]
  /** Zero-based offset that was asked for. */
  readonly offset: number
  /** Most items that were asked for; the documented default of 50 if the call named no limit. */
  readonly limit: number
  /** Rows in the whole list, where the service tells. */
  readonly total?: number
  /** Fetches the next page that brings anything new; undefined at the end of the list. */
  nextPage(): Promise<Page<T> | undefined>
}

/**
 * A list of the service. `for await (const order of client.orders.list())` iterates all its items,
 * `await client.orders.list()` fetches its first {@link Page}.
 *
 * Nothing is fetched until then, each time begins afresh, and no more than one page is in memory, however long the
 * list is; with `prefetch`, those that were asked for ahead, too. Leaving the loop ends every request in flight. So does
 * the call's `signal`: the next step rejects with a `RequestAbortedError`, also in the middle of a page.
 *
 * The list may change while it is read. Rows that move to the next page come once; where the service tells a total, rows
 * that moved to a page already read are fetched after all (and may come twice if more rows vanished than a page holds).
 * A service that caps `limit` or has short pages is read to the end all the same; one that ignores `offset` ends in an
 * `InvalidResponseError` instead of going round for ever.
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

  /** Iterates whole pages; those that bring nothing new are left out. */
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
   * The first items as an array, at most `max`; no page is fetched that is not needed for them. The cap is required
   * because the array is the one thing here that can fill the memory.
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

/** The items of a walk, after those that are there already. */
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
    // The page must not outlive its last item: the consumer may take hours with that one.
    if (position === items.length) {
      items = []
      position = 0
    }
    return { done: false, value }
  }
  return iterate(walk, ready, async () => {
    if (items.length === 0) items = (await walk.next())?.items ?? []
    const found = ready()
    // Items at hand are not ready only because of the signal. The error is the one of a page that is asked for after it,
    // of which nothing is sent.
    if (found === undefined && items.length > 0) {
      items = []
      walk.stop()
      await fetch({ offset: start.offset, limit: start.limit, signal })
    }
    return found
  })
}

/** The first page, whether anything is in it or not. */
async function firstPage<T>(fetch: FetchPage<T>, start: Start): Promise<Page<T>> {
  const walk = new Walk(fetch, alone(start))
  return pageOf(fetch, start, await walk.first(), walk)
}

/** Nobody may ever take what would be asked for ahead of a single page, nor end it. */
function alone(start: Start): Start {
  return { ...start, prefetch: 0 }
}

/** A page that knows the way on. Its methods are its class's, so that as JSON it is what it shows. */
class ListPage<T> implements Page<T> {
  readonly items: readonly T[]
  readonly offset: number
  readonly limit: number
  declare readonly total?: number
  readonly #fetch: FetchPage<T>
  readonly #start: Start
  /** Stands behind this page, and never goes on itself. */
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

// Not by the class itself: one that names itself is renamed by the bundler, and console.log shows that name.
function pageOf<T>(fetch: FetchPage<T>, start: Start, found: FoundPage<T>, walk: Walk<T>): Page<T> {
  return new ListPage(fetch, start, found, walk)
}

/**
 * An iterator whose `return()` also ends the request that a pending `next()` waits for, as a generator's would not.
 * @param ready what can be handed out at once
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
      // Most items need no turn: they are there, and nobody came before.
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
