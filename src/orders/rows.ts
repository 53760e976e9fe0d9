import { defined } from '../defined.ts'
import { StoreError } from '../errors.ts'
import { Deadline, GRACE, Interruption } from '../http/deadline.ts'
import type { Runtime } from '../runtime.ts'
import type { OrderOutbox, OrderStore, RowPage, StoredRow } from '../stores/store.ts'

/** How long one operation of a store may take, milliseconds. */
export const STORE_TIMEOUT = 10_000

/** How far back the witness for a pruning is looked for, as multiples of its least age: further where orders are rare. */
const WITNESS_AGES: readonly number[] = [1.1, 2, 8, 32, 128]

/** Which rows are listed: those with work left for recovery, or those written since a time. */
export type Which = { readonly open: true } | { readonly since: number }

/**
 * How a conditional write of a row ended.
 * - `lost`: another writer was faster.
 * - `refused`: the store is certain that it never happens, as with a full disk (see {@link StoreError.applied}).
 * - `doubt`: it is not there, and may still be applied, also where the store has rejected it: a database goes on with a
 *   statement whose client has stopped waiting.
 */
export type Applied =
  | { readonly result: 'written' }
  | { readonly result: 'lost' }
  | { readonly result: 'refused' | 'doubt'; readonly repair?: undefined; readonly cause: unknown }

/** The rows of a scope in a store: every operation ends in its time, and a write whose answer was lost is read back. */
export class Rows {
  readonly store: OrderStore
  readonly scope: string
  readonly #runtime: Runtime

  constructor(store: OrderStore, scope: string, runtime: Runtime) {
    this.store = store
    this.scope = scope
    this.#runtime = runtime
  }

  /** What the store has, or the interruption of the call. */
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

  /** Writes a row if nothing changed since its base was read. */
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
        // The write is on its way and may still be applied: knowing is worth a moment past the call's end.
        grace = new Deadline(this.#runtime, GRACE, undefined)
        applied = await new Deadline(this.#runtime, GRACE / 2, undefined).race(pending)
      }
      if (isConfirmed(applied)) return written
    } catch (cause) {
      failure = cause ?? new Error('the store failed')
    }
    // A database client that sent the write twice, because the first answer was lost, answers that it was too late.
    grace ??= new Deadline(this.#runtime, GRACE, undefined)
    const read = await this.read(id, grace, store).catch(() => 'unreadable' as const)
    const unread = read instanceof Interruption || read === 'unreadable'
    const current = unread ? undefined : read
    if (isThisWrite(current, row)) return written
    if (applied === false || (current !== undefined && current.version >= version)) return { result: 'lost' }
    // A client that repeats a statement may be refused the second time after the first was applied, so the row decides, too.
    const refused = !unread && failure instanceof StoreError && failure.applied === false
    return { result: refused ? 'refused' : 'doubt', cause: failure }
  }

  /** All rows of the scope, page by page: those with work left for recovery, or those written since a time. */
  async *all(which: Which): AsyncGenerator<StoredRow, void, undefined> {
    let after: string | undefined
    do {
      const page = await this.page(which, after)
      yield* page.rows
      after = page.next
    } while (after !== undefined)
  }

  /** One page of them. */
  page(which: Which, after?: string): Promise<RowPage> {
    const options = { limit: 100, ...defined({ after }) }
    const listed = (): Promise<RowPage> =>
      'open' in which
        ? this.store.listOpen(this.scope, options)
        : this.store.list(this.scope, { ...options, since: which.since })
    return this.confirmed(listed, UNREADABLE)
  }

  /**
   * The time before which closed records may go; 0 if none may. This clock alone must not decide: while it is far
   * ahead, everybody's records look old. So a record that was written well before now, the witness, has to stand three
   * quarters of the time after what goes. A clock that is ahead writes a witness itself only after it was wrong for a
   * quarter of the time.
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

  /** What the store answers in its time, or by the deadline where one is given. */
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

  /** What comes in the time of an operation, or by the deadline. */
  bounded<T>(pending: Promise<T>, deadline: Deadline): Promise<T | Interruption> {
    const time = Math.min(STORE_TIMEOUT, deadline.remaining())
    return new Deadline(this.#runtime, time, deadline.signal).race(pending)
  }

  /** A store that throws instead of rejecting has failed all the same. */
  async #call<T>(operation: () => Promise<T>): Promise<T> {
    return await operation()
  }
}

/** A row that proves by its age that time has passed, whatever this process's clock says. */
export function witnessOf<Row extends Pick<StoredRow, 'updatedAt'>>(
  rows: readonly Row[],
  latest: number,
): Row | undefined {
  return rows.find(({ updatedAt }) => updatedAt <= latest)
}

/** True if the store has said that it wrote: one that has not responded in time may have written nothing. */
export function isConfirmed(applied: boolean | Interruption): boolean {
  return applied === true
}

/** True if what is stored is this very write. No other has its text, because every call's `claim` is in there. */
export function isThisWrite(stored: StoredRow | undefined, row: StoredRow): boolean {
  return stored?.version === row.version && stored.data === row.data
}

/** The end of a call; its store was given up if it has not come. */
function overOr(deadline: Deadline): Interruption {
  const over = deadline.over()
  if (over !== undefined) return over
  throw storeError(UNREADABLE)
}

const UNREADABLE =
  'The store could not be read, so nothing was sent by this call; whether an earlier one was charged is not known. Repair the store and call again with the same request.'

export function storeError(message: string, cause?: unknown): StoreError {
  return new StoreError(message + reasonOf(cause), { charged: 'unknown', cause })
}

/** What a store said of itself, for the end of a message. Whatever else it threw may hold a secret. */
export function reasonOf(cause: unknown): string {
  return cause instanceof StoreError ? ` The store said: ${cause.message}` : ''
}
