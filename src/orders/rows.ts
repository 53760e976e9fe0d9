import { defined } from '../defined.ts'
import { StoreError } from '../errors.ts'
import { Deadline, GRACE, Interruption } from '../http/deadline.ts'
import type { Runtime } from '../runtime.ts'
import type { OrderOutbox, OrderStore, RowPage, StoredRow } from '../stores/store.ts'

/** Milliseconds that one operation of a store may take. */
export const STORE_TIMEOUT = 10_000

/**
 * How far back to search for the witness of {@link Rows.prunableBefore}, in multiples of the
 * witness's minimum age. If orders are rare, the witness is further back.
 */
const WITNESS_AGES: readonly number[] = [1.1, 2, 8, 32, 128]

/** Which rows are listed: those with work left for recovery, or those written since a time. */
export type Which = { readonly open: true } | { readonly since: number }

/**
 * Result of a conditional write of a row.
 * - `lost`: another writer was faster.
 * - `refused`: the store is certain that the write never happens, as with a full disk
 *   ({@link StoreError.applied}).
 * - `doubt`: the write is not visible, but may still be applied, even if the store rejected it. A
 *   database may continue a statement after its client has stopped waiting.
 */
export type Applied =
  | { readonly result: 'written' }
  | { readonly result: 'lost' }
  | { readonly result: 'refused' | 'doubt'; readonly repair?: undefined; readonly cause: unknown }

/**
 * Reads and writes the rows of a scope in a store. Every operation has a time limit, and a write
 * whose response was lost is read back.
 */
export class Rows {
  readonly store: OrderStore
  readonly scope: string
  readonly #runtime: Runtime

  constructor(store: OrderStore, scope: string, runtime: Runtime) {
    this.store = store
    this.scope = scope
    this.#runtime = runtime
  }

  /** Reads a row. Returns the interruption if the call ended first. */
  async read(
    id: string,
    deadline: Deadline,
    store: OrderOutbox = this.store,
  ): Promise<StoredRow | Interruption | undefined> {
    let row: StoredRow | Interruption | undefined
    try {
      row = await this.bounded(
        this.#call(() => store.get(this.scope, id)),
        deadline,
      )
    } catch (cause) {
      throw storeError(UNREADABLE, cause)
    }
    return row instanceof Interruption ? overOr(deadline) : row
  }

  /** Writes a row if the stored row has not changed since `base` was read. */
  async apply(
    base: StoredRow | undefined,
    row: StoredRow,
    deadline: Deadline,
    store: OrderOutbox,
  ): Promise<Applied> {
    const { id, version } = row
    const written = { result: 'written' } as const
    const pending =
      base === undefined
        ? this.#call(() => store.insert(row)).then(({ inserted }) => inserted)
        : this.#call(() => store.update(row, base.version))
    let failure: unknown
    let applied: boolean | Interruption | undefined
    let grace: Deadline | undefined
    try {
      applied = await this.bounded(pending, deadline)
      if (applied instanceof Interruption) {
        // The write may still be applied, so wait a moment past the call's end to find out.
        grace = new Deadline(this.#runtime, GRACE, undefined)
        applied = await new Deadline(this.#runtime, GRACE / 2, undefined).race(pending)
      }
      if (isConfirmed(applied)) return written
    } catch (cause) {
      failure = cause ?? new Error('the store failed')
    }
    // Read the row: a database client that repeats a write after a lost response may report that
    // another writer was faster.
    grace ??= new Deadline(this.#runtime, GRACE, undefined)
    const read = await this.read(id, grace, store).catch(() => 'unreadable' as const)
    const unread = read instanceof Interruption || read === 'unreadable'
    const current = unread ? undefined : read
    if (isThisWrite(current, row)) return written
    if (applied === false || (current !== undefined && current.version >= version)) return { result: 'lost' }
    // A database client may repeat a statement that was applied, and report that the repetition was
    // rejected. So a rejection proves nothing unless the row was read afterwards.
    const refused = !unread && failure instanceof StoreError && failure.applied === false
    return { result: refused ? 'refused' : 'doubt', cause: failure }
  }

  /** Yields the scope's rows with work left for recovery, or those written since a time. */
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
   * The time before which closed records may be removed; 0 if no record may be. This process's
   * clock alone must not decide: while it is far ahead, all records look old. So another record,
   * the witness, must be newer than the removed records by three quarters of the retention. The
   * witness itself must be at least a quarter of the retention old: a record that was just written
   * by a clock far ahead is no witness.
   */
  async prunableBefore(kept: number): Promise<number> {
    const now = this.#runtime.now()
    const settled = kept / 4
    for (const factor of WITNESS_AGES) {
      const { rows } = await this.page({ since: Math.floor(Math.max(0, now - settled * factor)) })
      const witness = witnessOf(rows, now - settled)
      if (witness !== undefined) return Math.floor(Math.min(now - kept, witness.updatedAt - (kept * 3) / 4))
    }
    return 0
  }

  /**
   * Returns the store's result. Throws a StoreError if the store fails, or does not respond within
   * {@link STORE_TIMEOUT} and by the deadline.
   */
  async confirmed<T>(
    operation: () => Promise<T>,
    otherwise: string,
    deadline: Deadline = new Deadline(this.#runtime, STORE_TIMEOUT, undefined),
  ): Promise<T> {
    let result: T | Interruption
    try {
      result = await this.bounded(this.#call(operation), deadline)
    } catch (cause) {
      throw storeError(otherwise, cause)
    }
    if (result instanceof Interruption) throw storeError(otherwise)
    return result
  }

  /**
   * Returns the result if it arrives within {@link STORE_TIMEOUT} and by the deadline, or the
   * interruption.
   */
  bounded<T>(pending: Promise<T>, deadline: Deadline): Promise<T | Interruption> {
    const time = Math.min(STORE_TIMEOUT, deadline.remaining())
    return new Deadline(this.#runtime, time, deadline.signal).race(pending)
  }

  /**
   * Turns a synchronous throw of a store into a rejection, because callers handle only rejections.
   */
  async #call<T>(operation: () => Promise<T>): Promise<T> {
    return await operation()
  }
}

/** A row whose age proves that time has passed, whatever this process's clock shows. */
export function witnessOf<Row extends Pick<StoredRow, 'updatedAt'>>(
  rows: readonly Row[],
  latest: number,
): Row | undefined {
  return rows.find(({ updatedAt }) => updatedAt <= latest)
}

/**
 * True if the store confirmed the write: a store that has not responded in time may have written
 * nothing.
 */
export function isConfirmed(applied: boolean | Interruption): boolean {
  return applied === true
}

/**
 * True if the stored row is the result of this write. No other write has its content, which
 * includes the call's `claim`.
 */
export function isThisWrite(stored: StoredRow | undefined, row: StoredRow): boolean {
  return stored?.version === row.version && stored.data === row.data
}

/**
 * Returns the interruption of a call. If the call is not over, the store was too slow, so it
 * throws.
 */
function overOr(deadline: Deadline): Interruption {
  const over = deadline.over()
  if (over !== undefined) return over
  throw storeError(UNREADABLE)
}

const UNREADABLE =
  'The store could not be read, so this call sent nothing. An earlier call may have charged the wallet. Repair the store and call again with the same request.'

export function storeError(message: string, cause?: unknown): StoreError {
  return new StoreError(message + reasonOf(cause), { charged: 'unknown', cause })
}

/**
 * The message of a StoreError, to append to another message. The message of any other error may
 * contain a secret.
 */
export function reasonOf(cause: unknown): string {
  return cause instanceof StoreError ? ` The store reported: ${cause.message}` : ''
}
