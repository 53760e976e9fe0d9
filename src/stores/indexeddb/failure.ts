import { StoreError } from '../../errors/classes.ts'

export type Access = 'open' | 'read' | 'write'

const CAUSES: Readonly<Record<string, string>> = {
  QuotaExceededError:
    'the browser gives this site no more space: its quota is used up or the disk is full. Free ' +
    'up disk space, remove other data of the site, or shorten `retention`.',
  SecurityError:
    'the browser does not let this page store anything: a setting or policy blocks site data, or the page is ' +
    'a frame with an opaque origin. Allow site data, give the frame an origin, or use MemoryStore, which forgets orders when ' +
    'the page closes.',
  VersionError:
    'a newer version of customer-ordering-sdk wrote it. Nothing was changed. ' +
    'Reload the page, or update the package.',
  NotFoundError:
    'its database has other contents: other code uses the same name. Give the store its own `name`.',
  NotReadableError:
    'its data in the browser is damaged. Copy the browser profile, then delete the site data. ' +
    'Before you order again, check which orders the service has.',
  DataError: 'an id, a time or a page cursor is not a valid key, for example NaN. Pass a valid value.',
  TransactionInactiveError:
    'the browser ended the transaction early, perhaps because another script replaced `Promise` or ' +
    'IndexedDB. Remove that script.',
}

const OPENING: Readonly<Record<string, string>> = {
  InvalidStateError:
    'the browser does not let this page store anything, as in some private windows. Use a normal ' +
    'window, or MemoryStore, which forgets orders when the page closes.',
  UnknownError:
    'the browser cannot open its files: the disk is full or failing, or the profile is damaged. ' +
    'Check the disk and restart the browser.',
  AbortError: 'the browser aborted the operation. Try again.',
}

const WORKING: Readonly<Record<string, string>> = {
  InvalidStateError: 'the browser closed its database. Try again.',
  UnknownError:
    'the browser failed to read or write its files, or lost its storage process. ' +
    'Check the disk, then reload the page.',
  AbortError:
    'the browser aborted the operation, as it does when site data is deleted or the page closes. ' +
    'Try again.',
}

/** After these errors, the transaction was rolled back, or never began. */
const NOT_DONE: ReadonlySet<string> = new Set([
  'QuotaExceededError',
  'SecurityError',
  'VersionError',
  'NotFoundError',
  'DataError',
])

/** Never quotes the browser's own messages, which contain keys and names of indexes. */
export function explain(error: unknown, access: Access, name: string): StoreError {
  if (error instanceof StoreError) return error
  const cause = plain(error)
  const { code } = cause
  const known = CAUSES[code] ?? (access === 'open' ? OPENING : WORKING)[code]
  const verb = { open: 'open', read: 'read from', write: 'write to' }[access]
  const sentences = [
    `Cannot ${verb} the order store in the IndexedDB database "${name}": ${known ?? `the browser reports ${code}. Reload the page.`}`,
  ]
  const notDone = NOT_DONE.has(code)
  if (access === 'write') {
    sentences.push(notDone ? 'Nothing was written.' : 'The write may or may not have happened.')
  }
  return new StoreError(sentences.join(' '), notDone ? { cause, applied: false } : { cause })
}

export function outOfTurn(name: string, timeout: number): StoreError {
  return new StoreError(
    `Cannot use the order store in the IndexedDB database "${name}": something, perhaps a frozen tab ` +
      `of this site, has kept it busy for ${timeout} ms. Close or reload the site's other tabs, then ` +
      'try again. Nothing was written.',
    { applied: false },
  )
}

export function codeOf(error: unknown): string {
  // In some browsers, a DOMException is not an Error, so read the name from any object.
  const name: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'name') : undefined
  return typeof name === 'string' && name !== '' ? name : 'UNKNOWN'
}

function plain(error: unknown): Error & { readonly code: string } {
  const code = codeOf(error)
  const copy = Object.assign(new Error(code), { code })
  copy.name = code
  return copy
}
