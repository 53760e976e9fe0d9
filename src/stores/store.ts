/**
 * One row of a store. A store never interprets `data`: it is the journal's record as JSON text (or that text
 * encrypted by the client's `codec`). Everything a store needs for finding and guarding a row is beside it.
 *
 * `scope` and `id` together name the row. All other fields are replaced as a whole by every write.
 */
export interface StoredRow {
  /** Server and account that the record belongs to; two scopes never see each other's rows. Any text. */
  readonly scope: string
  /** Name of the record within its scope: a fixed-length ASCII text (a UUID). */
  readonly id: string
  /** 1 for a new row, one more with every write. A positive safe integer. */
  readonly version: number
  /** True while recovery still has work to do on the record. Such rows are never pruned. */
  readonly open: boolean
  /** State of the record; `prune` keeps each closed state for a time of its own. */
  readonly state: 'open' | 'created' | 'rejected'
  /** When the record was first written, milliseconds since 1970. */
  readonly createdAt: number
  /** When the record was last written, milliseconds since 1970. */
  readonly updatedAt: number
  /** Opaque text, any length, any Unicode; must come back exactly as it was written. */
  readonly data: string
}

/** Result of {@link OrderStore.insert}: either this row is now the stored one, or the row that was there already. */
export type InsertResult =
  | { readonly inserted: true }
  | { readonly inserted: false; readonly current: StoredRow }

/** Which rows {@link OrderStore.list} and {@link OrderStore.listOpen} return, and from where on. */
export interface ListRowsOptions {
  /** Where to go on: the `next` of the page before. Absent for the first page. */
  readonly after?: string
  /** Most rows to return; a positive integer. */
  readonly limit: number
}

/** One page of rows. `next` is absent on the last page; a page may be shorter than `limit`, even empty, and have a `next`. */
export interface RowPage {
  readonly rows: readonly StoredRow[]
  readonly next?: string
}

/** Which closed rows {@link OrderStore.prune} removes: those last written before the time given for their state. */
export interface PruneOptions {
  /** Remove `created` rows with `updatedAt` below this, milliseconds since 1970. */
  readonly createdBefore: number
  /** Remove `rejected` rows with `updatedAt` below this, milliseconds since 1970. */
  readonly rejectedBefore: number
}

/**
 * What a store survives: `memory` dies with the process; `device` survives a crash of the process or the page and,
 * if the store says so in its own documentation, a power failure; `server` is shared by many machines.
 */
export type StoreDurability = 'memory' | 'device' | 'server'

/**
 * Where orders are remembered. Five methods carry every safety decision, each one conditional write or read of one
 * row; `list`, `durability` and `close` are conveniences. The suite in `customer-ordering-sdk/stores/contract`
 * checks all of it.
 *
 * Rules for implementers:
 * - `insert` and `update` are atomic per row and linearizable: of two racing writers exactly one wins.
 * - A promise resolves only when the write is as durable as `durability` claims.
 * - A rejected promise may mean "not applied", "applied, answer lost" or "applied later": a database may go on with a
 *   statement whose client has stopped waiting. The journal reads back, and before it calls an order not charged it
 *   writes a closed row, over which a late write no longer fits. So a write must be one conditional statement, never a
 *   read and a write of its own behind it. Never swallow a failure.
 * - A `StoreError` with `applied: false` says that a rejected write is certain to have had no effect and that neither it
 *   nor an earlier write of this store object to the same row has one later: a full disk, a read-only database. Reject
 *   with it where that is so, and with any other error where it is not known.
 * - Reads after a resolved write see it (no replicas that lag).
 * - A row handed in or out is not shared: later changes to the caller's object do not reach the store.
 */
export interface OrderStore {
  readonly durability: StoreDurability
  /** The row, or undefined. */
  get(scope: string, id: string): Promise<StoredRow | undefined>
  /** Puts the row if no row with its scope and id exists; else returns the existing one. */
  insert(row: StoredRow): Promise<InsertResult>
  /** Replaces the row if the stored one has `expectedVersion`; true if it did. False also when there is no such row. */
  update(row: StoredRow, expectedVersion: number): Promise<boolean>
  /** Rows with `open` true, in any order. May repeat rows that change while paging, never omits one that stays open. */
  listOpen(scope: string, options: ListRowsOptions): Promise<RowPage>
  /** Removes closed rows (`open` false) older than the given times, in one scope; returns how many. */
  prune(scope: string, options: PruneOptions): Promise<number>
  /** All rows of a scope with `updatedAt` at or after `since` (milliseconds, default 0), in any order. */
  list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage>
  /** Releases what the store itself opened. A client handed in by the caller stays open. */
  close(): Promise<void>
}

/**
 * The rows of a store as one transaction of the caller's sees and writes them: what is written here is committed, or rolled
 * back, with everything else in it. For `orders.enqueue`; no client takes it for a whole store.
 */
export type OrderOutbox = Pick<OrderStore, 'get' | 'insert' | 'update'>
