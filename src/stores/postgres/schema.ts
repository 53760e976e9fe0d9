import { StoreError } from '../../errors/classes.ts'

/** Quoted SQL names. Those of the two tables, `rows` and `versions`, include the schema. */
export interface Names {
  readonly rows: string
  readonly versions: string
  readonly schema: string
  readonly open: string
  readonly list: string
  readonly closed: string
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

/**
 * One entry per version of the tables. Never change a released entry. A new entry must be safe to
 * run twice, and must drop nothing.
 *
 * `COLLATE "C"` sorts strings by their bytes: the sort order of a language may change when the
 * server is upgraded, which would break the indexes. The last index contains the state: without it,
 * `prune` would have to read every old created row to find the rejected ones.
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

export const SCHEMA_VERSION: number = MIGRATIONS.length

/**
 * Returns a single statement, which every client runs as one transaction. If several processes
 * start at the same time, one migrates the tables while the others wait for the lock.
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
  // A table name that contains the tag would end the quoted body early.
  while (body.includes(tag)) tag = `${tag.slice(0, -1)}_$`
  return `DO ${tag}${body}${tag}`
}

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

/** Casts numbers and booleans to strings, because a client's settings may convert them. */
const FOUND = 'id, version::text, open::text, state, created_at::text, updated_at::text, data'

/**
 * The RETURNING clause of every write. Makes the commit durable: with `synchronous_commit = off`, a
 * crash of the server could lose the commit, and with `local`, a synchronous standby that takes
 * over could lack it. Also sets the mark of {@link SET_MARK}.
 */
const WRITTEN = `CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
      THEN set_config('synchronous_commit', 'on', true) END AS synchronous,
    set_config('customer_ordering.mark', 'set', true) AS mark`

/**
 * Sets a mark that ends with its transaction. Outside a transaction block, the mark ends with this
 * statement.
 */
export const SET_MARK = `SELECT set_config('customer_ordering.mark', 'set', true) AS mark`

export const READ_MARK = `SELECT current_setting('customer_ordering.mark', true) AS mark`

/** Rows per statement of `prune`, so that each statement holds its locks only briefly. */
export const PRUNE_BATCH = 500

export interface Statements {
  readonly version: string
  readonly get: string
  /** Reads like `get`, and keeps the row unchanged until the transaction ends. */
  readonly insert: string
  readonly update: string
  readonly listOpen: string
  readonly list: string
  readonly prune: string
}

export function statementsFor({ rows, versions }: Names): Statements {
  // Prevents every write after a newer version of this package has upgraded the tables: this
  // version does not know their layout.
  const current = `NOT EXISTS (SELECT FROM ${versions} WHERE version > ${SCHEMA_VERSION})`
  const get = `SELECT ${FOUND} FROM ${rows} WHERE scope = $1 AND id = $2`
  return {
    version: `SELECT coalesce(max(version), 0)::text AS version FROM ${versions}`,
    get,
    insert: `INSERT INTO ${rows} (scope, id, version, open, state, created_at, updated_at, data)
      SELECT $1::text, $2::text, $3::bigint, $4::boolean, $5::text, $6::bigint, $7::bigint, $8::text
      WHERE ${current} ON CONFLICT (scope, id) DO NOTHING RETURNING ${WRITTEN}`,
    update: `UPDATE ${rows}
      SET version = $1, open = $2, state = $3, created_at = $4, updated_at = $5, data = $6
      WHERE scope = $7 AND id = $8 AND version = $9 AND ${current} RETURNING ${WRITTEN}`,
    listOpen: `SELECT ${FOUND} FROM ${rows} AS stored
      WHERE scope = $1 AND open AND id > $2 ORDER BY stored.id LIMIT $3::bigint`,
    // In ORDER BY, a bare `updated_at` means the returned string: '10' would sort before '9'.
    list: `SELECT ${FOUND} FROM ${rows} AS stored
      WHERE scope = $1 AND (updated_at, id) > ($2::bigint, $3)
      ORDER BY stored.updated_at, stored.id LIMIT $4::bigint`,
    // Skips rows that another transaction is writing: after that write they are no longer old, or
    // another process has pruned them.
    prune: `WITH batch AS (
        SELECT ctid FROM ${rows}
        WHERE scope = $1 AND NOT open AND state = $2 AND updated_at < $3::bigint AND ${current}
        LIMIT ${PRUNE_BATCH} FOR UPDATE SKIP LOCKED
      ), removed AS (
        DELETE FROM ${rows} WHERE ctid = ANY (ARRAY(SELECT ctid FROM batch)) RETURNING ${WRITTEN}
      ) SELECT count(*)::text AS removed, count(mark)::text AS marked FROM removed`,
  }
}
