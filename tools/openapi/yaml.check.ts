/**
 * Compares the sandbox's reader of YAML files with the `yaml` package on random texts:
 *
 *     node --test yaml.check.ts
 *
 * What the reader accepts, that package must read as the same value, by the rules of YAML 1.1 and of 1.2. RUNS is the number
 * of texts for each test (default 5,000).
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { parse, stringify } from 'yaml'
import { readYaml } from '../../src/sandbox/control/yaml.ts'

const numRuns = Number(process.env['RUNS'] ?? 5000)

/** The value as text, or null if the reader refuses. Any other failure than a refusal is one of the reader. */
function ours(text: string): string | null {
  try {
    return JSON.stringify(readYaml(text).value)
  } catch (error) {
    if (error instanceof TypeError && /^line \d+, column \d+: /.test(error.message)) return null
    throw error
  }
}

function theirs(text: string, version: '1.1' | '1.2'): string {
  return JSON.stringify(parse(text, { version, logLevel: 'silent' }))
}

/** Compares, and tells whether the text was accepted. */
function agrees(text: string): boolean {
  const value = ours(text)
  if (value === null) return false
  for (const version of ['1.1', '1.2'] as const)
    assert.equal(theirs(text, version), value, `YAML ${version} reads ${JSON.stringify(text)} otherwise`)
  return true
}

const word = fc.constantFrom(
  ...[
    'a',
    'b',
    'drop',
    'x:y',
    'c#d',
    'two words',
    '/v1/orders?limit=2',
    '@ada',
    'null',
    'yes',
    '~',
    '1',
    '-2.5',
  ],
  ...[
    '1e3',
    '012',
    '0x1F',
    '0o17',
    '1_000',
    '12:30',
    '2026-01-01',
    '.5',
    '.inf',
    '5f0c7d1e',
    '1.2.3',
    '-',
    '--',
    '+1',
  ],
  ...[
    '"q"',
    '"\\n"',
    '"\\u0041"',
    "'it''s'",
    '"',
    "'",
    '<<',
    '=',
    '!t',
    '&a',
    '*a',
    '|',
    '>',
    '%',
    '`',
    '\\',
    'é',
    '😀',
  ],
)
const mark = fc.constantFrom(
  ...[
    '\n',
    '\n  ',
    '\n    ',
    '\n- ',
    '\n  - ',
    ': ',
    ':',
    ' ',
    '- ',
    '[',
    ']',
    '{',
    '}',
    ', ',
    ',',
    ' # c',
    '#',
    '---',
    '\t',
  ],
  ...['? ', '\r\n', '...', 'a: ', 'b: ', '\nc: ', '\n  d: '],
)

describe('the reader of YAML files', () => {
  test('takes no text to mean something else than other readers do', () => {
    let accepted = 0
    fc.assert(
      fc.property(fc.array(fc.oneof(word, mark), { maxLength: 12 }), (tokens) => {
        if (agrees(tokens.join(''))) accepted++
      }),
      { numRuns: numRuns * 4 },
    )
    assert.ok(accepted > numRuns / 4, `only ${accepted} texts were accepted`)
  })

  test('takes every single word as others do, or not at all', () => {
    const character = fc.constantFrom(...'0123456789abcdefxoeEyn+-._:~#\'"TZ ,')
    fc.assert(
      fc.property(fc.string({ unit: character, maxLength: 10 }), (text) => {
        agrees(`a: ${text}`)
        agrees(`[${text}]`)
        agrees(`${text}: 1`)
      }),
      { numRuns },
    )
  })

  test('reads what the other package writes, unless it writes what only YAML has', () => {
    let accepted = 0
    const value = fc.jsonValue({ maxDepth: 4 })
    const style = fc.record({
      indent: fc.integer({ min: 1, max: 6 }),
      indentSeq: fc.boolean(),
      collectionStyle: fc.constantFrom('any', 'block', 'flow'),
      lineWidth: fc.constant(0),
    })
    fc.assert(
      fc.property(value, style, (data, options) => {
        if (agrees(stringify(data, options))) accepted++
      }),
      { numRuns },
    )
    assert.ok(accepted > numRuns / 2, `only ${accepted} texts were accepted`)
  })

  test('reads all JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(0, 2, 4), (data, indent) => {
        assert.ok(agrees(JSON.stringify(data, null, indent)))
      }),
      { numRuns },
    )
  })
})
