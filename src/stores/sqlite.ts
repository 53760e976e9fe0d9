import { StoreError } from '../errors.ts'
import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from '../idempotency/store.ts'
import { plainError } from './plain-error.ts'
import { storable } from './storable.ts'

/** A prepared statement, as `node:sqlite` and better-sqlite3 both have it. */
export interface SqliteStatement {
  run(...parameters: (string | number)[]): { readonly changes: number | bigint }
  get(...parameters: (string | number)[]): unknown
  all(...parameters: (string | number)[]): unknown[]
}

/** An open SQLite connection: a `DatabaseSync` of `node:sqlite`, a better-sqlite3 `Database`, or anything of their shape. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
}

/** Options for a file that the store opens, and closes, itself. */
export interface SqliteFileOptions {
  /**
   * Path of the database file; a relative one is resolved once, at construction. A missing file is created, readable
   * and writable by its owner only; a missing directory is an error. `':memory:'` keeps everything in the process,
   * and `durability` says so. Not on a network file system: locks and memory maps do not hold there.
   */
  readonly path: string
  /**
   * Longest wait for another process's write, milliseconds, default 5000. The wait blocks the event loop; when it is
   * over, the call rejects with `StoreError`.
   */
  readonly busyTimeout?: number
  readonly database?: never
}

/** Options for a connection that is handed in and stays the caller's to close. */
export interface SqliteDatabaseOptions {
  /**
   * An open connection. The store adds its own two tables, named `customer_ordering_…`, and sets
   * `PRAGMA synchronous=EXTRA`, the strongest setting; journal mode, busy timeout and file permissions stay as they
   * are. While the connection is inside a transaction every call rejects: a rollback would take an order back out of
   * the store after it was sent.
   */
  readonly database: SqliteDatabase
  readonly path?: never
  readonly busyTimeout?: never
}

/** Options of {@link SqliteStore}: either a file to open, or a connection that is open already. */
export type SqliteStoreOptions = SqliteFileOptions | SqliteDatabaseOptions

const DEFAULT_BUSY_TIMEOUT = 5_000

/** Most rows that one statement of `prune` removes: short enough for other processes to get their turn at the lock. */
const PRUNE_BATCH = 500

/** How often an insert starts again because the row that was in its way had been pruned before it could be read. */
const INSERT_ATTEMPTS = 3

/**
 * One entry per schema version, never changed once released, only added to. Each may be run again after a crash, and
 * none drops anything. The last index serves `prune`: without the state in it, looking for old rejected rows would
 * pass all the created ones that are kept for longer.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS customer_ordering_rows (
     scope TEXT NOT NULL,
     id TEXT NOT NULL,
     version INTEGER NOT NULL,
     open INTEGER NOT NULL,
     state TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     updated_at INTEGER NOT NULL,
     data TEXT NOT NULL,
     PRIMARY KEY (scope, id)
   ) STRICT;
   CREATE INDEX IF NOT EXISTS customer_ordering_open ON customer_ordering_rows (scope, id) WHERE open = 1;
   CREATE INDEX IF NOT EXISTS customer_ordering_list ON customer_ordering_rows (scope, updated_at, id);
   CREATE INDEX IF NOT EXISTS customer_ordering_closed ON customer_ordering_rows (scope, state, updated_at) WHERE open = 0;`,
]

/**
 * What a query returns of a row. The text that may hold NUL is asked for as bytes: the `node:sqlite` of Node 22.13
 * cuts a text that it reads at the first NUL. For the same reason `scope` is not read but taken from the question.
 */
const FOUND = 'id, version, open, state, created_at, updated_at, CAST(data AS BLOB) AS data'

