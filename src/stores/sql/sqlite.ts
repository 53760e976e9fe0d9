import { BATCH, isRead, type Operation, type Result, type Values } from '../engine.ts'
import { type Columns, toRow } from '../rows.ts'
import {
  bind,
  columnsOf,
  type Dialect,
  indexes,
  notNewer,
  positionalStatements,
  type Statement,
  table,
} from './text.ts'

/** The version of the tables that this version of the package creates and supports. */
export const SQLITE_VERSION = 1

const ROWS = 'customer_ordering_rows'
const VERSIONS = 'customer_ordering_schema'

/**
 * For every driver of SQLite. A write returns one row for each row that it has written, because
 * drivers differ in what they count.
 *
 * @param data how to read the column `data`, for a driver that changes some strings
 */
function dialect(data: string): Dialect {
  return {
    rows: ROWS,
    versions: VERSIONS,
    types: { key: 'TEXT', data: 'TEXT', number: 'INTEGER', flag: 'INTEGER', state: 'TEXT' },
    tableOptions: 'STRICT',
    guard: notNewer(VERSIONS, SQLITE_VERSION),
    ifAbsent: 'ON CONFLICT (scope, id) DO NOTHING',
    returning: ' RETURNING 1 AS written',
    select: (condition, order) =>
      `SELECT ${columnsOf(data)} FROM ${ROWS} WHERE ${condition}` +
      (order === '' ? '' : ` ORDER BY ${order} LIMIT :limit`),
    deleteSome: (condition) =>
      `DELETE FROM ${ROWS} WHERE rowid IN (
        SELECT rowid FROM ${ROWS} WHERE ${condition} LIMIT ${BATCH})`,
  }
}

export function sqliteStatements(data: string): Readonly<Record<Operation, Statement>> {
  return positionalStatements(dialect(data))
}

/** Runs one statement, and returns its rows. A write resolves when it is durable. */
export type Query = (text: string, parameters: readonly (string | number)[]) => Promise<readonly Columns[]>

export async function runWith(
  query: Query,
  statement: Statement,
  operation: Operation,
  values: Values,
): Promise<Result> {
  const bound = bind(statement, values, (value) => (typeof value === 'boolean' ? Number(value) : value))
  const found = await query(statement.text, bound)
  if (!isRead(operation)) return { rows: [], written: found.length }
  return { rows: found.map((columns) => toRow(values.scope, columns)), written: 0 }
}

export const CREATE_VERSIONS: string = `CREATE TABLE IF NOT EXISTS ${VERSIONS} (version INTEGER PRIMARY KEY) STRICT`

export const FIND_VERSION: string = `SELECT max(version) AS version FROM ${VERSIONS}`

/**
 * The statements that create the tables, or bring those of an older version up to date. Each must
 * be safe to run twice, and must drop nothing.
 */
export const SQLITE_MIGRATION: readonly string[] = [
  CREATE_VERSIONS,
  table(dialect('data')),
  ...indexes(ROWS, {
    open: 'customer_ordering_open',
    list: 'customer_ordering_list',
    closed: 'customer_ordering_closed',
  }),
  `INSERT OR IGNORE INTO ${VERSIONS} (version) VALUES (${SQLITE_VERSION})`,
]

/**
 * Returns a row if the table has its key. A table that was copied without it (`CREATE TABLE … AS`, a
 * CSV import) would accept the same order twice, and two processes would both send it.
 */
export const FIND_KEY: string = `SELECT 1 AS found FROM pragma_index_list('${ROWS}') AS list
  WHERE list."unique" = 1 AND list.partial = 0 AND (
    SELECT group_concat(part.name || ' ' || part.coll) FROM pragma_index_xinfo(list.name) AS part
    WHERE part.key = 1) = 'scope BINARY,id BINARY'`

export const LOST_KEY: string =
  `its table ${ROWS} has lost its primary key (scope, id), so one order could be bought twice. ` +
  'Nothing was changed. Restore a backup that has the key, or copy the rows into a table that this ' +
  'package has created.'
