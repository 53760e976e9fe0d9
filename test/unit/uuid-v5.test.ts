import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { v5 } from 'uuid'
import { describe, expect, test, vi } from 'vitest'
import { KEY_NAMESPACE } from '../../src/identity/keys.ts'
import { fastest, uuidV5 } from '../../src/uuid-v5.ts'
import { uuidV5 as uuidV5WithoutNode } from '../../src/uuid-v5-without-node.ts'
import { throwing } from '../support/calls.ts'
import { character } from '../support/character.ts'
import { effort } from '../support/effort.ts'

const sha1 = (bytes: Uint8Array): string => createHash('sha1').update(bytes).digest('hex')
/** A platform with this SHA-1. */
const having = (own: (bytes: Uint8Array) => string) => {
  const hash = (algorithm: string, bytes: Uint8Array, encoding: string): string =>
    algorithm === 'sha1' && encoding === 'hex' ? own(bytes) : 'not SHA-1 in hexadecimal'
  return { process: { getBuiltinModule: () => ({ hash }) } }
}
const name = fc.oneof(
  fc.string({ unit: character, maxLength: 40 }),
  // Lengths around the one from which a name gets its own array.
  fc.string({ unit: character, minLength: 100, maxLength: 700 }),
)

describe.each([
  ['of this platform', uuidV5],
  ["by the platform's SHA-1", fastest(having(sha1))],
  ['by uuid alone', fastest({})],
])('a UUID v5 %s', (_title, derive) => {
  test('a UUID v5 equals the result of the uuid package, whatever was derived before', () => {
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (names) => {
        for (const each of names) expect(derive(each)).toBe(v5(each, KEY_NAMESPACE))
      }),
      { numRuns: effort(50, 500) },
    )
  })

  test('a UUID v5 matches the published example', () => {
    expect(derive('["k1","https://api.example.com","acme","order-1",0]')).toBe(
      'ae383dcd-d08f-557a-966c-b08b54cea3e6',
    )
  })
})

test.each<[string, (bytes: Uint8Array) => string]>([
  ['is another hash', (bytes) => createHash('sha256').update(bytes).digest('hex')],
  ['is wrong beyond one block', (bytes) => (bytes.length < 64 ? sha1(bytes) : sha1(bytes.subarray(0, 64)))],
  ['is wrong of long names', (bytes) => sha1(bytes.subarray(0, 1024))],
  ['leaves out the last byte', (bytes) => sha1(bytes.subarray(0, -1))],
  ['writes capital letters', (bytes) => sha1(bytes).toUpperCase()],
  ['throws', throwing('SHA-1 is not allowed here')],
])('a SHA-1 that %s is not used', (_title, wrong) => {
  const asked = vi.fn(wrong)
  const derive = fastest(having(asked))
  const before = asked.mock.calls.length
  expect(before).toBeGreaterThan(0)
  expect(derive('ord')).toBe(v5('ord', KEY_NAMESPACE))
  expect(asked).toHaveBeenCalledTimes(before)
})

test('a platform without an accessible SHA-1 is supported', () => {
  const derive = fastest({ process: { getBuiltinModule: throwing('no modules here') } })
  expect(derive('ord')).toBe(v5('ord', KEY_NAMESPACE))
})

test('a SHA-1 that starts to throw is replaced for that name, which leaves no trace in memory', () => {
  let seen: Uint8Array = new Uint8Array()
  let allowed = true
  const derive = fastest(
    having((bytes) => {
      seen = bytes
      if (!allowed) throw new Error('SHA-1 is not allowed any more')
      return sha1(bytes)
    }),
  )
  allowed = false
  expect(derive('sk_live_secret')).toBe(v5('sk_live_secret', KEY_NAMESPACE))
  expect(Buffer.from(seen.buffer).includes('sk_live_secret')).toBe(false)
})

test('no part of a name stays in reused memory', () => {
  let seen: Uint8Array = new Uint8Array()
  const derive = fastest(
    having((bytes) => {
      seen = bytes
      return sha1(bytes)
    }),
  )
  derive('sk_live_secret')
  expect(seen.length).toBeGreaterThan(14)
  expect(Buffer.from(seen.buffer).includes('sk_live_secret')).toBe(false)
  const end = Buffer.from(seen.buffer).subarray(seen.length - 14, seen.length)
  expect(end.every((byte) => byte === 0)).toBe(true)
})

test('the build for browsers derives the same ids', () => {
  for (const name of ['', 'a', '\u00e9 \u{1f600}'.repeat(500)])
    expect(uuidV5WithoutNode(name)).toBe(uuidV5(name))
})
