import { type Charged, InvalidResponseError } from '../errors/classes.ts'
import { moneySentence } from '../errors/messages.ts'
import { type InfoSource, infoFrom } from '../response-info.ts'
import { DEFAULT_LIMIT, type FetchedPage, type FetchPage, ReadAhead, type Start } from './prefetch.ts'

export interface FoundPage<T> {
  /** Only the rows that the previous pages did not have. */
  readonly items: readonly T[]
  readonly offset: number
  readonly total: number | undefined
  readonly info: InfoSource
}

interface Position {
  offset: number
  /** End of the rows read so far. `offset` is less while a walk reads earlier pages again. */
  frontier: number
  /** Ids of the two previous pages, or of more pages if those two are short. */
  near: readonly (readonly string[])[]
  mostRows: number
  /** Last plausible total at the frontier. */
  total: number | undefined
  /** Number of pages at the frontier that had new rows. */
  count: number
  /** Ids of a marked page, to detect a service that repeats its pages. */
  mark: readonly string[]
  /** Number of later pages with exactly the ids in `mark`. */
  rounds: number
  ended: boolean
  readonly progress: Progress
}

/** Remembers the ids of a few pages. Only pages fetched ahead stay in memory. */
export class Walk<T> {
  readonly start: Start
  readonly #fetch: FetchPage<T>
  readonly #ahead: ReadAhead<T>
  readonly #at: Position

  constructor(
    fetch: FetchPage<T>,
    start: Start,
    at: Position = {
      offset: start.offset,
      frontier: start.offset,
      near: [],
      mostRows: 0,
      total: undefined,
      count: 0,
      mark: [],
      rounds: 0,
      ended: false,
      progress: new Progress(),
    },
  ) {
    this.start = start
    this.#fetch = fetch
    this.#ahead = new ReadAhead(fetch, start)
    this.#at = at
  }

  copy(start: Start = this.start): Walk<T> {
    return new Walk(this.#fetch, start, { ...this.#at, progress: this.#at.progress.copy() })
  }

  /** Returns the page at this position, even if it is empty. Fetches no page ahead. */
  async page(): Promise<FoundPage<T>> {
    const { limit, signal } = this.start
    return this.#take(await this.#fetch({ offset: this.#at.offset, limit, signal }))
  }

  /**
   * Skips pages without new rows.
   * @param alone true to fetch no page ahead: a caller that might never read that page could not
   * cancel its request
   */
  async next(alone: boolean = false): Promise<FoundPage<T> | undefined> {
    const at = this.#at
    const { limit, signal } = this.start
    while (!at.ended) {
      try {
        const { offset } = at
        const fetched = alone ? await this.#fetch({ offset, limit, signal }) : await this.#ahead.take(offset)
        if (at.ended || fetched === undefined) return undefined
        const page = this.#take(fetched)
        if (page.items.length > 0) return page
      } catch (error) {
        if (at.ended) return undefined
        at.ended = true
        throw error
      } finally {
        if (at.ended) this.#ahead.stop()
      }
    }
    return undefined
  }

  stop(): void {
    this.#at.ended = true
    this.#ahead.stop()
  }

  #take({ items: rows, ids, total, hasMore, continues, info }: FetchedPage<T>): FoundPage<T> {
    const at = this.#at
    const { offset, near, progress } = at
    const received = rows.length
    const end = offset + received
    const atFrontier = offset >= at.frontier
    // Does not compare the rows of a first page, because most lists have only one page.
    const items = near.length === 0 ? rows : unseen(rows, ids, near)
    if (received > 0) {
      at.mostRows = Math.max(at.mostRows, received)
      at.near = enough([ids, ...near], 2 * at.mostRows)
    }

    if (atFrontier && received > 0) {
      progress.take(items.length > 0, ids)
      if (items.length > 0) at.count++
    }
    at.frontier = Math.max(at.frontier, end)
    at.offset = end
    const asked = this.start.limit ?? DEFAULT_LIMIT
    // A total that changes may count the rows that remain, or those so far, and equal the end of any page.
    const isSteady = hasMore !== undefined || (atFrontier && total === (at.total ?? total))
    const told = isSteady && saysEnd({ end, received, asked, total, hasMore })
    if (received === 0 || (told && (hasMore === false || progress.stale === 0))) at.ended = true

    // Ignores a total below the number of rows already read: such a total counts one page, or the
    // remaining rows.
    const believable = total !== undefined && (received === 0 || total >= end)
    if (atFrontier && believable) {
      const before = at.total ?? total
      at.total = total
      if (total < before && offset < before && !continues) {
        // Reads earlier pages again: for each row that disappeared, an unread row may have moved
        // there.
        at.offset = Math.max(this.start.offset, offset - (before - total))
        at.ended = false
      }
    }
    if (atFrontier && !at.ended) {
      // Checks only pages with new rows: a valid list may have several empty pages, or several
      // pages with only the rows that every page repeats.
      if (items.length > 0) this.#refuseRepeatedPages(ids, info)
      at.ended = progress.isOver(info, 'no')
    }
    return { items, offset, total, info }
  }

