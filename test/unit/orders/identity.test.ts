import { createHash } from 'node:crypto'
import { v5 as uuidPackage } from 'uuid'
import { afterEach, describe, expect, test } from 'vitest'
import {
  apiKeyTag,
  checkIdempotencyKey,
  derivedKey,
  differingFields,
  fieldTags,
  fingerprintOf,
  isAnonymous,
  KEY_NAMESPACE,
  normalizeServer,
  rowIdOf,
  scopeOf,
  slotOf,
} from '../../../src/orders/identity.ts'

/**
 * UUID v5 by RFC 9562, section 5.5, with Node's own SHA-1: a reference that shares no code with the
 * package.
 */
function derive(name: string): string {
  const namespace = Buffer.from('84a1a9a0ff0d4bf6bce3f9b27cb0e095', 'hex')
  const hash = createHash('sha1').update(namespace).update(name, 'utf8').digest().subarray(0, 16)
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6)
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8)
  return hash.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

const request = {
  serviceId: 'svc-1',
  target: '@käufer',
  quantity: 100,
  metadata: { externalOrderId: 'order-1' },
}

const UUID_V5 = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

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
  ])(
    'server %j, account %j, reference %j, generation %i',
    (server, account, externalOrderId, generation, key) => {
      expect(derive(JSON.stringify(['k1', server, account, externalOrderId, generation]))).toBe(key)
      expect(derivedKey(derive, { server, account, externalOrderId, generation })).toBe(key)
      const byPackage = (name: string): string => uuidPackage(name, KEY_NAMESPACE)
      expect(derivedKey(byPackage, { server, account, externalOrderId, generation })).toBe(key)
    },
  )

  test('the hashed name of a derived key is this string', () => {
    const names: string[] = []
    const record = (name: string): string => String(names.push(name))
    derivedKey(record, { server: 's', account: 'a', externalOrderId: 'r', generation: 0 })
    fingerprintOf(record, { b: [1], a: 'x', metadata: { c: 1 } })
    rowIdOf(record, 'ref:r')
    fieldTags(record, 'salt', { a: { z: 1, y: 2 } })
    apiKeyTag(record, 'salt', 'key')
    expect(names).toEqual([
      '["k1","s","a","r",0]',
      '["f1",{"a":"x","b":[1]}]',
      '["s1","ref:r"]',
      '["t1","salt","a",{"y":2,"z":1}]',
      '["a1","salt","key"]',
    ])
  })

  test("the parts of a derived key's name cannot overlap", () => {
    const one = derivedKey(derive, { server: 's', account: 'a","b', externalOrderId: 'c', generation: 0 })
    const other = derivedKey(derive, { server: 's', account: 'a', externalOrderId: 'b","c', generation: 0 })
    expect(one).not.toBe(other)
  })

  test("a derived key passes the check for the caller's keys", () => {
    const key = derivedKey(derive, { server: 's', account: 'a', externalOrderId: 'r', generation: 0 })
    expect(key).toMatch(UUID_V5)
    expect(checkIdempotencyKey(key)).toBeUndefined()
  })
})

describe('slots', () => {
  test('a slot is named by reference, then by key, then by fingerprint', () => {
    const fingerprint = 'f'
    expect(slotOf({ externalOrderId: 'order-1', idempotencyKey: 'k', fingerprint })).toBe('ref:order-1')
    expect(slotOf({ externalOrderId: 'key:k', fingerprint })).toBe('ref:key:k')
    expect(slotOf({ idempotencyKey: 'k', fingerprint })).toBe('key:k')
    expect(slotOf({ fingerprint })).toBe('anon:f')
    expect(slotOf({ externalOrderId: undefined, idempotencyKey: undefined, fingerprint })).toBe('anon:f')
  })

  test('only a slot without a name is anonymous, whatever the name is', () => {
    const fingerprint = 'f'
    expect(isAnonymous(slotOf({ fingerprint }))).toBe(true)
    expect(isAnonymous(slotOf({ idempotencyKey: 'anon:k', fingerprint }))).toBe(false)
    expect(isAnonymous(slotOf({ externalOrderId: 'anon:', fingerprint }))).toBe(false)
  })

  test("the name of a slot's row is a UUID that never changes", () => {
    expect(rowIdOf(derive, 'ref:order-1')).toBe('4c81adea-97ba-54b2-8848-53a3ca7c6091')
    expect(rowIdOf(derive, `ref:${'x'.repeat(5000)}`)).toMatch(UUID_V5)
  })
})

