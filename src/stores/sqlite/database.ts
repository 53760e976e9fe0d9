import { StoreError } from '../../errors/classes.ts'
import { plainError } from '../plain-error.ts'
import type { StoreDurability } from '../store.ts'
import { codeOf, explain } from './failure.ts'
import { checkPlace } from './files.ts'
import { nodeModule } from './node-module.ts'

/** The part of a prepared statement that `node:sqlite` and better-sqlite3 have in common. */
export interface SqliteStatement {
  /** Runs the statement and returns the number of changed rows. */
  run(...parameters: (string | number)[]): { readonly changes: number | bigint }
  /** Returns the first row, or undefined. */
  get(...parameters: (string | number)[]): unknown
  /** Returns all rows. */
  all(...parameters: (string | number)[]): unknown[]
}

/**
 * An open SQLite connection: a `DatabaseSync` of `node:sqlite`, a better-sqlite3 `Database`, or any
 * object with the same methods.
 */
export interface SqliteDatabase {
  /** Runs statements without results. */
  exec(sql: string): unknown
  /** Prepares a statement. */
  prepare(sql: string): SqliteStatement
}

export interface OwnDatabase extends SqliteDatabase {
  close(): void
}

export const DEFAULT_BUSY_TIMEOUT = 5_000

export function locate(path: unknown): string {
  if (path === ':memory:') return path
  if (typeof path !== 'string' || path === '' || path.startsWith('file:')) {
    throw new StoreError(
      'The option `path` of SqliteStore must be the path of a file, such as "orders.db", or ":memory:".',
    )
  }
  // Resolves the path now, because the working directory may change. Outside Node, open() reports
  // the missing module.
  return nodeModule('node:path')?.resolve(path) ?? path
}

export function open(path: string, busyTimeout: number): OwnDatabase {
  if (!Number.isSafeInteger(busyTimeout) || busyTimeout < 0 || busyTimeout > 2 ** 31 - 1) {
    throw new StoreError(
      'The option `busyTimeout` of SqliteStore must be a whole number of milliseconds, 0 to 2147483647.',
    )
  }
  const sqlite = nodeModule('node:sqlite')
  if (sqlite === undefined) {
    throw new StoreError(
      `SqliteStore needs the module node:sqlite, which this runtime (${runtimeName()}) does not have. ` +
        'Use Node 22.13 or newer, or pass an open better-sqlite3 database as the option `database`.',
    )
  }
  let database: OwnDatabase | undefined
  try {
    if (path !== ':memory:') {
      createFile(path)
      checkPlace(path, path)
    }
    database = new sqlite.DatabaseSync(path)
    configure(database, path, busyTimeout)
    return database
  } catch (error) {
    database?.close()
    throw explain(error, 'open', path)
  }
}

function runtimeName(): string {
  const version = globalThis.process?.version
  return version === undefined ? 'not Node' : `Node ${version}`
}

/**
 * Creates the file with permissions for its owner only, before SQLite can create it with the
 * default permissions. SQLite gives the log and the shared memory the same permissions as the file.
 * Does not open an existing file: closing it would release the locks of other connections in this
 * process.
 */
function createFile(path: string): void {
  const fs = nodeModule('node:fs')
  if (fs === undefined) return
  try {
    try {
      fs.closeSync(fs.openSync(path, 'wx', 0o600))
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
      // With the flag `x`, opening a symbolic link to a missing file fails. The flag `a` creates
      // the file that the link points to.
      if (!fs.existsSync(path)) fs.closeSync(fs.openSync(path, 'a', 0o600))
    }
  } catch (error) {
    const code = codeOf(error)
    const why =
      code === 'ENOENT'
        ? 'its directory does not exist. Create the directory first.'
        : `the file cannot be created (${code}). Choose a path where this user can create files.`
    throw new StoreError(`Cannot open the order store in ${path}: ${why}`, {
      cause: plainError(error, code),
    })
  }
}

function configure(database: SqliteDatabase, path: string, busyTimeout: number): void {
  database.exec(`PRAGMA busy_timeout = ${busyTimeout}`)
  if (path !== ':memory:') useWriteAheadLog(database, path, busyTimeout)
  // On macOS, only fullfsync makes the disk write its cache; elsewhere it changes nothing. Rows
  // contain personal data, so secure_delete overwrites deleted rows.
  database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA secure_delete = ON')
}

function useWriteAheadLog(database: SqliteDatabase, path: string, busyTimeout: number): void {
  const start = performance.now()
  for (;;) {
    try {
      const mode = setting(database, 'journal_mode = WAL', 'journal_mode')
      if (mode === 'wal') return
      throw new StoreError(
        `Cannot open the order store in ${path}: SQLite cannot use a write-ahead log there. ` +
          'Use a local file system.',
      )
    } catch (error) {
      // If several processes open a new file at the same time, all but one fail here, whatever the
      // busy timeout.
      if (codeOf(error) !== 'SQLITE_BUSY' || performance.now() - start >= busyTimeout) throw error
      // BEGIN IMMEDIATE does wait: it gets the lock once the other process has switched the mode.
      database.exec('BEGIN IMMEDIATE')
      database.exec('ROLLBACK')
    }
  }
}

/** Throws if the encoding could change rows, or if the journal mode could lose rows. */
export function durabilityOf(database: SqliteDatabase, name: string): StoreDurability {
  const encoding = setting(database, 'encoding', 'encoding')
  if (encoding !== 'UTF-8') {
    throw new StoreError(
      `Cannot open the order store in ${name}: the database has the encoding ${encoding}, ` +
        'but the store needs UTF-8. Nothing was changed. ' +
        'Convert a copy to UTF-8 with `sqlite3 old.db .dump | sqlite3 new.db`.',
    )
  }
  if (fileOf(database) === '') return 'memory'
  journalModeOf(database, name)
  return 'device'
}

/** Returns the path of the database with links resolved, or an empty string if it is in memory. */
export function fileOf(database: SqliteDatabase): string {
  return String(setting(database, 'database_list', 'file'))
}

export function journalModeOf(database: SqliteDatabase, name: string): string {
  const mode = String(setting(database, 'journal_mode', 'journal_mode'))
  if (mode === 'off' || mode === 'memory') {
    throw new StoreError(
      `Cannot use the order store in ${name}: with its journal mode "${mode}", ` +
        'a crash can corrupt the file. Nothing was written. Set `PRAGMA journal_mode = WAL` first.',
    )
  }
  return mode
}

function setting(database: SqliteDatabase, pragma: string, column: string): unknown {
  const row = database.prepare(`PRAGMA ${pragma}`).get()
  return typeof row === 'object' && row !== null ? Reflect.get(row, column) : undefined
}
