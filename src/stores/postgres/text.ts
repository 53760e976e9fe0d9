import { storable } from '../storable.ts'

/**
 * PostgreSQL's text holds every character but NUL, and PGlite drops a byte order mark at the beginning. Both are
 * written as ESC and a digit, and so is ESC itself. None of them occurs in JSON at these places, so the rows of an
 * application without `codec` are stored as they are.
 */
const ESCAPED: readonly string[] = ['\u001b', '\u0000', '\ufeff']
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to look for.
const TO_ESCAPE = /\u001b|\u0000|^\ufeff/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same.
const TO_RESTORE = /\u001b([012])/g

/** The text as it is stored. Two texts never become the same. */
export function toStored(text: string): string {
  return storable(text).replace(TO_ESCAPE, (character) => `\u001b${ESCAPED.indexOf(character)}`)
}

/** The text that was stored. */
export function fromStored(stored: string): string {
  return stored.replace(TO_RESTORE, (_, index: string) => ESCAPED[Number(index)] ?? '')
}
