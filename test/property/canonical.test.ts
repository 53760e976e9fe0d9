import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CanonicalJsonError, canonicalJson } from '../../src/identity/canonical.ts'

const json = fc.jsonValue({ stringUnit: 'binary', maxDepth: 6 })

/**
 * A second, slow implementation of RFC 8785: compares code units one by one, escapes by hand, and
 * shares no code with the tested one.
 */
function slow(value: unknown): string {
  if (value === null || typeof value === 'boolean') return `${value}`
  if (typeof value === 'number') return value === 0 ? '0' : `${value}`
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return `[${value.map(slow).join(',')}]`
  const members = Object.entries(value as object).sort(([a], [b]) => compareUnits(a, b))
  return `{${members.map(([name, member]) => `${quote(name)}:${slow(member)}`).join(',')}}`
}

function compareUnits(a: string, b: string): number {
  for (let index = 0; index < Math.min(a.length, b.length); index++) {
    const difference = a.charCodeAt(index) - b.charCodeAt(index)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

function quote(text: string): string {
  const short = new Map([
    [8, '\\b'],
    [9, '\\t'],
    [10, '\\n'],
    [12, '\\f'],
    [13, '\\r'],
    [34, '\\"'],
    [92, '\\\\'],
  ])
  const unit = (code: number): string =>
    short.get(code) ?? (code < 32 ? `\\u${code.toString(16).padStart(4, '0')}` : String.fromCharCode(code))
  return `"${text
    .split('')
    .map((character) => unit(character.charCodeAt(0)))
    .join('')}"`
}

test('the text equals the output of a slow implementation of RFC 8785', () => {
  fc.assert(
    fc.property(json, (value) => {
      expect(canonicalJson(value)).toBe(slow(value))
    }),
  )
})

test('parsing the text returns the value', () => {
  fc.assert(
    fc.property(json, (value) => {
      // JSON has no -0. Every other value must survive.
      const expected = JSON.parse(JSON.stringify(value))
      expect(JSON.parse(canonicalJson(value))).toStrictEqual(expected)
    }),
  )
})

test('any string is either written so that it can be read back, or rejected for a lone surrogate', () => {
  const units = fc.array(fc.nat({ max: 0xffff }).map((unit) => String.fromCharCode(unit)))
  const surrogates = fc.array(
    fc.integer({ min: 0xd7ff, max: 0xe000 }).map((unit) => String.fromCharCode(unit)),
  )
  fc.assert(
    fc.property(fc.oneof(units, surrogates), (characters) => {
      const text = characters.join('')
      // UTF-8 cannot represent a lone surrogate: it becomes U+FFFD.
      const wellFormed = Buffer.from(text, 'utf8').toString('utf8') === text
      if (wellFormed) expect(JSON.parse(canonicalJson(text))).toBe(text)
      else expect(() => canonicalJson(text)).toThrow(CanonicalJsonError)
    }),
  )
})

test('any value is either written as readable JSON or rejected with CanonicalJsonError', () => {
  const containers = { withMap: true, withSet: true, withSparseArray: true, withTypedArray: true }
  const objects = { withBoxedValues: true, withDate: true, withNullPrototype: true }
  const anything = fc.anything({ withBigInt: true, ...containers, ...objects })
  fc.assert(
    fc.property(anything, (value) => {
      let text: string
      try {
        text = canonicalJson(value)
      } catch (error) {
        expect(error).toBeInstanceOf(CanonicalJsonError)
        return
      }
      expect(canonicalJson(JSON.parse(text))).toBe(text)
    }),
  )
})
