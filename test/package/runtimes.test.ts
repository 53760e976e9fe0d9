import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, inject, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { run } from '../support/run.ts'
import { nodeBinary, nodeVersions } from './node-versions.ts'

const HOW = ['import', 'require'] as const
const ENTRIES = Object.keys(manifest.exports).filter((path) => !/\.(json|yaml)$/.test(path))

describe.each(nodeVersions())('the packed package on Node %s', (version) => {
  const node = (): string => nodeBinary(version)

  test.each(HOW)('every entry point of the package loads by %s', async (how) => {
    const cwd = inject('consumerWithPeers')
    const { stdout } = await run(node(), ['load.mjs', how], { cwd })
    const exported: Record<string, string[]> = JSON.parse(stdout)
    expect(Object.keys(exported)).toEqual(ENTRIES)
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

  test.each(HOW)('only its own entry point needs an optional peer, by %s', async (how) => {
    const { stdout } = await run(node(), ['load.mjs', how, 'without peers'], { cwd: inject('consumer') })
    const peers = ['./msw', './undici', './opentelemetry']
    expect(Object.keys(JSON.parse(stdout))).toEqual(ENTRIES.filter((path) => !peers.includes(path)))
  })

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
