import { parseFaultRules } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { linesOf, readYaml } from '../../src/sandbox/control/yaml.ts'

describe('YAML files', () => {
  test.each<[string, string, unknown]>([
    ['nothing', '', null],
    ['only comments', '# nothing\n\n  # here\n', null],
    ['one word', 'drop', 'drop'],
    ['words', 'a b  c # and a comment', 'a b  c'],
    ['a map', 'a: 1\nb: two', { a: 1, b: 'two' }],
    ['a nested map', 'a:\n  b:\n    c: 1\n  d: 2', { a: { b: { c: 1 }, d: 2 } }],
    ['a list', '- 1\n- two', [1, 'two']],
    ['a list of maps', '- a: 1\n  b: 2\n- a: 3', [{ a: 1, b: 2 }, { a: 3 }]],
    ['a list of lists', '- - 1\n  - 2\n-\n  - 3', [[1, 2], [3]]],
    ['a list as deep as its field', 'a:\n- 1\n- 2\nb: 3', { a: [1, 2], b: 3 }],
    ['a field without a value', 'a:\nb: 1', { a: null, b: 1 }],
    ['an item without a value', '-\n- 1', [null, 1]],
    ['JSON', '{"a": [1, {"b": null}], "c": "x: #y"}', { a: [1, { b: null }], c: 'x: #y' }],
    ['JSON with tabs', '{\n\t"a":\n\t\t[1,\n\t\t2]\n}', { a: [1, 2] }],
    [
      'short maps and lists',
      'a: { b: 1, c: [x, y z] }\nd: []\ne: {}',
      { a: { b: 1, c: ['x', 'y z'] }, d: [], e: {} },
    ],
    ['brackets over several lines', 'a: [1, # one\n  2,\n  ]', { a: [1, 2] }],
    [
      'quoted texts',
      `a: "x\\n\\u0041 # no comment"\nb: 'it''s: here'`,
      { a: 'x\nA # no comment', b: "it's: here" },
    ],
    ['quoted fields', `"a b": 1\n'c:d': 2`, { 'a b': 1, 'c:d': 2 }],
    ['numbers', '[0, -1, 2.5, 1e3, -0.5E-2]', [0, -1, 2.5, 1000, -0.005]],
    ['constants', '[true, false, null, ~]', [true, false, null, null]],
    [
      'words with colons and hashes',
      'a: x:y\nb: c#d\nc: /v1/orders?limit=2',
      { a: 'x:y', b: 'c#d', c: '/v1/orders?limit=2' },
    ],
    ['a field called __proto__', '__proto__: 1', JSON.parse('{"__proto__": 1}')],
    ['a beginning of a document', '--- # first\na: 1', { a: 1 }],
    [
      'texts of several lines',
      'a: |\n  one\n  two\nb: >-\n  three\n  four',
      { a: 'one\ntwo\n', b: 'three four' },
    ],
    ['words that only YAML 1.1 knows', '[yes, 012, 2026-01-01, 1_000]', ['yes', 12, '2026-01-01', '1_000']],
    ['a byte order mark and Windows line ends', '\ufeffa: 1\r\nb: 2\r\n', { a: 1, b: 2 }],
  ])('YAML files may contain %s', (_, text, value) => {
    expect(readYaml(text)).toEqual(value)
    expect(JSON.stringify(readYaml(text))).toBe(JSON.stringify(value))
  })

  test.each([
    ['a: 1\na: 2', 'line 2, column 1: duplicated mapping key'],
    ['{a: 1,\n a: 2}', 'line 2, column 2: duplicated mapping key'],
    ['a: b: c', 'line 1, column 5: bad indentation'],
    ['a: &x [*x]', 'line 1, column 8: aliases are not supported'],
    ['a: !!set {b}', 'line 1, column 4: unknown'],
    ['a: @b', 'line 1, column 4: '],
    ['a: 1\n  b: 2', 'line 2, column 4: bad indentation'],
    ['- 1\na: 2', 'line 2, column 1: end of the stream'],
    ['a:\n\t- 1', 'line 2, column 1: tab characters must not be used in indentation'],
    ['a: [1', 'line 1, column 6: unexpected end of the stream'],
    ["a: 'x", 'line 1, column 6: unexpected end of the stream'],
    ['a: 1\u0000', 'line 1, column 5: null byte'],
    ['['.repeat(101), 'line 1, column 100: nesting exceeded'],
    ['- '.repeat(101), 'line 1, column 201: nesting exceeded'],
    ['a: 1\n---\nb: 2', 'the text has a second document; only one is allowed'],
  ])('invalid YAML is rejected with place and reason: %j', (text, message) => {
    expect(() => readYaml(text)).toThrow(message)
    expect(() => readYaml(text)).toThrow(TypeError)
  })

  test('errors name the line of each value, in every notation', () => {
    const text = '# rules\n- a: 1\n  b:\n    - x\n    -\n- {c: [1,\n  2]}\n- ? [k]\n  : v\n'
    expect(Object.fromEntries(linesOf(text, '$'))).toEqual({
      $: 2,
      '$[0]': 2,
      '$[0].a': 2,
      '$[0].b': 3,
      '$[0].b[0]': 4,
      '$[0].b[1]': 4,
      '$[1]': 6,
      '$[1].c': 6,
      '$[1].c[0]': 6,
      '$[1].c[1]': 7,
      '$[2]': 8,
      '$[2].': 8,
      '$[2].[0]': 8,
    })
  })

  test('any text as YAML is parsed or rejected, without a crash', () => {
    const pieces = [': ', '- ', '\n', '\n  ', ...'a[]{},"\'# \t1\\|']
    let state = 1
    const draw = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return pieces[Math.floor((state / 2 ** 32) * pieces.length)] ?? ''
    }
    for (let i = 0; i < 5000; i++) {
      const text = Array.from({ length: 1 + (i % 12) }, draw).join('')
      try {
        readYaml(text)
      } catch (error) {
        expect(error, text).toBeInstanceOf(TypeError)
        expect(String(error), text).toMatch(/line \d+, column \d+: /)
      }
    }
  })

  test.each([
    ['between words', `a${' '.repeat(200_000)}b`, `a${' '.repeat(200_000)}b`],
    ['before a value', `a:${' '.repeat(200_000)}b`, { a: 'b' }],
    ['before a colon', `a${' '.repeat(200_000)}: b`, { a: 'b' }],
  ])('YAML with very many spaces %s is parsed quickly', (_, text, value) => {
    expect(readYaml(text)).toEqual(value)
  })

  test('YAML of a long state is parsed quickly', () => {
    const rows = Array.from({ length: 20_000 }, (_, id) => ({ id, text: 'x'.repeat(50) }))
    const text = JSON.stringify({ rows }, null, 1)
    expect(readYaml(text)).toEqual({ rows })
    expect(linesOf(text, '$').get('$.rows[19999].text')).toBe(text.split('\n').length - 3)
  })
})

