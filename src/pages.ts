import { defined } from './defined.ts'
import { InvalidResponseError, invalidArgument } from './errors.ts'
import { attachInfo, type ResponseInfo } from './response-info.ts'

/** Rows of a page where a call names no limit (API document, "Limits"). */
export const DEFAULT_LIMIT = 50

/** One page of a list. `responseInfo(page)` gives what came with it. */
export interface Page<T> {
  /** What the page adds: while iterating, rows that the pages just before it had already are left out. */
  readonly items: readonly T[]
  /** Zero-based offset that was asked for. */
  readonly offset: number
  /** Most items that were asked for; the documented default of 50 if the call named no limit. */
  readonly limit: number
  /** Rows in the whole list, where the service tells. */
  readonly total?: number
}

/** One page as fetched. */
export interface FetchedPage<T> {
  /** Rows in the order received; the id tells rows apart when they shift between pages. */
  readonly rows: readonly { readonly id: string; readonly item: T }[]
  readonly total?: number
  readonly hasMore?: boolean
  readonly info: ResponseInfo
}

/** Fetches one page. */
export type FetchPage<T> = (at: {
  readonly offset: number
  readonly limit?: number
  readonly signal: AbortSignal | undefined
}) => Promise<FetchedPage<T>>

/** Where a list begins, and what ends it early. */
export interface Start {
  readonly offset: number
  readonly limit?: number
  readonly signal?: AbortSignal | undefined
}

/**
 * A list of the service, read page by page while it is iterated: `for await (const order of client.orders.list())`.
 *
 * Nothing is fetched until then, each iteration begins afresh, and no more than one page is in memory, however long the
 * list is. Leaving the loop ends the request in flight.
 *
 * The list may change while it is read. Rows that move to the next page come once; where the service tells a total, rows
 * that moved to a page already read are fetched after all (and may come twice if more rows vanished than a page holds).
 * A service that caps `limit` or has short pages is read to the end all the same; one that ignores `offset` ends in an
 * `InvalidResponseError` instead of going round for ever.
 */
export class Pages<T> implements AsyncIterable<T> {
  readonly #fetch: FetchPage<T>
  readonly #start: Start

  constructor(fetch: FetchPage<T>, start: Start) {
    this.#fetch = fetch
    this.#start = start
  }

