import { StoreError } from '../../errors/classes.ts'
import { toRow } from '../rows.ts'
import type { StoredRow } from '../store.ts'
import type { Database, Statement } from './database.ts'

/** Rows per statement of `prune`: other processes can take the lock between two statements. */
export const PRUNE_BATCH = 500

/**
 * One entry per schema version. Never change a released entry. A new entry must be safe to run
 * twice, and must drop nothing.
 *
 * The last index contains the state: without it, `prune` would have to read every old created row
 * to find the rejected ones.
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
   CREATE INDEX IF NOT EXISTS customer_ordering_closed
     ON customer_ordering_rows (scope, state, updated_at) WHERE open = 0;`,
]

/**
 * Reads `data` as bytes, and omits `scope`, because both may contain NUL: the `node:sqlite` of
 * Node 22.13 truncates a string at the first NUL.
 */
const FOUND = `id, version, open, state, created_at AS createdAt, updated_at AS updatedAt,
  CAST(data AS BLOB) AS data`

/** By default, a TextDecoder drops a byte order mark and replaces invalid bytes. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function decode(scope: string, { data, ...columns }: Readonly<Record<string, unknown>>): StoredRow {
  return toRow(scope, { ...columns, data: data instanceof Uint8Array ? UTF8.decode(data) : data })
}

/**
 * Prevents every write after a newer version of this package has upgraded the tables: this version
 * does not know their layout.
 */
const CURRENT = `NOT EXISTS (SELECT 1 FROM customer_ordering_schema WHERE version > ${MIGRATIONS.length})`

type StatementName = 'version' | 'get' | 'insert' | 'update' | 'listOpen' | 'list' | 'prune'

export type Statements = Readonly<Record<StatementName, Statement>>

const STATEMENTS: Readonly<Record<StatementName, string>> = {
  version: 'SELECT max(version) AS version FROM customer_ordering_schema',
  get: `SELECT ${FOUND} FROM customer_ordering_rows WHERE scope = ? AND id = ?`,
  insert: `INSERT INTO customer_ordering_rows (scope, id, version, open, state, created_at, updated_at, data)
    SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE ${CURRENT} ON CONFLICT (scope, id) DO NOTHING`,
  update: `UPDATE customer_ordering_rows
    SET version = ?, open = ?, state = ?, created_at = ?, updated_at = ?, data = ?
    WHERE scope = ? AND id = ? AND version = ? AND ${CURRENT}`,
  listOpen: `SELECT ${FOUND} FROM customer_ordering_rows
    WHERE scope = ? AND open = 1 AND id > ? ORDER BY id LIMIT ?`,
  list: `SELECT ${FOUND} FROM customer_ordering_rows
    WHERE scope = ? AND (updated_at, id) > (?, ?) ORDER BY updated_at, id LIMIT ?`,
  prune: `DELETE FROM customer_ordering_rows WHERE rowid IN (
    SELECT rowid FROM customer_ordering_rows
    WHERE scope = ? AND open = 0 AND state = ? AND updated_at < ? AND ${CURRENT} LIMIT ${PRUNE_BATCH})`,
}

export function migrate(database: Database, name: string): void {
  // Takes the lock first: if two processes start at the same time, one migrates the tables, and the
  // other waits.
  database.exec('BEGIN IMMEDIATE')
  try {
    database.exec('CREATE TABLE IF NOT EXISTS customer_ordering_schema (version INTEGER PRIMARY KEY) STRICT')
    // Changes nothing, but fails without write access: a read-only database must fail now, not with
    // the first order.
    database.exec('DELETE FROM customer_ordering_schema WHERE FALSE')
    const found = versionOf(database.prepare(STATEMENTS.version))
    checkVersion(found, `Cannot open the order store in ${name}`)
    for (let version = found + 1; version <= MIGRATIONS.length; version++) {
      database.exec(MIGRATIONS[version - 1] ?? '')
      database.prepare('INSERT INTO customer_ordering_schema (version) VALUES (?)').run(version)
    }
    checkKey(database, name)
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
  if (found <= MIGRATIONS.length) return
  throw new StoreError(
    `${failed}: a newer version of customer-ordering-sdk wrote it ` +
      `(schema ${found}, this version supports ${MIGRATIONS.length}). ` +
      'Update the package; nothing was changed.',
  )
}

/**
 * Throws if the table was copied without its key (`CREATE TABLE … AS`, a CSV import). Without the
 * key, the table would accept the same order twice, and two processes would both send it.
 */
function checkKey(database: Database, name: string): void {
  const keys = database
    .prepare(
      `SELECT 1 FROM pragma_index_list('customer_ordering_rows') AS list
       WHERE list."unique" = 1 AND list.partial = 0 AND (
         SELECT group_concat(part.name || ' ' || part.coll) FROM pragma_index_xinfo(list.name) AS part
         WHERE part.key = 1) = 'scope BINARY,id BINARY'`,
    )
    .all()
  if (keys.length > 0) return
  throw new StoreError(
    `Cannot open the order store in ${name}: its table customer_ordering_rows has lost its primary ` +
      'key (scope, id), so one order could be bought twice. Nothing was changed. Restore a backup ' +
      'that has the key, or copy the rows into a table that this package has created.',
  )
}

export function prepare(database: Database): Statements {
  return {
    version: database.prepare(STATEMENTS.version),
    get: database.prepare(STATEMENTS.get),
    insert: database.prepare(STATEMENTS.insert),
    update: database.prepare(STATEMENTS.update),
    listOpen: database.prepare(STATEMENTS.listOpen),
    list: database.prepare(STATEMENTS.list),
    prune: database.prepare(STATEMENTS.prune),
  }
}
