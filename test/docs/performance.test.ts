import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { root } from '../../tools/build/ensure-built.ts'

test('docs/performance.md has figures of each section of the bench, with the command that repeats it', () => {
  const page = readFileSync(`${root}/docs/performance.md`, 'utf8')
  const [, figures = ''] = page.split(/<!-- figures: npm run bench -- --write -->|<!-- end of figures -->/)
  const commands = [...figures.matchAll(/npm run bench -- (\w+)/g)].map(([, name]) => name)
  expect(commands).toEqual(['requests', 'lists', 'start', 'bundle', 'stores', 'memory'])
})
