/** Runs the same suite with the packed package in each runtime and from each bundler. */
import { readFileSync } from 'node:fs'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject } from 'vitest'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { root } from '../../tools/build/ensure-built.ts'
import { loseFirstAnswers } from '../support/lost-answers.ts'
import { run } from '../support/run.ts'
import { bundler, cell, installed, program, type Tool } from './cell.ts'
import { engines, nodeBinary, nodeVersions } from './node-versions.ts'

const bin = (name: string): string => join(engines, 'node_modules/.bin', name)
const STEPS = ['services', 'lost response', 'remembered order', 'paging', 'typed error', 'abort']
/** The globals that docs/guide/runtimes.md lists. */
const page = readFileSync(join(root, 'docs/guide/runtimes.md'), 'utf8')
const FEATURES = (/Exactly these globals.*?```text\n(.*?)\n```/s.exec(page)?.[1] ?? '').replaceAll(' ', ',')

const folder = join(inject('consumer'), 'smoke')
const sandbox = createSandbox({ seed: 1 })
const server = await serveSandbox(sandbox)
afterAll(() => server.close())

beforeAll(async () => {
  loseFirstAnswers(sandbox)
  sandbox.faults.add({
    match: { when: ({ externalOrderId }) => externalOrderId?.startsWith('silent-') === true },
    action: { type: 'stall' },
    times: Number.POSITIVE_INFINITY,
  })
  await cp(join(root, 'test/package/smoke'), folder, { recursive: true })
  await mkdir(join(folder, 'out'), { recursive: true })
})

async function printed(...command: readonly string[]): Promise<unknown> {
  const [program = '', ...args] = command
  const service = { SMOKE_BASE_URL: server.url, SMOKE_API_KEY: sandbox.apiKey, FEATURES }
  const env = { ...process.env, ...service, NODE_OPTIONS: '' }
  return JSON.parse((await run(program, args, { cwd: folder, env })).stdout)
}

/** The output of a program that ran the suite against the sandbox. */
async function stepsOf(...command: readonly string[]): Promise<unknown> {
  const before = sandbox.ledger.length
  const steps = await printed(...command)
  // Read from the service, because Deno may resend a lost request without telling the client.
  const charges = sandbox.ledger.slice(before)
  const lost = charges.filter(({ externalOrderId }) => externalOrderId?.startsWith('lost-'))
  expect(lost).toHaveLength(1)
  const key = lost[0]?.idempotencyKey
  expect(sandbox.requests.filter(({ idempotencyKey }) => idempotencyKey === key)).toHaveLength(2)
  return steps
}

/** Bundles into one file for browsers. */
async function bundle(name: string, entry: string): Promise<string> {
  const out = join(folder, `out/${name}.mjs`)
  await run(process.execPath, [join(engines, 'build.mjs'), name, join(folder, entry), out], { cwd: engines })
  return out
}

/** Runtimes, with the command that runs a program with no more rights than it needs. */
const RUNTIMES: readonly (readonly [tool: Tool, command: (...rights: string[]) => readonly string[]])[] = [
  ...nodeVersions().map((version) => {
    const node = nodeBinary(version)
    return [program('Node', node), () => [node]] as const
  }),
  [program('Bun', bin('bun')), () => [bin('bun')]],
  [
    installed('Deno', engines),
    (...rights) => [bin('deno'), 'run', '--no-prompt', '--node-modules-dir=manual', ...rights],
  ],
]

for (const [tool, command] of RUNTIMES) {
  for (const [how, file] of [
    ['import', 'import.mjs'],
    ['require', 'require.cjs'],
  ] as const)
    cell(tool, how, async () => {
      const variables = 'SMOKE_BASE_URL,SMOKE_API_KEY,CUSTOMER_ORDERING_BASE_URL,CUSTOMER_ORDERING_API_KEY'
      const rights = [`--allow-net=127.0.0.1:${server.port}`, `--allow-env=${variables}`]
      expect(await stepsOf(...command(...rights), file)).toEqual(STEPS)
    })

  cell(tool, 'the contract over SqliteStore', async () => {
    const rights = [`--allow-read=${tmpdir()},${inject('consumer')}`, `--allow-write=${tmpdir()}`]
    const environment = '--allow-env=TMPDIR,TMP,TEMP'
    const results = await printed(...command(...rights, environment), 'sqlite.mjs')
    expect(results).toEqual({ tests: 53, failed: [], charged: 'unknown', created: 1 })
  })
}

cell(program('Node', process.execPath), 'with no more globals than the page on runtimes lists', async () => {
  const { done, touched } = Object(await printed(process.execPath, 'features.mjs'))
  expect(done).toEqual(STEPS)
  const optional = ['AbortSignal', 'FormData', 'ReadableStream', 'navigator', 'process']
  expect(touched).toEqual([...FEATURES.split(','), ...optional].toSorted())
})

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
