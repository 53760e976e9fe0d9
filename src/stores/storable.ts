import { StoreError } from '../errors.ts'

/**
 * Returns the string, or throws if it cannot be stored. Half a surrogate pair has no UTF-8 form: it
 * would be returned as another character, and two scopes that differ only in such halves would
 * become the same scope.
 */
export function storable(text: string): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw new StoreError(
      'The order store cannot store a string that contains half of a surrogate pair. ' +
        'Make the `codec` return well-formed strings, such as base64, and use well-formed account labels.',
    )
  }
  return text
}
