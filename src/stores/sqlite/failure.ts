import { StoreError } from '../../errors/classes.ts'
import { plainError } from '../plain-error.ts'

const RESULTS: Readonly<Record<string, readonly [number: number, advice: string]>> = {
  SQLITE_BUSY: [
    5,
    'another connection kept it locked for longer than the busy timeout. ' +
      'Wait for that connection, or raise the timeout.',
  ],
  SQLITE_LOCKED: [6, 'another statement of the same process keeps it locked. Finish that statement.'],
  SQLITE_READONLY: [
    8,
    'it is read-only. Open it for writing, and give this user write access to the file and its directory.',
  ],
  SQLITE_IOERR: [10, 'the disk or file system failed. Check both.'],
  SQLITE_CORRUPT: [
    11,
    'the file is damaged. Stop writing to it, keep a copy, then recover it or restore a backup, ' +
      'which forgets newer orders: check them with orders.reconcile().',
  ],
  SQLITE_FULL: [13, 'the disk is full, or the database has reached its size limit. Free up space.'],
  SQLITE_TOOBIG: [
    18,
    'the record is larger than the database accepts. ' +
      "Use the option `remember: 'id'`, or send a smaller request.",
  ],
  SQLITE_CANTOPEN: [
    14,
    'the file cannot be opened. ' +
      'Check that the path names a file, and that this user may write to it and its directory.',
  ],
  SQLITE_NOTADB: [26, 'the file is not an SQLite database. Check the path.'],
}

/** Codes of failures that come before the commit: SQLite rolls the statement back. */
const NOT_APPLIED: readonly string[] = [
  'SQLITE_BUSY',
  'SQLITE_LOCKED',
  'SQLITE_READONLY',
  'SQLITE_FULL',
  'SQLITE_TOOBIG',
  'SQLITE_CANTOPEN',
  'SQLITE_NOTADB',
]

export function explain(
  error: unknown,
  task: 'open' | 'read from' | 'write to' | 'close',
  name: string,
): StoreError {
  if (error instanceof StoreError) {
    // The store throws its own errors only if the call has written nothing.
    return task === 'write to' ? new StoreError(error.message, { cause: error.cause, applied: false }) : error
  }
  const cause = plainError(error, codeOf(error))
  const notApplied = NOT_APPLIED.includes(cause.code)
  let written = ''
  if (notApplied && (task === 'open' || task === 'write to')) written = ' Nothing was written.'
  else if (task === 'write to') written = ' The write may or may not have happened.'
  return new StoreError(
    `Cannot ${task} the order store in ${name}: ${adviceOf(error, cause.code)}${written}`,
    { cause, ...(notApplied && task === 'write to' ? { applied: false } : {}) },
  )
}

function adviceOf(error: unknown, code: string): string {
  // SQLite's own messages name tables and columns, never the bound values. The stores of Cloudflare
  // pass no message of another origin.
  return RESULTS[code]?.[1] ?? `${error instanceof Error ? error.message : String(error)}.`
}

/** The code alone explains the failure, such as a lock or a full disk. */
export function isNamed(error: unknown): boolean {
  return Object.hasOwn(RESULTS, codeOf(error))
}

/** `node:sqlite` reports a number instead of a name such as `SQLITE_BUSY`. */
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
