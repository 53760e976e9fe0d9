import type { InfoSource } from '../response-info.ts'

/** One page as fetched. */
export interface FetchedPage<T> {
  /** Rows in the order received. */
  readonly items: readonly T[]
  /** What tells the rows apart when they shift between pages: as many, in the same order. */
  readonly ids: readonly string[]
  readonly total?: number | undefined
  readonly hasMore?: boolean | undefined
  /** True if it is proven to go on where the page before it ended, whatever the totals of the two say. */
  readonly continues?: true
  readonly info: InfoSource
}

/** Fetches one page. */
export type FetchPage<T> = (at: {
  readonly offset: number
  readonly limit: number | undefined
  readonly signal: AbortSignal | undefined
}) => Promise<FetchedPage<T>>

/** Where a list begins, what ends it early, and how far it is read ahead. */
export interface Start {
  readonly offset: number
  readonly limit?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Most pages in flight ahead of the one that is handed out; 0 asks for a page only when it is needed. */
  readonly prefetch?: number | undefined
  /** Rows that are wanted at most; none behind them are asked for ahead. */
  readonly wanted?: number
}

/** Rows of a page where a call names no limit (API document, "Limits"). */
export const DEFAULT_LIMIT = 50

/** Most rows asked for ahead: a window of large pages would cost memory and save no time. */
const MOST_ROWS = 1_000

/** A page that was asked for before it was needed. */
interface Ahead<T> {
  /** Offset of its first row that the page before it has not. */
  readonly offset: number
  /** 1 if it was asked for from the last row of the page before it on, which was not there yet. */
  readonly overlap: 0 | 1
  readonly controller: AbortController
  readonly result: Promise<FetchedPage<T>>
  page?: FetchedPage<T>
}

/**
 * Fetches pages for a walk over a list, some of them before the walk asks. The walk decides where to go next and gets
 * the page it would have got by itself, or one that proves to be its continuation:
 *
 * - A page whose predecessor is there is asked for where that one ended. This is the walk's own next request, early.
 * - A page whose predecessor is in flight is asked for where that one should end, less one row. It is used only if it
 *   begins with the row that its predecessor ended with: pages that are read at the same time are read in no order,
 *   so a row that is added or removed meanwhile could otherwise slip between them, whatever the total says.
 *
 * Whatever does not fit (a capped limit, a short page, shifted rows, an error) is dropped, and the walk's page is
 * fetched as if there were no reading ahead; the window begins again at one page.
 */
export class ReadAhead<T> {
  readonly #fetch: FetchPage<T>
  readonly #start: Start
  readonly #most: number
  #queue: Ahead<T>[] = []
  #window: number
  #stopped = false
  /** Of the page handed out last: rows as received, where it ended, its last row. */
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

  /** The page at an offset; nothing once stopped. */
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

  /** Ends everything in flight. */
  stop(): void {
    this.#stopped = true
    this.#drop(0)
  }

  #continuation({ overlap }: Ahead<T>, page: FetchedPage<T>): FetchedPage<T> | undefined {
    if (overlap === 0) return page
    // One row may be a short page in the middle as well as the end: only asking from there on tells.
    if (page.ids.length < 2 || page.ids[0] !== this.#lastId) return undefined
    return { ...page, items: page.items.slice(1), ids: page.ids.slice(1), continues: true }
  }

  #handOut(offset: number, page: FetchedPage<T>, overlap: 0 | 1): FetchedPage<T> | undefined {
    if (this.#stopped) return undefined
    const { total, hasMore } = page
    const received = page.ids.length
    // As many as before is what a service that caps the limit gives; fewer may be the last page.
    const full = Math.min(this.#start.limit ?? DEFAULT_LIMIT, this.#step || Number.POSITIVE_INFINITY)
    const end = offset + received
    this.#step = received + overlap
    this.#end = goesOn(end, page) ? end : undefined
    this.#lastId = page.ids.at(-1)
    this.#total = total !== undefined && total >= end ? total : undefined
    // Maybe the last page: worth one more request, not a window of them.
    if (this.#step < full && hasMore === undefined && this.#total === undefined)
      this.#window = Math.min(1, this.#most)
    this.#fill()
    return page
  }

  /** Asks for pages until the window is full or the list seems to end. */
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
      // Of two rows, half would be asked for twice.
      if (!isKnown && this.#step < 3) return
      this.#ask(offset, isKnown ? 0 : 1)
    }
  }

  #ask(offset: number, overlap: 0 | 1): Ahead<T> {
    const { limit, signal } = this.#start
    const controller = new AbortController()
    const onAbort = (): void => controller.abort(signal?.reason)
    if (signal?.aborted === true) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
    const result = this.#fetch({
      offset: offset - overlap,
      signal: controller.signal,
      limit,
    }).finally(() => signal?.removeEventListener('abort', onAbort))
    const ahead: Ahead<T> = { offset, overlap, controller, result }
    this.#queue.push(ahead)
    result.then(
      (page) => {
        ahead.page = page
        const index = this.#queue.indexOf(ahead)
        if (index < 0) return
        const next = this.#queue[index + 1]
        if (next !== undefined && next.offset !== endOf(ahead, page)) this.#misfit(index + 1)
        if (index > 0) this.#fill()
      },
      // Told when it is its turn.
      () => {},
    )
    return ahead
  }

  #misfit(from: number): void {
    this.#window = Math.min(1, this.#most)
    this.#drop(from)
  }

  #drop(from: number): void {
    for (const { controller } of this.#queue.splice(from)) controller.abort()
  }
}

/** Where the page after this one begins; nothing if there is none. */
function endOf<T>({ offset, overlap }: Ahead<T>, page: FetchedPage<T>): number | undefined {
  const end = offset + page.ids.length - overlap
  return page.ids.length > overlap && goesOn(end, page) ? end : undefined
}

/** Whether a page leaves anything to ask for, as far as it tells. A total that is less than what is there says nothing. */
function goesOn<T>(end: number, { ids, total, hasMore }: FetchedPage<T>): boolean {
  return ids.length > 0 && hasMore !== false && end !== total
}
