import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../../scripts/ensure-built.ts'
import { readPages } from './support/pages.ts'

const text = readPages().find(({ path }) => path === 'docs/verification.md')?.text ?? ''
const rows = [...text.matchAll(/^\| \*\*(\w+)\*\* \| .+? \| (.+?) \|/gm)].map(
  ([, finding = '', tests = '']) => ({ finding, tests }),
)

test('the table of findings has every number and letter of the review', () => {
  const numbers = Array.from({ length: 23 }, (_, index) => String(index + 1))
  expect(new Set(rows.map(({ finding }) => finding))).toEqual(new Set([...numbers, ...'abcdefghijkl']))
})

test.each(rows)('the test of finding $finding is in the file that the table names', ({ tests }) => {
  const named = [...tests.matchAll(/`(test\/[\w./-]+)`: (.+?)(?:<br>|$)/g)]
  expect(named.length > 0 || tests.startsWith('none')).toBe(true)
  const missing = named.filter(
    ([, path = '', title = '']) =>
      !readFileSync(join(root, path), 'utf8').replaceAll("\\'", "'").includes(title),
  )
  expect(missing.map(([found]) => found)).toEqual([])
})