const STATEMENTS = {
  get: `SELECT ${FOUND} FROM customer_ordering_rows WHERE scope = ? AND id = ?`,
  insert: `INSERT INTO customer_ordering_rows (scope, id, version, open, state, created_at, updated_at, data)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  update: `UPDATE customer_ordering_rows
    SET version = ?, open = ?, state = ?, created_at = ?, updated_at = ?, data = ?
    WHERE scope = ? AND id = ? AND version = ?`,
  listOpen: `SELECT ${FOUND} FROM customer_ordering_rows
    WHERE scope = ? AND open = 1 AND id > ? ORDER BY id LIMIT ?`,
  list: `SELECT ${FOUND} FROM customer_ordering_rows
    WHERE scope = ? AND (updated_at, id) > (?, ?) ORDER BY updated_at, id LIMIT ?`,
  prune: `DELETE FROM customer_ordering_rows WHERE rowid IN (
    SELECT rowid FROM customer_ordering_rows
    WHERE scope = ? AND open = 0 AND state = ? AND updated_at < ? LIMIT ${PRUNE_BATCH})`,
} as const

type Statements = Readonly<Record<keyof typeof STATEMENTS, SqliteStatement>>

/** A connection that the store opened, and therefore closes. */
interface OwnDatabase extends SqliteDatabase {
  close(): void
}

/**
 * Remembers orders in an SQLite file, for all processes of one machine. An acknowledged write survives the end of the
 * process and, as far as the disk keeps what it acknowledged, a power failure: write-ahead log, `synchronous=FULL`
 * and `fullfsync`.
 *
 * The file is opened, and its tables are made, by the constructor, so that a wrong path or a missing module shows when
 * the program starts and not with its first order. SQLite's calls are synchronous: each blocks the event loop for as
 * long as the disk takes to write. Use one instance per thread.
 *
 * Every failure is a `StoreError` that says what happened and what to do; its `cause` is a plain error with
 * SQLite's code, for example `SQLITE_FULL`.
 *
 * @example
 * const store = new SqliteStore({ path: 'orders.db' })
 */
export class SqliteStore implements OrderStore {
  /** `'device'`, or `'memory'` if the database is not in a file. */
  readonly durability: StoreDurability
  readonly #database: SqliteDatabase
  /** The same connection if the store opened it, else undefined. */
  readonly #own: OwnDatabase | undefined
  /** What error messages call the database. */
  readonly #name: string
  /** Throws on bytes that are no UTF-8 instead of putting other characters in their place; keeps byte order marks. */
  readonly #utf8: TextDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  /** Undefined once the store is closed. */
  #statements: Statements | undefined

  /**
   * Opens the database and brings its tables up to date.
   *
   * @throws StoreError if the file cannot be opened, is no SQLite database, was written by a newer version of this
   * package or stays locked for longer than `busyTimeout`; if this runtime has no `node:sqlite`; if an option is wrong.
   */
  constructor(options: SqliteStoreOptions) {
    // Whatever is handed in: what has no path is told so.
    const { path, busyTimeout, database }: Partial<SqliteStoreOptions> = Object(options)
    if (database !== undefined) {
      const handed: Partial<SqliteDatabase> = Object(database)
      if (typeof handed.exec !== 'function' || typeof handed.prepare !== 'function') {
        throw new StoreError('The option `database` of SqliteStore must have the functions exec and prepare.')
      }
      this.#database = database
      this.#own = undefined
      this.#name = 'the database handed in'
    } else {
      this.#name = locate(path)
      this.#own = open(this.#name, busyTimeout ?? DEFAULT_BUSY_TIMEOUT)
      this.#database = this.#own
    }
    try {
      if (this.#own === undefined) this.#guard()
      this.durability = durabilityOf(this.#database, this.#name)
      migrate(this.#database, this.#name)
      this.#statements = prepare(this.#database)
    } catch (error) {
      this.#own?.close()
      throw explain(error, `Cannot open the order store in ${this.#name}`)
    }
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return this.#run('read', (statements) => {
      const found = statements.get.get(storable(scope), storable(id))
      return found === undefined ? undefined : toRow(scope, found, this.#utf8)
    })
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    return this.#run('write', (statements) => {
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
      }
      throw new StoreError(
        `Cannot write to the order store in ${this.#name}: other processes keep writing and pruning the same record. Try again.`,
      )
    })
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    return this.#run('write', (statements) => {
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
      return Number(changes) === 1
    })
  }

  async listOpen(scope: string, { after, limit }: ListRowsOptions): Promise<RowPage> {
    return this.#run('read', (statements) => {
      // One more row than asked for tells whether there is a next page.
      const found = statements.listOpen
        .all(storable(scope), storable(after ?? ''), limit + 1)
        .map((row) => toRow(scope, row, this.#utf8))
      return toPage(found, limit, (last) => last.id)
    })
  }

  /**
   * Removes closed rows that are old enough, some hundred per statement, with a turn of the event loop in between. If
   * it rejects midway, the rows removed so far are gone; the next call goes on.
   */
  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    let removed = 0
    for (const [state, before] of [
      ['created', createdBefore],
      ['rejected', rejectedBefore],
    ] as const) {
      for (;;) {
        const batch = this.#run('write', (statements) =>
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
    return this.#run('read', (statements) => {
      // Every id is longer than '', so the first page starts with the first row at `since` itself.
      const [updatedAt, id] =
        options.after === undefined ? [options.since ?? 0, ''] : fromCursor(options.after)
      const found = statements.list
        .all(storable(scope), updatedAt, storable(id), options.limit + 1)
        .map((row) => toRow(scope, row, this.#utf8))
      return toPage(found, options.limit, (last) => `${last.updatedAt} ${last.id}`)
    })
  }

  /**
   * Moves the write-ahead log into the file, as far as no other process is reading from it, and closes the file; a
   * database that was handed in stays open. Further calls reject with `StoreError`; closing again does nothing.
   */
  async close(): Promise<void> {
    if (this.#statements === undefined) return
    this.#statements = undefined
    if (this.#own === undefined) return
    try {
      try {
        // PASSIVE never waits. What it leaves in the log stays there for the next to open the file.
        this.#own.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
      } finally {
        this.#own.close()
      }
    } catch (error) {
      throw explain(error, `Cannot properly close the order store in ${this.#name}`)
    }
  }

  /** Runs one call's statements; whatever they throw becomes a {@link StoreError}. */
  #run<T>(access: 'read' | 'write', action: (statements: Statements) => T): T {
    if (this.#statements === undefined) {
      throw new StoreError(`The order store in ${this.#name} was closed. Make a new SqliteStore to go on.`)
    }
    try {
      if (this.#own === undefined) this.#guard()
      return action(this.#statements)
    } catch (error) {
      throw explain(
        error,
        `Cannot ${access === 'read' ? 'read from' : 'write to'} the order store in ${this.#name}`,
      )
    }
  }

  /**
   * Makes a connection that is handed in sync every commit, which SQLite refuses inside a transaction: that is how
   * every client, whatever its API, tells about one.
   */
  #guard(): void {
    try {
      this.#database.exec('PRAGMA synchronous = EXTRA')
    } catch (error) {
      if (!textOf(error).includes('inside a transaction')) throw error
      throw new StoreError(
        'The order store cannot be used while its database is inside a transaction: a rollback would take an order ' +
          'out of the store after it was sent. Finish the transaction first, or give the store a connection of its own.',
        { cause: plainError(error, codeOf(error)) },
      )
    }
  }
}

/** The Node modules that the store loads when it opens a file. */
interface NodeModules {
  'node:fs': typeof import('node:fs')
  'node:path': typeof import('node:path')
  'node:sqlite': typeof import('node:sqlite')
}

/**
 * A module of Node, or undefined where it has none of that name. Not an import, so that loading this file costs
 * nothing and fails nowhere, and because only this way of loading on demand works within a constructor.
 */
function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] | undefined {
  return globalThis.process?.getBuiltinModule?.(name)
}

/** The absolute path of the database, or `:memory:`. */
function locate(path: unknown): string {
  if (path === ':memory:') return path
  if (typeof path !== 'string' || path === '' || path.startsWith('file:')) {
    throw new StoreError(
      'The option `path` of SqliteStore must be the path of a file, such as "orders.db", or ":memory:".',
    )
  }
  // Absolute, so that it still names the same file after a change of directory. Elsewhere open() says what is missing.
  return nodeModule('node:path')?.resolve(path) ?? path
}

function open(path: string, busyTimeout: number): OwnDatabase {
  if (!Number.isSafeInteger(busyTimeout) || busyTimeout < 0 || busyTimeout > 2 ** 31 - 1) {
    throw new StoreError(
      'The option `busyTimeout` of SqliteStore must be a whole number of milliseconds, 0 or more.',
    )
  }
  const sqlite = nodeModule('node:sqlite')
  if (sqlite === undefined) {
    throw new StoreError(
      `SqliteStore needs the module node:sqlite, which this runtime (${runtimeName()}) does not have. ` +
        'Use Node 22.13 or newer, or hand in an open better-sqlite3 database as the option `database`.',
    )
  }
  let database: OwnDatabase | undefined
  try {
    if (path !== ':memory:') createFile(path)
    database = new sqlite.DatabaseSync(path)
    configure(database, path, busyTimeout)
    return database
  } catch (error) {
    database?.close()
    throw explain(error, `Cannot open the order store in ${path}`)
  }
}

function runtimeName(): string {
  const version = globalThis.process?.version
  return version === undefined ? 'not Node' : `Node ${version}`
}

/**
 * Creates the file for its owner only, before SQLite does with the usual permissions; SQLite gives the log and the
 * shared memory beside it the permissions of the file. A file that exists is not even opened: closing it again would
 * release the locks that other connections of this process hold on it.
 */
function createFile(path: string): void {
  const fs = nodeModule('node:fs')
  try {
    fs?.closeSync(fs.openSync(path, 'wx', 0o600))
  } catch (error) {
    switch (codeOf(error)) {
      case 'EEXIST':
        return
      case 'ENOENT':
        throw new StoreError(
          `Cannot open the order store in ${path}: its directory does not exist. Create the directory first.`,
          { cause: plainError(error, codeOf(error)) },
        )
      default:
        throw new StoreError(
          `Cannot open the order store in ${path}: the file cannot be created (${codeOf(error)}). ` +
            'Choose a path where this user may create files.',
          { cause: plainError(error, codeOf(error)) },
        )
    }
  }
}

function configure(database: SqliteDatabase, path: string, busyTimeout: number): void {
  database.exec(`PRAGMA busy_timeout = ${busyTimeout}`)
  if (path !== ':memory:') useWriteAheadLog(database, path, busyTimeout)
  // The log is synced with every commit. On macOS only fullfsync makes the disk write what it has cached; elsewhere it
  // changes nothing. Data that is replaced or pruned is personal: it is overwritten, not just unlinked.
  database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA secure_delete = ON')
}

function useWriteAheadLog(database: SqliteDatabase, path: string, busyTimeout: number): void {
  const start = performance.now()
  for (;;) {
    try {
      const mode = setting(database, 'journal_mode = WAL', 'journal_mode')
      if (mode === 'wal') return
      throw new StoreError(
        `Cannot open the order store in ${path}: SQLite cannot keep a write-ahead log there. Use a local file system.`,
      )
    } catch (error) {
      // Of several processes that open a new file at once all but one fail here at once, whatever the busy timeout.
      if (codeOf(error) !== 'SQLITE_BUSY' || performance.now() - start >= busyTimeout) throw error
      // For the write lock SQLite does wait, and it comes when the other process has switched.
      database.exec('BEGIN IMMEDIATE')
      database.exec('ROLLBACK')
    }
  }
}

/** Whether the rows outlive the process; refuses journal modes with which a crash in the middle of a write ruins the file. */
function durabilityOf(database: SqliteDatabase, name: string): StoreDurability {
  if (setting(database, 'database_list', 'file') === '') return 'memory'
  const mode = setting(database, 'journal_mode', 'journal_mode')
  if (mode === 'off' || mode === 'memory') {
    throw new StoreError(
      `The order store cannot be kept in ${name}: its journal mode is "${mode}", with which a crash can ruin the file. ` +
        'Set `PRAGMA journal_mode = WAL` first.',
    )
  }
  return 'device'
}

function setting(database: SqliteDatabase, pragma: string, column: string): unknown {
  const row = database.prepare(`PRAGMA ${pragma}`).get()
  return typeof row === 'object' && row !== null ? Reflect.get(row, column) : undefined
}

function migrate(database: SqliteDatabase, name: string): void {
  // The lock comes first: of two processes that start at once, one migrates and the other finds the work done.
  database.exec('BEGIN IMMEDIATE')
  try {
    database.exec('CREATE TABLE IF NOT EXISTS customer_ordering_schema (version INTEGER PRIMARY KEY) STRICT')
    // Changes nothing, but needs to write: a read-only database is to fail now and not with the first order.
    database.exec('DELETE FROM customer_ordering_schema WHERE FALSE')
    const newest = database.prepare('SELECT max(version) AS version FROM customer_ordering_schema').get()
    const found = Number(typeof newest === 'object' && newest !== null ? Reflect.get(newest, 'version') : 0)
    if (found > MIGRATIONS.length) {
      throw new StoreError(
        `Cannot open the order store in ${name}: a newer version of customer-ordering-sdk wrote it ` +
          `(schema ${found}, this version knows ${MIGRATIONS.length}). Update the package; nothing was changed.`,
      )
    }
    for (let version = found + 1; version <= MIGRATIONS.length; version++) {
      database.exec(MIGRATIONS[version - 1] ?? '')
      database.prepare('INSERT INTO customer_ordering_schema (version) VALUES (?)').run(version)
    }
    database.exec('COMMIT')
  } catch (error) {
    try {
      database.exec('ROLLBACK')
    } catch {
      // SQLite itself ends the transaction after some failures, and then has none to roll back: `error` says why.
    }
    throw error
  }
}

function prepare(database: SqliteDatabase): Statements {
  return {
    get: database.prepare(STATEMENTS.get),
    insert: database.prepare(STATEMENTS.insert),
    update: database.prepare(STATEMENTS.update),
    listOpen: database.prepare(STATEMENTS.listOpen),
    list: database.prepare(STATEMENTS.list),
    prune: database.prepare(STATEMENTS.prune),
  }
}

function toRow(scope: string, found: unknown, utf8: TextDecoder): StoredRow {
  const row: Readonly<Record<string, unknown>> =
    typeof found === 'object' && found !== null ? { ...found } : {}
  const { id, state, data } = row
  if (
    typeof id !== 'string' ||
    (state !== 'open' && state !== 'created' && state !== 'rejected') ||
    !(data instanceof Uint8Array)
  ) {
    throw new StoreError(
      'The database returned something that is no row of the order store. Check that nothing else writes to its ' +
        'tables, and that a database handed in returns rows as objects.',
    )
  }
  return {
    scope,
    id,
    // A database that is handed in may return integers as BigInt.
    version: Number(row['version']),
    open: Number(row['open']) === 1,
    state,
    createdAt: Number(row['created_at']),
    updatedAt: Number(row['updated_at']),
    data: utf8.decode(data),
  }
}

function toPage(found: readonly StoredRow[], limit: number, cursor: (last: StoredRow) => string): RowPage {
  if (found.length <= limit) return { rows: found }
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  return last === undefined ? { rows } : { rows, next: cursor(last) }
}

function fromCursor(after: string): readonly [updatedAt: number, id: string] {
  const space = after.indexOf(' ')
  const updatedAt = Number(after.slice(0, space))
  if (space < 1 || Number.isNaN(updatedAt)) {
    throw new StoreError('The option `after` is not the `next` of a page of this store.')
  }
  return [updatedAt, after.slice(space + 1)]
}

/** SQLite's primary result codes: their number, and what to tell a person about them. */
const RESULTS: Readonly<Record<string, readonly [number: number, advice: string]>> = {
  SQLITE_BUSY: [
    5,
    'another connection keeps it locked for longer than the busy timeout. Let that one finish, or allow more time.',
  ],
  SQLITE_LOCKED: [6, 'another statement of the same process keeps it locked. Let that one finish.'],
  SQLITE_READONLY: [8, 'it is read-only. Let this user write to the file and to its directory.'],
  SQLITE_IOERR: [10, 'the disk or file system failed. Check it; the write may or may not have happened.'],
  SQLITE_CORRUPT: [
    11,
    'the file is damaged. Stop writing to it, keep a copy, then recover it or restore a backup.',
  ],
  SQLITE_FULL: [
    13,
    'the disk is full, or the database has reached its size limit. Make room; nothing was written.',
  ],
  SQLITE_CANTOPEN: [
    14,
    'the file cannot be opened. Check that the path names a file, and that this user may read and write it.',
  ],
  SQLITE_NOTADB: [26, 'the file is not an SQLite database. Check the path; the file was not changed.'],
}

/** Turns whatever a database threw into a {@link StoreError}, with the sentence that says what could not be done. */
function explain(error: unknown, failed: string): StoreError {
  if (error instanceof StoreError) return error
  const cause = plainError(error, codeOf(error))
  const advice = RESULTS[primaryCode(cause.code)]?.[1]
  if (advice !== undefined) return new StoreError(`${failed}: ${advice}`, { cause })
  if (textOf(error).includes('not open')) {
    return new StoreError(
      `${failed}: the connection was closed. Keep it open for as long as the store is used.`,
      { cause },
    )
  }
  // SQLite's own messages name tables and columns, never the values that were bound.
  return new StoreError(`${failed}: ${textOf(error)}.`, { cause })
}

/** `SQLITE_…`, also for errors of `node:sqlite`, which have a number instead; else the error's own code, or its name. */
function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'UNKNOWN'
  const number: unknown = Reflect.get(error, 'errcode')
  if (typeof number === 'number') {
    // The low byte is the primary code; the rest tells variants apart.
    const known = Object.entries(RESULTS).find(([, [primary]]) => primary === (number & 0xff))
    return known?.[0] ?? `SQLITE_${number}`
  }
  const code: unknown = Reflect.get(error, 'code')
  if (typeof code === 'string') return code
  return error instanceof Error ? error.name : 'UNKNOWN'
}

/** better-sqlite3 reports variants, such as `SQLITE_IOERR_FSYNC`. */
function primaryCode(code: string): string {
  return Object.keys(RESULTS).find((name) => code === name || code.startsWith(`${name}_`)) ?? code
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
