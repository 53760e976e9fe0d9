import { defined } from './defined.ts'
import { type Charged, InvalidResponseError, invalidArgument } from './errors.ts'
import { DEFAULT_LIMIT, type FetchedPage, type FetchPage, ReadAhead, type Start } from './read-ahead.ts'
import { attachInfo, type InfoSource, infoFrom } from './response-info.ts'

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

/**
 * A list of the service, read page by page while it is iterated: `for await (const order of client.orders.list())`.
 *
 * Nothing is fetched until then, each iteration begins afresh, and no more than one page is in memory, however long the
 * list is; with `prefetch`, those that were asked for ahead, too. Leaving the loop ends every request in flight. So does
 * the call's `signal`: the next step rejects with a `RequestAbortedError`, also in the middle of a page.
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
    return this.#items(this.#start)
  }

  #items(start: Start): AsyncIterableIterator<T> {
    const walk = new Walk(this.#fetch, start)
    const { signal } = start
    let items: readonly T[] = []
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
        await this.#fetch({ ...start, signal })
      }
      return found
    })
  }

  /** Iterates whole pages; those that bring nothing new are left out. */
  pages(): AsyncIterable<Page<T>> {
    return {
      [Symbol.asyncIterator]: () => {
        const walk = new Walk(this.#fetch, this.#start)
        return iterate(walk, nothing, async () => {
          const value = await walk.next()
          return value && { done: false, value }
        })
      },
    }
  }

  /** Fetches one page, at the offset that the list was asked for. */
  async page(): Promise<Page<T>> {
    const { offset, limit, signal } = this.#start
    const { items, total, info } = await this.#fetch({ offset, signal, ...defined({ limit }) })
    return pageOf(items, this.#start, offset, total, info)
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
    const wanted = Number(max)
    for await (const item of this.#items({ ...this.#start, wanted })) if (items.push(item) === wanted) break
    return items
  }
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

/** One walk over a list. Keeps ids of a few pages, never a page. */
class Walk<T> {
  readonly #ahead: ReadAhead<T>
  readonly #start: Start
  #ended = false
  #offset: number
  /** End of what was read so far. Pages before it are read again after rows vanished. */
  #frontier: number
  /** Ids of the two pages before; of more, where they are shorter than others. */
  #near: readonly ReadonlySet<string>[] = []
  /** Most rows of a page. */
  #largest = 0
  readonly #progress = new Progress()
  /** Last believable total at the frontier. */
  #total: number | undefined
  /** Pages read at the frontier that brought something new. */
  #count = 0
  /** Ids of a page long before, and how often they came again. */
  #mark: readonly string[] = []
  #rounds = 0

  constructor(fetch: FetchPage<T>, start: Start) {
    this.#ahead = new ReadAhead(fetch, start)
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

  /** Ends the walk and every request in flight. */
  stop(): void {
    this.#ended = true
    this.#ahead.stop()
  }

  async #read(): Promise<Page<T> | undefined> {
    try {
      const fetched = await this.#ahead.take(this.#offset)
      return this.#ended || fetched === undefined ? undefined : this.#take(fetched)
    } catch (error) {
      if (this.#ended) return undefined
      this.#ended = true
      throw error
    } finally {
      if (this.#ended) this.#ahead.stop()
    }
  }

  #take({ items: rows, ids, total, hasMore, continues, info }: FetchedPage<T>): Page<T> {
    const offset = this.#offset
    const received = rows.length
    const end = offset + received
    const atFrontier = offset >= this.#frontier
    const known = new Set<string>()
    const items: T[] = []
    for (const [index, id] of ids.entries()) {
      if (!known.has(id) && !this.#near.some((page) => page.has(id))) items.push(rows[index] as T)
      known.add(id)
    }
    if (received > 0) {
      this.#largest = Math.max(this.#largest, received)
      this.#near = enough([known, ...this.#near], 2 * this.#largest)
    }

    if (atFrontier && received > 0) {
      this.#progress.take(items.length > 0)
      if (items.length > 0) this.#count++
    }
    this.#frontier = Math.max(this.#frontier, end)
    this.#offset = end
    const asked = this.#start.limit ?? DEFAULT_LIMIT
    const told = saysEnd({ end, received, asked, ...defined({ total, hasMore }) })
    if (received === 0 || (told && (hasMore === false || this.#progress.stale === 0))) this.#ended = true

    // A total that is less than what is there (a page's own count, or the rows that remain) says nothing.
    const believable = total !== undefined && (received === 0 || total >= end)
    if (atFrontier && believable) {
      const before = this.#total ?? total
      this.#total = total
      if (total < before && offset < before && !continues) {
        // As many rows may have slipped from this page to the ones already read.
        this.#offset = Math.max(this.#start.offset, offset - (before - total))
        this.#ended = false
      }
    }
    if (atFrontier && !this.#ended) {
      // Pages that bring nothing new may well be alike: empty ones, or such with nothing but what stands on every page.
      if (items.length > 0) this.#refuseCircles(ids, info)
      this.#ended = this.#progress.isOver(info, 'no')
    }
    return pageOf(items, this.#start, offset, total, info)
  }

  /** Pages in a circle are no list. */
  #refuseCircles(ids: readonly string[], info: InfoSource): void {
    if (ids.length === this.#mark.length && ids.every((id, index) => id === this.#mark[index])) this.#rounds++
    else if ((this.#count & (this.#count - 1)) === 0) {
      // Marks at page 1, 2, 4, 8, … find a circle of any length in constant memory.
      this.#mark = ids
      this.#rounds = 0
    }
    // Once or twice may be rows that shifted by several whole pages.
    if (this.#rounds > 2) throw unreadable('repeats its pages', info, 'no')
  }
}

/** The first sets that together hold as many ids, or all of them. */
function enough(sets: readonly ReadonlySet<string>[], ids: number): readonly ReadonlySet<string>[] {
  let held = 0
  return sets.filter(({ size }) => {
    const needed = held < ids
    held += size
    return needed
  })
}

/** What a page says of the end of its list. */
interface PageExtent {
  /** Rows of the list up to and with this page. */
  readonly end: number
  readonly received: number
  /** Rows asked for. */
  readonly asked: number
  readonly total?: number
  readonly hasMore?: boolean
}

/**
 * Whether the envelope of a page itself says that nothing is left. A total that is a full page's own count does not: it
 * is what a service says that knows no total.
 */
export function saysEnd({ end, received, asked, total, hasMore }: PageExtent): boolean {
  return hasMore === undefined ? end === total && (total !== received || received < asked) : !hasMore
}

/** Whether the pages of a walk still bring anything new: the one rule for lists that never have an empty page. */
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
   * an offset past the end back to the last page, if it has been seen to look at `offset` at all.
   * @param charged what the list not being read says of the wallet
   * @throws {InvalidResponseError} if it has not: there may be more, however short the page, which such a service never shows
   */
  isOver(info: InfoSource, charged: Charged): boolean {
    if (this.stale < 2) return false
    if (this.#moved) return true
    throw unreadable('ignores offset', info, charged)
  }
}

function unreadable(what: string, info: InfoSource, charged: Charged): InvalidResponseError {
  const { attempts, status } = infoFrom(info)
  return new InvalidResponseError(`The list cannot be read to its end: the server ${what}.`, {
    attempts,
    charged,
    ...defined({ status }),
  })
}

function pageOf<T>(
  items: readonly T[],
  start: Start,
  offset: number,
  total: number | undefined,
  info: InfoSource,
): Page<T> {
  const page = { items, offset, limit: start.limit ?? DEFAULT_LIMIT, ...defined({ total }) }
  attachInfo(page, info)
  return page
}