describe('fault rules', () => {
  const rules = `
- match: { operation: createOrder }
  skip: 1
  times: always
  probability: 0.1
  action: { type: commitThenDrop }
- action:
    type: transformBody
    patch:
      - { op: replace, path: /amount, value: "12.50" }
`
  test('fault rules can be written in YAML', () => {
    expect(parseFaultRules(rules, 'yaml')).toEqual([
      {
        match: { operation: 'createOrder' },
        skip: 1,
        times: 'always',
        probability: 0.1,
        action: { type: 'commitThenDrop' },
      },
      { action: { type: 'transformBody', patch: [{ op: 'replace', path: '/amount', value: '12.50' }] } },
    ])
  })

  test.each(['json', 'yaml'] as const)(
    'mistakes in fault rules are rejected with their line, %s',
    (format) => {
      const text = format === 'yaml' ? rules : JSON.stringify(parseFaultRules(rules, 'yaml'), null, 2)
      const wrong = text.replace('0.1', '7')
      const line = wrong.slice(0, wrong.indexOf('robability')).split('\n').length
      expect(() => parseFaultRules(wrong, format)).toThrow(
        `line ${line}: $[0].probability: expected a number from 0 up to 1, got 7`,
      )
      const missing = text.replace(/"?type"?: "?commitThenDrop"?/, '')
      const place = missing
        .slice(0, missing.indexOf('"action"') + 1 || missing.indexOf('action'))
        .split('\n').length
      expect(() => parseFaultRules(missing, format)).toThrow(`line ${place}: $[0].action.type: expected`)
    },
  )
})
