import { StoreError } from '../errors/classes.ts'
import { plainError } from './plain-error.ts'
import {
  DEFAULT_BUSY_TIMEOUT,
  durabilityOf,
  fileOf,
  journalModeOf,
  locate,
  type OwnDatabase,
  open,
  type SqliteDatabase,
} from './sqlite/database.ts'
import { codeOf, explain, isNamed, textOf } from './sqlite/failure.ts'
import { checkPlace, DatabaseFiles } from './sqlite/files.ts'
import { fromCursor, toPage, toRow } from './sqlite/rows.ts'
import { checkVersion, migrate, PRUNE_BATCH, prepare, type Statements, versionOf } from './sqlite/schema.ts'
import { storable } from './storable.ts'
import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from './store.ts'
import { UncertainWrites } from './uncertain-writes.ts'

export type { SqliteDatabase, SqliteStatement } from './sqlite/database.ts'

/** Options for a file that the store opens and closes. */
export interface SqliteFileOptions {
  /**
   * Path of the database file. The constructor resolves a relative path once. It creates a missing
   * file, which only the owner can read and write, but not a missing directory. With `':memory:'`,
   * the rows are lost when the process ends, and `durability` is `'memory'`. Do not use a network
   * file system: file locks and shared memory do not work there.
   */
  readonly path: string
  /**
   * How long to wait for another connection's write, in milliseconds. Default 5000. The wait blocks
   * the event loop. After that time, the call rejects with `StoreError`.
   */
  readonly busyTimeout?: number
  readonly database?: never
}

/** Options for a connection that you open and close yourself. */
export interface SqliteDatabaseOptions {
  /**
   * An open connection. The store creates two tables, named `customer_ordering_…`, and sets `PRAGMA
   * synchronous=EXTRA`, the strictest setting. It does not change the journal mode, the busy
   * timeout or the file permissions. While the connection is inside a transaction, every call
   * rejects: a rollback could remove an order from the store after the order was sent.
   */
  readonly database: SqliteDatabase
  readonly path?: never
  readonly busyTimeout?: never
}

/** Options of {@link SqliteStore}: either a file to open, or an open connection. */
export type SqliteStoreOptions = SqliteFileOptions | SqliteDatabaseOptions

/** An attempt fails if the existing row is pruned before the store reads it. */
const INSERT_ATTEMPTS = 3

/**
 * Remembers orders in an SQLite file, for all processes on one machine. An acknowledged write to a
 * file survives the end of the process. With the option `path`, it also survives a power failure if
 * the disk loses no writes that it has acknowledged: the store uses a write-ahead log,
 * `synchronous=FULL` and `fullfsync`.
 *
 * The constructor opens the file and creates the tables, so a wrong path or a missing module fails
 * when the program starts, not with its first order. SQLite is synchronous: each call blocks the
 * event loop until the disk has written. Use one instance per thread.
 *
 * Every failure is a `StoreError` that explains what happened and what to do. Its `cause`, if any,
 * is a plain error with SQLite's code, for example `SQLITE_FULL`.
 *
 * @example
 * const store = new SqliteStore({ path: 'orders.db' })
 */
export class SqliteStore implements OrderStore {
  /** `'device'`, or `'memory'` if the database is not in a file. */
  readonly durability: StoreDurability
  readonly #database: SqliteDatabase
  readonly #own: OwnDatabase | undefined
  readonly #name: string
  /** By default, a TextDecoder drops a byte order mark and replaces invalid bytes. */
  readonly #utf8: TextDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  readonly #files: DatabaseFiles | undefined
  readonly #uncertain: UncertainWrites = new UncertainWrites()
  #statements: Statements | undefined

