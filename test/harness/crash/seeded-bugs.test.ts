import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { SEEDED_BUGS, type SeededBug } from './seeded-bugs.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const WORK = join(ROOT, '.tmp', `seeded-bugs-${process.pid}`)

/** The tests that guard the money; the others would only make this slower. */
const TESTS = [
  'test/unit/idempotency/outcome',
  'test/unit/idempotency/classify',
  'test/unit/resources/scan-orders',
  'test/unit/resources/look-up',
  'test/unit/resources/place-order',
  'test/unit/http/transport',
  'test/client/create/idempotency',
  'test/client/create/changed-arguments',
  'test/client/create/claims',
  'test/client/create/conflicts',
  'test/client/recover/contradictions',
  'test/client/create/enqueue',
  'test/client/create/anonymous',
  'test/client/create/generations',
  'test/client/create/store-faults',
  'test/client/create/sequences',
  'test/client/create/api-key-rotation',
  'test/client/setup/codec',
  'test/client/recover/recover',
  'test/client/recover/restored',
  'test/client/recover/resolve',
  'test/client/setup/secrets',
  'test/client/create/abort',
  'test/client/create/retry',
  'test/client/lists/paging',
  'test/client/recover/pruning',
  'test/server/sleep',
  'test/server/wire',
]

/** A copy of the project with one bug in it. */
function mutate({ name, edits }: SeededBug): string {
  const folder = join(WORK, name.replace(/\W+/g, '-'))
  mkdirSync(folder, { recursive: true })
  for (const part of [
    'src',
    'test',
    'scripts',
    'package.json',
    'tsconfig.json',
    'tsconfig.test.json',
    'vitest.config.ts',
  ])
    cpSync(join(ROOT, part), join(folder, part), {
      recursive: true,
      filter: (path) => !path.includes('node_modules'),
    })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const { file, search, replace } of edits) {
    const path = join(folder, 'src', file)
    const parts = readFileSync(path, 'utf8').split(search)
    if (parts.length !== 2)
      throw new Error(`${file} has ${parts.length - 1} places that fit the seeded bug "${name}"`)
    writeFileSync(path, parts.join(replace))
  }
  return folder
}

/** Runs the guarding tests in a folder; true if all of them passed. */
function passes(folder: string): Promise<{ readonly passed: boolean; readonly output: string }> {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const projects = ['unit', 'client', 'server'].flatMap((name) => ['--project', name])
  const child = spawn(
    process.execPath,
    [vitest, 'run', '--root', folder, '--bail', '1', '--reporter', 'dot', ...projects, ...TESTS],
    {
      cwd: folder,
      env: { ...process.env, CI: '', NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += String(chunk)
    })
  return new Promise((resolve) => child.once('close', (code) => resolve({ passed: code === 0, output })))
}

// A test run that ends its last processes may still write here for a moment.
afterAll(() => rmSync(WORK, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }), 120_000)

describe('the tests that guard the money', () => {
  it('are all there', () => {
    // Vitest says nothing of a name that fits no file.
    expect(TESTS.filter((name) => !existsSync(join(ROOT, `${name}.test.ts`)))).toEqual([])
  })

  it('pass on the source as it is', async () => {
    const { passed, output } = await passes(mutate({ name: 'none', edits: [] }))
    expect(passed, output).toBe(true)
  })

  it.concurrent.each(SEEDED_BUGS)('notice it when $name', async (bug) => {
    const { passed, output } = await passes(mutate(bug))
    expect(passed).toBe(false)
    // A mutant that does not even load, or names what is not there, proves nothing about the tests.
    expect(output).toMatch(/Tests +\d+ failed/)
    expect(output).not.toMatch(/ReferenceError|SyntaxError|Cannot find module|Transform failed/)
  })
})
