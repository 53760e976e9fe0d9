import { parseFaultRules } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { readYaml } from '../../src/sandbox/control/yaml.ts'

const read = (text: string) => readYaml(text).value

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
    ['a byte order mark and Windows line ends', '\ufeffa: 1\r\nb: 2\r\n', { a: 1, b: 2 }],
  ])('may have %s', (_, text, value) => {
    expect(read(text)).toEqual(value)
    expect(JSON.stringify(read(text))).toBe(JSON.stringify(value))
  })

  test.each([
    ['a: yes', 'line 1, column 4: "yes" may be read as a text or not'],
    ['a: Null', '"Null" may be read as a text or not'],
    ['a: 012', '"012" may be read'],
    ['a: 2026-01-01', '"2026-01-01" may be read'],
    ['a: 0x1F', '"0x1F" may be read'],
    ['a: 12:30:00', '"12:30:00" may be read'],
    ['a: +1', '"+1" may be read'],
    ['a: e0', '"e0" may be read'],
    ['.: 1', '"." may be read'],
    ['a: 1_000', '"1_000" may be read'],
    ['a: -.inf', '"-.inf" may be read'],
    ['<<: {}', '"<<" may be read'],
    ['1: a', 'line 1, column 1: a field name that is no text'],
    ['{1: a}', 'line 1, column 2: a field name that is no text'],
    ['a: 1\na: 2', 'line 2, column 1: the field "a" is there twice'],
    ['{a: 1,\n a: 2}', 'line 2, column 2: the field "a" is there twice'],
    ['a: b: c', 'line 1, column 5: a second ":" in this line'],
    ['a: |\n  text', 'line 1, column 4: "|" begins something that is not read here'],
    ['a: >-\n  text', '">" begins something'],
    ['a: &x 1', '"&" begins something'],
    ['a: *x', '"*" begins something'],
    ['a: !!str 1', '"!" begins something'],
    ['? a', '"?" begins something'],
    ['a: @b', '"@" begins something'],
    ['%YAML 1.2\n---\na: 1', 'a directive'],
    ['a: 1\n---\nb: 2', 'line 2, column 1: a second document'],
    ['a: 1\n...\n', 'a second document'],
    ['a: 1\n  b: 2', 'line 2, column 3: indented more than the line it belongs to'],
    ['a: one\n  two', 'line 2, column 3: indented more'],
    ['  a: 1\n b: 2', 'line 2, column 2: something follows the value'],
    ['- 1\na: 2', 'line 2, column 1: expected "- " as in the lines above'],
    ['a: 1\n- 2', 'line 2, column 1: expected a field, not a list item'],
    ['a: 1\nb', 'line 2, column 1: expected a field, as in "name: value"'],
    ['a:\n\t- 1', 'line 2, column 1: a tab as indentation'],
    ['a: "x" y', 'line 1, column 7: something follows the value'],
    ['a: "x\n  y"', 'line 1, column 4: this quoted text does not end on its line'],
    ['a: "\\x41"', 'or has an escape that JSON does not know'],
    ["a: 'x", 'line 1, column 4: this quoted text does not end'],
    ['a: [1', 'line 1, column 6: expected "," or "]"'],
    ['a: [1,', 'line 1, column 7: the text ends too early'],
    ['[1,,2]', 'line 1, column 4: expected a value'],
    ['{a}', 'line 1, column 3: expected ": " and a value'],
    ['{a:1}', 'line 1, column 5: expected ": " and a value'],
    ['a: {\nb: 1}', 'line 2, column 1: must be indented deeper'],
    ['a: 1\u0000', 'line 1, column 5: a control character'],
    ['['.repeat(101), 'nested deeper than 100 levels'],
    ['- '.repeat(101), 'nested deeper than 100 levels'],
  ])('are refused with place and reason: %j', (text, message) => {
    expect(() => read(text)).toThrow(message)
    expect(() => read(text)).toThrow(/^line \d+, column \d+: /)
  })

  test('are refused, never a crash, whatever is in them', () => {
    const pieces = [
      'a',
      ': ',
      '- ',
      '\n',
      '\n  ',
      '[',
      ']',
      '{',
      '}',
      ',',
      '"',
      "'",
      '#',
      ' ',
      '\t',
      '1',
      '\\',
      '|',
    ]
    let state = 1
    const draw = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return pieces[Math.floor((state / 2 ** 32) * pieces.length)] ?? ''
    }
    for (let i = 0; i < 5000; i++) {
      const text = Array.from({ length: 1 + (i % 12) }, draw).join('')
      try {
        read(text)
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
  ])('with very many spaces %s are read in a moment', (_, text, value) => {
    expect(read(text)).toEqual(value)
  })

  test('of a long state are read in a moment', () => {
    const rows = Array.from({ length: 20_000 }, (_, id) => ({ id, text: 'x'.repeat(50) }))
    const text = JSON.stringify({ rows }, null, 1)
    const { value, lines } = readYaml(text)
    expect(value).toEqual({ rows })
    expect(lines.get('$.rows[19999].text')).toBe(text.split('\n').length - 3)
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
  test('can be written in YAML', () => {
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

  test.each(['json', 'yaml'] as const)('with a mistake are refused with its line, %s', (format) => {
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
  })
})
