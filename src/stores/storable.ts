import { StoreError } from '../errors.ts'

/**
 * Returns the string if it can be stored. Half of a surrogate pair has no UTF-8 form: it would come
 * back as another character, and two scopes that differ only there would become one.
 */
export function storable(text: string): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw new StoreError(
      'The order store cannot keep a string that contains half of a surrogate pair. ' +
        'Let the `codec` return a well-formed string, such as base64, and use well-formed account labels.',
    )
  }
  return text
}
