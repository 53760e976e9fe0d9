import { execFileSync } from 'node:child_process'
import { readdir, readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join, posix } from 'node:path'
import { inspect } from 'node:util'
import { expect, inject, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { root } from '../../tools/build/ensure-built.ts'

const installed = (...path: string[]): string =>
  join(inject('consumer'), 'node_modules/customer-ordering-sdk', ...path)

test('the packed file contains build, documentation, OpenAPI description, manifest and licences, and nothing else', () => {
  const others = inject('packedFiles').filter(
    (path) =>
      !/^docs\/([\w-]+\/)*[\w-]+\.(md|svg|webp)$/.test(path) &&
      !/^dist\/(stores\/|sandbox\/|proxy\/|node\/)?[\w-]+(\.d-[\w-]+)?\.(js|cjs|d\.ts|d\.cts)$/.test(path),
  )
  expect(others.toSorted()).toEqual([
    'AGENTS.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'LICENSE',
    'README.md',
    'RELEASING.md',
    'SECURITY.md',
    'THIRD-PARTY-LICENSES.txt',
    'llms.txt',
    'openapi/customer-ordering.yaml',
    'package.json',
  ])
})

test('the packed file contains every file that the manifest names', () => {
  const named: string[] = [manifest.main, manifest.module, manifest.types]
  const collect = (value: unknown): void => {
    if (typeof value === 'string') named.push(value)
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect)
  }
  collect([manifest.exports, manifest.bin, manifest.typesVersions])
  const packed = new Set(inject('packedFiles').map((path) => `./${path}`))
  expect(named.filter((path) => !packed.has(path))).toEqual([])
})

test('the installed pages have no broken links', async () => {
  const packed = new Set(inject('packedFiles'))
  const broken: string[] = []
  for (const page of packed) {
    if (!/\.md$|^llms\.txt$/.test(page)) continue
    const text = (await readFile(installed(page), 'utf8')).replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
    for (const [, link = ''] of text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^https:/.test(link)) continue
      if (!packed.has(posix.normalize(posix.join(posix.dirname(page), link)))) broken.push(`${page}: ${link}`)
    }
  }
  expect(broken).toEqual([])
})

test('the packed file has the OpenAPI description under its exported name', async () => {
  const path = createRequire(installed('package.json')).resolve('customer-ordering-sdk/openapi.yaml')
  expect(await readFile(path, 'utf8')).toMatch(/^openapi: "3\.1\.\d"$/m)
})

test('the packed file lets old resolvers find the types of every entry point', () => {
  const subpaths = Object.keys(manifest.exports).filter((path) => !/^\.$|\.(json|yaml)$/.test(path))
  expect(Object.keys(manifest.typesVersions['*'])).toEqual(subpaths.map((path) => path.slice(2)))
})

test('the packed declarations use only exported types', async () => {
  const files = inject('packedFiles').filter((path) => /^dist\/index\.d\.c?ts$/.test(path))
  expect(files).toHaveLength(2)
  for (const file of files)
    expect(await readFile(installed(file), 'utf8')).not.toMatch(
      /(interface|class|type) (ResourceContext|OrderContext|Connection|Journal|JournalRecord|Lifetime|Shared|FetchPage|Start)\b/,
    )
})

test('classes of the packed file, even in its Node build, are printed by their own names', async () => {
  for (const build of ['dist', 'dist/node']) {
    const sdk = await import(installed(build, 'index.js'))
    const client = new sdk.CustomerOrderingClient({ baseUrl: 'https://api.example.com', apiKey: 'k' })
    const page = await client.withOptions({ fetch: async () => Response.json([]) }).services.list()
    expect(inspect(client)).toMatch(/^CustomerOrderingClient /)
    expect(inspect(page)).toMatch(/^ListPage /)
  }
})

test('the packed file names no folder of the build machine and no source map', async () => {
  const files = inject('packedFiles').filter((path) => path.startsWith('dist/'))
  for (const file of files) {
    const text = await readFile(installed(file), 'utf8')
    expect(text.includes(process.cwd()), file).toBe(false)
    expect(text.includes('sourceMappingURL='), file).toBe(false)
  }
})

test.each(['dist/node/index.js', 'dist/node/index.cjs'])(
  'a debugger that steps into %s shows the functions of the source, unminified',
  async (file) => {
    const text = await readFile(installed(file), 'utf8')
    const [, module = ''] = text.split('// src/orders/sending/drive.ts\n')
    expect(module).toMatch(/^async function drive\(context, job\) \{\n {2}\w/m)
    for (const line of module.split('// src/')[0]?.split('\n') ?? []) expect(line.length).toBeLessThan(200)
  },
)

test('the packed file has the licence of every package that the Node build copies', async () => {
  const notice = await readFile(installed('THIRD-PARTY-LICENSES.txt'), 'utf8')
  const files = inject('packedFiles').filter((path) => /^dist\/node\/.*js$/.test(path))
  const texts = await Promise.all(files.map((path) => readFile(installed(path), 'utf8')))
  // esbuild names the source above each module.
  const copied = new Set(
    texts.flatMap((text) =>
      [...text.matchAll(/^\s*\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)/gm)].map(([, name]) => name),
    ),
  )
  // ky is a module of its own, without such a line.
  for (const name of [...copied, 'ky']) {
    const folder = join(inject('consumer'), 'node_modules', String(name))
    const file = (await readdir(folder)).find((path) => /^licen[cs]e/i.test(path))
    expect(notice, String(name)).toContain((await readFile(join(folder, file ?? ''), 'utf8')).trim())
  }
  expect([...copied].toSorted()).toEqual(['uuid', 'zod'])
})

test('the package depends on ky, uuid and zod only', async () => {
  const folders = await readdir(join(inject('consumer'), 'node_modules'))
  expect(folders.filter((name) => !name.startsWith('.'))).toEqual([
    'customer-ordering-sdk',
    'ky',
    'uuid',
    'zod',
  ])
})

test('packing leaves a current build alone, because other steps of CI read it meanwhile', async () => {
  const builtAt = async () => (await stat(join(root, 'dist/node/index.js'))).mtimeMs
  const before = await builtAt()
  execFileSync('npm', ['pack', '--dry-run', '--silent'], { cwd: root })
  expect(await builtAt()).toBe(before)
})

test('the package runs no script at installation', () => {
  const scripts = Object.keys(manifest.scripts)
  expect(scripts.filter((name) => /^(pre|post)?install$/.test(name))).toEqual([])
})