  #refuseRepeatedPages(ids: readonly string[], info: InfoSource): void {
    const at = this.#at
    if (ids.length === at.mark.length && ids.every((id, index) => id === at.mark[index])) at.rounds++
    else if ((at.count & (at.count - 1)) === 0) {
      // Marks at page 1, 2, 4, 8, … find a cycle of any length in constant memory.
      at.mark = ids
      at.rounds = 0
    }
    // Rows that shift by several whole pages may repeat a page once or twice.
    if (at.rounds > 2) throw unreadable('repeats its pages', info, 'no')
  }
}

function unseen<T>(
  rows: readonly T[],
  ids: readonly string[],
  near: readonly (readonly string[])[],
): readonly T[] {
  const known = new Set(near.flat())
  return rows.filter((_, index) => {
    const { size } = known
    return known.add(ids[index] ?? '').size > size
  })
}

/** Returns the first pages that together have at least the given number of ids, or all pages. */
function enough(pages: readonly (readonly string[])[], ids: number): readonly (readonly string[])[] {
  let held = 0
  return pages.filter(({ length }) => {
    const needed = held < ids
    held += length
    return needed
  })
}

interface PageExtent {
  /** Number of rows from the start of the list to the end of this page. */
  readonly end: number
  readonly received: number
  /** The requested limit. */
  readonly asked: number
  readonly total: number | undefined
  readonly hasMore: boolean | undefined
}

/**
 * True if the envelope of a page states that nothing follows. Ignores a total that equals the
 * length of a full page: some services send the length of the page as the total.
 */
export function saysEnd({ end, received, asked, total, hasMore }: PageExtent): boolean {
  return hasMore === undefined ? end === total && (total !== received || received < asked) : !hasMore
}

/** After so many pages without new rows, a list is not read on. */
const MOST_STALE = 20

/** Detects the end of a list whose service never returns an empty page. */
export class Progress {
  /** Number of consecutive pages without new rows. */
  stale = 0
  /** Ids of the last such page, and whether the one before it had the same. */
  #ids = ''
  #isSame = false
  /** First id of the first page, which a service that respects `offset` does not repeat on the next page. */
  #first: string | undefined
  #pages = 0
  /** True once a page after the first had new rows: the service does respect `offset`. */
  #moved = false

  copy(): Progress {
    const progress = new Progress()
    progress.stale = this.stale
    progress.#ids = this.#ids
    progress.#isSame = this.#isSame
    progress.#first = this.#first
    progress.#pages = this.#pages
    progress.#moved = this.#moved
    return progress
  }

  take(isNew: boolean, ids: readonly string[]): void {
    this.stale = isNew ? 0 : this.stale + 1
    const page = isNew ? '' : [...ids].sort().join('\n')
    this.#isSame = page === this.#ids
    this.#ids = page
    if (this.#pages++ === 0) this.#first = ids[0]
    else this.#moved ||= isNew && !ids.includes(this.#first ?? '')
  }

  /**
   * True after two equal pages without new rows: some services return the last page for any later
   * offset. Pages that differ come from rows that have shifted by whole pages.
   * @param charged what an error about this list reports about the wallet
   * @throws {InvalidResponseError} if the service never respected `offset`, or only repeats rows, so
   * that rows may be missing
   */
  isOver(info: InfoSource, charged: Charged): boolean {
    if (this.stale < 2) return false
    if (!this.#moved) throw unreadable('ignores offset', info, charged)
    if (this.stale > MOST_STALE) throw unreadable('repeats its rows', info, charged)
    return this.#isSame
  }
}

function unreadable(what: string, info: InfoSource, charged: Charged): InvalidResponseError {
  const { attempts, status } = infoFrom(info)
  const money = charged === 'no' ? '' : ` ${moneySentence(charged)}`
  return new InvalidResponseError(
    `The list cannot be read to its end: the service ${what}.${money} Report this to the provider.`,
    { attempts, charged, status },
  )
}