describe('fingerprints', () => {
  test('fingerprints never change', () => {
    expect(fingerprintOf(derive, request)).toBe('e7dcd2e9-b10e-5d4c-9ca2-c7f2a956ab1c')
  })

  test('fingerprints do not depend on metadata, field order or undefined fields', () => {
    const { metadata: _metadata, ...bare } = request
    const shuffled = { note: undefined, quantity: 100, target: '@käufer', serviceId: 'svc-1' }
    expect(fingerprintOf(derive, bare)).toBe(fingerprintOf(derive, request))
    expect(fingerprintOf(derive, shuffled)).toBe(fingerprintOf(derive, request))
  })

  test.each([
    ['the service', { ...request, serviceId: 'svc-2' }],
    ['the target', { ...request, target: '@kaufer' }],
    ['the quantity', { ...request, quantity: 101 }],
    ['a field that this package does not know', { ...request, gift: true }],
    ['a field called __proto__', JSON.parse(JSON.stringify(request).replace('{', '{"__proto__":1,'))],
    ['metadata further down', { ...request, options: { metadata: 1 } }],
  ])('depend on %s', (_what, changed) => {
    expect(fingerprintOf(derive, changed)).not.toBe(fingerprintOf(derive, request))
  })
})

describe('field tags', () => {
  test('field tags never change', () => {
    const tags = { serviceId: 'bd2df346', target: '707d67b4', quantity: '31e4d33d' }
    expect(fieldTags(derive, 'salt', request)).toEqual(tags)
  })

  test('field tags differ by salt and by field, not by the order of members', () => {
    const tags = fieldTags(derive, 's', { a: 1, b: 1, c: { x: 1, y: 2 } })
    expect(tags['a']).not.toBe(tags['b'])
    expect(fieldTags(derive, 't', { a: 1 })['a']).not.toBe(tags['a'])
    expect(fieldTags(derive, 's', { c: { y: 2, x: 1 } })['c']).toBe(tags['c'])
  })

  test('field tags omit metadata and undefined fields, and keep a field called __proto__', () => {
    const tags = fieldTags(derive, 's', JSON.parse('{"a":1,"__proto__":2,"metadata":{}}'))
    expect(Object.keys(tags).sort()).toEqual(['__proto__', 'a'])
    expect(fieldTags(derive, 's', { a: undefined })).toEqual({})
  })

  test('differing fields are named in order, including those of one side only', () => {
    const a = fieldTags(derive, 's', { ...request, quantity: 1, only: 'a', same: [1] })
    const b = fieldTags(derive, 's', { ...request, quantity: 2, target: 'x', same: [1], also: null })
    expect(differingFields(a, b)).toEqual(['also', 'only', 'quantity', 'target'])
    expect(differingFields(b, a)).toEqual(['also', 'only', 'quantity', 'target'])
    expect(differingFields(a, a)).toEqual([])
  })

  test('differing fields include a field called __proto__ or like an inherited member', () => {
    const bare = fieldTags(derive, 's', request)
    const odd = fieldTags(derive, 's', JSON.parse('{"__proto__":1,"toString":"x"}'))
    expect(differingFields(bare, odd)).toEqual(['__proto__', 'quantity', 'serviceId', 'target', 'toString'])
  })
})

describe('with a polluted Object.prototype', () => {
  afterEach(() => {
    Reflect.deleteProperty(Object.prototype, 'gift')
  })

  test('with a polluted Object.prototype, fingerprints, tags and differences stay the same', () => {
    const fingerprint = fingerprintOf(derive, request)
    const tags = fieldTags(derive, 's', request)
    const withGift = { ...tags, gift: '00000000' }
    const gift = { value: '00000000', enumerable: true, configurable: true }
    Object.defineProperty(Object.prototype, 'gift', gift)
    const differing = differingFields(tags, withGift)
    const seen = [fingerprintOf(derive, request), fieldTags(derive, 's', request), differing]
    Reflect.deleteProperty(Object.prototype, 'gift')
    expect(seen).toEqual([fingerprint, tags, ['gift']])
  })
})