  /** Iterates the items. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    const walk = new Walk(this.#fetch, this.#start)
    let items: readonly T[] = []
    let position = 0
    return iterate(walk, async () => {
      if (position === items.length) {
        items = (await walk.next())?.items ?? []
        position = 0
        if (items.length === 0) return undefined
      }
      const value = items[position++] as T
      // The page must not outlive its last item: the consumer may take hours with that one.
      if (position === items.length) {
        items = []
        position = 0
      }
      return { value }
    })
  }

  /** Iterates whole pages; those that bring nothing new are left out. */
  pages(): AsyncIterable<Page<T>> {
    return {
      [Symbol.asyncIterator]: () => {
        const walk = new Walk(this.#fetch, this.#start)
        return iterate(walk, async () => {
          const value = await walk.next()
          return value && { value }
        })
      },
    }
  }

  /** Fetches one page, at the offset that the list was asked for. */
  async page(): Promise<Page<T>> {
    const { offset, limit, signal } = this.#start
    const { rows, total, info } = await this.#fetch({ offset, signal, ...defined({ limit }) })
    return pageOf(
      rows.map(({ item }) => item),
      this.#start,
      offset,
      total,
      info,
    )
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
    const items: T[] = []
    for await (const item of this) if (items.push(item) === max) break
    return items
  }
}

/** An iterator whose `return()` also ends the request that a pending `next()` waits for, as a generator's would not. */
function iterate<Value, T>(
  walk: Walk<T>,
  step: () => Promise<{ readonly value: Value } | undefined>,
): AsyncIterableIterator<Value> {
  let last: Promise<unknown> = Promise.resolve()
  let left = false
  return {
    next() {
      const result = last
        .then(() => (left ? undefined : step()))
        .then((found) => found ?? { done: true as const, value: undefined })
      last = result.then(ignore, ignore)
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

function ignore(): void {}

/** One walk over a list. Keeps ids of a few pages, never a page. */
class Walk<T> {
  readonly #fetch: FetchPage<T>
  readonly #start: Start
  #controller: AbortController | undefined
  #ended = false
  #offset: number
  /** End of what was read so far. Pages before it are read again after rows vanished. */
  #frontier: number
  /** Ids of the two pages before. */
  #near: readonly ReadonlySet<string>[] = []
  readonly #progress = new Progress()
  /** Last believable total at the frontier. */
  #total: number | undefined
  /** Pages read at the frontier. */
  #count = 0
  /** Ids of a page long before, and how often they came again. */
  #mark = ''
  #rounds = 0

  constructor(fetch: FetchPage<T>, start: Start) {
    this.#fetch = fetch
    this.#start = start
    this.#offset = start.offset
    this.#frontier = start.offset
  }

  /** The next page that brings anything new. */
  async next(): Promise<Page<T> | undefined> {
    while (!this.#ended) {
      const page = await this.#read()
      if (page !== undefined && page.items.length > 0) return page
    }
    return undefined
  }

  /** Ends the walk and the request in flight. */
  stop(): void {
    this.#ended = true
    this.#controller?.abort()
  }

  async #read(): Promise<Page<T> | undefined> {
    const { limit, signal } = this.#start
    const controller = new AbortController()
    const onAbort = (): void => controller.abort(signal?.reason)
    if (signal?.aborted === true) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
    this.#controller = controller
    try {
      const fetched = await this.#fetch({
        offset: this.#offset,
        signal: controller.signal,
        ...defined({ limit }),
      })
      return this.#ended ? undefined : this.#take(fetched)
    } catch (error) {
      if (this.#ended) return undefined
      this.#ended = true
      throw error
    } finally {
      this.#controller = undefined
      signal?.removeEventListener('abort', onAbort)
    }
  }

  #take({ rows, total, hasMore, info }: FetchedPage<T>): Page<T> {
    const offset = this.#offset
    const received = rows.length
    const end = offset + received
    const atFrontier = offset >= this.#frontier
    const ids = new Set<string>()
    const items: T[] = []
    for (const { id, item } of rows) {
      if (!ids.has(id) && !this.#near.some((page) => page.has(id))) items.push(item)
      ids.add(id)
    }
    if (received > 0) this.#near = [ids, ...this.#near.slice(0, 1)]

    if (atFrontier && received > 0) {
      this.#progress.take(items.length > 0)
      this.#count++
    }
    this.#frontier = Math.max(this.#frontier, end)
    this.#offset = end
    if (received === 0 || hasMore === false) this.#ended = true
    // The one page of a list may have its own count as total without harm; a full one may not be the only one.
    const ownCount = total === received && received >= (this.#start.limit ?? DEFAULT_LIMIT)
    if (hasMore === undefined && end === total && !ownCount && this.#progress.stale === 0) this.#ended = true

    // A total that is less than what is there (a page's own count, or the rows that remain) says nothing.
    const believable = total !== undefined && (received === 0 || total >= end)
    if (atFrontier && believable) {
      const before = this.#total ?? total
      this.#total = total
      if (total < before && offset < before) {
        // As many rows may have slipped from this page to the ones already read.
        this.#offset = Math.max(this.#start.offset, offset - (before - total))
        this.#ended = false
      }
    }
    if (atFrontier && !this.#ended) {
      this.#refuseCircles(ids, info)
      const asked = this.#start.limit ?? DEFAULT_LIMIT
      this.#ended = this.#progress.isOver({ received, asked, ...defined({ total, hasMore }) }, info)
    }
    return pageOf(items, this.#start, offset, total, info)
  }

  /** Pages in a circle are no list. */
  #refuseCircles(ids: ReadonlySet<string>, info: ResponseInfo): void {
    const print = [...ids].join('\n')
    if (print === this.#mark) this.#rounds++
    else if ((this.#count & (this.#count - 1)) === 0) {
      // Marks at page 1, 2, 4, 8, … find a circle of any length in constant memory.
      this.#mark = print
      this.#rounds = 0
    }
    // A page that comes again at once is for `Progress` to judge.
    if (this.#rounds > 2) throw unreadable('repeats its pages', info)
  }
}

/** What a page says of whether it may be the whole list. */
interface PageExtent {
  readonly received: number
  /** Rows asked for. */
  readonly asked: number
  readonly total?: number
  readonly hasMore?: boolean
}

/** Whether the pages of a walk still bring anything new: the one rule for the end of lists that never have an empty page. */
export class Progress {
  /** Pages in a row without anything new. */
  stale = 0
  #pages = 0
  /** True once a page after the first brought something new: the service does look at `offset`. */
  #moved = false

  take(isNew: boolean): void {
    this.stale = isNew ? 0 : this.stale + 1
    this.#moved ||= this.#pages++ > 0 && isNew
  }

  /**
   * One page without news may be rows that shifted by a whole page. Two in a row are the end of a list whose service moves
   * an offset past the end back to the last page, which may be the only one.
   * @throws {InvalidResponseError} if there may be more, which a service that ignores `offset` never shows
   */
  isOver({ received, asked, total = 0, hasMore }: PageExtent, info: ResponseInfo): boolean {
    if (this.stale < 2) return false
    const whole = received < asked && hasMore !== true && total <= received
    if (this.#moved || whole) return true
    throw unreadable('ignores offset', info)
  }
}

function unreadable(what: string, { attempts, status }: ResponseInfo): InvalidResponseError {
  return new InvalidResponseError(`The list cannot be read to its end: the server ${what}.`, {
    attempts,
    ...defined({ status }),
  })
}

function pageOf<T>(
  items: readonly T[],
  start: Start,
  offset: number,
  total: number | undefined,
  info: ResponseInfo,
): Page<T> {
  const page = { items, offset, limit: start.limit ?? DEFAULT_LIMIT, ...defined({ total }) }
  attachInfo(page, info)
  return page
}
