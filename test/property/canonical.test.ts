import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CanonicalJsonError, canonicalJson } from '../../src/identity/canonical.ts'
import { character } from '../support/character.ts'

const json = fc.jsonValue({ stringUnit: character, maxDepth: 6 })

/** RFC 8785 by its definition: members in the order of their UTF-16 code units, values as JSON. */
function expected(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(expected)}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${expected(member)}`)}}`
}

test('any JSON is written as RFC 8785 defines it', () => {
  fc.assert(fc.property(json, (value) => void expect(canonicalJson(value)).toBe(expected(value))))
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
