import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest'
import { redact } from '../../../src/http/redact.ts'

// Its base64 contains both characters that differ in URLs.
const KEY = 'sk/live+4eC3>>>???9HqLyjWD="rjtT1zdp7dc'

const hex = (text: string): string => Buffer.from(text).toString('hex')

describe('an API key in a text of the server', () => {
  const texts: Record<string, (key: string) => string> = {
    'as it is': (key) => `invalid key ${key}.`,
    'more than once': (key) => `${key} ${key}`,
    'with its scheme': (key) => `Authorization: Bearer ${key}`,
    'percent-encoded': (key) => `?key=${encodeURIComponent(key)}&x=1`,
    'percent-encoded in lower case': (key) =>
      `?key=${encodeURIComponent(key).replace(/%../g, (c) => c.toLowerCase())}`,
    'in base64': (key) => `sent ${btoa(key)} to us`,
    'in base64 without padding': (key) => btoa(key).replaceAll('=', ''),
    'in base64 for URLs': (key) => Buffer.from(key).toString('base64url'),
    'in base64 after another byte': (key) => btoa(`:${key}`),
    'in base64 before another byte': (key) => btoa(`${key}:`),
    'in the base64 of a whole header': (key) => btoa(`Bearer ${key}`),
    'in the base64 of a user and a password': (key) => btoa(`ab:${key}\n`),
    'in hexadecimal': hex,
    'in hexadecimal capitals': (key) => hex(key).toUpperCase(),
    'as JSON has it': (key) => JSON.stringify({ message: key }),
    'as Gson writes JSON': (key) => key.replace(/\W/g, (c) => `\\u00${hex(c)}`),
    'as .NET writes JSON in JSON': (key) => key.replace(/\W/g, (c) => `\\\\u00${hex(c).toUpperCase()}`),
    'as JSON has it with escaped slashes': (key) => JSON.stringify({ message: key }).replaceAll('/', '\\/'),
    'in HTML by number': (key) => key.replace(/\W/g, (c) => `&#x${hex(c)};`),
    'in HTML by name': (key) =>
      key.replaceAll('/', '&sol;').replaceAll('+', '&#43;').replaceAll('=', '&equals;'),
    'in JSON within JSON': (key) => JSON.stringify(JSON.stringify({ message: key })),
    'in JSON within JSON with escaped slashes': (key) =>
      JSON.stringify(JSON.stringify({ message: key }).replaceAll('/', '\\/')),
  }

  test.each(Object.entries(texts))('an API key in a text is removed %s', (how, textOf) => {
    // Use a new key for each, because forms of a key are cached.
    const key = `${KEY}/${how.length}${how.at(-1)}`
    const clean = redact(textOf(key), [key])
    expect(clean).toContain('[redacted]')
    expect(clean).not.toContain(key)
    expect(clean).not.toContain(key.slice(-8))
    // No decodable part of the key remains.
    for (const part of clean.split(/[^\w+/=%-]+/)) {
      const readings = [
        decodeURIComponent(part),
        Buffer.from(part, 'base64').toString('latin1'),
        Buffer.from(part, 'hex').toString('latin1'),
      ]
      for (const reading of readings) expect(reading).not.toContain(key.slice(4, 12))
    }
  })

  test('an API key is removed anywhere in a longer base64 text', () => {
    const visible = fc.string({
      unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)),
    })
    const key = fc
      .tuple(visible, fc.constant('0123456789abcdef'))
      .map(([start, end]) => `${start.slice(0, 40)}${end}`)
    fc.assert(
      fc.property(key, visible, visible, (secret, before, after) => {
        const clean = redact(btoa(before + secret + after), [secret])
        expect(clean).toContain('[redacted]')
        // At most the bits at both ends remain, which are mixed with their neighbours.
        const left = clean.split('[redacted]').map((part) => part.replaceAll('=', '').length)
        const around = Math.ceil(((before.length + after.length) * 8) / 6)
        expect(left.reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(around + 3)
      }),
    )
  })
})

