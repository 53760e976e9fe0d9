import { expect, test } from 'vitest'
import { canonicalJson, type Member } from '../../../src/identity/canonical.ts'
import {
  apiKeyTag,
  differingFields,
  digestOf,
  type Fingerprint,
  fieldTag,
  fingerprintOf,
  isProxied,
  proxiedTag,
} from '../../../src/identity/keys.ts'
import { derive } from './derive.ts'

const SLOT = 'ref:order-1'
const request = {
  serviceId: 'svc-1',
  target: '@käufer',
  quantity: 100,
  metadata: { externalOrderId: 'order-1' },
}

function membersOf(value: unknown): Member[] {
  const members: Member[] = []
  canonicalJson(value, members)
  return members
}

const print = (value: unknown, slot = SLOT): Fingerprint => fingerprintOf(slot, membersOf(value))
const digest = (value: unknown): string => digestOf(derive, membersOf(value))

const withProto: unknown = JSON.parse(JSON.stringify(request).replace('{', '{"__proto__":1,'))
const CHANGES: [string, unknown, string[]][] = [
  ['the service', { ...request, serviceId: 'svc-2' }, ['serviceId']],
  ['the target', { ...request, target: '@kaufer' }, ['target']],
  ['the quantity', { ...request, quantity: 101 }, ['quantity']],
  ['the type of the quantity', { ...request, quantity: '100' }, ['quantity']],
  ['a field that this package does not know', { ...request, gift: true }, ['gift']],
  ['a field called __proto__', withProto, ['__proto__']],
  ['a field like an inherited member', { ...request, toString: 'x' }, ['toString']],
  ['metadata further down', { ...request, options: { metadata: 1 } }, ['options']],
  ['fields, in their order', { serviceId: 'svc-1', target: 'x', also: null }, ['also', 'quantity', 'target']],
]
const SAME: [string, unknown][] = [
  ['metadata', { ...request, metadata: { externalOrderId: 'order-1', note: 'n' } }],
  ['a lack of metadata', { serviceId: 'svc-1', target: '@käufer', quantity: 100 }],
  [
    'the order of fields, and fields that are undefined',
    { note: undefined, quantity: 100, target: '@käufer', serviceId: 'svc-1' },
  ],
]

// Pinned forever: stored records are compared by these tags.
test('the fingerprint is a tag of 53 bits for each field, and never changes', () => {
  expect(print(request)).toEqual({ quantity: '2f2jslvdjfa', serviceId: '2fzvhvvobhz', target: '1wogms6ikn7' })
  expect(print(request, 'anon:any')).toEqual({
    quantity: 'i0d0423skx',
    serviceId: '94w7puy4d8',
    target: '12e7kv3801g',
  })
  expect(fieldTag(SLOT, 'quantity', 100)).toBe('2f2jslvdjfa')
})

test.each(CHANGES)('fingerprint and digest depend on %s, and name the field', (_what, changed, fields) => {
  expect(differingFields(print(request), print(changed))).toEqual(fields)
  expect(differingFields(print(changed), print(request))).toEqual(fields)
  expect(digest(changed)).not.toBe(digest(request))
})

test.each(SAME)('neither fingerprint nor digest depends on %s', (_what, changed) => {
  expect(differingFields(print(request), print(changed))).toEqual([])
  expect(digest(changed)).toBe(digest(request))
})

test('tags differ by slot and by field, except that nameless orders share a salt', () => {
  const { a, b } = print({ a: 1, b: 1 })
  expect(a).toMatch(/^[\da-z]{5,11}$/)
  expect(a).not.toBe(b)
  expect(fieldTag('ref:other', 'a', 1)).not.toBe(a)
  expect(print({ a: 1 }, 'anon:x')).toEqual(print({ a: 1 }, 'anon:y'))
})

test('the digest that names a nameless order never changes', () => {
  expect(digest(request)).toBe('e7dcd2e9-b10e-5d4c-9ca2-c7f2a956ab1c')
})

test('with a polluted Object.prototype, fingerprints and differences stay the same', () => {
  const before = print(request)
  const withGift = { ...before, gift: '000000000000' }
  const gift = { value: '000000000000', enumerable: true, configurable: true }
  const seen = (): unknown[] => {
    Object.defineProperty(Object.prototype, 'gift', gift)
    try {
      return [print(request), differingFields(before, withGift)]
    } finally {
      Reflect.deleteProperty(Object.prototype, 'gift')
    }
  }
  expect(seen()).toEqual([before, ['gift']])
})

test('the tag of an API key never changes', () => {
  expect(apiKeyTag(derive, 'salt', 'key-1')).toBe('ab2319b6')
  expect(proxiedTag(derive, 'salt', 'key-1')).toBe('pab2319b6')
  expect(apiKeyTag(derive, 'salt', null)).toBe('none')
})

test('tags distinguish API keys and salts by eight hexadecimal characters', () => {
  const tags = ['a', 'b', ''].map((apiKey) => apiKeyTag(derive, 's', apiKey))
  tags.push(apiKeyTag(derive, 't', 'a'))
  expect(new Set(tags).size).toBe(4)
  for (const tag of tags) expect(tag).toMatch(/^[0-9a-f]{8}$/)
})

test.each([
  [true, proxiedTag(derive, 's', 'tag')],
  [false, apiKeyTag(derive, 's', 'key')],
  [false, apiKeyTag(derive, 's', null)],
])('whether a proxy adds the API key (%s) shows in the tag %s', (expected, tag) => {
  expect(isProxied(tag)).toBe(expected)
})
