import { withFields } from '../defined.ts'
import { StoreError } from '../errors/classes.ts'

/** What failed: `Cannot … the order store`. */
export type Task = 'open' | 'read from' | 'write to' | 'close'

/** Advice, and the codes for which it is given. */
export type Trouble = readonly [advice: string, ...codes: string[]]

/** What the errors of one database mean. */
export interface Failures {
  /** Where messages say that the store is. */
  readonly place: string
  /** A code of two characters stands for its class, as in PostgreSQL. */
  readonly troubles: readonly Trouble[]
  /** Codes after which the write is never applied: the database rolled it back, or never ran it. */
  readonly notApplied: RegExp
  /**
   * Codes of a request that never ran.
   *
   * Used for the message only: `applied: false` also promises that no earlier attempt takes effect
   * later. A refusal by another server than the primary, or of another user, proves nothing about
   * the rows. A client may have sent the request before, on a connection that it lost.
   */
  readonly notRun?: RegExp
  codeOf(error: unknown): string
  /** Advice for any other code, by default to check the server's log. */
  otherwise?(code: string, error: unknown): string
}

/** Codes of Node for a connection that failed, in every client of a server. */
export const NETWORK: readonly string[] = [
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'],
  ...['ENETUNREACH', 'ENOENT'],
]

/** Never quotes messages of servers and clients: they may contain values, names and addresses. */
export function explain(error: unknown, task: Task, failures: Failures): StoreError {
  if (error instanceof StoreError) return error
  const { place, troubles, notApplied, notRun, otherwise = inLog } = failures
  const code = failures.codeOf(error)
  const known = troubles.find(([, ...codes]) => codes.some((each) => matches(code, each)))
  const proven = notApplied.test(code) && task !== 'read from'
  const sentences = [`Cannot ${task} the order store in ${place}: ${known?.[0] ?? otherwise(code, error)}`]
  if (proven || (task === 'open' && notRun?.test(code))) sentences.push('Nothing was written.')
  else if (task === 'write to')
    sentences.push(
      notRun?.test(code) ? 'This attempt wrote nothing.' : 'The write may or may not have happened.',
    )
  return new StoreError(sentences.join(' '), {
    cause: plainError(error, code),
    ...(proven ? { applied: false } : {}),
  })
}

const inLog = (code: string): string => `the database client reported ${code}. Check the server's log.`

function matches(code: string, known: string): boolean {
  return code === known || (known.length === 2 && code.length === 5 && code.startsWith(known))
}

/** Returns a copy of an error with only its name and a code: the message may contain secrets. */
export function plainError(error: unknown, code: string): Error & { readonly code: string } {
  return withFields(new Error(code), { name: error instanceof Error ? error.name : 'Error', code })
}

/** The property `code` of an error, or else its name. */
export function codeOrName(error: unknown): string {
  const code: unknown = Reflect.get(Object(error), 'code')
  if (typeof code === 'string' && code !== '') return code
  return error instanceof Error ? error.name : 'UNKNOWN'
}
