import type { InfoSource } from '../response-info.ts'

export interface FetchedPage<T> {
  readonly items: readonly T[]
  /** Id of each item, in the same order, to recognise rows that shift between pages. */
  readonly ids: readonly string[]
  readonly total?: number | undefined
  readonly hasMore?: boolean | undefined
  /** True if the page certainly continues the previous page, even if their totals differ. */
  readonly continues?: true
  readonly info: InfoSource
}

export type FetchPage<T> = (at: {
  readonly offset: number
  readonly limit: number | undefined
  readonly signal: AbortSignal | undefined
}) => Promise<FetchedPage<T>>

export interface Start {
  readonly offset: number
  readonly limit?: number | undefined
  readonly signal?: AbortSignal | undefined
  /**
   * Maximum number of pages in flight ahead of the current page. 0 fetches a page only when it is
   * needed.
   */
  readonly prefetch?: number | undefined
  /** Maximum number of rows that the caller wants. Pages beyond them are not requested ahead. */
  readonly wanted?: number
}

/** Number of rows per page if the call sets no limit (API document, "Limits"). */
export const DEFAULT_LIMIT = 50

/**
 * Maximum number of rows in flight ahead, unless one page has more: a window of large pages would
 * cost memory and save no time.
 */
const MOST_ROWS = 1_000

interface Ahead<T> {
  /** Offset of the first row that the previous page does not have. */
  readonly offset: number
  /**
   * 1 if the previous page was still in flight, so that the request begins with that page's
   * expected last row. Otherwise 0.
   */
  readonly overlap: 0 | 1
  readonly controller: AbortController
  readonly result: Promise<FetchedPage<T>>
  page?: FetchedPage<T>
}

type Asked<T> = Omit<Ahead<T>, 'result'>

/**
 * Fetches pages for a walk over a list, some of them before the walk needs them. The walk decides
 * which page to read next. It gets the page that it would have fetched itself, or a page that
 * provably continues the previous page:
 *
 * - If the previous page has arrived, the request starts where that page ended. This is the walk's
 *   own next request, sent early.
 * - If the previous page is in flight, the request starts one row before that page's expected end.
 *   The new page is used only if it begins with the last row of the previous page. The service may
 *   process concurrent requests in any order. Without this check, rows could be missed if the list
 *   changes between two requests.
 *
 * Any page that does not fit (a capped limit, a short page, shifted rows) is dropped, and so is an
 * error of a request sent while the previous page was in flight. The walk's page is then fetched
 * without reading ahead, and the window starts again at one page.
 */
export class ReadAhead<T> {
  readonly #fetch: FetchPage<T>
  readonly #start: Start
  readonly #most: number
  #queue: Ahead<T>[] = []
  #window: number
  #stopped = false
  /**
   * Facts about the page that was returned last: number of rows, end offset, id of the last row,
   * and total.
   */
  #step = 0
  #end: number | undefined
  #lastId: string | undefined
  #total: number | undefined

  constructor(fetch: FetchPage<T>, start: Start) {
    this.#fetch = fetch
    this.#start = start
    this.#most = start.prefetch ?? 0
    this.#window = this.#most
  }

