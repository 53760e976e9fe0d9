import { StoreError } from '../errors/classes.ts'
import { type Result, type SqlEngine, SqlStore } from './sql/store.ts'
import type { StatementName, Values } from './sql/text.ts'
import { type Database, DEFAULT_BUSY_TIMEOUT, locate, open, openFileOf } from './sqlite/database.ts'
import { explain, isNamed } from './sqlite/failure.ts'
import { DatabaseFiles } from './sqlite/files.ts'
import { checkVersion, decode, migrate, prepare, type Statements, versionOf } from './sqlite/schema.ts'
import type { StoreDurability } from './store.ts'

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
export class SqliteStore extends SqlStore {
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
    const name = locate(path)
    super('SqliteStore', new SqliteEngine(name, open(name, busyTimeout)))
  }
}

class SqliteEngine implements SqlEngine {
  /** `'memory'` if the database is not in a file. */
  readonly durability: StoreDurability
  readonly #name: string
  readonly #database: Database
  readonly #files: DatabaseFiles | undefined
  readonly #statements: Statements

  constructor(name: string, database: Database) {
    this.#name = name
    this.#database = database
    try {
      migrate(database, name)
      this.#statements = prepare(database)
      const file = openFileOf(database)
      this.durability = file === '' ? 'memory' : 'device'
      this.#files = file === '' ? undefined : new DatabaseFiles(name, file)
    } catch (error) {
      database.close()
      throw explain(error, 'open', name)
    }
  }

  run(name: StatementName, values: Values): Result | Promise<Result> {
    if (name === 'get' || name === 'open' || name === 'list') return this.#read(name, values)
    const result = this.#write(name, values)
    if (name !== 'prune') return result
    // Lets the event loop run after each batch, which blocks it.
    return new Promise((resolve) => setTimeout(() => resolve(result)))
  }

  /** Moves the write-ahead log into the file, as far as other processes' reads allow. */
  close(): void {
    try {
      // PASSIVE never waits. A later checkpoint moves the rest of the log.
      this.#database.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
    } catch (error) {
      throw explain(error, 'close', this.#name)
    } finally {
      this.#database.close()
    }
  }

  #read(name: 'get' | 'open' | 'list', values: Values): Result {
    const rows = this.#explained('read from', () =>
      this.#statements[name](values).map((found) => decode(String(values.scope), found)),
    )
    // Afterwards: a read from a file that was replaced in the meantime proves nothing.
    this.#files?.check('read from')
    return { rows, written: 0 }
  }

  #write(name: 'insert' | 'update' | 'prune', values: Values): Result {
    const written = this.#explained('write to', () => {
      this.#files?.check('write to')
      const { length } = this.#statements[name](values)
      // The statement writes nothing after a newer version of this package has changed the tables.
      if (length === 0) this.#checkVersion()
      return length
    })
    this.#files?.check('confirm a write to')
    return { rows: [], written }
  }

  #explained<T>(task: 'read from' | 'write to', action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw explain(this.#newerOr(error), task, this.#name)
    }
  }

  #checkVersion(): void {
    checkVersion(versionOf(this.#statements.version), `Cannot use the order store in ${this.#name}`)
  }

  /** Reports the upgrade if a newer version of this package made the tables look damaged. */
  #newerOr(error: unknown): unknown {
    if (isNamed(error)) return error
    try {
      this.#checkVersion()
      return error
    } catch (newer) {
      return newer instanceof StoreError ? newer : error
    }
  }
}
