import type { DatabaseSync } from 'node:sqlite'
import { StoreError } from '../../errors/classes.ts'
import { plainError } from '../plain-error.ts'
import { codeOf, explain } from './failure.ts'
import { checkPlace } from './files.ts'
import { nodeModule } from './node-module.ts'

export type Database = DatabaseSync

export type Statement = ReturnType<Database['prepare']>

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

export function open(path: string, busyTimeout: number): Database {
  if (!Number.isSafeInteger(busyTimeout) || busyTimeout < 0 || busyTimeout > 2 ** 31 - 1) {
    throw new StoreError(
      'The option `busyTimeout` of SqliteStore must be a whole number of milliseconds, 0 to 2147483647.',
    )
  }
  const sqlite = nodeModule('node:sqlite')
  if (sqlite === undefined) {
    throw new StoreError(
      `SqliteStore needs the module node:sqlite, which this runtime (${runtimeName()}) does not have. ` +
        'Use Node 22.13 or newer.',
    )
  }
  let database: Database | undefined
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

function configure(database: Database, path: string, busyTimeout: number): void {
  database.exec(`PRAGMA busy_timeout = ${busyTimeout}`)
  checkEncoding(database, path)
  if (path !== ':memory:') useWriteAheadLog(database, path, busyTimeout)
  // On macOS, only fullfsync makes the disk write its cache; elsewhere it changes nothing. Rows
  // contain personal data, so secure_delete overwrites deleted rows.
  database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA secure_delete = ON')
}

function useWriteAheadLog(database: Database, path: string, busyTimeout: number): void {
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

/** Throws if the encoding could change rows. */
function checkEncoding(database: Database, path: string): void {
  const encoding = setting(database, 'encoding', 'encoding')
  if (encoding === 'UTF-8') return
  throw new StoreError(
    `Cannot open the order store in ${path}: the database has the encoding ${encoding}, ` +
      'but the store needs UTF-8. Nothing was changed. ' +
      'Convert a copy to UTF-8 with `sqlite3 old.db .dump | sqlite3 new.db`.',
  )
}

/** Returns the path of the database with links resolved, or an empty string if it is in memory. */
export function openFileOf(database: Database): string {
  return String(setting(database, 'database_list', 'file'))
}

function setting(database: Database, pragma: string, column: string): unknown {
  return database.prepare(`PRAGMA ${pragma}`).get()?.[column]
}
