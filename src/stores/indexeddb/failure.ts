import { StoreError } from '../../errors.ts'

/** The operation during which something failed. */
export type Access = 'open' | 'read' | 'write'

/** Explanations for the names of the browser's errors, whatever the operation. */
const CAUSES: Readonly<Record<string, string>> = {
  QuotaExceededError:
    'the browser gives this site no more room: its quota is used up or the disk is full. Remove other data of the ' +
    'site, shorten `retention`, or ask for persistent storage (navigator.storage.persist()).',
  SecurityError:
    'the browser lets this page store nothing: site data is blocked by a setting or policy, or the page is a frame ' +
    'without an origin of its own. Allow site data, or use another store and accept what it forgets.',
  VersionError:
    'a newer version of customer-ordering-sdk wrote it. Reload the page, or update the package; nothing was changed.',
  NotFoundError:
    'its database has other contents, so something else uses the same name. Give the store a `name` of its own.',
  NotReadableError:
    'what the browser kept of it is damaged. Keep a copy of the profile, then delete the site data and recover from the service.',
  DataError: 'an id, a time or a page position is none that it can search for.',
  TransactionInactiveError:
    'the browser ended the transaction early. Another script may have replaced its promises or IndexedDB itself.',
}

/** Explanations that hold only for opening. */
const OPENING: Readonly<Record<string, string>> = {
  InvalidStateError:
    'the browser lets this page store nothing, as some do in a private window. Use an ordinary window, or another store and accept what it forgets.',
  UnknownError:
    'the browser cannot open its files: the disk is full or failing, or the profile is damaged. Look at the disk and restart the browser.',
  AbortError: 'the browser broke off. Try again.',
}

/** Explanations that hold once a transaction had begun. */
const WORKING: Readonly<Record<string, string>> = {
  InvalidStateError: 'the browser closed its database. Try again.',
  UnknownError:
    'the browser failed to read or write its files, or lost its storage process. Look at the disk; reload the page.',
  AbortError: 'the browser broke off, as it does when site data is deleted or the page ends.',
}

/**
 * Names that prove that a write did not happen: the transaction was rolled back, or never began.
 */
const NOT_DONE: ReadonlySet<string> = new Set([
  'QuotaExceededError',
  'SecurityError',
  'VersionError',
  'NotFoundError',
  'DataError',
])

/**
 * Turns any error of the browser into a {@link StoreError} that says which operation failed. It
 * does not pass on the browser's own messages: they name keys and indexes.
 */
export function explain(error: unknown, access: Access, name: string): StoreError {
  if (error instanceof StoreError) return error
  const cause = plain(error)
  const { code } = cause
  const known = CAUSES[code] ?? (access === 'open' ? OPENING : WORKING)[code]
  const verb = { open: 'open', read: 'read from', write: 'write to' }[access]
  const sentences = [
    `Cannot ${verb} the order store in the IndexedDB database "${name}": ${known ?? `the browser reports ${code}.`}`,
  ]
  const notDone = NOT_DONE.has(code)
  if (access === 'write') {
    sentences.push(notDone ? 'Nothing was written.' : 'What was being written may or may not have been.')
  }
  return new StoreError(sentences.join(' '), notDone ? { cause, applied: false } : { cause })
}

/** A transaction never got its turn: another page keeps one open. */
export function outOfTurn(name: string, timeout: number): StoreError {
  return new StoreError(
    `Cannot use the order store in the IndexedDB database "${name}": another tab or worker of this site has kept it busy ` +
      `for ${timeout} ms. A frozen tab may do that: close or reload the site's other tabs, then try again. Nothing was written.`,
    { applied: false },
  )
}

/** The name by which the browser distinguishes its errors. */
export function codeOf(error: unknown): string {
  // Not every browser's DOMException is an Error, and some have their name only as a property of
  // their own.
  const name: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'name') : undefined
  return typeof name === 'string' && name !== '' ? name : 'UNKNOWN'
}

/** A copy of an error that contains nothing but its name, also as `code`. */
function plain(error: unknown): Error & { readonly code: string } {
  const code = codeOf(error)
  const copy = Object.assign(new Error(code), { code })
  copy.name = code
  return copy
}
