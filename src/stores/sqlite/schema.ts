import { StoreError } from '../../errors/classes.ts'
import { toText } from '../bytes.ts'
import { toRow } from '../rows.ts'
import {
  ADD_VERSION,
  CREATE_VERSIONS,
  FIND_KEY,
  FIND_VERSION,
  LOST_KEY,
  SQLITE_MIGRATIONS,
  SQLITE_VERSION,
  sqliteStatements,
} from '../sql/sqlite.ts'
import { newerTables, type StatementName, type Values } from '../sql/text.ts'
import type { StoredRow } from '../store.ts'
import type { Database, Statement } from './database.ts'

/** `data` is read as bytes: the `node:sqlite` of Node 22.13 truncates a string at the first NUL. */
const STATEMENTS = sqliteStatements('CAST(data AS BLOB)')

type Found = Readonly<Record<string, unknown>>

type Run = (values: Values) => readonly Found[]

export interface Statements extends Readonly<Record<StatementName, Run>> {
  readonly version: Statement
}

export function prepare(database: Database): Statements {
  const run = (name: StatementName): Run => {
    const { text, parameters } = STATEMENTS[name]
    const statement = database.prepare(text)
    return (values) => {
      const bound = parameters.map((parameter) => {
        const value = values[parameter]
        return typeof value === 'boolean' ? Number(value) : (value ?? null)
      })
      return statement.all(...bound)
    }
  }
  return {
    version: database.prepare(FIND_VERSION),
    get: run('get'),
    open: run('open'),
    list: run('list'),
    insert: run('insert'),
    update: run('update'),
    prune: run('prune'),
  }
}

export function decode(scope: string, { data, ...columns }: Found): StoredRow {
  return toRow(scope, { ...columns, data: toText(data) })
}

export function migrate(database: Database, name: string): void {
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
    checkVersion(found, failed)
    for (let version = found + 1; version <= SQLITE_VERSION; version++) {
      for (const step of SQLITE_MIGRATIONS[version - 1] ?? []) database.exec(step)
      database.prepare(ADD_VERSION).run(version)
    }
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

export function checkVersion(found: number, failed: string): void {
  if (found > SQLITE_VERSION) throw newerTables(found, SQLITE_VERSION, failed)
}
