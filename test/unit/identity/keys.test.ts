import { v5 as uuidPackage } from 'uuid'
import { describe, expect, test } from 'vitest'
import {
  apiKeyTag,
  checkIdempotencyKey,
  checkReference,
  derivedKey,
  digestOf,
  isNameless,
  KEY_NAMESPACE,
  proxiedTag,
  referenceIn,
  rowIdOf,
  scopeOf,
  slotOf,
} from '../../../src/identity/keys.ts'
import { throwing } from '../../support/calls.ts'
import { derive } from './derive.ts'

describe('derived keys', () => {
  const PUNYCODE = 'https://xn--bcher-kva.example'
  const QUOTED = '"quoted" \\ back/slash\n\t\u0000\u007f\u2028'

  test('the namespace of derived keys never changes', () => {
    expect(KEY_NAMESPACE).toBe('84a1a9a0-ff0d-4bf6-bce3-f9b27cb0e095')
  })

  // Pinned forever. If one of these tests fails, the code is wrong, not the vector: another key is
  // a second charge.
  test.each<[server: string, account: string, externalOrderId: string, generation: number, key: string]>([
    ['https://api.example.com', 'shop-eu', 'order-1', 0, '4c2b1d36-cd00-5ff9-9074-c0dadc946804'],
    ['https://api.example.com', 'shop-eu', 'order-1', 1, 'c3dff727-3a24-5ab6-a389-b754c2646c65'],
    ['https://api.example.com', 'shop-eu', 'order-1', 2, '55bcc256-2ee7-503f-b98b-270dbe2876a4'],
    ['https://api.example.com', 'shop-eu', 'order-1', 41, '122ca729-ceb5-51dc-a8ce-7524f387a376'],
    ['https://api.example.com', 'shop-us', 'order-1', 0, '874aecb3-8dcf-5279-a53f-898fbf2fcf1d'],
    ['http://127.0.0.1:4010', 'shop-eu', 'order-1', 0, 'f47be68b-e8f2-5d76-b916-607597a0ffc1'],
    ['https://api.example.com/ordering', '', 'x', 0, '5798d270-c918-56d9-8b72-86ebbeef33e0'],
    [PUNYCODE, 'Käufer 東京 😀', 'Bestellung № 7 – größer', 0, '083575bd-283f-5dbc-9d24-798ce3f4e9f1'],
    ['sandbox', 'a"b\\c', QUOTED, 3, 'd76d2e55-2768-5cec-ba87-982531daf90c'],
    ['prod', 'o', 'r'.repeat(1000), 0, '152687e7-07a2-5a14-8aa7-27815a1c302c'],
    ['prod', 'o', 'A\u030a', 0, '0da7665c-a1e5-5f62-8697-6b841a85531c'],
    ['prod', 'o', '\u00c5', 0, '4832d6da-1a55-5e7b-8fbc-bee0d636a4e6'],
  ])('server %j, account %j, reference %j, generation %i', (server, account, reference, generation, key) => {
    const names = { server, account, externalOrderId: reference, generation }
    expect(derive(JSON.stringify(['k1', server, account, reference, generation]))).toBe(key)
    expect(derivedKey(derive, names)).toBe(key)
    expect(derivedKey((name) => uuidPackage(name, KEY_NAMESPACE), names)).toBe(key)
    expect(checkIdempotencyKey(key)).toBeUndefined()
  })

  test('the strings that are hashed never change', () => {
    const names: string[] = []
    const record = (name: string): string => String(names.push(name))
    derivedKey(record, { server: 's', account: 'a', externalOrderId: 'r', generation: 0 })
    rowIdOf(record, 'ref:r')
    digestOf(record, Object.entries({ a: '"x"', b: '[1]', metadata: '{"c":1}' }))
    apiKeyTag(record, 'salt', 'key')
    proxiedTag(record, 'salt', 'tag of the proxy')
    expect(names).toEqual([
      ...['["k1","s","a","r",0]', '["s1","ref:r"]', '["f1",{"a":"x","b":[1]}]'],
      ...['["a1","salt","key"]', '["a1","salt","tag of the proxy"]'],
    ])
  })
})