test.each<[what: string, text: string, keys: Iterable<string>, clean: string]>([
  ['a key, and keeps the text around it', `a ${KEY} b`, [KEY], 'a [redacted] b'],
  ['a key that is the whole text', KEY, [KEY], '[redacted]'],
  ['every key', 'key-5678 then key-1234', new Set(['key-1234', 'key-5678']), '[redacted] then [redacted]'],
  ['nothing from a text without the key', 'INSUFFICIENT_FUNDS', [KEY], 'INSUFFICIENT_FUNDS'],
  ['nothing if there is no key', 'INSUFFICIENT_FUNDS', [], 'INSUFFICIENT_FUNDS'],
  ['nothing from an empty text', '', [KEY], ''],
  ['nothing for an empty key', 'undefined', [''], 'undefined'],
  ['only its own form of a very short key', 'a key YQ', ['a'], '[redacted] key YQ'],
  ['other forms of a key of four characters', 'a key 7365636b', ['seck'], 'a key [redacted]'],
  ['no other form of a key of three characters', 'a key 736563', ['sec'], 'a key 736563'],
  ['nothing from an inserted replacement', 'red', ['red', 'e', 'acted'], '[redacted]'],
  ['the longer of two keys with the same beginning', 'abc-xyz', ['abc', 'abc-xyz'], '[redacted]'],
  ['a key with special pattern characters', 'x $& y a.c', ['a.c'], 'x $& y [redacted]'],
  ['nothing that a key matches only as a pattern', 'abc', ['a.c'], 'abc'],
])('redaction removes %s', (_what, text, keys, clean) => {
  expect(redact(text, keys)).toBe(clean)
})

test("a key is kept if it is shorter than the caller's minimum", () => {
  expect(redact('sixteen-letters! fifteen-letters', ['sixteen-letters!', 'fifteen-letters'], 16)).toBe(
    '[redacted] fifteen-letters',
  )
})

test('an earlier search does not affect the current one', () => {
  expect(redact('ab c', ['ab', 'c'])).toBe('[redacted] [redacted]')
  expect(redact('a bc', ['a', 'bc'])).toBe('[redacted] [redacted]')
  for (let n = 10; n < 30; n++) expect(redact(`key-${n} key-10`, [`key-${n}`])).toMatch(/^\[redacted\]/)
})

describe('the forms of a key, which cost more to compute than to search', () => {
  let encoded: MockInstance<typeof btoa>
  let fresh: typeof redact
  beforeEach(async () => {
    encoded = vi.spyOn(globalThis, 'btoa')
    vi.resetModules()
    fresh = (await import('../../../src/http/redact.ts')).redact
  })
  afterEach(() => {
    encoded.mockRestore()
  })
  /** True if this text required the forms of the keys to be computed. */
  const worked = (text: string, ...keys: string[]): boolean => {
    encoded.mockClear()
    fresh(text, keys)
    return encoded.mock.calls.length > 0
  }
  const text = 'a text that is longer than any of the keys that are looked for in it'

  test('the forms of a key are computed once, even if a program alternates between keys', () => {
    expect(worked(text, 'the-old-key-1234')).toBe(true)
    expect(worked(text, 'the-old-key-1234')).toBe(false)
    expect(worked(text, 'the-old-key-1234', 'the-new-key-5678')).toBe(true)
    for (const keys of [['the-old-key-1234'], ['the-old-key-1234', 'the-new-key-5678']]) {
      expect(worked(text, ...keys)).toBe(false)
    }
  })

  test('the forms of a key are not computed for a text that is too short', () => {
    const keys = ['a-key-that-nobody-used-before', 'another-that-nobody-used-before']
    expect(worked('a text', ...keys)).toBe(false)
    expect(worked('x'.repeat(28), ...keys)).toBe(false)
    expect(worked('x'.repeat(29), ...keys)).toBe(true)
  })

  test('the forms of an old key are computed again, because only a few keys are kept', () => {
    expect(worked(text, 'the-first-key-1234')).toBe(true)
    for (let n = 0; n < 20; n++) worked(text, `key-${n}-of-many`)
    expect(worked(text, 'the-first-key-1234')).toBe(true)
    expect(worked(text, 'key-19-of-many')).toBe(false)
  })
})