  async take(offset: number): Promise<FetchedPage<T> | undefined> {
    const { signal } = this.#start
    const [head] = this.#queue
    if (head !== undefined && (head.offset !== offset || signal?.aborted === true)) this.#misfit(0)
    else if (head !== undefined) {
      const page = head.overlap === 0 ? await head.result : await head.result.catch(() => undefined)
      const fitting = page && this.#continuation(head, page)
      if (page !== undefined && fitting !== undefined && signal?.aborted !== true) {
        this.#queue.shift()
        if (page.ids.length === this.#step) this.#window = Math.min(this.#window + 1, this.#most)
        return this.#handOut(offset, fitting, head.overlap)
      }
      this.#misfit(0)
    }
    if (this.#stopped) return undefined
    const direct = this.#ask(offset, 0)
    const page = await direct.result
    this.#queue.shift()
    return this.#handOut(offset, page, 0)
  }

  stop(): void {
    this.#stopped = true
    this.#drop(0)
  }

  #continuation({ overlap }: Ahead<T>, page: FetchedPage<T>): FetchedPage<T> | undefined {
    if (overlap === 0) return page
    // A page of one row may be a short page in the middle of the list, or the last page. Only the
    // next request shows which.
    if (page.ids.length < 2 || page.ids[0] !== this.#lastId) return undefined
    return { ...page, items: page.items.slice(1), ids: page.ids.slice(1), continues: true }
  }

  #handOut(offset: number, page: FetchedPage<T>, overlap: 0 | 1): FetchedPage<T> | undefined {
    if (this.#stopped) return undefined
    const { total, hasMore } = page
    const received = page.ids.length
    // A service that caps the limit returns pages of equal length. A shorter page may be the last.
    const full = Math.min(this.#start.limit ?? DEFAULT_LIMIT, this.#step || Number.POSITIVE_INFINITY)
    const end = offset + received
    this.#step = received + overlap
    this.#end = goesOn(end, page) ? end : undefined
    this.#lastId = page.ids.at(-1)
    this.#total = total !== undefined && total >= end ? total : undefined
    // This may be the last page: request one more page, not a whole window.
    if (this.#step < full && hasMore === undefined && this.#total === undefined)
      this.#window = Math.min(1, this.#most)
    this.#fill()
    return page
  }

  #fill(): void {
    const room = Math.min(this.#window, Math.max(1, Math.floor(MOST_ROWS / Math.max(1, this.#step))))
    const { offset: start, wanted = Number.POSITIVE_INFINITY } = this.#start
    const last = Math.min(start + wanted, this.#total ?? Number.POSITIVE_INFINITY)
    while (!this.#stopped && this.#queue.length < room) {
      const previous = this.#queue.at(-1)
      const isKnown = previous === undefined || previous.page !== undefined
      const offset =
        previous === undefined
          ? this.#end
          : previous.page === undefined
            ? previous.offset + this.#step - previous.overlap
            : endOf(previous, previous.page)
      if (offset === undefined || offset >= last) return
      // A page requested before the previous one arrives repeats that page's last row. With pages
      // of one or two rows, at least half of the requested rows would be repeats.
      if (!isKnown && this.#step < 3) return
      // When the walk reaches this page, it gets the error or fetches the page again.
      this.#ask(offset, isKnown ? 0 : 1).result.catch(() => {})
    }
  }

  #ask(offset: number, overlap: 0 | 1): Ahead<T> {
    const asked: Asked<T> = { offset, overlap, controller: new AbortController() }
    const ahead = Object.assign(asked, { result: this.#request(asked) })
    this.#queue.push(ahead)
    return ahead
  }

  async #request(asked: Asked<T>): Promise<FetchedPage<T>> {
    const { offset, overlap, controller } = asked
    const { limit, signal } = this.#start
    const onAbort = (): void => controller.abort(signal?.reason)
    if (signal?.aborted === true) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
    try {
      const page = await this.#fetch({ offset: offset - overlap, signal: controller.signal, limit })
      asked.page = page
      const index = this.#queue.findIndex((each) => each.controller === controller)
      const next = this.#queue[index + 1]
      if (index >= 0 && next !== undefined && next.offset !== endOf(asked, page)) this.#misfit(index + 1)
      if (index > 0) this.#fill()
      return page
    } finally {
      signal?.removeEventListener('abort', onAbort)
    }
  }

  #misfit(from: number): void {
    this.#window = Math.min(1, this.#most)
    this.#drop(from)
  }

  #drop(from: number): void {
    for (const { controller } of this.#queue.splice(from)) controller.abort()
  }
}

function endOf<T>({ offset, overlap }: Asked<T>, page: FetchedPage<T>): number | undefined {
  const end = offset + page.ids.length - overlap
  return page.ids.length > overlap && goesOn(end, page) ? end : undefined
}

/**
 * Ignores a total below the number of rows already read: such a total counts one page, or the
 * remaining rows.
 */
function goesOn<T>(end: number, { ids, total, hasMore }: FetchedPage<T>): boolean {
  return ids.length > 0 && hasMore !== false && end !== total
}
