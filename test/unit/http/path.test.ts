import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidRequestError } from '../../../src/errors/classes.ts'
import { queryString, segment } from '../../../src/http/path.ts'
import { character } from '../../support/character.ts'

const refusalOf = (path: string) =>
  expect.objectContaining({ charged: 'no', attempts: 0, issues: [{ path, message: expect.any(String) }] })

describe('an identifier in a path', () => {
  test.each([
    ['ord_1', 'ord_1'],
    ['a b', 'a%20b'],
    ['a/b', 'a%2Fb'],
    ['a\\b', 'a%5Cb'],
    ['a?x=1', 'a%3Fx%3D1'],
    ['a#x', 'a%23x'],
    ['a?/', 'a%3F%2F'],
    ['%', '%25'],
    ['%41', '%2541'],
    ['a;b', 'a%3Bb'],
    ['a:b@c', 'a%3Ab%40c'],
    ['...', '...'],
    ['.a', '.a'],
    ['a..b', 'a..b'],
    ['ü', '%C3%BC'],
    ['注文', '%E6%B3%A8%E6%96%87'],
    ['👍', '%F0%9F%91%8D'],
    ['__proto__', '__proto__'],
  ])('the identifier %j is sent as %s', (id, encoded) => {
    expect(segment('orderId', id)).toBe(encoded)
  })

  test.each([
    ...['', ' ', '\t', '.', '..', '.. ', '/', '\\', 'a/', '/a', 'a//b', 'a\\\\b', '?x=1', '#x'],
    ...['..#', '..%3fx'],
    ...['../orders', 'a/../b', 'a/./b', 'a\\..\\b', '..%2fbalance', '..%5cbalance', '%2e%2e%2fbalance'],
    ...['%2e', '%2E%2e', '.%2e', '%2e.', '%252e%252e', '%25252e%25252e', 'a%2f', 'a/..%20', 'a%2f%2e%2e%2fb'],
    ...[
      '%2e%2e%2f%zz',
      '%2e%2e%2f%ff',
      '\u0000',
      'a\ud800',
      'a\nb',
      'a\rb',
      'a\u007fb',
      'a%00b',
      'a%0d%0ab',
      'a%250ab',
    ],
  ])('the identifier %j is rejected, because it could reach another endpoint', (id) => {
    expect(() => segment('orderId', id)).toThrow(refusalOf('orderId'))
  })

  const notStrings = [undefined, null, 1, 0, Number.NaN, true, {}, [], ['ord_1'], new String('ord_1')]
  test.each([...notStrings, Symbol('x')])('an identifier that is not a string (%s) is rejected', (id) => {
    expect(() => segment('serviceId', id)).toThrow(refusalOf('serviceId'))
  })

  test("an identifier is one segment of the platform's URL, and is decoded unchanged", () => {
    const unit = fc.constantFrom('.', '/', '\\', '%', '2', 'e', 'f', '5', 'c', 'a', '?', '#', ' ', 'é')
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit, maxLength: 12 }), fc.string({ unit: character })), (id) => {
        let encoded: string
        try {
          encoded = segment('orderId', id)
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidRequestError)
          return
        }
        const url = `https://api.example.com/v1/orders/${encoded}`
        const { pathname, search, hash, href } = new URL(url)
        expect([href, pathname, search, hash]).toEqual([url, `/v1/orders/${encoded}`, '', ''])
        expect(decodeURIComponent(encoded)).toBe(id)
        // A proxy that decodes once before it parses sees a path below orders/, too.
        const lenient = new URL(`https://api.example.com/v1/orders/${id.replace(/[?#].*/s, '')}`).pathname
        expect(lenient.startsWith('/v1/orders/')).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })
})

test.each([
  [{}, ''],
  [{ limit: undefined }, ''],
  [{ limit: 10, offset: 0 }, '?limit=10&offset=0'],
  [{ sourceSystem: 'a b&c=d#e' }, '?sourceSystem=a+b%26c%3Dd%23e'],
  [{ flag: false, text: '' }, '?flag=false&text='],
  [{ ü: '注' }, '?%C3%BC=%E6%B3%A8'],
])('the query string of %j is %j', (query, text) => {
  expect(queryString(query)).toBe(text)
})
