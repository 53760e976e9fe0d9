import { StoreError } from '../../errors/classes.ts'
import {
  type Dialect,
  indexes,
  type Parameter,
  PRUNE_BATCH,
  statementsOf,
  table,
  withPlaceholders,
} from '../sql/text.ts'

/** Quoted SQL names. Those of the tables and procedures include the schema. */
export interface Names {
  readonly rows: string
  readonly versions: string
  readonly schema: string
  readonly open: string
  readonly list: string
  readonly closed: string
  readonly write: string
  readonly read: string
  readonly prune: string
}

/** In bytes. PostgreSQL truncates longer names, which could make two names equal. */
const LONGEST_NAME = 63

const LONGEST_SUFFIX = '_versions'.length

export function namesOf(schema: string, table: string): Names {
  checkName('schema', schema, LONGEST_NAME)
  checkName('table', table, LONGEST_NAME - LONGEST_SUFFIX)
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

function checkName(option: 'schema' | 'table', name: unknown, longest: number): void {
  const valid =
    typeof name === 'string' &&
    name !== '' &&
    !/\p{Surrogate}|\p{Control}/u.test(name) &&
    new TextEncoder().encode(name).length <= longest
  if (!valid) {
    throw new StoreError(
      `The option \`${option}\` of PostgresStore must be a name of 1 to ${longest} bytes ` +
        'without control characters.',
    )
  }
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Sorts and compares strings by their bytes. */
const TEXT = 'text COLLATE "C"'

/**
 * One entry per version of the tables.
 *
 * Never change a released entry. A new entry must be safe to run twice, and must drop nothing.
 *
 * `COLLATE "C"` sorts strings by their bytes: the sort order of a language may change when the
 * server is upgraded, which would break the indexes.
 */
const MIGRATIONS: readonly ((names: Names) => string)[] = [
  (names) => `${[table(dialectOf(names)), ...indexes(names.rows, names)].join(';')};
    ${procedure(names.write, WRITE_TYPES, writeBody(names))}
    ${procedure(names.read, READ_TYPES, readBody(names))}
    ${procedure(names.prune, PRUNE_TYPES, pruneBody(names))}`,
]

export const SCHEMA_VERSION: number = MIGRATIONS.length

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
      SELECT ctid FROM ${rows} WHERE ${condition} LIMIT ${PRUNE_BATCH} FOR UPDATE SKIP LOCKED))`,
  }
}

/**
 * Returns a single statement, which every client runs as one transaction.
 *
 * If several processes start at the same time, one migrates the tables while the others wait for
 * the lock.
 */
export function migration(names: Names, found: number): string {
  const steps = MIGRATIONS.slice(found).map(
    (step, index) => `${step(names)}
    INSERT INTO ${names.versions} (version) VALUES (${found + index + 1}) ON CONFLICT DO NOTHING;`,
  )
  const body = `
  BEGIN
    COMMIT; -- rejected inside a transaction block, see procedure()
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    PERFORM pg_advisory_xact_lock(1668510066, 1751870825);
    SET LOCAL client_min_messages = warning;
    CREATE TABLE IF NOT EXISTS ${names.versions} (version integer PRIMARY KEY);${steps.join('')}
  END `
  return `DO ${quoteBody(body)}`
}

/** Quotes the body with a tag that it does not contain, as a table's name might. */
function quoteBody(body: string): string {
  let tag = '$body$'
  while (body.includes(tag)) tag = `${tag.slice(0, -1)}_$`
  return `${tag}${body}${tag}`
}

export function inspection({ rows, versions, schema, ...names }: Names): readonly [string, string[]] {
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

type Parameters = readonly (Parameter | 'kind' | 'deaf')[]

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

interface Call {
  readonly text: string
  readonly parameters: Parameters
}

export interface Statements {
  readonly version: string
  /** With -1 as the expected version, inserts the row. */
  readonly write: Call
  readonly read: Call
  readonly prune: Call
}

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
      IF newest > ${MIGRATIONS.length} THEN
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
