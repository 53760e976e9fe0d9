import { StoreError } from '../../errors.ts'

/** Quoted SQL names of the store's tables and indexes. */
export interface Names {
  /** The table of the rows, with its schema, quoted. */
  readonly rows: string
  /** The table that stores the version, with its schema, quoted. */
  readonly versions: string
  /** The schema, quoted. */
  readonly schema: string
  /** Names of the indexes, quoted. They are in the schema of their table. */
  readonly open: string
  readonly list: string
  readonly closed: string
}

/**
 * Maximum length of a name in PostgreSQL, in bytes. PostgreSQL truncates longer names, which could
 * make two names equal.
 */
const LONGEST_NAME = 63

/** Length of the longest suffix that the store appends to the name of its table. */
const LONGEST_ENDING = '_versions'.length

export function namesOf(schema: string, table: string): Names {
  checkName('schema', schema, LONGEST_NAME)
  checkName('table', table, LONGEST_NAME - LONGEST_ENDING)
  const within = (name: string): string => `${quote(schema)}.${quote(name)}`
  return {
    rows: within(table),
    versions: within(`${table}_versions`),
    schema: quote(schema),
    open: quote(`${table}_open`),
    list: quote(`${table}_list`),
    closed: quote(`${table}_closed`),
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
      `The option \`${option}\` of PostgresStore must be a name of 1 to ${longest} bytes without control characters.`,
    )
  }
}

/** Quotes an identifier, so that PostgreSQL reads it literally. */
function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * One entry per version of the tables. Released entries never change; new ones are appended. Each
 * can be run again, and none drops anything. Strings are compared by their bytes: the sort order of
 * a language could change with a release of the database. The last index is for `prune`: without
 * the state in it, the search for old rejected rows would read all created rows, which are kept for
 * longer.
 */
const MIGRATIONS: readonly ((names: Names) => string)[] = [
  ({ rows, open, list, closed }) => `
    CREATE TABLE IF NOT EXISTS ${rows} (
      scope text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      open boolean NOT NULL,
      state text NOT NULL,
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL,
      data text NOT NULL,
      PRIMARY KEY (scope, id)
    );
    CREATE INDEX IF NOT EXISTS ${open} ON ${rows} (scope, id) WHERE open;
    CREATE INDEX IF NOT EXISTS ${list} ON ${rows} (scope, updated_at, id);
    CREATE INDEX IF NOT EXISTS ${closed} ON ${rows} (scope, state, updated_at) WHERE NOT open;`,
]

/** The version of the tables that this version of the package reads and writes. */
export const SCHEMA_VERSION: number = MIGRATIONS.length

/**
 * Returns one statement that brings tables of the given version up to date: with any client, one
 * statement is one transaction. If several processes start at the same time, one migrates the
 * tables while the others wait for a lock.
 */
export function migration(names: Names, found: number): string {
  const steps = MIGRATIONS.slice(found).map(
    (step, index) => `${step(names)}
    INSERT INTO ${names.versions} (version) VALUES (${found + index + 1}) ON CONFLICT DO NOTHING;`,
  )
  const body = `
  BEGIN
    PERFORM pg_advisory_xact_lock(1668510066, 1751870825);
    SET LOCAL client_min_messages = warning;
    CREATE TABLE IF NOT EXISTS ${names.versions} (version integer PRIMARY KEY);${steps.join('')}
  END `
  let tag = '$migrate$'
  // A name that contains the tag would end the quoted body early.
  while (body.includes(tag)) tag = `${tag.slice(0, -1)}_$`
  return `DO ${tag}${body}${tag}`
}

/** Returns the query for the facts that the store checks before it uses a database. */
export function inspection({ rows, versions, schema }: Names): readonly [text: string, parameters: string[]] {
  return [
    `SELECT pg_is_in_recovery()::text AS standby,
       current_setting('server_encoding') AS server_encoding,
       current_setting('client_encoding') AS client_encoding,
       (to_regnamespace($1) IS NOT NULL)::text AS has_schema,
       (to_regclass($2) IS NOT NULL)::text AS has_versions,
       (SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass($3)) AS persistence,
       ((SELECT count(*) FROM pg_attribute
         WHERE attrelid = to_regclass($3) AND attname IN ('scope', 'id')) = 2
       AND NOT EXISTS (SELECT FROM pg_index
         WHERE indrelid = to_regclass($3) AND indisunique AND indisvalid AND indimmediate
           AND indpred IS NULL AND indnatts = 2 AND (SELECT count(*) FROM pg_attribute
             WHERE attrelid = indrelid AND attnum = ANY (indkey) AND attname IN ('scope', 'id')) = 2
       ))::text AS lacks_key`,
    [schema, versions, rows],
  ]
}

