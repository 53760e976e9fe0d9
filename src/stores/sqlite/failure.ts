import { codeOrName, type Failures } from '../failure.ts'

/** SQLite's number for a code (`node:sqlite` reports only the number), the code, and advice. */
const RESULTS: readonly (readonly [number: number, code: string, advice: string])[] = [
  [
    5,
    'SQLITE_BUSY',
    'another connection kept it locked for longer than the busy timeout. ' +
      'Wait for that connection, or raise the timeout.',
  ],
  [6, 'SQLITE_LOCKED', 'another statement of the same process keeps it locked. Finish that statement.'],
  [
    8,
    'SQLITE_READONLY',
    'it is read-only. Open it for writing, and give this user write access to the file and its directory.',
  ],
  [10, 'SQLITE_IOERR', 'the disk or file system failed. Check both.'],
  [
    11,
    'SQLITE_CORRUPT',
    'the file is damaged. Stop writing to it, keep a copy, then recover it or restore a backup, ' +
      'which forgets newer orders: check them with orders.reconcile().',
  ],
  [13, 'SQLITE_FULL', 'the disk is full, or the database has reached its size limit. Free up space.'],
  [
    14,
    'SQLITE_CANTOPEN',
    'the file cannot be opened. ' +
      'Check that the path names a file, and that this user may write to it and its directory.',
  ],
  [
    18,
    'SQLITE_TOOBIG',
    'the record is larger than the database accepts. ' +
      "Use the option `remember: 'id'`, or send a smaller request.",
  ],
  [23, 'SQLITE_AUTH', 'the database does not allow this statement. Update the package.'],
  [26, 'SQLITE_NOTADB', 'the file is not an SQLite database. Check the path.'],
]

export const sqliteFailures = (place: string): Failures => ({
  place,
  troubles: RESULTS.map(([, code, advice]) => [advice, code]),
  // These failures come before the commit: SQLite rolls the statement back.
  notApplied: /^SQLITE_(BUSY|LOCKED|READONLY|FULL|TOOBIG|CANTOPEN|AUTH|NOTADB)$/,
  codeOf: (error) => {
    const number: unknown = Reflect.get(Object(error), 'errcode')
    if (typeof number !== 'number') return codeOrName(error)
    // The low byte is the primary code. The other bytes distinguish its variants.
    return RESULTS.find(([primary]) => primary === (number & 0xff))?.[1] ?? `SQLITE_${number}`
  },
  otherwise: (_code, error) => ownMessage(error),
})

/** SQLite's own messages name tables and columns, never the bound values. */
export function ownMessage(error: unknown): string {
  return `${String(Reflect.get(Object(error), 'message')).replace(/\.$/, '')}.`
}

/** The code alone explains the failure, such as a lock or a full disk. */
export function isNamed(code: string): boolean {
  return RESULTS.some(([, known]) => known === code)
}
