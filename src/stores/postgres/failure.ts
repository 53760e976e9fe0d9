import { StoreError } from '../../errors/classes.ts'
import { plainError } from '../plain-error.ts'
import { KEYLESS } from '../sql/server.ts'

type Trouble = readonly [advice: string, ...codes: string[]]

/** Codes of PostgreSQL, Node and postgres.js. A code of two characters stands for its class. */
const TROUBLES: readonly Trouble[] = [
  [
    'the connection failed, or the server ended it. Try again when the server can be reached.',
    ...['08', '57P01', '57P02', '57P05', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND'],
    ...['EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT', 'CONNECTION_LOST'],
    ...['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'CONNECT_TIMEOUT'],
  ],
  ['the server is starting or stopping. Try again soon.', '57P03'],
  [
    'the server has no free connections for this role. ' +
      'Raise the connection limit, or make the pools smaller.',
    '53300',
  ],
  [
    'no connection became free in time, or none could be opened. ' +
      'Check the server, find connections that are not released, or enlarge the pool.',
    'POOL_TIMEOUT',
  ],
  [
    'the client that you passed was closed. Keep it open while the store is in use.',
    ...['CLIENT_CLOSED', 'CONNECTION_ENDED'],
  ],
  [
    'the statement was cancelled, or took longer than statement_timeout allows. ' +
      'Check whether a lock delays it.',
    '57014',
  ],
  ["no response came within pg's `query_timeout`. Try again.", 'QUERY_TIMEOUT'],
  [
    'another transaction locked the row or table for longer than lock_timeout allows. ' +
      'End that transaction.',
    '55P03',
  ],
  ['a deadlock with another transaction. Try again.', '40P01'],
  [
    'its connection is inside a transaction, and a rollback could remove an order after it was sent. ' +
      'Find the code that leaves a transaction open, and give the store a pool or its own connection.',
    ...['2D000', '25P02'],
  ],
  [
    'the database is read-only, perhaps because it is a standby. Connect to the primary, or allow writes.',
    '25006',
  ],
  ['the database was dropped. Restore a backup before you order again.', '57P04'],
  [
    "this role may not use the store's tables, or may not create them in that schema. " +
      'Grant this role access to the tables. If they are missing, run `migrate()` as a role that may ' +
      'create them.',
    '42501',
  ],
  ['the login failed. Check the user, the password and pg_hba.conf.', '28'],
  ['the database does not exist. Check its name.', '3D000'],
  ['the schema does not exist. Create it, or set the option `schema`.', '3F000'],
  [
    'its tables are missing. If they were dropped, their orders are forgotten: ' +
      'restore the tables before you order again.',
    ...['42P01', '42883'],
  ],
  [
    'another table already has the name that the store uses. Set the option `table` to another name.',
    ...['42703', '42809', '42P16', '42P07', '42710'],
  ],
  [KEYLESS, '42P10'],
  ["the server's disk is full. Free up space.", '53100'],
  ['the server is out of memory. Try again.', '53200'],
  ['a string, such as the account label, is too long for the database. Shorten it.', '54'],
  ['a number, such as a time, is too large or not an integer. Pass a safe integer.', '22P02', '22003'],
  ['the server had a system error, such as a failed disk. Check its disk and log.', '58'],
  [
    'its data is damaged. Stop writing to it, keep a copy, then restore a backup, ' +
      'which forgets newer orders: check them with orders.reconcile().',
    'XX001',
    'XX002',
  ],
]

/**
 * Codes for which the server rolled the statement back or never ran it, so the statement will not
 * be applied later either.
 *
 * Omits codes of a lost connection (08, 57P01): the server may have committed the statement before
 * the loss. Omits 25006 and 42501, with which another server than the primary, or another role, may
 * refuse: they prove nothing about the rows.
 */
const NOT_APPLIED = /^(22|23|53|54)...$|^42(?!501)...$|^(25P02|2D000|40P01|55P03|57014)$/

/**
 * Codes of statements that never ran.
 *
 * Used for the message only: `applied: false` also promises that no earlier write takes effect
 * later, which these codes do not prove.
 */
const NOT_RUN = /^(28...|25006|3D000|42501|57P03|POOL_TIMEOUT)$/

/** Never quotes the server's messages: they may contain values, names and addresses. */
export function explain(error: unknown, task: 'open' | 'read from' | 'write to'): StoreError {
  if (error instanceof StoreError) return error
  const code = codeOf(error)
  const advice =
    TROUBLES.find(([, ...codes]) => codes.some((known) => matches(code, known)))?.[0] ??
    `the database client reported ${code}. Check the server's log.`
  const notApplied = NOT_APPLIED.test(code)
  let written = ''
  if (task !== 'read from' && (notApplied || NOT_RUN.test(code))) written = ' Nothing was written.'
  else if (task === 'write to') written = ' The write may or may not have happened.'
  return new StoreError(`Cannot ${task} the order store in PostgreSQL: ${advice}${written}`, {
    cause: plainError(error, code),
    ...(notApplied && task === 'write to' ? { applied: false } : {}),
  })
}

/** Class 42: the tables lack something that the statement uses, such as a column. */
export function isMisfit(error: unknown): boolean {
  return codeOf(error).startsWith('42')
}

/**
 * PostgreSQL rejected the statement, and the connection stays usable.
 *
 * Excludes a failing connection (08), an open transaction or a standby (25, 2D), and a stopping
 * server (57P).
 */
export function isRefusal(error: unknown): boolean {
  return /^(?!08|25|2D|57P)[0-9FHPX][0-9A-Z]{4}$/.test(codeOf(error))
}

function matches(code: string, known: string): boolean {
  return code === known || (known.length === 2 && code.length === 5 && code.startsWith(known))
}

/** pg gives these errors no code, so they are recognised by a part of the message. */
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

export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'UNKNOWN'
  const code: unknown = Reflect.get(error, 'code')
  if (typeof code === 'string' && code !== '') return code
  if (!(error instanceof Error)) return 'UNKNOWN'
  const message = error.message.toLowerCase()
  return MESSAGES.find(([text]) => message.includes(text))?.[1] ?? error.name
}