/** The columns of a row, cast to strings, which no setting of a client converts. */
const FOUND = 'id, version::text, open::text, state, created_at::text, updated_at::text, data'

/**
 * Evaluated for every row that is written. It makes the commit durable, whatever
 * `synchronous_commit` the connection has. With `off`, a crash of the server may lose the commit.
 * With `local`, a synchronous standby that takes over may not have the commit. The mark shows
 * {@link CHECK} whether the write was committed.
 */
const WRITTEN = `CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
      THEN set_config('synchronous_commit', 'on', true) END AS synchronous,
    set_config('customer_ordering.mark', 'set', true) AS mark`

/**
 * Sets a mark that ends with its transaction. Outside a transaction block, the mark ends with this
 * statement.
 */
export const MARK = `SELECT set_config('customer_ordering.mark', 'set', true) AS mark`

/** Reads whether the mark of an earlier statement is still set. */
export const CHECK = `SELECT current_setting('customer_ordering.mark', true) AS mark`

/** Maximum number of rows per statement of `prune`, so that each holds its locks only briefly. */
export const PRUNE_BATCH = 500

export interface Statements {
  readonly version: string
  readonly get: string
  readonly insert: string
  readonly update: string
  readonly listOpen: string
  readonly list: string
  readonly prune: string
}

export function statementsFor({ rows, versions }: Names): Statements {
  // Condition of every write: no newer version of this package has upgraded the tables. An older
  // version that is still running must not write, because it does not know the new layout.
  const current = `NOT EXISTS (SELECT FROM ${versions} WHERE version > ${SCHEMA_VERSION})`
  return {
    version: `SELECT coalesce(max(version), 0)::text AS version FROM ${versions}`,
    get: `SELECT ${FOUND} FROM ${rows} WHERE scope = $1 AND id = $2`,
    insert: `INSERT INTO ${rows} (scope, id, version, open, state, created_at, updated_at, data)
      SELECT $1::text, $2::text, $3::bigint, $4::boolean, $5::text, $6::bigint, $7::bigint, $8::text
      WHERE ${current} ON CONFLICT (scope, id) DO NOTHING RETURNING ${WRITTEN}`,
    update: `UPDATE ${rows}
      SET version = $1, open = $2, state = $3, created_at = $4, updated_at = $5, data = $6
      WHERE scope = $7 AND id = $8 AND version = $9 AND ${current} RETURNING ${WRITTEN}`,
    listOpen: `SELECT ${FOUND} FROM ${rows} AS stored
      WHERE scope = $1 AND open AND id > $2 ORDER BY stored.id LIMIT $3::bigint`,
    // Qualifies the times with their table. The bare name would refer to the returned string, and
    // rows would be sorted by that string.
    list: `SELECT ${FOUND} FROM ${rows} AS stored
      WHERE scope = $1 AND (updated_at, id) > ($2::bigint, $3) ORDER BY stored.updated_at, stored.id LIMIT $4::bigint`,
    // Skips rows that another transaction is writing: they are no longer old, or another process is
    // pruning them.
    prune: `WITH batch AS (
        SELECT ctid FROM ${rows} WHERE scope = $1 AND NOT open AND state = $2 AND updated_at < $3::bigint AND ${current}
        LIMIT ${PRUNE_BATCH} FOR UPDATE SKIP LOCKED
      ), removed AS (
        DELETE FROM ${rows} WHERE ctid = ANY (ARRAY(SELECT ctid FROM batch)) RETURNING ${WRITTEN}
      ) SELECT count(*)::text AS removed, count(mark)::text AS marked FROM removed`,
  }
}
