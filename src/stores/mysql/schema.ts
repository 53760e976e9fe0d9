import { StoreError } from '../../errors/classes.ts'
import { BATCH, type Operation } from '../engine.ts'
import {
  columnsOf,
  type Dialect,
  newerTables,
  positionalStatements,
  type Statement,
  table,
} from '../sql/text.ts'
import { KEYLESS } from '../sql/troubles.ts'
import type { Query } from './connection.ts'

const SCHEMA_VERSION = 1

/** In bytes. An index of InnoDB holds two such columns. */
const LONGEST_KEY = 1024

const CANNOT_OPEN = 'Cannot open the order store in MySQL'

export interface Names {
  readonly database: string | undefined
  readonly table: string
}

export interface Tables {
  readonly statements: Readonly<Record<Operation, Statement>>
  /** Returns what makes this server or session prove nothing, see {@link refusalOf}. */
  readonly refusal: string
}

export function checkKey(text: string): void {
  if (Buffer.byteLength(text) <= LONGEST_KEY) return
  // A server without strict mode would truncate it silently.
  throw new StoreError(
    `The order store in MySQL cannot store a scope or id of more than ${LONGEST_KEY} bytes. ` +
      'Shorten the account label. Nothing was written.',
    { applied: false },
  )
}

/** Without a LIMIT, a session's sql_select_limit would apply, and shorten pages. */
const ALL = Number.MAX_SAFE_INTEGER

/**
 * A word for what makes a read or write of this server, in this session, prove nothing; else NULL.
 * Every statement asks, because a setting may change, or a connection may reach another server, while
 * the store is open.
 */
const TROUBLE = `WHEN CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') OR @@GLOBAL.innodb_read_only = 1 THEN 'replica'
  WHEN @@GLOBAL.innodb_flush_log_at_trx_commit IN (0, 2) THEN 'flush'
  WHEN @@GLOBAL.log_bin = 1 AND (@@GLOBAL.sync_binlog <> 1 OR @@SESSION.sql_log_bin = 0) THEN 'binlog'
  WHEN @@SESSION.character_set_client <> @@SESSION.character_set_connection OR '' IS NULL THEN 'session'`

const REFUSALS: Readonly<Record<string, string>> = {
  replica: 'this server is read-only, so it may be a replica, which lags behind. Connect to the primary.',
  flush: 'innodb_flush_log_at_trx_commit is not 1, so a crash of the server could lose orders. Set it to 1.',
  binlog:
    'the binary log may lack a commit after a crash, so orders could be lost. Set sync_binlog and sql_log_bin to 1.',
  session:
    'its session changes strings: character_set_client and character_set_connection must be equal, ' +
    'and sql_mode must not contain EMPTY_STRING_IS_NULL.',
}

export function refusalOf(word: unknown, failed: string): StoreError | undefined {
  const text = String(word ?? '')
  if (text === '') return undefined
  if (/^\d+$/.test(text)) return newerTables(text, SCHEMA_VERSION, failed)
  return new StoreError(`${failed}: ${REFUSALS[text] ?? text}`)
}

function dialectOf(database: string, name: string): Dialect & { readonly refusal: string } {
  const rows = `${quote(database)}.${quote(name)}`
  const versions = `${quote(database)}.${quote(`${name}_versions`)}`
  const newest = `(SELECT MAX(version) FROM ${versions})`
  const refusal = `CASE ${TROUBLE} WHEN ${newest} > ${SCHEMA_VERSION} THEN ${newest} END`
  return {
    ...{ rows, versions, refusal },
    // VARBINARY distinguishes case, accents and blanks at the end, which most collations do not.
    types: {
      key: `VARBINARY(${LONGEST_KEY})`,
      data: 'LONGBLOB',
      number: 'BIGINT',
      flag: 'BOOLEAN',
      state: 'VARBINARY(8)',
    },
    keys: `, KEY open_rows (scope, open, id), KEY listed_rows (scope, updated_at, id),
      KEY closed_rows (scope, state, updated_at)`,
    tableOptions: 'ENGINE = InnoDB ROW_FORMAT = DYNAMIC',
    guard: `(${refusal}) IS NULL`,
    dual: 'FROM DUAL',
    // One row at least, which contains the refusal.
    select: (
      condition,
      order,
    ) => `SELECT server.refusal, found.* FROM (SELECT ${refusal} AS refusal) AS server
      LEFT JOIN (SELECT ${columnsOf()} FROM ${rows} WHERE ${condition}
        ${order === '' ? '' : `ORDER BY ${order} LIMIT :limit`}) AS found ON TRUE
      ORDER BY ${order === 'id' ? 'found.id' : 'found.updatedAt, found.id'} LIMIT ${ALL}`,
    deleteSome: (condition) => `DELETE FROM ${rows} WHERE ${condition} LIMIT ${BATCH}`,
  }
}

function quote(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``
}

