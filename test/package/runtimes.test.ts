import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }

const run = promisify(execFile)

const binaryOf = (version: string): string =>
  join(inject('versions'), `node_modules/${process.platform}-${process.arch}-${version}/bin/node`)

/** Versions of Node besides the one that runs the tests come as packages for Linux. */
const runtimes: readonly (readonly [name: string, binary: () => string])[] = [
  [`Node ${process.versions.node}`, () => process.execPath],
  ...['22.13', '22', '26'].map((version) => [`Node ${version}`, () => binaryOf(version)] as const),
]

const elsewhere = process.platform !== 'linux'

describe.each(runtimes)('the packed package on %s', (name, binary) => {
  const skipped = elsewhere && !name.endsWith(process.versions.node)

  test.skipIf(skipped).each(['load.mjs', 'load.cjs'])('works in every entry point, %s', async (program) => {
    const cwd = inject('consumerWithPeers')
    const { stdout } = await run(binary(), [program], { cwd })
    const exported: Record<string, string[]> = JSON.parse(stdout)
    expect(Object.keys(exported)).toEqual(
      Object.keys(manifest.exports).filter((path) => path !== './package.json'),
    )
    expect(exported).toMatchObject({
      '.': expect.arrayContaining(['CustomerOrderingClient', 'MemoryStore', 'isCustomerOrderingError']),
      './stores/sqlite': ['SqliteStore'],
      './stores/postgres': ['PostgresStore'],
      './stores/redis': ['RedisStore'],
      './stores/contract': ['explainHistory', 'recordHistory', 'storeContract'],
      './sandbox': expect.arrayContaining(['createSandbox']),
      './msw': ['sandboxHandlers'],
      './undici': ['createUndiciFetch'],
    })
  })

  test.skipIf(skipped).each(['load.mjs', 'load.cjs'])(
    'needs each optional peer for its own entry point only, %s',
    async (program) => {
      const env = { ...process.env, WITHOUT_PEERS: 'true' }
      const { stdout } = await run(binary(), [program], { cwd: inject('consumer'), env })
      expect(Object.keys(JSON.parse(stdout))).toEqual(
        Object.keys(manifest.exports).filter(
          (path) => !['./package.json', './msw', './undici'].includes(path),
        ),
      )
    },
  )

  test.skipIf(skipped)('has errors that are the same by import and by require', async () => {
    const { stdout } = await run(binary(), ['both-copies.mjs'], { cwd: inject('consumer') })
    expect(Number(stdout)).toBeGreaterThan(20)
  })

  test.skipIf(skipped)('has a command that serves the sandbox', async () => {
    const bin = join(inject('consumer'), 'node_modules/.bin/customer-ordering-sandbox')
    const server = spawn(binary(), [bin, '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
    expect(await balanceOf(server)).toEqual({ amount: 1_000_000, currency: 'EUR' })
  })
})

test('the command can be started by its name', async () => {
  const bin = join(inject('consumer'), 'node_modules/.bin/customer-ordering-sandbox')
  const server = spawn(bin, ['--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  expect(await balanceOf(server)).toEqual({ amount: 1_000_000, currency: 'EUR' })
})

test('the version that is sent to the service is the package’s', async () => {
  const { VERSION } = await import('../../src/version.ts')
  expect(VERSION).toBe(manifest.version)
  const installed = await readFile(
    join(inject('consumer'), 'node_modules/customer-ordering-sdk/package.json'),
    'utf8',
  )
  expect(JSON.parse(installed).version).toBe(manifest.version)
})

/** The balance that a sandbox process answers with; ends the process. */
async function balanceOf(server: ChildProcess): Promise<unknown> {
  try {
    if (server.stdout === null) throw new Error('no output')
    for await (const line of createInterface(server.stdout)) {
      const [, url, apiKey] = /listening on (\S+) \(API key: (\S+)\)/.exec(line) ?? []
      const response = await fetch(`${url}/v1/balance`, { headers: { authorization: `Bearer ${apiKey}` } })
      return await response.json()
    }
    throw new Error('the sandbox ended')
  } finally {
    const exit = once(server, 'exit')
    if (server.exitCode === null && server.kill()) await exit
  }
}