describe('API key tags', () => {
  test('API key tags never change', () => {
    expect(apiKeyTag(derive, 'salt', 'key-1')).toBe('ab2319b6')
  })

  test('API key tags distinguish keys and salts by eight hexadecimal characters', () => {
    const tags = [
      apiKeyTag(derive, 's', 'a'),
      apiKeyTag(derive, 's', 'b'),
      apiKeyTag(derive, 't', 'a'),
      apiKeyTag(derive, 's', ''),
    ]
    expect(new Set(tags).size).toBe(4)
    for (const tag of tags) expect(tag).toMatch(/^[0-9a-f]{8}$/)
  })

  test('API key tags are absent if a proxy adds the key', () => {
    expect(apiKeyTag(derive, 's', null)).toBe('none')
  })
})

describe('scopes', () => {
  test('scopes are server and account as canonical JSON', () => {
    expect(scopeOf('https://api.example.com', 'shop-eu')).toBe('["https://api.example.com","shop-eu"]')
  })

  test('scopes without an account differ from every account', () => {
    expect(scopeOf('s')).toBe('["s",null]')
    expect(scopeOf('s')).not.toBe(scopeOf('s', ''))
    expect(scopeOf('s')).not.toBe(scopeOf('s', 'null'))
  })
})

describe('server labels', () => {
  test.each([
    ['https://api.example.com', 'https://api.example.com'],
    ['HTTPS://API.Example.COM', 'https://api.example.com'],
    ['https://api.example.com/', 'https://api.example.com'],
    ['https://api.example.com//', 'https://api.example.com'],
    ['https://api.example.com:443', 'https://api.example.com'],
    ['https://api.example.com.', 'https://api.example.com'],
    ['  https://api.example.com\n', 'https://api.example.com'],
    ['https:\\\\api.example.com\\', 'https://api.example.com'],
    ['http://api.example.com:80/', 'http://api.example.com'],
    ['http://api.example.com:443/', 'http://api.example.com:443'],
    ['https://api.example.com:8443/Ordering/', 'https://api.example.com:8443/Ordering'],
    ['https://api.example.com/a/./b/../c/', 'https://api.example.com/a/c'],
    ['https://api.example.com/a/%2e%2E/c', 'https://api.example.com/c'],
    ['https://api.example.com/%7euser/%41%2d', 'https://api.example.com/~user/A-'],
    ['https://api.example.com/%7Euser/%5F', 'https://api.example.com/~user/_'],
    ['https://api.example.com/a%2fb', 'https://api.example.com/a%2Fb'],
    ['https://api.example.com/größe', 'https://api.example.com/gr%C3%B6%C3%9Fe'],
    ['https://api.example.com/gr%c3%b6%c3%9fe', 'https://api.example.com/gr%C3%B6%C3%9Fe'],
    ['https://BÜCHER.example', 'https://xn--bcher-kva.example'],
    ['https://xn--bcher-kva.example', 'https://xn--bcher-kva.example'],
    ['http://[0:0::1]:4010/', 'http://[::1]:4010'],
    ['http://127.1/', 'http://127.0.0.1'],
  ])('the server label of %j is %s', (spelling, label) => {
    expect(normalizeServer(spelling)).toBe(label)
    expect(normalizeServer(label)).toBe(label)
  })

  test('server labels contain no user name, password, query or fragment', () => {
    expect(normalizeServer('https://user:secret@api.example.com/v?token=secret#secret')).toBe(
      'https://api.example.com/v',
    )
  })

  test.each(['', 'api.example.com', '/v1', 'ftp://api.example.com', 'https://', 'https://u:secret@[oops'])(
    'the server label %j is rejected without being quoted',
    (spelling) => {
      expect(() => normalizeServer(spelling)).toThrow(
        new TypeError('baseUrl is not an absolute http or https address'),
      )
    },
  )
})

describe('keys of callers', () => {
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
})
