import { StoreError } from '../../errors/classes.ts'
import { plainError } from '../plain-error.ts'

type Trouble = readonly [advice: string, ...codes: string[]]

/** Error numbers of MySQL and MariaDB, and codes of Node and mysql2. */
const TROUBLES: readonly Trouble[] = [
  [
    'the connection failed, or the server ended it. Try again when the server can be reached.',
    ...['PROTOCOL_CONNECTION_LOST', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND'],
    ...['EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT', '1053', '1077', '1079', '1927', '4031'],
  ],
  ['the server has no free connections. Raise max_connections, or make the pools smaller.', '1040', '1203'],
  ['the client that you passed was closed. Keep it open while the store is in use.', 'CLIENT_CLOSED'],
  ['the statement was cancelled, or took longer than its time limit allows.', '1317', '1969', '3024'],
  [
    'another transaction locked the row for longer than innodb_lock_wait_timeout. End that transaction.',
    '1205',
  ],
  ['a deadlock with another transaction. Try again.', '1213'],
  [
    'its connection is inside a transaction, and a rollback could remove an order after it was sent. ' +
      'Find the code that leaves a transaction open, and give the store a pool or its own connection.',
    ...['1568', '1399'],
  ],
  ['its connection has locked tables. Run UNLOCK TABLES before you release a connection.', '1099', '1100'],
  ['the server is read-only, perhaps because it is a replica. Connect to the primary.', '1290', '1836'],
  ['the node is not part of the cluster now. Connect to another node.', '1047'],
  [
    "this user may not use the store's tables, or may not create them. Grant access, or run `migrate()` " +
      'as a user that may create them.',
    ...['1142', '1143', '1044', '1227', '1370'],
  ],
  ['the login failed. Check the user and the password.', '1045', '1698', '1251'],
  ['the database does not exist. Check its name.', '1049'],
  [
    'its tables are missing. If they were dropped, their orders are forgotten: ' +
      'restore the tables before you order again.',
    '1146',
  ],
  [
    'another table already has the name that the store uses. Set the option `table` to another name.',
    ...['1050', '1054', '1347'],
  ],
  ['the row is larger than max_allowed_packet. Raise it.', '1153'],
  ["the server's disk or its table is full. Free up space.", '1021', '1114'],
  ['binlog_format is STATEMENT. Set it to ROW, as replicas would differ otherwise.', '1665'],
]

/** Codes for which the server rolled the statement back or never ran it. */
const NOT_APPLIED =
  /^(1021|1048|1050|1054|1064|1099|1100|1114|1146|1153|1205|1213|1264|1366|1399|1406|1568|1665)$/

/** Codes of statements that never ran. See the store of PostgreSQL for why they prove less. */
const NOT_RUN = /^(1040|1044|1045|1047|1049|1142|1143|1203|1227|1290|1698|1836|ECONNREFUSED|ENOTFOUND)$/

/** Never quotes the server's messages: they may contain values, names and addresses. */
export function explain(error: unknown, task: 'open' | 'read from' | 'write to'): StoreError {
  if (error instanceof StoreError) return error
  const code = codeOf(error)
  const advice =
    TROUBLES.find(([, ...codes]) => codes.includes(code))?.[0] ??
    `the database client reported ${code}. Check the server's log.`
  const notApplied = task === 'write to' && NOT_APPLIED.test(code)
  let written = ''
  if (task !== 'read from' && (notApplied || NOT_RUN.test(code))) written = ' Nothing was written.'
  else if (task === 'write to') written = ' The write may or may not have happened.'
  return new StoreError(`Cannot ${task} the order store in MySQL: ${advice}${written}`, {
    cause: plainError(error, code),
    ...(notApplied ? { applied: false } : {}),
  })
}

/** The tables lack something that the statement uses. */
export function isMisfit(error: unknown): boolean {
  return /^(1054|1146)$/.test(codeOf(error))
}

export function isDuplicate(error: unknown): boolean {
  return codeOf(error) === '1062'
}

/** InnoDB refused the row: its key exists, or it is locked. The connection stays usable. */
export function isFromTable(error: unknown): boolean {
  return /^(1062|1205|1213)$/.test(codeOf(error))
}

function codeOf(error: unknown): string {
  const { errno, code, message } = Object(error)
  // The numbers of Node's errors are negative, and those of clients begin at 2000.
  if (typeof errno === 'number' && errno >= 1000) return String(errno)
  if (/pool is closed|in closed state/i.test(message)) return 'CLIENT_CLOSED'
  if (typeof code === 'string' && code !== '') return code
  return error instanceof Error ? error.name : 'UNKNOWN'
}
