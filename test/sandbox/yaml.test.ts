import { parseFaultRules } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { readData } from '../../src/sandbox/control/yaml.ts'

describe('data files', () => {
  test.each<[string, string, unknown]>([
    ['nothing', '', null],
    ['JSON', '{"a": [1, {"b": null}], "c": "x: #y"}', { a: [1, { b: null }], c: 'x: #y' }],
    ['JSON with a comment and a comma at the end', '[1, # one\n  2,\n]', [1, 2]],
    [
      'a list of maps',
      '# rules\n- a: 1\n  b: [c, "d"]\n- a: |\n    x\n',
      [{ a: 1, b: ['c', 'd'] }, { a: 'x\n' }],
    ],
    ['a field called __proto__', '__proto__: 1', JSON.parse('{"__proto__": 1}')],
    ['words that only YAML 1.1 knows', '[yes, 012, 2026-01-01]', ['yes', 12, '2026-01-01']],
    ['a byte order mark and Windows line ends', '\ufeffa: 1\r\nb: 2\r\n', { a: 1, b: 2 }],
  ])('data files may contain %s', (_, text, value) => {
    expect(JSON.stringify(readData(text))).toBe(JSON.stringify(value))
  })

  test.each([
    ['[\n  {"action": }x\n]', 'line 2, column 15: '],
    ['[{"a":1},', 'line 1, column 10: unexpected end of the stream'],
    ['a: 1\na: 2', 'line 2, column 1: duplicated mapping key'],
    ['a: &x [*x]', 'line 1, column 8: aliases are not supported'],
    ['['.repeat(101), 'line 1, column 100: nesting exceeded'],
  ])('a text that is neither JSON nor YAML is rejected with place and reason: %j', (text, message) => {
    expect(() => readData(text)).toThrow(new RegExp(`^not valid JSON or YAML: ${message}`))
    expect(() => readData(text)).toThrow(TypeError)
  })

  test.each([
    ['between words', `a${' '.repeat(200_000)}b`, `a${' '.repeat(200_000)}b`],
    ['before a value', `a:${' '.repeat(200_000)}b`, { a: 'b' }],
    ['before a colon', `a${' '.repeat(200_000)}: b`, { a: 'b' }],
  ])('YAML with very many spaces %s is parsed quickly', (_, text, value) => {
    expect(readData(text)).toEqual(value)
  })

  test('a text with two documents is rejected', () => {
    expect(() => readData('a: 1\n---\nb: 2')).toThrow('only one is allowed')
  })
})

test('fault rules can be written in YAML', () => {
  const rules = `
- match: { operation: createOrder }
  times: always
  action: { type: commitThenDrop }
- action:
    type: transformBody
    patch:
      - { op: replace, path: /amount, value: "12.50" }
`
  expect(parseFaultRules(rules)).toEqual([
    { match: { operation: 'createOrder' }, times: 'always', action: { type: 'commitThenDrop' } },
    { action: { type: 'transformBody', patch: [{ op: 'replace', path: '/amount', value: '12.50' }] } },
  ])
})
