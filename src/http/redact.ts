import type { ResponseHeaders } from './transport.ts'

export const REDACTED = '[redacted]'

/**
 * Minimum length of an API key that is redacted in orders. A shorter key may appear in an order by
 * chance, and redacting it would change the order.
 */
export const LIKE_A_KEY = 16

/**
 * Redacts API keys, plain or encoded, in a string from the server. Some services echo the key in an
 * "invalid key" message, which becomes the error's `serverMessage`.
 * @param shortest minimum length of a key that is redacted
 */
export function redact(text: string, secrets: Iterable<string>, shortest = 0): string {
  const keys = [...secrets].filter(({ length }) => length >= shortest && length <= text.length)
  if (keys.length === 0) return text
  const pattern = patternOf(keys)
  return pattern === undefined ? text : text.replace(pattern, REDACTED)
}

/**
 * Caches patterns, because creating a pattern costs more than using it. Most programs use one
 * API key, or two during a rotation.
 */
const patterns = new Map<string, RegExp | undefined>()
const MAX_PATTERNS = 8

function patternOf(keys: readonly string[]): RegExp | undefined {
  const name = keys.join('\n')
  if (!patterns.has(name)) {
    if (patterns.size === MAX_PATTERNS) patterns.clear()
    // Searches for all forms in one pass, so that a replacement is not searched again. Tries the
    // longest form first, because it may contain a shorter form.
    const forms = keys.flatMap(formsOf).sort((a, b) => b.length - a.length)
    const literal = forms.map((form) => form.replace(/[^\w-]/g, orEscaped))
    patterns.set(name, forms.length === 0 ? undefined : new RegExp(literal.join('|'), 'g'))
  }
  return patterns.get(name)
}

function formsOf(secret: string): string[] {
  const base64 = [0, 1, 2].map((before) => withinBase64(secret, before))
  const url = base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  const hex = Array.from(secret, hexOf).join('')
  // Omits the encoded forms of very short keys, which would match parts of unrelated strings.
  const encoded = [...base64, ...url, hex, hex.toUpperCase()].filter((form) => form.length >= 8)
  return [...encoded, secret].filter(Boolean)
}

/** Keys are ASCII, so each character is one byte. */
function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16)
}

/**
 * Matches the character as it is, percent-encoded, and as JSON or JSON within JSON escapes it: `"` as
 * `\"` and `\\\"`. .NET writes `+` as `\u002B`, and Gson `=` as `\u003d`.
 */
function orEscaped(character: string): string {
  const hex = hexOf(character)
  return `\\\\{0,4}(?:\\${character}|(?:%|u00)(?:${hex}|${hex.toUpperCase()}))`
}

/**
 * Returns the base64 characters that depend only on the key when a longer string is encoded, as in
 * `Basic` credentials. Base64 encodes groups of three bytes, so these characters depend on the
 * key's position in a group.
 * @param before number of bytes before the key in its first group
 */
function withinBase64(secret: string, before: number): string {
  const encoded = btoa('-'.repeat(before) + secret)
  return encoded.slice(before && before + 1, Math.floor(((before + secret.length) * 8) / 6))
}

export const REQUEST_ID_HEADERS: readonly string[] = [
  'x-request-id',
  'request-id',
  'x-correlation-id',
  'x-amzn-requestid',
  'cf-ray',
]

export function requestIdOf(headers: ResponseHeaders, secrets: Iterable<string>): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const value = headers.get(name)
    if (typeof value === 'string' && /^[\x21-\x7e]{1,200}$/.test(value)) return redact(value, secrets)
  }
  return undefined
}
