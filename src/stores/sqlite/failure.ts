import { StoreError } from '../../errors.ts'
import { plainError } from '../plain-error.ts'

/** SQLite's primary result codes, each with its number and an explanation. */
const RESULTS: Readonly<Record<string, readonly [number: number, advice: string]>> = {
  SQLITE_BUSY: [
    5,
    'another connection kept it locked for longer than the busy timeout. Nothing was written; wait for that connection, or raise the timeout.',
  ],
  SQLITE_LOCKED: [
    6,
    'another statement of the same process keeps it locked. Nothing was written; wait for that statement.',
  ],
  SQLITE_READONLY: [
    8,
    'it is read-only. Nothing was written; give this user write access to the file and its directory.',
  ],
  SQLITE_IOERR: [10, 'the disk or file system failed. A write may or may not have happened; check the disk.'],
  SQLITE_CORRUPT: [
    11,
    'the file is damaged. Stop writing to it, keep a copy, then recover it or restore a backup.',
  ],
  SQLITE_FULL: [
    13,
    'the disk is full, or the database has reached its size limit. Nothing was written; free up space.',
  ],
  SQLITE_CANTOPEN: [
    14,
    'the file cannot be opened. Check that the path names a file, and that this user may read and write it.',
  ],
  SQLITE_NOTADB: [26, 'the file is not an SQLite database. Check the path; the file was not changed.'],
}

/** Codes of failures that come before the commit: SQLite rolls the statement back. */
const NOT_APPLIED: readonly string[] = [
  'SQLITE_BUSY',
  'SQLITE_LOCKED',
  'SQLITE_READONLY',
  'SQLITE_FULL',
  'SQLITE_CANTOPEN',
  'SQLITE_NOTADB',
]

/**
 * Turns the error of a failed write into a {@link StoreError}. The store throws its own errors only
 * before it writes, so they prove that nothing was written.
 */
export function explainWrite(error: unknown, failed: string): StoreError {
  const explained = explain(error, failed)
  const certain = error instanceof StoreError || NOT_APPLIED.includes(primaryCode(codeOf(error)))
  return certain ? new StoreError(explained.message, { cause: explained.cause, applied: false }) : explained
}

/** Turns any error of a database into a {@link StoreError} that names the failed operation. */
export function explain(error: unknown, failed: string): StoreError {
  if (error instanceof StoreError) return error
  const cause = plainError(error, codeOf(error))
  const advice = RESULTS[primaryCode(cause.code)]?.[1]
  if (advice !== undefined) return new StoreError(`${failed}: ${advice}`, { cause })
  if (textOf(error).includes('not open')) {
    return new StoreError(`${failed}: the connection was closed. Keep it open while the store is in use.`, {
      cause,
    })
  }
  // SQLite's own messages are safe to show: they name tables and columns, never the bound values.
  return new StoreError(`${failed}: ${textOf(error)}.`, { cause })
}

/** True if the code alone names the cause: a lock, the disk or the file. */
export function isNamed(error: unknown): boolean {
  return Object.hasOwn(RESULTS, primaryCode(codeOf(error)))
}

/**
 * Returns `SQLITE_…`, also for errors of `node:sqlite`, which have a number instead. Other errors
 * keep their own code or name.
 */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'UNKNOWN'
  const number: unknown = Reflect.get(error, 'errcode')
  if (typeof number === 'number') {
    // The low byte is the primary code. The other bytes distinguish its variants.
    const known = Object.entries(RESULTS).find(([, [primary]]) => primary === (number & 0xff))
    return known?.[0] ?? `SQLITE_${number}`
  }
  const code: unknown = Reflect.get(error, 'code')
  if (typeof code === 'string') return code
  return error instanceof Error ? error.name : 'UNKNOWN'
}

/**
 * Returns the primary code of a variant, such as `SQLITE_IOERR_FSYNC`, which better-sqlite3
 * reports.
 */
function primaryCode(code: string): string {
  return Object.keys(RESULTS).find((name) => code === name || code.startsWith(`${name}_`)) ?? code
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
