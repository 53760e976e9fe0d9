import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

test('docs/performance.md explains its figures in the words of tools/bench/explained.md', () => {
  expect(read('docs/performance.md')).toContain(read('tools/bench/explained.md').trim())
})

test('docs/performance.md was written by a full run', () => {
  expect(read('docs/performance.md')).toMatch(/^.npm run bench clients. writes this page .* 120 rounds\./m)
})