describe('slots', () => {
  const digest = () => 'digest'

  test.each([
    ['ref:order-1', 'order-1', 'k', false],
    ['ref:key:k', 'key:k', undefined, false],
    ['ref:anon:', 'anon:', undefined, false],
    ['key:k', undefined, 'k', false],
    ['key:anon:k', undefined, 'anon:k', false],
    ['anon:digest', undefined, undefined, true],
  ])('the slot is %s for the reference %s and the key %s, nameless: %s', (slot, reference, key, nameless) => {
    expect(slotOf(reference, key, digest)).toBe(slot)
    expect(isNameless(slot)).toBe(nameless)
    expect(referenceIn(slot)).toBe(reference)
  })

  test('the payload of a named order is not hashed for its slot', () => {
    const never = throwing('was hashed')
    expect(slotOf('r', undefined, never)).toBe('ref:r')
    expect(slotOf(undefined, 'k', never)).toBe('key:k')
  })

  test("the name of a slot's row is a UUID that never changes", () => {
    expect(rowIdOf(derive, 'ref:order-1')).toBe('4c81adea-97ba-54b2-8848-53a3ca7c6091')
    expect(rowIdOf(derive, `ref:${'x'.repeat(5000)}`)).toMatch(/^[0-9a-f-]{36}$/)
  })
})

test('scopes are server and account as canonical JSON, also without an account', () => {
  expect(scopeOf('https://api.example.com', 'shop-eu')).toBe('["https://api.example.com","shop-eu"]')
  expect(scopeOf('s')).toBe('["s",null]')
  expect(scopeOf('s', '')).toBe('["s",""]')
  expect(scopeOf('s', 'null')).toBe('["s","null"]')
})

test.each(['a', '!', '~', 'order-1', 'k'.repeat(255), '"quoted"', '4c2b1d36-cd00-5ff9-9074-c0dadc946804'])(
  "the caller's key %j is accepted",
  (key) => {
    expect(checkIdempotencyKey(key)).toBeUndefined()
  },
)

test.each<[unknown, string]>([
  ['', 'is empty'],
  ['k'.repeat(256), 'has more than 255 characters'],
  ...['a b', ' a', 'a\n', 'a\r\nx: y', '\u0000', '\u007f', 'ä', '😀'].map((key): [unknown, string] => [
    key,
    'has a character that is not visible ASCII (0x21 to 0x7E)',
  ]),
  [undefined, 'is not a string'],
  [null, 'is not a string'],
  [1, 'is not a string'],
  [['a'], 'is not a string'],
])("the caller's key %j is rejected: it %s", (key, reason) => {
  expect(checkIdempotencyKey(key)).toBe(reason)
})

test('a single character is accepted as a key if and only if it is visible ASCII', () => {
  const accepted: number[] = []
  for (let unit = 0; unit <= 0xffff; unit++) {
    if (checkIdempotencyKey(String.fromCharCode(unit)) === undefined) accepted.push(unit)
  }
  expect(accepted).toEqual(Array.from({ length: 0x7e - 0x21 + 1 }, (_, index) => 0x21 + index))
})

describe('references', () => {
  test.each([
    'order-1',
    'r',
    'white space  inside',
    'Käufer 東京 😀',
    'A\u030a',
    'a\u200db',
    'x'.repeat(5000),
    '"quoted" \\ back/slash',
  ])('the reference %j is accepted', (reference) => {
    expect(checkReference(reference)).toBeUndefined()
  })

  const EDGE =
    'begins or ends with white space or an invisible character, and so differs from one that looks the same'
  const CONTROL = 'contains a control character'
  test.each<[unknown, string]>([
    [undefined, 'is not a string'],
    [7, 'is not a string'],
    ['', 'is blank'],
    [' \t\u00a0', 'is blank'],
    ['a\ud800b', 'contains a lone surrogate'],
    ['\udc00', 'contains a lone surrogate'],
    ['a\nb', CONTROL],
    ['a\u0000b', CONTROL],
    ['a\u007fb', CONTROL],
    ['a\u0085', CONTROL],
    [' a', EDGE],
    ['a ', EDGE],
    ['a\u200b', EDGE],
    ['\u{e0001}a', EDGE],
  ])('the reference %j is rejected: it %s', (reference, reason) => {
    expect(checkReference(reference)).toBe(reason)
  })

  test('a character is rejected at both ends exactly if it is White_Space, Cc or Cf', () => {
    const wrong: number[] = []
    const points = [...Array(0x20000).keys(), ...Array.from({ length: 0x1000 }, (_, at) => 0xe0000 + at)]
    for (const point of points.filter((each) => each < 0xd800 || each > 0xdfff)) {
      const character = String.fromCodePoint(point)
      const expected = /[\p{White_Space}\p{Cc}\p{Cf}]/u.test(character)
      for (const reference of [`${character}a`, `a${character}`])
        if ((checkReference(reference) !== undefined) !== expected) wrong.push(point)
    }
    expect(wrong).toEqual([])
  })
})
