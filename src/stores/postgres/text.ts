import { StoreError } from '../../errors/classes.ts'
import { storable } from '../storable.ts'

/**
 * Each of these characters is stored as ESC and its index in the list.
 *
 * PostgreSQL's strings cannot contain NUL, and an unescaped ESC would look like the start of an
 * escape.
 */
const ESCAPED: readonly string[] = ['\u001b', '\u0000']
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for these characters.
const TO_ESCAPE = /\u001b|\u0000/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for the escape character.
const TO_RESTORE = /\u001b([01])/g

export function toStored(text: string): string {
  return storable(text).replace(TO_ESCAPE, (character) => `\u001b${ESCAPED.indexOf(character)}`)
}

export function fromStored(stored: string): string {
  return stored.replace(TO_RESTORE, (_, index: string) => ESCAPED[Number(index)] ?? '')
}

/**
 * Rounds a time up, and limits it to the safe integers.
 *
 * Every stored time is a safe integer, so comparisons have the same result.
 */
export function wholeTime(time: number): string {
  if (Number.isNaN(time))
    throw new StoreError('A time passed to PostgresStore is NaN. Pass milliseconds since 1970.')
  return String(Math.min(Math.max(Math.ceil(time), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER))
}
