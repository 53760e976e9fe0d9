/** Stands where an API key was. */
export const REDACTED = '[redacted]'

/**
 * Shortest key that is taken out of an order, which is stored and told in errors: shorter texts may well stand in one for
 * something else, which must not be changed.
 */
export const LIKE_A_KEY = 16

/**
 * Takes API keys out of a text of the server, also percent-encoded, in base64, in hexadecimal or escaped as JSON in JSON
 * is: services do echo a key in "invalid key" messages, and such a text ends up in errors.
 */
export function redact(text: string, secrets: Iterable<string>, shortest = 0): string {
  const keys = [...secrets].filter(({ length }) => length >= shortest)
  // No form is shorter than the key itself, and most texts are.
  if (!keys.some(({ length }) => length <= text.length)) return text
  const pattern = patternOf(keys)
  return pattern === undefined ? text : text.replace(pattern, REDACTED)
}

/** By the keys looked for. A program has one key, or two while it changes them; making a pattern costs more than using it. */
const patterns = new Map<string, RegExp | undefined>()
const MAX_PATTERNS = 8

function patternOf(keys: readonly string[]): RegExp | undefined {
  const name = keys.join('\n')
  if (!patterns.has(name)) {
    if (patterns.size === MAX_PATTERNS) patterns.clear()
    // One pass over all of them, so that nothing is looked for in what was put in; the longest first.
    const forms = keys.flatMap(formsOf).sort((a, b) => b.length - a.length)
    const literal = forms.map((form) => form.replace(/[^\w-]/g, '\\$&'))
    patterns.set(name, forms.length === 0 ? undefined : new RegExp(literal.join('|'), 'g'))
  }
  return patterns.get(name)
}

function formsOf(secret: string): string[] {
  const percent = encodeURIComponent(secret)
  const lower = percent.replace(/%../g, (octet) => octet.toLowerCase())
  const base64 = [0, 1, 2].map((before) => withinBase64(secret, before))
  const url = base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  // Keys are ASCII, so each character is one byte.
  const hex = Array.from(secret, (character) => character.charCodeAt(0).toString(16)).join('')
  const json = escaped(secret)
  const slashed = json.replaceAll('/', '\\/')
  // Of very short keys, these leave pieces that are found in any text.
  const encoded = [...base64, ...url, hex, hex.toUpperCase()].filter((form) => form.length >= 8)
  const forms = [...encoded, percent, lower, json, slashed, escaped(json), escaped(slashed), secret]
  return [...new Set(forms)].filter(Boolean)
}

/** A text as JSON has it, which matters for JSON within JSON, and for schemas that quote what they do not like. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/**
 * The characters of a longer text's base64 that only depend on the key in it, as in `Basic` or an encoded `Bearer …`.
 * They differ by where in a group of three bytes the key begins.
 */
function withinBase64(secret: string, before: number): string {
  const encoded = btoa('-'.repeat(before) + secret)
  return encoded.slice(before && before + 1, Math.floor(((before + secret.length) * 8) / 6))
}
