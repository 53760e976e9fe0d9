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
  const least = Math.max(1, shortest)
  const keys: string[] = []
  for (const key of secrets) if (key.length >= least && key.length <= text.length) keys.push(key)
  if (keys.length === 0) return text
  const name = keys.join('\n')
  let pattern = patterns.get(name)
  if (pattern === undefined) {
    if (patterns.size === MAX_PATTERNS) patterns.clear()
    // Searches for all forms in one pass, so that a replacement is not searched again. Tries the
    // longest form first, because it may contain a shorter form.
    const forms = keys.flatMap(formsOf).sort((a, b) => b.length - a.length)
    const literal = forms.map((form) => form.replace(/[^\w-]/g, orEscaped))
    pattern = new RegExp(literal.join('|'), 'g')
    patterns.set(name, pattern)
  }
  return text.replace(pattern, REDACTED)
}

/**
 * Caches patterns, because creating a pattern costs more than using it. Most programs use one
 * API key, or two during a rotation.
 */
const patterns = new Map<string, RegExp>()
const MAX_PATTERNS = 8

function formsOf(secret: string): string[] {
  const forms = [secret]
  let hex = ''
  // Keys are ASCII, so each character is one byte.
  for (const character of secret) hex += character.charCodeAt(0).toString(16)
  const encoded = [hex, hex.toUpperCase()]
  // Base64 encodes groups of three bytes. If the key is encoded within a longer string, as in `Basic`
  // credentials, some characters depend only on the key and on the number of bytes before it in its
  // first group.
  for (const before of [0, 1, 2]) {
    const base64 = btoa('-'.repeat(before) + secret)
    const own = base64.slice(before && before + 1, Math.floor(((before + secret.length) * 8) / 6))
    encoded.push(own, own.replaceAll('+', '-').replaceAll('/', '_'))
  }
  // Omits the encoded forms of very short keys, which would match parts of unrelated strings.
  for (const form of encoded) if (form.length >= 8) forms.push(form)
  return forms
}

/**
 * Matches the character as it is, percent-encoded, and as JSON or JSON within JSON escapes it: `"` as
 * `\"` and `\\\"`. .NET writes `+` as `\u002B`, Gson `=` as `\u003d`, and HTML `&` as `&amp;`.
 * Any such reference matches: the rest of the key must match, too.
 */
function orEscaped(character: string): string {
  const hex = character.charCodeAt(0).toString(16)
  return `\\\\{0,4}(?:\\${character}|(?:%|u00)(?:${hex}|${hex.toUpperCase()})|&#?\\w+;)`
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
