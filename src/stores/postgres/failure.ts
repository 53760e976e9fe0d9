import { codeOrName, type Failures } from '../failure.ts'
import { SERVER_TROUBLES } from '../sql/troubles.ts'

export const POSTGRES_FAILURES: Failures = {
  place: 'PostgreSQL',
  troubles: SERVER_TROUBLES,
  // Omits codes of a lost connection (08, 57P01): the server may have committed the statement before
  // the loss. Omits 25006 and 42501, with which another server than the primary, or another role, may
  // refuse: they prove nothing about the rows.
  notApplied: /^(22|23|53|54)...$|^42(?!501)...$|^(25P02|2D000|40P01|55P03|57014)$/,
  notRun: /^(28...|25006|3D000|42501|57P03|POOL_TIMEOUT)$/,
  codeOf,
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

function codeOf(error: unknown): string {
  const named = codeOrName(error)
  if (!(error instanceof Error) || named !== error.name) return named
  const message = error.message.toLowerCase()
  return MESSAGES.find(([text]) => message.includes(text))?.[1] ?? named
}
