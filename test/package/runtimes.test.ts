import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { nodeBinary, nodeVersions } from './node-versions.ts'

const run = promisify(execFile)

describe.each(nodeVersions())('the packed package on Node %s', (version) => {
  const node = (): string => nodeBinary(version)

  test.each(['load.mjs', 'load.cjs'])('every entry point of the package loads, %s', async (program) => {
    const cwd = inject('consumerWithPeers')
    const { stdout } = await run(node(), [program], { cwd })
    const exported: Record<string, string[]> = JSON.parse(stdout)
    expect(Object.keys(exported)).toEqual(
      Object.keys(manifest.exports).filter((path) => !/\.(json|yaml)$/.test(path)),
    )
    expect(exported).toMatchObject({
      '.': expect.arrayContaining(['CustomerOrderingClient', 'MemoryStore', 'isCustomerOrderingError']),
      './stores/sqlite': ['SqliteStore'],
      './stores/postgres': ['PostgresStore'],
      './stores/mysql': ['MysqlStore'],
      './stores/redis': ['RedisStore'],
      './stores/indexeddb': ['IndexedDbStore'],
      './stores/d1': ['D1Store'],
      './stores/durable-object': ['DurableObjectStore'],
      './stores/contract': ['explainHistory', 'recordHistory', 'storeContract'],
      './sandbox': expect.arrayContaining(['createSandbox']),
      './sandbox/server': ['serveSandbox'],
      './msw': ['sandboxHandlers'],
      './undici': ['undiciTransport'],
      './proxy': ['createProxy'],
      './proxy/node': ['createNodeProxy'],
      './opentelemetry': ['observeOpenOrders', 'telemetryHooks', 'traceHeaders'],
    })
  })

  test.each(['load.mjs', 'load.cjs'])(
    'only its own entry point needs an optional peer, %s',
    async (program) => {
      const env = { ...process.env, WITHOUT_PEERS: 'true' }
      const { stdout } = await run(node(), [program], { cwd: inject('consumer'), env })
      expect(Object.keys(JSON.parse(stdout))).toEqual(
        Object.keys(manifest.exports).filter(
          (path) => !/\.(json|yaml)$/.test(path) && !['./msw', './undici', './opentelemetry'].includes(path),
        ),
      )
    },
  )

  test('the package creates spans and metrics with the oldest API of OpenTelemetry', async () => {
    const { stdout } = await run(node(), ['telemetry.mjs'], { cwd: inject('consumerWithPeers') })
    expect(JSON.parse(stdout)).toEqual({
      spans: ['balance.retrieve', 'GET /v1/balance'],
      numbers: ['http.client.request.duration', 'ordering.calls', 'ordering.store.readable 1'],
    })
  })

  test('errors are the same by import and by require', async () => {
    const { stdout } = await run(node(), ['both-copies.mjs'], { cwd: inject('consumer') })
    expect(Number(stdout)).toBeGreaterThan(20)
  })

  test('the command of the package serves the sandbox', async () => {
    const bin = join(inject('consumer'), 'node_modules/.bin/customer-ordering-sdk')
    const server = spawn(node(), [bin, 'sandbox', '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
    expect(await balanceOf(server)).toEqual({ amount: 1_000_000, currency: 'EUR' })
  })
})

test('the command can be started by its name', async () => {
  const bin = join(inject('consumer'), 'node_modules/.bin/customer-ordering-sdk')
  const server = spawn(bin, ['sandbox', '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  expect(await balanceOf(server)).toEqual({ amount: 1_000_000, currency: 'EUR' })
})

test("the version sent to the service is the package's version", async () => {
  const installed = await readFile(
    join(inject('consumer'), 'node_modules/customer-ordering-sdk/package.json'),
    'utf8',
  )
  expect(JSON.parse(installed).version).toBe(manifest.version)
})

/** Reads the balance from a sandbox process, then ends the process. */
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
