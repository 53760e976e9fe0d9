import type { ResponseHeaders } from './transport.ts'

/** The string that replaces an API key. */
export const REDACTED = '[redacted]'

/**
 * Minimum length of a key that is redacted in orders, which are stored and shown in errors. A
 * shorter key may appear in an order by chance, and redacting it would change the order.
 */
export const LIKE_A_KEY = 16

/**
 * Redacts API keys in a string from the server, including keys that are percent-encoded, in base64
 * or hexadecimal, or escaped in nested JSON. Services echo keys in "invalid key" messages, which
 * end up in errors.
 */
export function redact(text: string, secrets: Iterable<string>, shortest = 0): string {
  const keys = [...secrets].filter(({ length }) => length >= shortest)
  // Most strings are too short to contain any form of a key.
  if (!keys.some(({ length }) => length <= text.length)) return text
  const pattern = patternOf(keys)
  return pattern === undefined ? text : text.replace(pattern, REDACTED)
}

/**
 * Patterns by their keys. A program has one key, or two during a rotation, and creating a pattern
 * costs more than using it.
 */
const patterns = new Map<string, RegExp | undefined>()
const MAX_PATTERNS = 8

function patternOf(keys: readonly string[]): RegExp | undefined {
  const name = keys.join('\n')
  if (!patterns.has(name)) {
    if (patterns.size === MAX_PATTERNS) patterns.clear()
    // One pass, longest form first, so that no key is searched for in a replacement.
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
  // Leaves out the encoded forms of very short keys, which would match parts of any string.
  const encoded = [...base64, ...url, hex, hex.toUpperCase()].filter((form) => form.length >= 8)
  const forms = [...encoded, percent, lower, json, slashed, escaped(json), escaped(slashed), secret]
  return [...new Set(forms)].filter(Boolean)
}

/**
 * Returns the string with JSON escapes, as in nested JSON and in schema messages that quote values.
 */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/**
 * Returns the base64 characters that depend only on the key if it is encoded as part of a longer
 * string, as in `Basic` credentials. They differ by the key's position in a group of three bytes.
 */
function withinBase64(secret: string, before: number): string {
  const encoded = btoa('-'.repeat(before) + secret)
  return encoded.slice(before && before + 1, Math.floor(((before + secret.length) * 8) / 6))
}

/** Headers that services and gateways use for a request id. */
export const REQUEST_ID: readonly string[] = [
  'x-request-id',
  'request-id',
  'x-correlation-id',
  'x-amzn-requestid',
  'cf-ray',
]

/** Returns the request id of a response, from the first of these headers that has one. */
export function requestIdOf(headers: ResponseHeaders, secrets: Iterable<string>): string | undefined {
  for (const name of REQUEST_ID) {
    const value = headers.get(name)
    if (value !== null && /^[\x21-\x7e]{1,200}$/.test(value)) return redact(value, secrets)
  }
  return undefined
}