/** Creates the tables, or brings them up to date. */
export async function migrate(connection: Query, names: Names): Promise<Tables> {
  const query: Query = (sql, values) => connection(sql, values, true)
  const found = names.database ?? (await first(query, 'SELECT DATABASE() AS name'))['name']
  if (typeof found !== 'string')
    throw new StoreError(`${CANNOT_OPEN}: its connection uses no database. Set the option \`database\`.`)
  const dialect = dialectOf(found, names.table)
  let version = await inspect(query, found, names.table, dialect)
  if (version < SCHEMA_VERSION) {
    // Safe to run twice, and from several processes at the same time.
    await query(`CREATE TABLE IF NOT EXISTS ${dialect.versions} (version INT PRIMARY KEY) ENGINE = InnoDB`)
    await query(table(dialect))
    await query(`REPLACE INTO ${dialect.versions} (version) VALUES (1)`)
    version = await inspect(query, found, names.table, dialect)
  }
  if (version > SCHEMA_VERSION) throw newerTables(version, SCHEMA_VERSION, CANNOT_OPEN)
  return { statements: positionalStatements(dialect), refusal: `SELECT ${dialect.refusal} AS refusal` }
}

async function inspect(query: Query, database: string, name: string, { versions }: Dialect): Promise<number> {
  const here = 'TABLE_SCHEMA = ? AND TABLE_NAME = ?'
  const facts = await first(
    query,
    `SELECT CASE ${TROUBLE} END AS refusal,
      (SELECT ENGINE FROM information_schema.TABLES WHERE ${here}) AS engine,
      (SELECT COUNT(*) FROM information_schema.COLUMNS WHERE ${here}
        AND (COLUMN_NAME IN ('scope', 'id') AND COLUMN_TYPE = 'varbinary(${LONGEST_KEY})'
          OR COLUMN_NAME = 'data' AND COLUMN_TYPE = 'longblob')) AS sound,
      (SELECT GROUP_CONCAT(COLUMN_NAME, COALESCE(SUB_PART, '') ORDER BY COLUMN_NAME)
        FROM information_schema.STATISTICS WHERE ${here} AND INDEX_NAME = 'PRIMARY') AS indexed,
      (SELECT COUNT(*) FROM information_schema.TABLES WHERE ${here}) AS versions`,
    [database, name, database, name, database, name, database, `${name}_versions`],
  )
  const refusal = refusalOf(facts['refusal'], CANNOT_OPEN)
  if (refusal !== undefined) throw refusal
  const newest = `SELECT MAX(version) AS version FROM ${versions}`
  const version = Number(facts['versions']) === 0 ? 0 : Number((await first(query, newest))['version'])
  // A newer version may have renamed the table or its columns.
  if (version > SCHEMA_VERSION) return version
  const problem = clusterProblem(await query(CLUSTER)) ?? tableProblem(facts)
  if (problem !== undefined) throw new StoreError(`${CANNOT_OPEN}: ${problem} Nothing was changed.`)
  return typeof facts['engine'] === 'string' ? version : 0
}

type Facts = Readonly<Record<string, unknown>>

function tableProblem(facts: Facts): string | undefined {
  const { engine, sound, indexed } = facts
  if (typeof engine !== 'string') return undefined
  if (engine !== 'InnoDB')
    return `its table uses the engine ${engine}, which may lose rows. Run ALTER TABLE … ENGINE = InnoDB.`
  if (Number(sound) !== 3)
    return (
      'its table was not created by this package, so two orders could become one: scope and id must be ' +
      `VARBINARY(${LONGEST_KEY}), and data LONGBLOB.`
    )
  return indexed === 'id,scope' ? undefined : KEYLESS
}

const CLUSTER = `SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_sync_wait',
  'group_replication_group_name', 'group_replication_consistency', 'group_replication_single_primary_mode')`

/** Every node of a cluster may be a primary, but a node may lag behind the others. */
function clusterProblem(rows: unknown): string | undefined {
  const settings = new Map<unknown, string>()
  for (const row of Array.isArray(rows) ? rows : []) {
    const { Variable_name: name, Value: value } = Object(row)
    settings.set(name, String(value))
  }
  if (settings.get('wsrep_on') === 'ON' && Number(settings.get('wsrep_sync_wait')) % 2 === 0)
    return 'a node of Galera may lag behind. Set wsrep_sync_wait to 1 or 7 on every node.'
  if (!settings.get('group_replication_group_name')) return undefined
  const single = settings.get('group_replication_single_primary_mode') !== 'OFF'
  const consistent = single ? /^(BEFORE|AFTER)/ : /^(BEFORE|AFTER|BEFORE_AND_AFTER)$/
  if (consistent.test(settings.get('group_replication_consistency') ?? '')) return undefined
  return 'a member of the group may lag behind. Set group_replication_consistency to BEFORE_AND_AFTER.'
}

export async function first(query: Query, sql: string, values?: string[]): Promise<Facts> {
  const rows = await query(sql, values)
  return Object(Array.isArray(rows) ? rows[0] : undefined)
}
