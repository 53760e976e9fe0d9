import { storable } from '../storable.ts'

/**
 * PostgreSQL's strings may have every character but NUL, and PGlite drops a leading byte order
 * mark. Both are written as ESC and a digit, and so is ESC itself. JSON has none of them at these
 * places, so rows without a `codec` are stored as they are.
 */
const ESCAPED: readonly string[] = ['\u001b', '\u0000', '\ufeff']
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for these characters.
const TO_ESCAPE = /\u001b|\u0000|^\ufeff/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same.
const TO_RESTORE = /\u001b([012])/g

/** The string as it is stored. Two strings never become the same. */
export function toStored(text: string): string {
  return storable(text).replace(TO_ESCAPE, (character) => `\u001b${ESCAPED.indexOf(character)}`)
}

/** The string that was stored. */
export function fromStored(stored: string): string {
  return stored.replace(TO_RESTORE, (_, index: string) => ESCAPED[Number(index)] ?? '')
}
