import { storable } from '../storable.ts'

/**
 * Characters that are stored as ESC and a digit: PostgreSQL's strings cannot contain NUL, PGlite
 * drops a leading byte order mark, and ESC marks the others. JSON contains no raw control character
 * and no leading byte order mark, so rows without a `codec` are stored unchanged.
 */
const ESCAPED: readonly string[] = ['\u001b', '\u0000', '\ufeff']
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for these characters.
const TO_ESCAPE = /\u001b|\u0000|^\ufeff/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for the escape character.
const TO_RESTORE = /\u001b([012])/g

/** Returns the stored form of a string. Different strings have different forms. */
export function toStored(text: string): string {
  return storable(text).replace(TO_ESCAPE, (character) => `\u001b${ESCAPED.indexOf(character)}`)
}

/** Returns the string whose stored form is given. */
export function fromStored(stored: string): string {
  return stored.replace(TO_RESTORE, (_, index: string) => ESCAPED[Number(index)] ?? '')
}
