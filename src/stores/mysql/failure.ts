import { codeOrName, type Failures } from '../failure.ts'
import { SERVER_TROUBLES } from '../sql/troubles.ts'

export const MYSQL_FAILURES: Failures = {
  place: 'MySQL',
  troubles: SERVER_TROUBLES,
  notApplied: /^(1021|1048|1050|1054|1064|1099|1100|1114|1146|1153|1205|1213|1264|1366|1399|1406|1568|1665)$/,
  notRun:
    /^(1040|1044|1045|1047|1049|1142|1143|1203|1227|1290|1698|1836|ECONNREFUSED|ENOTFOUND|POOL_TIMEOUT)$/,
  codeOf,
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
  const { errno, message } = Object(error)
  // The numbers of Node's errors are negative, and those of clients begin at 2000.
  if (typeof errno === 'number' && errno >= 1000) return String(errno)
  if (/pool is closed|in closed state/i.test(message)) return 'CLIENT_CLOSED'
  // Of a pool with `waitForConnections: false` or a `queueLimit`. These errors have no code.
  if (/^(No connections available|Queue limit reached)/.test(message)) return 'POOL_TIMEOUT'
  return codeOrName(error)
}
