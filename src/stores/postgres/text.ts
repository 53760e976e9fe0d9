import { storable } from '../storable.ts'

/**
 * PostgreSQL's strings may have every character but NUL, and PGlite drops a leading byte order
 * mark. Both are written as ESC and a digit, and so is ESC itself. JSON contains no raw control
 * character and no leading byte order mark, so rows without a `codec` are stored unchanged.
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

/** Returns the original of a stored form. */
export function fromStored(stored: string): string {
  return stored.replace(TO_RESTORE, (_, index: string) => ESCAPED[Number(index)] ?? '')
}
