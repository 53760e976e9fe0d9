import { createContext, runInContext } from 'node:vm'
import { afterEach, describe, expect, test } from 'vitest'
import { CanonicalJsonError, canonicalJson, type Member } from '../../../src/identity/canonical.ts'
import { throwing } from '../../support/calls.ts'

/** The error that rejects a value. Fails the test if the value is accepted. */
function refusalOf(value: unknown): CanonicalJsonError {
  try {
    canonicalJson(value)
  } catch (error) {
    if (error instanceof CanonicalJsonError) return error
    throw error
  }
  throw new Error('was not refused')
}

function nested(depth: number): unknown {
  let value: unknown = 'core'
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? { a: value } : [value]
  return value
}

test('the example of RFC 8785 section 3.2.2 becomes the text of section 3.2.3', () => {
  const input = JSON.parse(String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`)
  expect(canonicalJson(input)).toBe(
    String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
  )
})

test.each([20, 21, 40])('%s names are sorted', (count) => {
  const names = Array.from({ length: count }, (_, index) => `name ${100 + index}`)
  const members = names.map((name) => `"${name}":1`).join(',')
  const backwards = Object.fromEntries(names.toReversed().map((name) => [name, 1]))
  expect(canonicalJson(backwards)).toBe(`{${members}}`)
})

test('names are sorted by UTF-16 code units as in the example of section 3.2.3', () => {
  const input = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  }
  const values = [...canonicalJson(input).matchAll(/:"([^"]+)"/g)].map((match) => match[1])
  expect(values).toEqual([
    ...['Carriage Return', 'One', 'Control', 'Latin Small Letter O With Diaeresis', 'Euro Sign'],
    ...['Emoji: Grinning Face', 'Hebrew Letter Dalet With Dagesh'],
  ])
})

// From appendix B: the bits of a double and its text.
test.each([
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
])('the number with bits %s is written as in appendix B: %s', (bits, text) => {
  expect(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(text)
})

describe('members', () => {
  const symbolic = Object.defineProperty({ a: 1, [Symbol('s')]: 2 }, 'hidden', { value: 3 })
  const rootless = Object.assign(Object.create(null), { b: 1, a: 2 })
  const foreign = runInContext('({ b: [1], a: {} })', createContext())
  const shared = { a: 1 }

  test.each<[string, value: unknown, text: string]>([
    ['names like numbers are sorted as strings', { 9: 'c', 10: 'b', 1: 'a' }, '{"1":"a","10":"b","9":"c"}'],
    ['undefined is dropped, and null is kept', { a: undefined, b: null, c: undefined }, '{"b":null}'],
    ['an own __proto__ is data', JSON.parse('{"z":1,"__proto__":{"b":1}}'), '{"__proto__":{"b":1},"z":1}'],
    ['symbol and non-enumerable members are ignored', symbolic, '{"a":1}'],
    ['an object without a prototype is plain', rootless, '{"a":2,"b":1}'],
    ['an object of another context is plain', foreign, '{"a":{},"b":[1]}'],
    ['one object in two places is no cycle', [shared, { shared }], '[{"a":1},{"shared":{"a":1}}]'],
  ])('in members, %s', (_what, value, text) => {
    expect(canonicalJson(value)).toBe(text)
  })

  test('every single character is written as JSON.stringify does, in a string and in a name', () => {
    const wrong: number[] = []
    for (let unit = 0; unit <= 0xffff; unit++) {
      if (unit === 0xd800) unit = 0xe000
      const text = `a${String.fromCharCode(unit)}b`
      if (canonicalJson({ [text]: text }) !== JSON.stringify({ [text]: text })) wrong.push(unit)
    }
    expect(wrong).toEqual([])
  })

  test('every getter is read exactly once', () => {
    const reads: string[] = []
    const value = {
      get b() {
        return reads.push('b') && 1
      },
      toJSON: 'not a function',
      list: Object.defineProperty([0], 0, { get: () => reads.push('list') && 2, enumerable: true }),
    }
    expect(canonicalJson(value)).toBe('{"b":1,"list":[2],"toJSON":"not a function"}')
    expect(reads.sort()).toEqual(['b', 'list'])
  })

  test('the text of each top-level member is handed out, without those that are dropped', () => {
    const members: Member[] = []
    const text = canonicalJson({ b: { d: 1, c: [2] }, a: 'x', gone: undefined }, members)
    expect(members).toEqual([
      ['a', '"x"'],
      ['b', '{"c":[2],"d":1}'],
    ])
    expect(text).toBe('{"a":"x","b":{"c":[2],"d":1}}')
  })

  test('frozen input is accepted and not changed', () => {
    const value = Object.freeze({ b: Object.freeze([1]), a: Object.freeze({ d: 1, c: 2 }) })
    expect(canonicalJson(value)).toBe('{"a":{"c":2,"d":1},"b":[1]}')
    expect(Object.keys(value)).toEqual(['b', 'a'])
  })
})

test('a date becomes its ISO string, in a member, in an array and alone', () => {
  const date = new Date(Date.UTC(2024, 1, 29))
  expect(canonicalJson({ at: date, list: [date] })).toBe(
    '{"at":"2024-02-29T00:00:00.000Z","list":["2024-02-29T00:00:00.000Z"]}',
  )
  expect(canonicalJson(date)).toBe('"2024-02-29T00:00:00.000Z"')
})

test('toJSON is called once, on the value, with its member name', () => {
  const calls: unknown[] = []
  class Amount {
    toJSON(name: string): unknown {
      calls.push([this instanceof Amount, name])
      return { minor: 1, currency: 'EUR' }
    }
  }
  expect(canonicalJson({ price: new Amount(), all: [new Amount()] })).toBe(
    '{"all":[{"currency":"EUR","minor":1}],"price":{"currency":"EUR","minor":1}}',
  )
  canonicalJson(new Amount())
  expect(calls).toEqual([
    [true, '0'],
    [true, 'price'],
    [true, ''],
  ])
})

test.each<[string, value: unknown, text: string]>([
  ['a member called toJSON in the result is data', { toJSON: () => ({ toJSON: 5 }) }, '{"a":{"toJSON":5}}'],
  ['toJSON may return null', { toJSON: () => null }, '{"a":null}'],
  ['a member whose toJSON returns undefined is dropped', { toJSON: () => undefined }, '{}'],
  ["a literal's own toJSON is called", { b: 1, toJSON: () => ({ c: 2 }) }, '{"a":{"c":2}}'],
])('%s', (_what, a, text) => {
  expect(canonicalJson({ a })).toBe(text)
})

test('an error thrown by toJSON is passed on', () => {
  expect(() => canonicalJson({ toJSON: throwing('broken') })).toThrow(new Error('broken'))
})

describe('polluted prototypes', () => {
  const polluted: [object, PropertyKey][] = []
  function pollute(prototype: object, name: PropertyKey, value: unknown): void {
    polluted.push([prototype, name])
    Object.defineProperty(prototype, name, { value, enumerable: true, configurable: true, writable: true })
  }
  afterEach(() => {
    for (const [prototype, name] of polluted.splice(0)) Reflect.deleteProperty(prototype, name)
  })

  test('a polluted prototype cannot add members to objects or fill holes of arrays', () => {
    pollute(Object.prototype, 'discount', 100)
    pollute(Array.prototype, '1', 'filled')
    const holed = [1, 2, 3]
    delete holed[1]
    expect(canonicalJson({ list: [] })).toBe('{"list":[]}')
    expect(refusalOf(holed).message).toBe('The value is an array with holes or named members')
  })

  test('a toJSON on Object.prototype, Array.prototype or String.prototype cannot replace values', () => {
    for (const prototype of [Object.prototype, Array.prototype, String.prototype, Number.prototype]) {
      pollute(prototype, 'toJSON', () => 'stolen')
    }
    expect(canonicalJson({ a: [1, 'x', { b: Object.create(null) }] })).toBe('{"a":[1,"x",{"b":{}}]}')
  })

  test('a polluted prototype cannot make a class instance acceptable', () => {
    pollute(Object.prototype, 'toJSON', () => 'stolen')
    expect(refusalOf(new Map()).message).toBe('The value is an object of a class without toJSON')
  })
})

describe('values that JSON cannot represent', () => {
  class Point {
    x = 1
  }
  class Lookalike {
    isPrototypeOf(): boolean {
      return false
    }
  }
  const holed = Object.assign(Array(3), { 0: 1, 2: 3 })
  const named = Object.assign([1, 2], { total: 2 })
  const bare = Object.assign(Object.create(null), { b: 1 })
  const holedAndNamed = Object.assign(Array(2), { 0: 1, total: 2 })

  const OF_A_CLASS = 'is an object of a class without toJSON'
  const NO_LIST = 'is an array with holes or named members'
  const SURROGATE = 'contains a lone surrogate'
  const oddName = { '\ud800': 1 }

  test.each<[string, unknown, string, string]>([
    ['NaN', { metadata: { items: [0, 1, { name: Number.NaN }] } }, 'metadata.items[2].name', 'is NaN'],
    ['an infinity', [Number.POSITIVE_INFINITY], '[0]', 'is Infinity'],
    ['a negative infinity', [Number.NEGATIVE_INFINITY], '[0]', 'is -Infinity'],
    ['undefined as the complete value', undefined, '', 'is undefined'],
    ['an invalid date, whose toJSON returns null', { at: new Date(Number.NaN) }, 'at', 'is an invalid date'],
    ['a date that toJSON returns', { a: { toJSON: () => new Date(0) } }, 'a', OF_A_CLASS],
    ['a BigInt after other members', { a: { b: { c: [1, 2, 3] } }, d: 10n }, 'd', 'is a bigint'],
    ['a function', { a: () => 1 }, 'a', 'is a function'],
    ['a symbol', { a: Symbol('s') }, 'a', 'is a symbol'],
    ['undefined in an array', { a: [1, undefined] }, 'a[1]', 'is undefined'],
    ['a toJSON that makes an element undefined', [{ toJSON: () => undefined }], '[0]', 'is undefined'],
    ['an array with a hole', { a: holed }, 'a', NO_LIST],
    ['an array with a named member', { a: named }, 'a', NO_LIST],
    ['an array with both', { a: holedAndNamed }, 'a', NO_LIST],
    ['a lone leading surrogate', { a: 'x\ud83d' }, 'a', SURROGATE],
    ['a lone trailing surrogate', { a: '\ude00x' }, 'a', SURROGATE],
    ['surrogates in the wrong order', { a: '\ude00\ud83d' }, 'a', SURROGATE],
    ['a lone surrogate in a name', { a: oddName }, 'a["\\ud800"]', 'contains a lone surrogate in its name'],
    ['a Map', { a: new Map([[1, 2]]) }, 'a', OF_A_CLASS],
    ['a Set', { a: new Set([1]) }, 'a', OF_A_CLASS],
    ['a typed array', { a: Uint8Array.of(1) }, 'a', OF_A_CLASS],
    ['a boxed text', { a: new String('x') }, 'a', OF_A_CLASS],
    ['an object of a class', { a: new Point() }, 'a', OF_A_CLASS],
    ['an error', { a: new Error('x') }, 'a', OF_A_CLASS],
    ['an object of a class like Object', { a: new Lookalike() }, 'a', OF_A_CLASS],
    ['an object made from another', { a: Object.create({ b: 1 }) }, 'a', OF_A_CLASS],
    ['an object made from one without prototype', { a: Object.create(bare) }, 'a', OF_A_CLASS],
    ['a name that is no identifier', { 'a b': { 'it"s': 1n } }, '["a b"]["it\\"s"]', 'is a bigint'],
  ])('canonical JSON rejects %s, and names its path', (_what, value, path, problem) => {
    const message = `${path || 'The value'} ${problem}`
    expect(refusalOf(value)).toMatchObject({ path, message })
  })

  test('the error never quotes a value', () => {
    expect(refusalOf({ target: 'secret\ud800' }).message).not.toContain('secret')
  })

  test('the error names where a cycle begins', () => {
    const order: Record<string, unknown> = { a: 1 }
    order['metadata'] = { list: [order] }
    expect(refusalOf(order).message).toMatch(/^metadata\.list contains itself, or is nested more/)
  })

  test('nesting of 200 is accepted, and 201 is rejected, also if toJSON never ends', () => {
    const length = '{"a":}'.length * 100 + '[]'.length * 100 + '"core"'.length
    expect(canonicalJson(nested(200))).toHaveLength(length)
    const endless = (): unknown => ({ toJSON: () => ({ next: endless() }) })
    for (const tooDeep of [nested(201), nested(100_000), endless()])
      expect(refusalOf(tooDeep).message).toMatch(/ is nested more than 200 levels deep$/)
  })
})
