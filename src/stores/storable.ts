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
