import type { StoreError } from '../errors/classes.ts'
import { type Engine, EngineStore, isRead, type Operation, type Result, type Values } from './engine.ts'
import type { Failures } from './failure.ts'
import { given } from './options.ts'
import { FIND_VERSION, runWith, SQLITE_VERSION, sqliteStatements } from './sql/sqlite.ts'
import { forEach, newerTables } from './sql/text.ts'
import {
  type Database,
  DEFAULT_BUSY_TIMEOUT,
  locate,
  open,
  openFileOf,
  type Statement,
  versionOf,
} from './sqlite/database.ts'
import { isNamed, sqliteFailures } from './sqlite/failure.ts'
import { DatabaseFiles } from './sqlite/files.ts'
import type { StoreDurability } from './store.ts'

export type { EngineStore } from './engine.ts'

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
 * @example
 * const store = new SqliteStore({ path: 'orders.db' })
 */
export class SqliteStore extends EngineStore {
  /**
   * Opens the database and brings its tables up to date.
   *
   * @throws {StoreError} if an option is wrong, or this runtime has no `node:sqlite`; if the file
   * cannot be opened, is not an SQLite database, or stays locked for longer than `busyTimeout`; if
   * the database cannot store orders safely, or a newer version of this package wrote it
   */
  constructor(options: SqliteStoreOptions) {
    const { path, busyTimeout = DEFAULT_BUSY_TIMEOUT }: Partial<SqliteStoreOptions> = given(
      'SqliteStore',
      options,
      { path: true, busyTimeout: true },
    )
    const name = locate(path)
    super(
      'SqliteStore',
      open(name, busyTimeout, (database) => new SqliteEngine(name, database)),
    )
  }
}

/** `data` is read as bytes: the `node:sqlite` of Node 22.13 truncates a string at the first NUL. */
const STATEMENTS = sqliteStatements('CAST(data AS BLOB)')

class SqliteEngine implements Engine {
  /** `'memory'` if the database is not in a file. */
  readonly durability: StoreDurability
  readonly failures: Failures
  readonly #name: string
  readonly #database: Database
  readonly #files: DatabaseFiles | undefined
  readonly #prepared: Readonly<Record<Operation, Statement>>
  readonly #version: Statement

  constructor(name: string, database: Database) {
    this.failures = sqliteFailures(name)
    this.#name = name
    this.#database = database
    this.#prepared = forEach((operation) => database.prepare(STATEMENTS[operation].text))
    this.#version = database.prepare(FIND_VERSION)
    const file = openFileOf(database)
    this.durability = file === '' ? 'memory' : 'device'
    this.#files = file === '' ? undefined : new DatabaseFiles(name, file)
  }

  async run(operation: Operation, values: Values): Promise<Result> {
    const reads = isRead(operation)
    const result = await runWith(
      async (_text, bound) => {
        if (!reads) this.#files?.check('write to')
        const rows = this.#prepared[operation].all(...bound)
        // Afterwards: a read from a file that was replaced in the meantime proves nothing.
        this.#files?.check(reads ? 'read from' : 'confirm a write to')
        return rows
      },
      STATEMENTS[operation],
      operation,
      values,
    )
    // Lets the event loop run after each batch, which blocks it.
    if (operation === 'prune') await new Promise<void>((resolve) => setTimeout(resolve))
    return result
  }

  async refusal(): Promise<StoreError | undefined> {
    const version = versionOf(this.#version)
    if (version <= SQLITE_VERSION) return undefined
    return newerTables(version, SQLITE_VERSION, `Cannot use the order store in ${this.#name}`)
  }

  isMisfit(error: unknown): boolean {
    return !isNamed(this.failures.codeOf(error))
  }

  /** Moves the write-ahead log into the file, as far as other processes' reads allow. */
  close(): void {
    try {
      // PASSIVE never waits. A later checkpoint moves the rest of the log.
      this.#database.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
    } finally {
      this.#database.close()
    }
  }
}
