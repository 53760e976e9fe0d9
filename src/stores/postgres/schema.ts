import { StoreError } from '../../errors/classes.ts'
import { BATCH, type Values } from '../engine.ts'
import { checkName } from '../options.ts'
import { type Dialect, indexes, newerTables, statementsOf, table, withPlaceholders } from '../sql/text.ts'
import { KEYLESS } from '../sql/troubles.ts'
import type { Query } from './connection.ts'

/** Quoted SQL names. Those of the tables and procedures include the schema. */
export type Names = Readonly<
  Record<'rows' | 'versions' | 'schema' | 'open' | 'list' | 'closed' | 'write' | 'read' | 'prune', string>
>

/** In bytes. PostgreSQL truncates longer names, which could make two names equal. */
const LONGEST_NAME = 63

const LONGEST_SUFFIX = '_versions'.length

export function namesOf(schema: string, table: string): Names {
  checkName('PostgresStore', 'schema', schema, LONGEST_NAME)
  checkName('PostgresStore', 'table', table, LONGEST_NAME - LONGEST_SUFFIX)
  const within = (name: string): string => `${quote(schema)}.${quote(name)}`
  return {
    rows: within(table),
    versions: within(`${table}_versions`),
    schema: quote(schema),
    open: quote(`${table}_open`),
    list: quote(`${table}_list`),
    closed: quote(`${table}_closed`),
    write: within(`${table}_write`),
    read: within(`${table}_read`),
    prune: within(`${table}_prune`),
  }
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * Sorts and compares strings by their bytes: the sort order of a language may change when the server
 * is upgraded, which would break the indexes.
 */
const TEXT = 'text COLLATE "C"'

/** The version of the tables and procedures that this version of the package creates and supports. */
export const SCHEMA_VERSION = 1

const ROW = 'json_build_array(id, version, open, state, created_at, updated_at, data)'

function dialectOf({ rows, versions }: Names): Dialect {
  return {
    rows,
    versions,
    types: { key: TEXT, data: 'text', number: 'bigint', flag: 'boolean', state: 'text' },
    // See refuse(), which runs in the same transaction.
    guard: 'TRUE',
    ifAbsent: 'ON CONFLICT (scope, id) DO NOTHING',
    select: (condition, order) => `SELECT coalesce(json_agg(entry), '[]') INTO result FROM (
      SELECT ${ROW} AS entry FROM ${rows} WHERE ${condition}
      ${order === '' ? '' : `ORDER BY ${order} LIMIT :limit`}) AS page`,
    // Skips rows that another transaction is writing: after that write they are no longer old, or
    // another process has pruned them.
    deleteSome: (condition) => `DELETE FROM ${rows} WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM ${rows} WHERE ${condition} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))`,
  }
}

/**
 * Returns a single statement, which every client runs as one transaction. Each step must be safe to run
 * twice, and must drop nothing. Of several processes that start at the same time, one migrates the
 * tables while the others wait for the lock.
 */
function migration(names: Names): string {
  const body = `
  BEGIN
    COMMIT; -- rejected inside a transaction block, see procedure()
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    PERFORM pg_advisory_xact_lock(1668510066, 1751870825);
    SET LOCAL client_min_messages = warning;
    CREATE TABLE IF NOT EXISTS ${names.versions} (version integer PRIMARY KEY);
    ${[table(dialectOf(names)), ...indexes(names.rows, names)].join(';')};
    ${procedure(names.write, WRITE_TYPES, writeBody(names))}
    ${procedure(names.read, READ_TYPES, readBody(names))}
    ${procedure(names.prune, PRUNE_TYPES, pruneBody(names))}
    INSERT INTO ${names.versions} (version) VALUES (${SCHEMA_VERSION}) ON CONFLICT DO NOTHING;
  END `
  return `DO ${quoteBody(body)}`
}

/** Quotes the body with a tag that it does not contain, as a table's name might. */
function quoteBody(body: string): string {
  let tag = '$body$'
  while (body.includes(tag)) tag = `${tag.slice(0, -1)}_$`
  return `${tag}${body}${tag}`
}

function inspection({ rows, versions, schema, ...names }: Names): readonly [string, string[]] {
  return [
    `SELECT json_build_object(
       'standby', pg_is_in_recovery(),
       'serverEncoding', current_setting('server_encoding'),
       'clientEncoding', current_setting('client_encoding'),
       'hasSchema', to_regnamespace($1) IS NOT NULL,
       'hasVersions', to_regclass($2) IS NOT NULL,
       'hasProcedures', num_nulls(to_regproc($4), to_regproc($5), to_regproc($6)) = 0,
       'persistence', (SELECT relpersistence FROM pg_class WHERE oid = to_regclass($3)),
       'lacksKey', (SELECT count(*) FROM pg_attribute
         WHERE attrelid = to_regclass($3) AND attname IN ('scope', 'id')) = 2
       AND NOT EXISTS (SELECT FROM pg_index
         WHERE indrelid = to_regclass($3) AND indisunique AND indisvalid AND indimmediate
           AND indpred IS NULL AND indnatts = 2 AND (SELECT count(*) FROM pg_attribute
             WHERE attrelid = indrelid AND attnum = ANY (indkey) AND attname IN ('scope', 'id')) = 2
       ))::text AS result`,
    [schema, versions, rows, names.write, names.read, names.prune],
  ]
}

type Parameters = readonly (keyof Values | 'kind' | 'deaf')[]

const WRITE: Parameters = [
  ...(['scope', 'id', 'version', 'open', 'state', 'createdAt', 'updatedAt', 'data'] as const),
  ...(['expected', 'deaf'] as const),
]
const WRITE_TYPES = 'text text bigint boolean text bigint bigint text bigint boolean'.split(' ')
const READ: Parameters = ['scope', 'kind', 'id', 'since', 'limit']
const READ_TYPES = 'text text text bigint bigint'.split(' ')
const PRUNE: Parameters = ['scope', 'state', 'before']
const PRUNE_TYPES = 'text text bigint'.split(' ')

function numbered(text: string, parameters: Parameters): string {
  return withPlaceholders(text, (name) => `$${parameters.indexOf(name) + 1}`)
}

/** With -1 as the expected version, `write` inserts the row. */
export type Statements = { readonly version: string } & Readonly<
  Record<'write' | 'read' | 'prune', { readonly text: string; readonly parameters: Parameters }>
>

export function statementsFor({ versions, write, read, prune }: Names): Statements {
  return {
    version: `SELECT coalesce(max(version), 0)::text AS result FROM ${versions}`,
    write: { text: call(write, WRITE_TYPES), parameters: WRITE },
    read: { text: call(read, READ_TYPES), parameters: READ },
    prune: { text: call(prune, PRUNE_TYPES), parameters: PRUNE },
  }
}

function call(name: string, types: readonly string[]): string {
  return `CALL ${name}(${types.map((type, index) => `$${index + 1}::${type}`).join(', ')}, NULL)`
}

/**
 * Every call runs in a transaction of its own.
 *
 * PostgreSQL rejects the COMMIT (2D000) if the connection is inside a transaction block, before
 * anything was read or written. So one statement both does its work and proves that nothing can
 * roll it back, through any client: no second statement has to reach the same connection.
 */
function procedure(name: string, types: readonly string[], body: string): string {
  return `CREATE OR REPLACE PROCEDURE ${name}(${types.join(', ')}, INOUT result text) LANGUAGE plpgsql AS ${quoteBody(`
    DECLARE
      changed bigint;
      standby boolean;
      newest integer;
    BEGIN
      COMMIT;
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
      -- Before the read: a standby may lag behind, even if it becomes the primary meanwhile.
      standby := pg_is_in_recovery();${body}
    END`)};`
}

/**
 * Comes last, and returns a refusal instead of the result if what this server contains proves
 * nothing.
 *
 * The read or write before it holds a lock that prevents changes of the table.
 */
function refuse({ rows, versions }: Names): string {
  return `
      SELECT max(version) INTO newest FROM ${versions};
      IF newest > ${SCHEMA_VERSION} THEN
        ROLLBACK;
        result := 'newer ' || newest;
      ELSIF standby THEN
        result := 'standby';
      ELSIF row_security_active('${rows.replaceAll("'", "''")}') THEN
        ROLLBACK;
        result := 'filtered';
      END IF;`
}

function writeBody(names: Names): string {
  const { get, insert, update } = statementsOf(dialectOf(names))
  return numbered(
    `
      IF current_setting('synchronous_standby_names') <> '' THEN
        -- Without its warning, a cancelled wait for the standbys looks like a success.
        IF $10 THEN
          result := 'deaf';
          RETURN;
        END IF;
        PERFORM set_config('client_min_messages', 'warning', true);
      END IF;
      -- With off, a crash of the server could lose the commit, and with local, a standby that takes
      -- over could lack it.
      IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
      END IF;
      IF :expected = -1 THEN
        ${insert};
      ELSE
        ${update};
      END IF;
      GET DIAGNOSTICS changed = ROW_COUNT;
      IF changed = 1 THEN
        result := 'written';
      ELSIF :expected = -1 THEN
        -- The INSERT cannot see a row that was committed while it waited.
        ${get};
      END IF;${refuse(names)}`,
    WRITE,
  )
}

function readBody(names: Names): string {
  const { get, open, list } = statementsOf(dialectOf(names))
  return numbered(
    `
      IF $2 = 'get' THEN ${get};
      ELSIF $2 = 'open' THEN ${open};
      ELSE ${list};
      END IF;${refuse(names)}`,
    READ,
  )
}

function pruneBody(names: Names): string {
  const { prune } = statementsOf(dialectOf(names))
  return numbered(
    `
      ${prune};
      GET DIAGNOSTICS changed = ROW_COUNT;
      result := changed;${refuse(names)}`,
    PRUNE,
  )
}

const CANNOT_OPEN = 'Cannot open the order store in PostgreSQL'

/**
 * Creates the tables, or brings them up to date. Throws if the database cannot store orders safely.
 */
export async function migrate(query: Query, names: Names, statements: Statements): Promise<void> {
  let version = await inspect(query, names, statements)
  if (version < SCHEMA_VERSION) {
    await query(migration(names))
    version = await inspect(query, names, statements)
  }
  if (version > SCHEMA_VERSION) throw newerTables(version, SCHEMA_VERSION, CANNOT_OPEN)
}

async function inspect(query: Query, names: Names, { version }: Statements): Promise<number> {
  const database: Facts = Object(JSON.parse((await query(...inspection(names))) ?? '{}'))
  const refusal = refusalOf(database, names)
  if (refusal !== undefined) throw new StoreError(`${CANNOT_OPEN}: ${refusal} Nothing was changed.`)
  const found = database.hasVersions ? Number(await query(version)) : 0
  // A backup of the tables does not contain the procedures.
  return database.hasProcedures || found > SCHEMA_VERSION ? found : 0
}

type Facts = Readonly<
  Record<'standby' | 'hasSchema' | 'hasVersions' | 'hasProcedures' | 'lacksKey', boolean>
> &
  Readonly<Record<'serverEncoding' | 'clientEncoding' | 'persistence', string>>

function refusalOf(database: Facts, { schema }: Names): string | undefined {
  if (database.standby) return 'this server is a standby, which lags behind. Connect to the primary.'
  if (database.serverEncoding !== 'UTF8' || database.clientEncoding !== 'UTF8')
    return 'the database and the connection must have the encoding UTF8, or strings could come back changed.'
  if (!database.hasSchema)
    return `the schema ${schema} does not exist. Create it, or set the option \`schema\`.`
  if (database.persistence === 'u')
    return 'its table is UNLOGGED, so a crash of the server empties it. Run ALTER TABLE … SET LOGGED.'
  if (database.lacksKey) return KEYLESS
  return undefined
}
