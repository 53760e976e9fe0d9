import { StoreError } from '../../errors/classes.ts'
import type { Failures, Trouble } from '../failure.ts'

const TROUBLES: readonly Trouble[] = [
  [
    'the browser gives this site no more space: its quota is used up or the disk is full. Free ' +
      'up disk space, remove other data of the site, or shorten `retention`.',
    'QuotaExceededError',
  ],
  [
    'the browser does not let this page store anything: a setting or policy blocks site data, or the page is ' +
      'a frame with an opaque origin. Allow site data, give the frame an origin, or use MemoryStore, which forgets orders when ' +
      'the page closes.',
    'SecurityError',
  ],
  [
    'a newer version of customer-ordering-sdk wrote it. Nothing was changed. ' +
      'Reload the page, or update the package.',
    'VersionError',
  ],
  [
    'its database has other contents: other code uses the same name. Give the store its own `name`.',
    'NotFoundError',
  ],
  [
    'its data in the browser is damaged. Copy the browser profile, then delete the site data. ' +
      'Before you order again, check which orders the service has.',
    'NotReadableError',
  ],
  ['an id, a time or a page cursor is not a valid key, for example NaN. Pass a valid value.', 'DataError'],
  [
    'the browser ended the transaction early, perhaps because another script replaced `Promise` or ' +
      'IndexedDB. Remove that script.',
    'TransactionInactiveError',
  ],
  [
    'the browser closed its database, or does not let this page store anything, as in some private ' +
      'windows. Try again, use a normal window, or use MemoryStore, which forgets orders when the page closes.',
    'InvalidStateError',
  ],
  [
    'the browser cannot read or write its files: the disk is full or failing, the profile is damaged, ' +
      'or its storage process ended. Check the disk, then restart the browser.',
    'UnknownError',
  ],
  [
    'the browser aborted the operation, as it does when site data is deleted or the page closes. Try again.',
    'AbortError',
  ],
]

export const indexedDbFailures = (name: string): Failures => ({
  place: `the IndexedDB database "${name}"`,
  troubles: TROUBLES,
  // After these errors, the transaction was rolled back, or never began.
  notApplied: /^(QuotaExceeded|Security|Version|NotFound|Data)Error$/,
  codeOf,
  otherwise: (code) => `the browser reports ${code}. Reload the page.`,
})

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
