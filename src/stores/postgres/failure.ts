import { StoreError } from '../../errors.ts'
import { plainError } from '../plain-error.ts'

/** An explanation and the codes to which it applies. */
type Trouble = readonly [advice: string, ...codes: string[]]

/** A table that was copied with `CREATE TABLE … AS`, for example, has no primary key. */
export const KEYLESS: string =
  'its table has no primary key (scope, id), so one order could be bought twice. Remove duplicate rows, ' +
  'then run ALTER TABLE … ADD PRIMARY KEY (scope, id).'

/**
 * Explanations by the codes of PostgreSQL (five characters, or the first two for a whole class),
 * Node and postgres.js. They never quote the server's messages, which may contain values, names and
 * addresses.
 */
const TROUBLES: readonly Trouble[] = [
  [
    'the connection failed, or the server ended it. A write may or may not have happened; try again when the server can be reached.',
    ...['08', '57P01', '57P02', '57P05', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND'],
    ...['EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT', 'CONNECTION_LOST'],
    ...['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'CONNECT_TIMEOUT'],
  ],
  ['the server is starting or stopping. Nothing was written; try again soon.', '57P03'],
  [
    'the server has no free connections. Nothing was written; raise its `max_connections`, or make the pools smaller.',
    '53300',
  ],
  [
    'no connection became free in time, or none could be opened. Nothing was written; find connections that are not released, or enlarge the pool.',
    'POOL_TIMEOUT',
  ],
  [
    'the client that you passed was closed. Keep it open while the store is in use.',
    ...['CLIENT_CLOSED', 'CONNECTION_ENDED'],
  ],
  [
    'the statement was cancelled, or took longer than statement_timeout allows. Nothing was written; find the lock that delays it.',
    '57014',
  ],
  [
    "no response came within the client's time limit. A write may or may not have happened; try again.",
    'QUERY_TIMEOUT',
  ],
  [
    'another transaction locked the row for longer than lock_timeout allows. Nothing was written; find the transaction that is left open.',
    '55P03',
  ],
  ['concurrent transactions kept writing the same row. Nothing was written; try again.', '40001', '40P01'],
  [
    'the connection is inside a transaction that has failed. Nothing was written; roll back that transaction.',
    '25P02',
  ],
  [
    'the database is read-only, perhaps a standby. Nothing was written; connect to the primary.',
    ...['25006', '25007'],
  ],
  ['the database was dropped. Restore a backup before you order again.', '57P04'],
  [
    "this role may not use the store's tables, or may not create them in that schema. Grant the right, or run `migrate()` once as a role that has it.",
    '42501',
  ],
  ['the login failed. Check the user, the password and pg_hba.conf.', '28'],
  ['the database does not exist. Check its name.', '3D000'],
  ['the schema does not exist. Create it, or set the option `schema` to an existing schema.', '3F000'],
  [
    'its tables are missing. If they were dropped, their orders are forgotten: restore the tables before you order again.',
    '42P01',
  ],
  [
    'another table already has the name that the store uses. Set the option `table` to another name.',
    ...['42703', '42809', '42P16', '42P07', '42710'],
  ],
  [`${KEYLESS} Nothing was written.`, '42P10'],
  ['the disk is full. Nothing was written; free up space.', '53100'],
  ['the server is out of memory. Nothing was written; try again.', '53200'],
  ['a string is too long for the database. Nothing was written.', '54'],
  ['a number is too large or not an integer. Nothing was written.', '22P02', '22003'],
  [
    'the disk or file system of the server failed. A write may or may not have happened; check the disk.',
    '58',
  ],
  ['its data is damaged. Stop writing to it, keep a copy, then restore a backup.', 'XX001', 'XX002'],
]

/** Turns any error of a client into a {@link StoreError} that names the failed operation. */
export function explain(error: unknown, failed: string): StoreError {
  if (error instanceof StoreError) return error
  const code = codeOf(error)
  const advice = TROUBLES.find(([, ...codes]) => codes.some((known) => matches(code, known)))?.[0]
  return new StoreError(`${failed}: ${advice ?? `the database client reported ${code}.`}`, {
    cause: plainError(error, code),
  })
}

/**
 * Codes for which the server rolled the statement back or never ran it, so it will not be applied
 * later either. Codes of a lost connection (08, 57P) are not included: the server may
 * have committed the statement first.
 */
const NOT_APPLIED = /^(22|23|42|53|54)...$|^(25006|25P02|40001|40P01|55P03|57014)$/

/**
 * Turns the error of a failed write into a {@link StoreError} that states whether the write may
 * still be applied.
 */
export function explainWrite(error: unknown, failed: string): StoreError {
  const explained = explain(error, failed)
  return NOT_APPLIED.test(codeOf(error))
    ? new StoreError(explained.message, { cause: explained.cause, applied: false })
    : explained
}

/** True if the tables lack something that a statement uses, such as a column. */
export function isMisfit(error: unknown): boolean {
  return codeOf(error).startsWith('42')
}

/** True if the statement was rolled back because of a concurrent one, and can be run again. */
export function isConflict(error: unknown): boolean {
  return ['40001', '40P01'].includes(codeOf(error))
}

/** True if PostgreSQL itself rejected the statement, which leaves the connection intact. */
export function isRefusal(error: unknown): boolean {
  // Excludes a failing connection (08), an invalid transaction or a standby (25), and a stopping
  // server (57P).
  return /^(?!08|25|57P)[0-9FHPX][0-9A-Z]{4}$/.test(codeOf(error))
}

/** True if the connection is in a failed transaction, in which it runs no more statements. */
export function isInFailedTransaction(error: unknown): boolean {
  return codeOf(error) === '25P02'
}

function matches(code: string, known: string): boolean {
  return code === known || (known.length === 2 && code.length === 5 && code.startsWith(known))
}

/** Messages of pg for errors without a code. */
const MESSAGES: readonly (readonly [text: string, code: string])[] = [
  ['timeout exceeded when trying to connect', 'POOL_TIMEOUT'],
  ['connection terminated due to connection timeout', 'POOL_TIMEOUT'],
  ['timeout expired', 'POOL_TIMEOUT'],
  ['query read timeout', 'QUERY_TIMEOUT'],
  ['after calling end on the pool', 'CLIENT_CLOSED'],
  ['client was closed', 'CLIENT_CLOSED'],
  ['pglite is closed', 'CLIENT_CLOSED'],
  ['connection terminated', 'CONNECTION_LOST'],
  ['connection error', 'CONNECTION_LOST'],
  ['connection ended', 'CONNECTION_LOST'],
]

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'UNKNOWN'
  const code: unknown = Reflect.get(error, 'code')
  if (typeof code === 'string' && code !== '') return code
  if (!(error instanceof Error)) return 'UNKNOWN'
  // Drizzle wraps the errors of pg.
  if (error.cause instanceof Error) return codeOf(error.cause)
  const message = error.message.toLowerCase()
  return MESSAGES.find(([text]) => message.includes(text))?.[1] ?? error.name
}