  /**
   * Opens the database and brings its tables up to date.
   *
   * @throws {StoreError} if an option is wrong, or this runtime has no `node:sqlite`; if the file
   * cannot be opened, is not an SQLite database, or stays locked for longer than `busyTimeout`; if
   * the database cannot store orders safely, or a newer version of this package wrote it
   */
  constructor(options: SqliteStoreOptions) {
    // Without `Object`, a call without options would throw a TypeError, not a StoreError.
    const { path, busyTimeout, database }: Partial<SqliteStoreOptions> = Object(options)
    if (database !== undefined) {
      const handed: Partial<SqliteDatabase> = Object(database)
      if (typeof handed.exec !== 'function' || typeof handed.prepare !== 'function') {
        throw new StoreError(
          'The option `database` of SqliteStore must be an open connection with the methods `exec` and ' +
            '`prepare`.',
        )
      }
      this.#database = database
      this.#own = undefined
      this.#name = 'the database that you passed'
    } else {
      this.#name = locate(path)
      this.#own = open(this.#name, busyTimeout ?? DEFAULT_BUSY_TIMEOUT)
      this.#database = this.#own
    }
    try {
      if (this.#own === undefined) this.#guard()
      this.durability = durabilityOf(this.#database, this.#name)
      const file = fileOf(this.#database)
      // A file that the store opened itself was checked before SQLite created its log.
      if (this.#own === undefined && file !== '') checkPlace(file, this.#name)
      migrate(this.#database, this.#name)
      this.#statements = prepare(this.#database)
      this.#files =
        file === '' ? undefined : new DatabaseFiles(this.#own === undefined ? file : this.#name, file)
      this.#checkFiles()
    } catch (error) {
      this.#own?.close()
      throw explain(error, 'open', this.#name)
    }
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return this.#run('read from', (statements) => {
      const found = statements.get.get(storable(scope), storable(id))
      return found === undefined ? undefined : toRow(scope, found, this.#utf8)
    })
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    return await this.#uncertain.run(row, async () => this.#insert(row))
  }

  #insert(row: StoredRow): InsertResult {
    return this.#run('write to', (statements) => {
      for (let attempt = 1; attempt <= INSERT_ATTEMPTS; attempt++) {
        const { changes } = statements.insert.run(
          storable(row.scope),
          storable(row.id),
          row.version,
          row.open ? 1 : 0,
          row.state,
          row.createdAt,
          row.updatedAt,
          storable(row.data),
        )
        if (Number(changes) === 1) return { inserted: true }
        const current = statements.get.get(row.scope, row.id)
        if (current !== undefined) return { inserted: false, current: toRow(row.scope, current, this.#utf8) }
        this.#checkVersion(statements)
      }
      throw new StoreError(
        `Cannot write to the order store in ${this.#name}: ` +
          'other processes keep writing and pruning the same record. Nothing was written; try again.',
      )
    })
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    return await this.#uncertain.run(row, async () => this.#update(row, expectedVersion))
  }

  #update(row: StoredRow, expectedVersion: number): boolean {
    return this.#run('write to', (statements) => {
      const { changes } = statements.update.run(
        row.version,
        row.open ? 1 : 0,
        row.state,
        row.createdAt,
        row.updatedAt,
        storable(row.data),
        storable(row.scope),
        storable(row.id),
        expectedVersion,
      )
      if (Number(changes) === 1) return true
      this.#checkVersion(statements)
      return false
    })
  }

  async listOpen(scope: string, { after, limit }: ListRowsOptions): Promise<RowPage> {
    return this.#run('read from', (statements) => {
      // One row beyond the limit shows whether there is a next page.
      const found = statements.listOpen
        .all(storable(scope), storable(after ?? ''), limit + 1)
        .map((row) => toRow(scope, row, this.#utf8))
      return toPage(found, limit, (last) => last.id)
    })
  }

  /**
   * Removes old closed rows in batches of a few hundred, and lets the event loop run between
   * batches. If the call rejects midway, the rows removed so far stay removed, and the next call
   * continues.
   */
  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    let removed = 0
    for (const [state, before] of [
      ['created', createdBefore],
      ['rejected', rejectedBefore],
    ] as const) {
      for (;;) {
        const batch = this.#run('write to', (statements) =>
          Number(statements.prune.run(storable(scope), state, before).changes),
        )
        removed += batch
        if (batch < PRUNE_BATCH) break
        await new Promise<void>((resolve) => setTimeout(resolve))
      }
    }
    return removed
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    return this.#run('read from', (statements) => {
      // Every id sorts after '', so the first page includes rows written exactly at `since`.
      const [updatedAt, id] =
        options.after === undefined ? [options.since ?? 0, ''] : fromCursor(options.after)
      const found = statements.list
        .all(storable(scope), updatedAt, storable(id), options.limit + 1)
        .map((row) => toRow(scope, row, this.#utf8))
      return toPage(found, options.limit, (last) => `${last.updatedAt} ${last.id}`)
    })
  }

  /**
   * Moves the write-ahead log into the file, as far as other processes' reads allow, and closes the
   * file. A connection that you passed stays open. Later calls reject with `StoreError`. Closing
   * again does nothing.
   */
  async close(): Promise<void> {
    if (this.#statements === undefined) return
    this.#statements = undefined
    if (this.#own === undefined) return
    try {
      try {
        // PASSIVE never waits. A later checkpoint moves the rest of the log.
        this.#own.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
      } finally {
        this.#own.close()
      }
    } catch (error) {
      throw explain(error, 'close', this.#name)
    }
  }

  #run<T>(task: 'read from' | 'write to', action: (statements: Statements) => T): T {
    if (this.#statements === undefined) {
      throw new StoreError(`The order store in ${this.#name} was closed. Create a new SqliteStore.`)
    }
    try {
      if (this.#own === undefined) this.#guard()
      if (task === 'write to') this.#checkFiles()
      return action(this.#statements)
    } catch (error) {
      throw explain(this.#newerOr(error, this.#statements), task, this.#name)
    }
  }

  #checkVersion(statements: Statements): void {
    checkVersion(versionOf(statements.version), `Cannot use the order store in ${this.#name}`)
  }

  /** Reports the upgrade if a newer version of this package made the tables look damaged. */
  #newerOr(error: unknown, statements: Statements): unknown {
    if (isNamed(error)) return error
    try {
      this.#checkVersion(statements)
      return error
    } catch (newer) {
      return newer instanceof StoreError ? newer : error
    }
  }

  #checkFiles(): void {
    this.#files?.check(journalModeOf(this.#database, this.#name), this.#name)
  }

  /**
   * Makes SQLite sync every commit. SQLite rejects this pragma inside a transaction, which reveals
   * an open transaction with any driver.
   */
  #guard(): void {
    try {
      this.#database.exec('PRAGMA synchronous = EXTRA')
    } catch (error) {
      if (!textOf(error).includes('inside a transaction')) throw error
      throw new StoreError(
        'The order store cannot be used while its database is inside a transaction: a rollback could ' +
          'remove an order from the store after it was sent. Nothing was written. ' +
          'Finish the transaction first, or give the store its own connection.',
        { cause: plainError(error, codeOf(error)) },
      )
    }
  }
}
