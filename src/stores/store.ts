/**
 * One row of a store.
 *
 * A store never interprets `data`, which is the journal's record as JSON, or that JSON encrypted by
 * the client's `codec`. A store uses the other fields to find rows and to detect conflicting
 * writes.
 *
 * `scope` and `id` together identify the row. Every write replaces all other fields.
 */
export interface StoredRow {
  /** Identifies the server and the account. May be any string. Scopes never share rows. */
  readonly scope: string
  /** Name of the record within its scope: an ASCII string of fixed length (a UUID). */
  readonly id: string
  /** Set by the first write, and incremented by every later one. A positive safe integer. */
  readonly version: number
  /** True while recovery may still have work to do on the record. Open rows are never pruned. */
  readonly open: boolean
  /**
   * State of the record. {@link OrderStore.prune} has a separate cutoff time for each closed state.
   */
  readonly state: 'open' | 'created' | 'rejected'
  /** When the record was first written, milliseconds since 1970. */
  readonly createdAt: number
  /** When the record was last written, milliseconds since 1970. */
  readonly updatedAt: number
  /** String of any length, which may contain any Unicode character. Must be returned unchanged. */
  readonly data: string
}

/** Result of {@link OrderStore.insert}: the row was stored, or a row already existed. */
export type InsertResult =
  | { readonly inserted: true }
  | { readonly inserted: false; readonly current: StoredRow }

/** The cursor and the page size of {@link OrderStore.list} and {@link OrderStore.listOpen}. */
export interface ListRowsOptions {
  /** Cursor: the `next` of the previous page. Absent for the first page. */
  readonly after?: string
  /** Maximum number of rows to return, a positive integer. */
  readonly limit: number
}

/**
 * One page of rows.
 *
 * `next` is absent on the last page. A page may be shorter than `limit`, even empty, and still have
 * a `next`.
 */
export interface RowPage {
  /** The rows of the page. */
  readonly rows: readonly StoredRow[]
  /** The cursor of the next page. */
  readonly next?: string
}

/**
 * Closed rows that {@link OrderStore.prune} removes: those last written before the cutoff time for
 * their state.
 */
export interface PruneOptions {
  /** Remove `created` rows with `updatedAt` before this time, in milliseconds since 1970. */
  readonly createdBefore: number
  /** Remove `rejected` rows with `updatedAt` before this time, in milliseconds since 1970. */
  readonly rejectedBefore: number
}

/**
 * What an acknowledged write survives.
 *
 * With `memory`, it is lost when the process ends. With `device`, it survives a crash of the
 * process or the page and, if the store's documentation says so, a power failure. With `server`, it
 * survives the loss of the machine that made it. The store's documentation says which failures of
 * the server it survives.
 */
export type StoreDurability = 'memory' | 'device' | 'server'

/**
 * Where the client remembers orders.
 *
 * Safety depends on every member except `close`: the client also uses `list` to decide what to
 * prune, and `durability` to decide which options it requires. The suite in
 * `customer-ordering-sdk/stores/contract` checks all members.
 *
 * Rules for implementers:
 * - `insert` and `update` are atomic per row and linearizable: exactly one of two racing writers
 *   wins.
 * - A promise resolves only when the write is as durable as `durability` claims.
 * - A rejected promise may mean "not applied", "applied, response lost" or "applied later": a
 *   database may finish a statement after its driver has stopped waiting. The client then reads the
 *   row. Before the client reports an order as not charged, it writes a closed row, which makes a
 *   late write fail. So each write must check its condition and store the row in one atomic step,
 *   such as a conditional statement. Never swallow a failure.
 * - A `StoreError` with `applied: false` promises two things. The rejected write had no effect (a
 *   full disk, a read-only database). Neither that write nor an earlier write of this store object
 *   to the same row will take effect later. Set `applied: false` only if both are certain.
 * - A read that begins after a write has resolved sees that write (no lagging replicas).
 * - Rows are never shared: changing a row object, passed or returned, does not change the stored
 *   row.
 */
export interface OrderStore {
  /** What an acknowledged write survives. */
  readonly durability: StoreDurability
  /** Returns the row, or undefined if there is none. */
  get(scope: string, id: string): Promise<StoredRow | undefined>
  /** Stores the row if no row with its scope and id exists. Otherwise returns the existing row. */
  insert(row: StoredRow): Promise<InsertResult>
  /**
   * Replaces the stored row and returns true if its version is `expectedVersion`.
   *
   * Returns false if the version differs or there is no such row.
   */
  update(row: StoredRow, expectedVersion: number): Promise<boolean>
  /**
   * Returns one page of the rows with `open` true, in any order.
   *
   * The pages may repeat a row that changes in between, but never omit a row that stays open.
   */
  listOpen(scope: string, options: ListRowsOptions): Promise<RowPage>
  /**
   * Removes the closed rows (`open` false) of one scope that were last written before the cutoff
   * time for their state.
   *
   * Returns the number of removed rows.
   */
  prune(scope: string, options: PruneOptions): Promise<number>
  /**
   * Returns one page of the rows of a scope with `updatedAt` at or after `since` (milliseconds
   * since 1970, default 0), in any order.
   */
  list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage>
  /** Closes what the store itself opened. A database client that the caller passed stays open. */
  close(): Promise<void>
}
