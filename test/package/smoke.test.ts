/** The packed package in each runtime and from each bundler: one test a cell, the same suite in all of them. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { root } from '../../scripts/ensure-built.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { type SandboxServer, serveSandbox } from '../../src/sandbox/server.ts'
import { nodeBinary, nodeVersions } from './node-versions.ts'

const run = promisify(execFile)
const engines = join(root, 'test/package/engines')
const bin = (name: string): string => join(engines, 'node_modules/.bin', name)
const STEPS = ['services', 'lost response', 'remembered order', 'paging', 'typed error', 'abort']
const BUNDLERS = ['esbuild', 'vite', 'webpack', 'rollup']

let sandbox: ReturnType<typeof createSandbox>
let server: SandboxServer
let folder: string

beforeAll(async () => {
  sandbox = createSandbox({ seed: 1 })
  const lost = new Set<string>()
  sandbox.faults.add({
    match: {
      when: ({ externalOrderId }) => {
        if (externalOrderId?.startsWith('lost-') !== true || lost.has(externalOrderId)) return false
        lost.add(externalOrderId)
        return true
      },
    },
    action: { type: 'commitThenDrop' },
    times: Number.POSITIVE_INFINITY,
  })
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
afterAll(async () => {
  await server.close()
  const lost = new Set(sandbox.ledger.map(({ externalOrderId }) => externalOrderId))
  for (const reference of lost) if (reference?.startsWith('lost-')) sandbox.expectChargedOnce(reference)
})

/** What a program printed that ran the suite against the sandbox. */
async function stepsOf(program: string, ...args: readonly string[]): Promise<unknown> {
  const env = { ...process.env, SMOKE_BASE_URL: server.url, SMOKE_API_KEY: sandbox.apiKey }
  const { stdout } = await run(program, args, { cwd: folder, env: { ...env, NODE_OPTIONS: '' } })
  return JSON.parse(stdout)
}

/** One file for browsers. */
async function bundle(bundler: string, entry: string): Promise<string> {
  const out = join(folder, `out/${bundler}.mjs`)
  await run(process.execPath, [join(engines, 'build.mjs'), bundler, join(folder, entry), out], {
    cwd: engines,
  })
  return out
}

describe.each(nodeVersions())('on Node %s', (version) => {
  it.each(['import.mjs', 'require.cjs'])('works, %s', async (program) => {
    expect(await stepsOf(nodeBinary(version, inject('versions')), program)).toEqual(STEPS)
  })
})

const missing = existsSync(bin('deno')) ? undefined : 'run `npm ci` in test/package/engines'
const inCi = process.env['CI'] === 'true'

if (missing !== undefined)
  it.skipIf(!inCi)(`works on Bun, Deno and workerd and from bundlers: NOT RUN, ${missing}`, () => {
    throw new Error(`CI must run these tests: ${missing}`)
  })

describe.skipIf(missing !== undefined)('on other runtimes', () => {
  it.each(['import.mjs', 'require.cjs'])('works on Bun, %s', async (program) => {
    expect(await stepsOf(bin('bun'), program)).toEqual(STEPS)
  })

  it.each(['import.mjs', 'require.cjs'])(
    'works on Deno, %s, with no more rights than it needs',
    async (program) => {
      const rights = [
        `--allow-net=127.0.0.1:${server.port}`,
        '--allow-env=SMOKE_BASE_URL,SMOKE_API_KEY,CUSTOMER_ORDERING_BASE_URL,CUSTOMER_ORDERING_API_KEY',
      ]
      expect(await stepsOf(bin('deno'), 'run', '--node-modules-dir=manual', ...rights, program)).toEqual(
        STEPS,
      )
    },
  )

  it('works in a worker on workerd', async () => {
    const worker = await bundle('worker', 'worker.mjs')
    expect(await stepsOf(process.execPath, join(engines, 'run-worker.mjs'), worker)).toEqual(STEPS)
  })

  it.each(BUNDLERS)('works as bundled by %s for browsers', async (bundler) => {
    const file = await bundle(bundler, 'bundle.mjs')
    expect(await readFile(file, 'utf8')).not.toMatch(/['"]node:/)
    expect(await stepsOf(process.execPath, 'run-bundle.mjs', file)).toEqual(STEPS)
  })
})
