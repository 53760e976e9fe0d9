import { defined } from '../defined.ts'
import { StoreError } from '../errors/classes.ts'
import { Deadline, GRACE, Interruption } from '../http/deadline.ts'
import type { Runtime } from '../runtime.ts'
import type { OrderStore, RowPage, StoredRow } from '../stores/store.ts'

export const STORE_TIMEOUT = 10_000

/** How far back to search for a witness, in multiples of its minimum age. */
const WITNESS_AGES: readonly number[] = [1.1, 2, 8, 32, 128]

/** `open`: rows with work left for recovery. `since`: rows written since a time. */
export type Which = { readonly open: true } | { readonly since: number }

/**
 * - `lost`: another writer was faster.
 * - `refused`: the write can never be applied ({@link StoreError.applied} is false).
 * - `doubt`: the write may still be applied, because a database may continue a statement after its
 *   client has stopped waiting.
 */
export type Applied =
  | { readonly result: 'written' }
  | { readonly result: 'lost' }
  | { readonly result: 'refused' | 'doubt'; readonly repair?: string | undefined; readonly cause: unknown }

export class Rows {
  readonly store: OrderStore
  readonly scope: string
  readonly #runtime: Runtime

  constructor(store: OrderStore, scope: string, runtime: Runtime) {
    this.store = store
    this.scope = scope
    this.#runtime = runtime
  }

  async read(id: string, deadline: Deadline): Promise<StoredRow | Interruption | undefined> {
    let row: StoredRow | Interruption | undefined
    try {
      row = await this.bounded(
        this.#call(() => this.store.get(this.scope, id)),
        deadline,
      )
    } catch (cause) {
      throw storeError(UNREADABLE, cause)
    }
    return row instanceof Interruption ? endOrThrow(deadline) : row
  }

  async apply(base: StoredRow | undefined, row: StoredRow, deadline: Deadline): Promise<Applied> {
    const { id, version } = row
    const written = { result: 'written' } as const
    const pending =
      base === undefined
        ? this.#call(() => this.store.insert(row)).then(({ inserted }) => inserted)
        : this.#call(() => this.store.update(row, base.version))
    let failure: unknown
    let applied: boolean | Interruption | undefined
    let grace: Deadline | undefined
    try {
      applied = await this.bounded(pending, deadline)
      if (applied instanceof Interruption) {
        // The store may still confirm the write, so wait briefly after the call's end.
        grace = new Deadline(this.#runtime, GRACE, undefined)
        applied = await new Deadline(this.#runtime, GRACE / 2, undefined).race(pending)
      }
      if (isConfirmed(applied)) return written
    } catch (cause) {
      failure = cause ?? new Error('the store failed')
    }
    // Read the row even if the store reported that another writer was faster: a database client may
    // have repeated this write after a lost response.
    grace ??= new Deadline(this.#runtime, GRACE, undefined)
    const read = await this.read(id, grace).catch(() => 'unreadable' as const)
    const unread = read instanceof Interruption || read === 'unreadable'
    const current = unread ? undefined : read
    if (isThisWrite(current, row)) return written
    if (applied === false || (current !== undefined && current.version >= version)) return { result: 'lost' }
    // Trust a rejection only if the row was read afterwards: a database client may repeat a
    // statement that was applied, and report that the repetition was rejected.
    const refused = !unread && failure instanceof StoreError && failure.applied === false
    return { result: refused ? 'refused' : 'doubt', cause: failure }
  }

  async *all(which: Which): AsyncGenerator<StoredRow, void, undefined> {
    let after: string | undefined
    do {
      const page = await this.page(which, after)
      yield* page.rows
      after = page.next
    } while (after !== undefined)
  }

  page(which: Which, after?: string): Promise<RowPage> {
    const options = { limit: 100, ...defined({ after }) }
    const listed = (): Promise<RowPage> =>
      'open' in which
        ? this.store.listOpen(this.scope, options)
        : this.store.list(this.scope, { ...options, since: which.since })
    return this.confirmed(listed, UNREADABLE)
  }

  /**
   * Returns the time before which records may be removed, or 0 if none may be. If this process's
   * clock is far ahead, every record looks old. So a record must also be older than another record,
   * the witness, by three quarters of the retention. The witness must be at least a quarter of the
   * retention old: a newer one may have been written with the wrong clock.
   */
  async prunableBefore(retention: number): Promise<number> {
    const now = this.#runtime.now()
    const minAge = retention / 4
    for (const factor of WITNESS_AGES) {
      const { rows } = await this.page({ since: Math.floor(Math.max(0, now - minAge * factor)) })
      const witness = witnessOf(rows, now - minAge)
      if (witness !== undefined)
        return Math.floor(Math.min(now - retention, witness.updatedAt - (retention * 3) / 4))
    }
    return 0
  }

  async confirmed<T>(
    operation: () => Promise<T>,
    message: string,
    deadline: Deadline = new Deadline(this.#runtime, STORE_TIMEOUT, undefined),
  ): Promise<T> {
    let result: T | Interruption
    try {
      result = await this.bounded(this.#call(operation), deadline)
    } catch (cause) {
      throw storeError(message, cause)
    }
    if (result instanceof Interruption) throw storeError(message)
    return result
  }

  bounded<T>(pending: Promise<T>, deadline: Deadline): Promise<T | Interruption> {
    const time = Math.min(STORE_TIMEOUT, deadline.remaining())
    return new Deadline(this.#runtime, time, deadline.signal).race(pending)
  }

  /** Turns a synchronous throw of a store into a rejection, which is all that callers handle. */
  async #call<T>(operation: () => Promise<T>): Promise<T> {
    return await operation()
  }
}

export function witnessOf<Row extends Pick<StoredRow, 'updatedAt'>>(
  rows: readonly Row[],
  latest: number,
): Row | undefined {
  return rows.find(({ updatedAt }) => updatedAt <= latest)
}

/** A store that has not responded in time may have written nothing. */
export function isConfirmed(applied: boolean | Interruption): boolean {
  return applied === true
}

/**
 * Compares the content, too, because it includes the random `claim` of the call that wrote the row.
 */
export function isThisWrite(stored: StoredRow | undefined, row: StoredRow): boolean {
  return stored?.version === row.version && stored.data === row.data
}

/** Throws if the call still has time: only the store was too slow. */
function endOrThrow(deadline: Deadline): Interruption {
  const over = deadline.over()
  if (over !== undefined) return over
  throw storeError(UNREADABLE)
}

const UNREADABLE =
  'The store could not be read, so nothing more was sent. An earlier attempt may have charged the wallet. Repair the store, then repeat this call unchanged.'

export function storeError(message: string, cause?: unknown): StoreError {
  return new StoreError(message + reasonOf(cause), { charged: 'unknown', cause })
}

/** Quotes only a StoreError: the message of any other error may contain a secret. */
export function reasonOf(cause: unknown): string {
  return cause instanceof StoreError ? ` The store reported: ${cause.message}` : ''
}
