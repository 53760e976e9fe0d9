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
  return text.replace(TO_ESCAPE, (character) => `\u001b${ESCAPED.indexOf(character)}`)
}

export function fromStored(stored: string): string {
  return stored.replace(TO_RESTORE, (_, index: string) => ESCAPED[Number(index)] ?? '')
}
