import { StoreError } from '../errors/classes.ts'

/**
 * Throws if the string contains half of a surrogate pair, which has no UTF-8 form.
 *
 * A database would return another character, and two scopes that differ only in such halves would
 * become one.
 */
export function storable(text: string): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw new StoreError(
      'The order store cannot store a string that contains half of a surrogate pair. ' +
        'Pass a string without it. Nothing was written.',
      { applied: false },
    )
  }
  return text
}

/** By default, a TextDecoder drops a byte order mark and replaces invalid bytes. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes a string that the database returned as bytes. */
export function toText(value: unknown): unknown {
  return value instanceof Uint8Array ? UTF8.decode(value) : value
}

/** A random string of `bytes` bytes in base64. */
export function makeMark(bytes: number): string {
  return btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(bytes))))
}
