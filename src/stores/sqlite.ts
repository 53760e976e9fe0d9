import { StoreError } from '../errors/classes.ts'
import { fromListCursor, listCursor, toPage } from './rows.ts'
import { DEFAULT_BUSY_TIMEOUT, locate, open, openFileOf } from './sqlite/database.ts'
import { explain, isNamed } from './sqlite/failure.ts'
import { DatabaseFiles } from './sqlite/files.ts'
import {
  checkVersion,
  decode,
  migrate,
  PRUNE_BATCH,
  prepare,
  type Statements,
  versionOf,
} from './sqlite/schema.ts'
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

/** Options of {@link SqliteStore}. */
export interface SqliteStoreOptions {
  /**
   * Path of the database file.
   *
   * The constructor resolves a relative path once. It creates a missing file, which only the owner
   * can read and write, but not a missing directory. With `':memory:'`, the rows are lost when the
   * process ends, and `durability` is `'memory'`. Do not use a network file system: file locks and
   * shared memory do not work there.
   */
  readonly path: string
  /**
   * How long to wait for another connection's write, in milliseconds.
   *
   * Default 5000. The wait blocks the event loop. After that time, the call rejects with
   * `StoreError`.
   */
  readonly busyTimeout?: number
}

/** An attempt fails if the existing row is pruned before the store reads it. */
const INSERT_ATTEMPTS = 3

/**
 * Remembers orders in an SQLite file, for all processes on one machine.
 *
 * An acknowledged write survives the end of the process. It also survives a power failure if the
 * disk loses no writes that it has acknowledged: the store uses a write-ahead log,
 * `synchronous=FULL` and `fullfsync`.
 *
 * The store opens its own connection, because a transaction of other code on the same connection
 * could roll back an order after it was sent. Other programs may open the same file.
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
  readonly #name: string
  readonly #files: DatabaseFiles | undefined
  readonly #uncertain: UncertainWrites = new UncertainWrites()
  readonly #end: () => void
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
    const { path, busyTimeout = DEFAULT_BUSY_TIMEOUT }: Partial<SqliteStoreOptions> = Object(options)
    this.#name = locate(path)
    const database = open(this.#name, busyTimeout)
    try {
      migrate(database, this.#name)
      this.#statements = prepare(database)
      const file = openFileOf(database)
      this.durability = file === '' ? 'memory' : 'device'
      this.#files = file === '' ? undefined : new DatabaseFiles(this.#name, file)
    } catch (error) {
      database.close()
      throw explain(error, 'open', this.#name)
    }
    this.#end = () => {
      try {
        // PASSIVE never waits. A later checkpoint moves the rest of the log.
        database.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
      } finally {
        database.close()
      }
    }
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return this.#read(({ get }) => {
      const found = get.get(storable(scope), storable(id))
      return found === undefined ? undefined : decode(scope, found)
    })
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    return await this.#uncertain.run(row, async () => this.#insert(row))
  }

  #insert(row: StoredRow): InsertResult {
    return this.#write((statements) => {
      for (let attempt = 1; attempt <= INSERT_ATTEMPTS; attempt++) {
        const { changes } = statements.insert.run(
          ...[storable(row.scope), storable(row.id), row.version, row.open ? 1 : 0, row.state],
          ...[row.createdAt, row.updatedAt, storable(row.data)],
        )
        if (Number(changes) === 1) return { inserted: true }
        const current = statements.get.get(row.scope, row.id)
        if (current !== undefined) return { inserted: false, current: decode(row.scope, current) }
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
    return this.#write((statements) => {
      const { changes } = statements.update.run(
        ...[row.version, row.open ? 1 : 0, row.state, row.createdAt, row.updatedAt],
        ...[storable(row.data), storable(row.scope), storable(row.id), expectedVersion],
      )
      if (Number(changes) === 1) return true
      this.#checkVersion(statements)
      return false
    })
  }

  async listOpen(scope: string, { after, limit }: ListRowsOptions): Promise<RowPage> {
    return this.#read(({ listOpen }) => {
      // One row beyond the limit shows whether there is a next page.
      const found = listOpen.all(storable(scope), storable(after ?? ''), limit + 1)
      return toPage(
        found.map((row) => decode(scope, row)),
        limit,
        ({ id }) => id,
      )
    })
  }

  /**
   * Removes old closed rows in batches of a few hundred, and lets the event loop run between
   * batches.
   *
   * If the call rejects midway, the rows removed so far stay removed, and the next call continues.
   */
  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    let removed = 0
    for (const [state, before] of [
      ['created', createdBefore],
      ['rejected', rejectedBefore],
    ] as const) {
      for (;;) {
        const { changes } = this.#write(({ prune }) => prune.run(storable(scope), state, before))
        removed += Number(changes)
        if (changes < PRUNE_BATCH) break
        await new Promise<void>((resolve) => setTimeout(resolve))
      }
    }
    return removed
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    const { after, limit, since = 0 } = options
    return this.#read(({ list }) => {
      // Every id sorts after '', so the first page includes rows written exactly at `since`.
      const [updatedAt, id] = after === undefined ? [since, ''] : fromListCursor(after)
      const found = list.all(storable(scope), updatedAt, storable(id), limit + 1)
      return toPage(
        found.map((row) => decode(scope, row)),
        limit,
        listCursor,
      )
    })
  }

  /**
   * Moves the write-ahead log into the file, as far as other processes' reads allow, and closes the
   * file.
   *
   * Later calls reject with `StoreError`. Closing again does nothing.
   */
  async close(): Promise<void> {
    if (this.#statements === undefined) return
    this.#statements = undefined
    try {
      this.#end()
    } catch (error) {
      throw explain(error, 'close', this.#name)
    }
  }

  #read<T>(action: (statements: Statements) => T): T {
    const result = this.#run('read from', action)
    // Afterwards: a read from a file that was replaced in the meantime proves nothing.
    this.#files?.check('read from')
    return result
  }

  #write<T>(action: (statements: Statements) => T): T {
    const result = this.#run('write to', (statements) => {
      this.#files?.check('write to')
      return action(statements)
    })
    this.#files?.check('confirm a write to')
    return result
  }

  #run<T>(task: 'read from' | 'write to', action: (statements: Statements) => T): T {
    const statements = this.#statements
    if (statements === undefined) {
      throw new StoreError(`The order store in ${this.#name} was closed. Create a new SqliteStore.`)
    }
    try {
      return action(statements)
    } catch (error) {
      throw explain(this.#newerOr(error, statements), task, this.#name)
    }
  }

  #checkVersion({ version }: Statements): void {
    checkVersion(versionOf(version), `Cannot use the order store in ${this.#name}`)
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
}
