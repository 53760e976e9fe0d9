import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import * as errors from '../../src/errors/classes.ts'
import { root } from '../../tools/build/ensure-built.ts'
import { run } from '../support/run.ts'
import { blocksOf, type Page, proseOf, readPages } from './support/pages.ts'

const pages = readPages()

const page = (path: string): Page => {
  const found = pages.find((candidate) => candidate.path === path)
  if (found === undefined) throw new Error(`there is no page ${path}`)
  return found
}

/** Anchors of a page, built as usual: lower case, spaces to hyphens, other punctuation dropped. */
function anchorsOf(target: Page): ReadonlySet<string> {
  const headings = [...proseOf(target).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading ?? '')
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\- _]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

describe.each(pages)('$path', (current) => {
  const prose = proseOf(current)

  test('the links of the page lead somewhere', () => {
    const broken = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
      if (/^https:\/\//.test(link)) return []
      const [file = '', anchor] = link.split('#')
      const path = file === '' ? current.path : normalize(join(dirname(current.path), file))
      if (!existsSync(join(root, path))) return [link]
      return anchor === undefined || anchorsOf(page(path)).has(anchor) ? [] : [link]
    })
    expect(broken).toEqual([])
  })

  test('the files that the page names exist', () => {
    const named = [...prose.matchAll(/`((?:src|test|docs|examples|tools|\.ci)\/[\w./-]+)`/g)]
    expect(named.map(([, path = '']) => path).filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  test('the page states that the examples are in the repository, not in the package', () => {
    const lines = prose.split('\n').filter((line) => line.includes('examples/'))
    expect(lines.filter((line) => !line.includes('repository'))).toEqual([])
  })

  test('the scripts that the page names exist', () => {
    const named = [...current.text.matchAll(/npm run ([\w:-]+)/g)].map(([, script = '']) => script)
    expect(named.filter((script) => !Object.hasOwn(manifest.scripts, script))).toEqual([])
  })
})

test('every page can be reached from README.md', () => {
  const reached = new Set(['README.md', 'test/README.md', 'tools/README.md'])
  for (const path of reached)
    for (const [, link = ''] of proseOf(page(path)).matchAll(/\]\(([^)#\s]+\.md)(?:#[^)]*)?\)/g))
      if (!link.startsWith('https:')) reached.add(normalize(join(dirname(path), link)))
  expect(pages.map(({ path }) => path).filter((path) => !reached.has(path))).toEqual([])
})

test("README.md shows a part of the quick start's output", async () => {
  const { stdout } = await run(process.execPath, [join(root, 'src/command/main.ts'), 'quickstart'])
  const transcript = blocksOf(page('README.md')).find(({ info }) => info === 'text')
  expect(stdout).toContain(transcript?.code.trim())
})

test('every account label of the docs and examples begins with a domain, as the docs advise', () => {
  const files = ['*.ts', '*/*.{ts,json}', '*/{src,server,test,workerd}/*.{ts,tsx}']
  const examples = globSync(files, { cwd: join(root, 'examples') }).map((name) =>
    readFileSync(join(root, 'examples', name), 'utf8'),
  )
  const shown = [...examples, ...pages.flatMap(blocksOf).map(({ code }) => code)].join('\n')
  const labels = [...shown.matchAll(/\b(?:account: '|_ACCOUNT": "|--account )([^'"\s]+)/g)]
  expect(labels.length).toBeGreaterThan(20)
  expect(labels.map(([, label = '']) => label).filter((label) => !/^[\w-]+\.\w+\//.test(label))).toEqual([])
})

test('CHANGELOG.md begins with the unreleased changes', () => {
  expect(page('CHANGELOG.md').text.match(/^## .+$/m)?.[0]).toBe('## [Unreleased]')
})

test('docs/guide/errors.md has every error class with its code', () => {
  const { text } = page('docs/guide/errors.md')
  const rows = new Map(
    [...text.matchAll(/^\| `(\w+Error)`[^|]*\| (?:`(\w+)`|–) \|/gm)].map(([, name, code]) => [name, code]),
  )
  const classes = Object.entries(errors).filter(([name]) => /^[A-Z]\w+Error$/.test(name))
  expect(rows.size).toBe(classes.length)
  for (const [name, ErrorClass] of classes) {
    const { code } = new (ErrorClass as typeof errors.CustomerOrderingError)('')
    expect(rows.get(name) ?? 'error', name).toBe(code)
  }
})

test('docs/invariants.md names each invariant once, and its function', () => {
  const functions = readFileSync(join(root, 'test/support/invariants.ts'), 'utf8')
  const [table = ''] = page('docs/invariants.md').text.split('## Which test')
  const names = [...table.matchAll(/^\| \*\*(I\d+)\*\*/gm)].map(([, name = '']) => name)
  expect(names).toEqual(Array.from({ length: 12 }, (_, index) => `I${index + 1}`))
  expect(names.filter((name) => !functions.includes(`${name}: `))).toEqual([])
})

test('llms.txt lists every page for users, and no missing page', () => {
  const listed = [...readFileSync(join(root, 'llms.txt'), 'utf8').matchAll(/\]\(([^)]+\.md)\)/g)].map(
    ([, path = '']) => path,
  )
  expect(listed.filter((path) => !existsSync(join(root, path)))).toEqual([])
  const guides = pages.map(({ path }) => path).filter((path) => /^docs\/guide\/[\w-]+\.md$/.test(path))
  expect(guides.filter((path) => !listed.includes(path))).toEqual([])
})
