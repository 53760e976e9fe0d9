/** Runs the same suite with the packed package in each runtime and from each bundler. */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, inject } from 'vitest'
import { type SandboxServer, serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { root } from '../../tools/build/ensure-built.ts'
import { loseFirstAnswers } from '../support/lost-answers.ts'
import { bundler, cell, installed, program } from './cell.ts'
import { engines, nodeBinary, nodeVersions } from './node-versions.ts'

const run = promisify(execFile)
const bin = (name: string): string => join(engines, 'node_modules/.bin', name)
const STEPS = ['services', 'lost response', 'remembered order', 'paging', 'typed error', 'abort']
/** Ways to load the package, each with its program. */
const LOADED = [
  ['import', 'import.mjs'],
  ['require', 'require.cjs'],
] as const

let sandbox: ReturnType<typeof createSandbox>
let server: SandboxServer
let folder: string

beforeAll(async () => {
  sandbox = createSandbox({ seed: 1 })
  loseFirstAnswers(sandbox)
  sandbox.faults.add({
    match: { when: ({ externalOrderId }) => externalOrderId?.startsWith('silent-') === true },
    action: { type: 'stall' },
    times: Number.POSITIVE_INFINITY,
  })
  server = await serveSandbox(sandbox)
  folder = join(inject('consumer'), 'smoke')
  await cp(join(root, 'test/package/smoke'), folder, { recursive: true })
  await mkdir(join(folder, 'out'), { recursive: true })
})
afterAll(() => server.close())

/** The output of a program that ran the suite against the sandbox. */
async function stepsOf(program: string, ...args: readonly string[]): Promise<unknown> {
  const env = { ...process.env, SMOKE_BASE_URL: server.url, SMOKE_API_KEY: sandbox.apiKey }
  const before = sandbox.ledger.length
  const { stdout } = await run(program, args, { cwd: folder, env: { ...env, NODE_OPTIONS: '' } })
  // Read from the service, because Deno may resend a lost request without telling the client.
  const charges = sandbox.ledger.slice(before)
  const lost = charges.filter(({ externalOrderId }) => externalOrderId?.startsWith('lost-'))
  expect(lost).toHaveLength(1)
  const key = lost[0]?.idempotencyKey
  expect(sandbox.requests.filter(({ idempotencyKey }) => idempotencyKey === key)).toHaveLength(2)
  return JSON.parse(stdout)
}

/** Bundles into one file for browsers. */
async function bundle(name: string, entry: string): Promise<string> {
  const out = join(folder, `out/${name}.mjs`)
  await run(process.execPath, [join(engines, 'build.mjs'), name, join(folder, entry), out], {
    cwd: engines,
  })
  return out
}

for (const [how, file] of LOADED) {
  for (const version of nodeVersions()) {
    const node = nodeBinary(version)
    cell(program('Node', node), how, async () => {
      expect(await stepsOf(node, file)).toEqual(STEPS)
    })
  }

  cell(program('Bun', bin('bun')), how, async () => {
    expect(await stepsOf(bin('bun'), file)).toEqual(STEPS)
  })

  cell(installed('Deno', engines), `${how}, with no more rights than it needs`, async () => {
    const rights = [
      `--allow-net=127.0.0.1:${server.port}`,
      '--allow-env=SMOKE_BASE_URL,SMOKE_API_KEY,CUSTOMER_ORDERING_BASE_URL,CUSTOMER_ORDERING_API_KEY',
    ]
    expect(await stepsOf(bin('deno'), 'run', '--node-modules-dir=manual', ...rights, file)).toEqual(STEPS)
  })
}

/** The globals that docs/guide/runtimes.md lists. */
async function listedFeatures(): Promise<string> {
  const page = await readFile(join(root, 'docs/guide/runtimes.md'), 'utf8')
  const [, list = ''] = /Exactly these globals.*?```text\n(.*?)\n```/s.exec(page) ?? []
  return list.replaceAll(' ', ',')
}

cell(program('Node', process.execPath), 'with no more globals than the page on runtimes lists', async () => {
  const FEATURES = await listedFeatures()
  const env = { ...process.env, SMOKE_BASE_URL: server.url, SMOKE_API_KEY: sandbox.apiKey, NODE_OPTIONS: '' }
  const { stdout } = await run(process.execPath, ['features.mjs'], { cwd: folder, env: { ...env, FEATURES } })
  const { done, touched } = JSON.parse(stdout)
  expect(done).toEqual(STEPS)
  const optional = ['AbortSignal', 'FormData', 'ReadableStream', 'process']
  expect(touched).toEqual([...FEATURES.split(','), ...optional].toSorted())
})

/** The output of the contract's program. */
const contractOf = async (program: string, ...args: readonly string[]): Promise<unknown> =>
  JSON.parse((await run(program, args, { cwd: folder, env: { ...process.env, NODE_OPTIONS: '' } })).stdout)
const PASSED = { tests: 53, failed: [], charged: 'unknown', created: 1 }

for (const version of nodeVersions()) {
  const node = nodeBinary(version)
  cell(program('Node', node), 'the contract over SqliteStore', async () => {
    expect(await contractOf(node, 'sqlite.mjs')).toEqual(PASSED)
  })
}
cell(program('Bun', bin('bun')), 'the contract over SqliteStore', async () => {
  expect(await contractOf(bin('bun'), 'sqlite.mjs')).toEqual(PASSED)
})
cell(
  installed('Deno', engines),
  'the contract over SqliteStore, with no more rights than it needs',
  async () => {
    const rights = [`--allow-read=${tmpdir()},${inject('consumer')}`, `--allow-write=${tmpdir()}`]
    const environment = '--allow-env=TMPDIR,TMP,TEMP'
    const flags = ['--no-prompt', '--node-modules-dir=manual', ...rights, environment]
    expect(await contractOf(bin('deno'), 'run', ...flags, 'sqlite.mjs')).toEqual(PASSED)
  },
)

cell(installed('workerd', engines), 'in a worker', async () => {
  const worker = await bundle('worker', 'worker.mjs')
  expect(await stepsOf(process.execPath, join(engines, 'run-worker.mjs'), worker)).toEqual(STEPS)
})

for (const name of ['esbuild', 'Vite', 'webpack', 'Rollup'])
  cell(bundler(name), 'bundled for browsers', async () => {
    const file = await bundle(name.toLowerCase(), 'bundle.mjs')
    expect(await readFile(file, 'utf8')).not.toMatch(/['"]node:/)
    expect(await stepsOf(process.execPath, 'run-bundle.mjs', file)).toEqual(STEPS)
  })
