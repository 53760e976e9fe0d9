import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, inject } from 'vitest'
import { root } from '../../tools/build/ensure-built.ts'
import { programsOf } from '../docs/support/pages.ts'
import { run } from '../support/run.ts'
import { cell, installed, type Tool } from './cell.ts'
import { engines } from './node-versions.ts'

interface Compiler extends Tool {
  readonly tsc: string
}

function compiler(folder: string, packageName: string): Compiler {
  const tsc = join(folder, 'node_modules', packageName, 'bin/tsc')
  return { ...installed('TypeScript', folder, packageName), tsc }
}

const newest = compiler(root, 'typescript-native')
const ours = compiler(root, 'typescript')
/** The first version that knows `bundler`. */
const oldest = compiler(engines, 'typescript-5.0')

const bundled = { module: 'esnext', moduleResolution: 'bundler' }
const strict = {
  noEmit: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  target: 'es2022',
  types: [],
  lib: ['es2022', 'dom', 'dom.iterable'],
  // Check every declaration file, too.
  skipLibCheck: false,
}

interface Case {
  readonly compiler: Compiler
  readonly how: string
  readonly file?: string
  readonly options: Readonly<Record<string, unknown>>
}

const cases: readonly Case[] = [
  ...[newest, ours, oldest].flatMap((compiler) => {
    const libraries =
      compiler === oldest ? {} : { lib: ['es2023', 'dom', 'dom.iterable', 'esnext.disposable'] }
    // Compile without browser types, and with older types of Node: the newest do not compile with
    // the oldest compiler.
    const typeRoots = [join(compiler === oldest ? engines : root, 'node_modules/@types')]
    const onNode = { lib: ['es2022'], types: ['node'], typeRoots }
    return [
      { how: 'bundler', options: { ...bundled, ...libraries } },
      { how: 'node16, ESM', file: 'usage.mts', options: { module: 'node16', ...onNode } },
      { how: 'node16, CommonJS', file: 'usage.cts', options: { module: 'node16', ...onNode } },
      { how: 'nodenext, ESM', file: 'usage.mts', options: { module: 'nodenext', ...libraries } },
      { how: 'nodenext, CommonJS', file: 'usage.cts', options: { module: 'nodenext', ...libraries } },
      { how: 'bundler, in a page', file: 'usage-browser.ts', options: bundled },
      {
        how: 'bundler, the plainest library setting',
        options: { ...bundled, lib: ['es2022', 'dom'], skipLibCheck: true },
      },
    ].map((each) => ({ compiler, ...each }))
  }),
  {
    compiler: oldest,
    how: 'node10, which knows no exports',
    options: { module: 'commonjs', moduleResolution: 'node10' },
  },
]

describe.concurrent('the packed types compile under', () => {
  for (const [index, { compiler, how, file = 'usage.ts', options }] of cases.entries())
    cell(compiler, how, async () => {
      const directory = join(inject('consumer'), `types-${index}`)
      await mkdir(directory)
      const source = file === 'usage-browser.ts' ? file : 'usage.ts'
      await copyFile(join(inject('consumer'), source), join(directory, file))
      await compile(compiler, directory, { ...strict, ...options }, file)
    })
})

// Run one after the other, because they share a folder.
describe('the packed types compile with the optional peers under', () => {
  for (const [what, file, compilers] of [
    ['the optional peers', 'usage-peers.ts', [newest, ours, oldest]],
    ['the drivers of stores', 'usage-drivers.ts', [newest, ours]],
  ] as const)
    for (const compiler of compilers)
      cell(compiler, `bundler, with ${what}`, async () => {
        // Skip the declarations of other packages, which this package does not control.
        const options = { ...strict, ...bundled, skipLibCheck: true }
        await compile(compiler, inject('consumerWithPeers'), options, file)
      })

  for (const page of ['d1', 'durable-object'])
    cell(newest, `bundler, the worker of the page ${page} with the types of Cloudflare`, async () => {
      const file = `${page}.ts`
      const [code = ''] = programsOf(`docs/guide/stores/${page}.md`)
      await writeFile(join(inject('consumerWithPeers'), file), code)
      const platform = { lib: ['es2022'], types: ['@cloudflare/workers-types'], skipLibCheck: true }
      await compile(newest, inject('consumerWithPeers'), { ...strict, ...platform, ...bundled }, file)
    })
})

async function compile({ tsc }: Compiler, cwd: string, compilerOptions: object, file: string): Promise<void> {
  await writeFile(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }))
  const failure = await run(process.execPath, [tsc, '-p', '.'], { cwd }).then(
    () => '',
    ({ stdout, message }) => String(stdout || message),
  )
  expect(failure).toBe('')
}
