/**
 * Tests the oldest and the newest version of each optional peer. Those of others:
 * test/stores/{mysql,postgres,redis}.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { root } from '../../tools/build/ensure-built.ts'
import engineManifest from '../engines/package.json' with { type: 'json' }
import { temporaryFolder } from '../support/folder.ts'
import { run } from '../support/run.ts'
import { engines } from './node-versions.ts'

const { peerDependencies: ranges, devDependencies: ours } = manifest
const { dependencies: others } = engineManifest
const versionOf = (alias: string): string => alias.replace(/^npm:.*@/, '')

/** By peer, the versions at both ends of its range. */
const ENDS: Readonly<Record<keyof typeof ranges, readonly [oldest: string, newest: string]>> = {
  '@opentelemetry/api': [versionOf(others['opentelemetry-api-1.3']), ours['@opentelemetry/api']],
  ioredis: [versionOf(others['ioredis-5']), others.ioredis],
  msw: [versionOf(others['msw-2']), ours.msw],
  mysql2: [versionOf(others['mysql2-3.9']), others.mysql2],
  pg: [versionOf(others['pg-8.0']), others.pg],
  redis: [versionOf(others['redis-5']), others.redis],
  undici: [versionOf(others['undici-6']), ours.undici],
}

async function printed(program: string, peer: string): Promise<unknown> {
  const env = { ...process.env, PEER: peer, NODE_OPTIONS: '', NODE_NO_WARNINGS: '1' }
  const { stdout } = await run(process.execPath, [program], { cwd: inject('consumer'), env })
  return JSON.parse(stdout)
}

test.each(Object.keys(ENDS) as (keyof typeof ranges)[])(
  'the range of %s begins with the oldest tested version, and ends with the newest',
  (peer) => {
    const [oldest, newest] = ENDS[peer]
    const parts = ranges[peer].split(' || ').map((part) => part.replace('^', ''))
    expect(parts[0]).toBe(oldest)
    expect(parts.at(-1)?.split('.')[0]).toBe(newest.split('.')[0])
    expect(manifest.peerDependenciesMeta[peer]).toEqual({ optional: true })
  },
)

test('docs/guide/runtimes.md names the tested versions of the peers', async () => {
  const text = await readFile(join(root, 'docs/guide/runtimes.md'), 'utf8')
  for (const [peer, ends] of Object.entries(ENDS))
    expect(text).toContain(`\n| \`${peer}\` | ${ends.join(' | ')} |`)
})

test.each([
  join(engines, 'node_modules/undici-6'),
  join(engines, 'node_modules/undici-7'),
  join(root, 'node_modules/undici'),
])('the undici transport reports every outcome the same with %s', async (peer) => {
  expect(await printed('undici.mjs', peer)).toEqual({
    amount: 500,
    currency: 'EUR',
    refused: 'not_found no',
    aborted: 'timeout no',
    held: 'connection no',
    unsent: 'connection no',
    closed: 'connection no',
  })
})

test("an interceptor of the application's own global dispatcher may have sent an order before it failed", async () => {
  const peer = join(engines, 'node_modules/undici-6')
  expect(await printed('interceptors.mjs', peer)).toEqual({ code: 'connection', charged: 'unknown' })
})

test.each([join(engines, 'node_modules/msw-2'), join(root, 'node_modules/msw')])(
  'the sandbox handlers respond through %s',
  async (peer) => {
    expect(await printed('msw.mjs', peer)).toEqual({ amount: 500, listed: 1, refused: 'not_found' })
  },
)

test.each([
  ['oldest', 0],
  ['newest', 1],
] as const)('the package installs together with the %s peers', async (_name, end) => {
  const directory = temporaryFolder('peers', onTestFinished)
  const consumer = JSON.parse(await readFile(join(inject('consumer'), 'package.json'), 'utf8'))
  // A folder next to the consumer's.
  const packed = String(consumer.dependencies[manifest.name]).replace(/^file:/, '')
  const peers = Object.fromEntries(Object.entries(ENDS).map(([peer, ends]) => [peer, ends[end]]))
  await writeFile(
    join(directory, 'package.json'),
    JSON.stringify({
      private: true,
      dependencies: { [manifest.name]: `file:${join(inject('consumer'), packed)}`, ...peers },
    }),
  )
  // npm resolves the dependencies and installs nothing.
  await run('npm', ['install', '--package-lock-only', '--prefer-offline'], { cwd: directory })
})
