import { execFile } from 'node:child_process'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'
import { root } from '../../scripts/ensure-built.ts'

const run = promisify(execFile)

/** Compilers by version. */
const compilers = {
  '6.0': () => join(root, 'node_modules/typescript/bin/tsc'),
  '5.9': () => join(inject('versions'), 'node_modules/typescript-5.9/bin/tsc'),
}

const strict = {
  noEmit: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  target: 'es2022',
  types: [],
  lib: ['es2023', 'dom', 'dom.iterable', 'esnext.disposable'],
  skipLibCheck: false,
}

/** With the types of Node and without those of browsers. */
const onNode = { lib: ['es2023'], types: ['node'], typeRoots: [join(root, 'node_modules/@types')] }

interface Case {
  readonly name: string
  readonly version: keyof typeof compilers
  readonly file?: string
  readonly options: Readonly<Record<string, unknown>>
}

const cases: readonly Case[] = [
  ...(['6.0', '5.9'] as const).flatMap((version) => [
    { name: 'bundler', version, options: { module: 'esnext', moduleResolution: 'bundler' } },
    { name: 'node16, ESM', version, file: 'usage.mts', options: { module: 'node16', ...onNode } },
    { name: 'node16, CommonJS', version, file: 'usage.cts', options: { module: 'node16', ...onNode } },
    { name: 'nodenext, ESM', version, file: 'usage.mts', options: { module: 'nodenext' } },
    { name: 'nodenext, CommonJS', version, file: 'usage.cts', options: { module: 'nodenext' } },
  ]),
  {
    name: 'the plainest library setting',
    version: '6.0',
    options: { module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom'], skipLibCheck: true },
  },
  ...(['6.0', '5.9'] as const).map((version) => ({
    name: 'a page without newer libraries, every declaration checked',
    version,
    file: 'usage-browser.ts',
    options: { module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom', 'dom.iterable'] },
  })),
  {
    name: 'node10, which knows no exports',
    version: '5.9',
    options: { module: 'commonjs', moduleResolution: 'node10' },
  },
]

describe('the packed types compile under', () => {
  test.concurrent.each(cases)(
    'TypeScript $version, $name',
    async ({ name, version, file = 'usage.ts', options }) => {
      const directory = join(inject('consumer'), `${version} ${name}`.replaceAll(/\W+/g, '-'))
      await mkdir(directory)
      const source = file === 'usage-browser.ts' ? file : 'usage.ts'
      await copyFile(join(inject('consumer'), source), join(directory, file))
      await compile(version, directory, { ...strict, ...options }, file)
    },
  )

  test('TypeScript 6.0 with the optional peers', async () => {
    const options = { ...strict, module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true }
    await compile('6.0', inject('consumerWithPeers'), options, 'usage-peers.ts')
  })
})

async function compile(
  version: Case['version'],
  cwd: string,
  compilerOptions: object,
  file: string,
): Promise<void> {
  await writeFile(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }))
  const failure = await run(process.execPath, [compilers[version](), '-p', '.'], { cwd }).then(
    () => '',
    ({ stdout, message }) => String(stdout || message),
  )
  expect(failure).toBe('')
}
