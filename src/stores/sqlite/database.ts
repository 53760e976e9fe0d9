import type { DatabaseSync } from 'node:sqlite'
import { StoreError } from '../../errors/classes.ts'
import { codeOrName, explain, plainError } from '../failure.ts'
import { checkMilliseconds } from '../options.ts'
import {
  CREATE_VERSIONS,
  FIND_KEY,
  FIND_VERSION,
  LOST_KEY,
  SQLITE_MIGRATION,
  SQLITE_VERSION,
} from '../sql/sqlite.ts'
import { newerTables } from '../sql/text.ts'
import { sqliteFailures } from './failure.ts'
import { checkPlace, nodeModule } from './files.ts'

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

/** Opens a database, and brings its tables up to date. Closes it again if that or `use` throws. */
export function open<T>(path: string, busyTimeout: number, use: (database: Database) => T): T {
  checkMilliseconds('SqliteStore', 'busyTimeout', busyTimeout, 0)
  const sqlite = nodeModule('node:sqlite')
  if (sqlite === undefined) {
    const version = globalThis.process?.version
    const runtime = version === undefined ? 'not Node' : `Node ${version}`
    throw new StoreError(
      `SqliteStore needs the module node:sqlite, which this runtime (${runtime}) does not have. ` +
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
    migrate(database, path)
    return use(database)
  } catch (error) {
    database?.close()
    throw explain(error, 'open', sqliteFailures(path))
  }
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
      if (codeOrName(error) !== 'EEXIST') throw error
      // With the flag `x`, opening a symbolic link to a missing file fails. The flag `a` creates
      // the file that the link points to.
      if (!fs.existsSync(path)) fs.closeSync(fs.openSync(path, 'a', 0o600))
    }
  } catch (error) {
    const code = codeOrName(error)
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
      const code = sqliteFailures(path).codeOf(error)
      if (code !== 'SQLITE_BUSY' || performance.now() - start >= busyTimeout) throw error
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

/** Creates the tables, or brings them up to date. */
function migrate(database: Database, name: string): void {
  const failed = `Cannot open the order store in ${name}`
  // Takes the lock first: if two processes start at the same time, one migrates the tables, and the
  // other waits.
  database.exec('BEGIN IMMEDIATE')
  try {
    database.exec(CREATE_VERSIONS)
    // Changes nothing, but fails without write access: a read-only database must fail now, not with
    // the first order.
    database.exec('DELETE FROM customer_ordering_schema WHERE FALSE')
    const found = versionOf(database.prepare(FIND_VERSION))
    if (found > SQLITE_VERSION) throw newerTables(found, SQLITE_VERSION, failed)
    if (found < SQLITE_VERSION) for (const step of SQLITE_MIGRATION) database.exec(step)
    if (database.prepare(FIND_KEY).get() === undefined) throw new StoreError(`${failed}: ${LOST_KEY}`)
    database.exec('COMMIT')
  } catch (error) {
    try {
      database.exec('ROLLBACK')
    } catch {
      // SQLite ends the transaction after some failures, so there may be nothing to roll back.
      // `error` has the reason.
    }
    throw error
  }
}

export function versionOf(statement: Statement): number {
  return Number(statement.get()?.['version'])
}
