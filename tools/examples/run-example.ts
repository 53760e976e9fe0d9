/**
 * Runs an example against the sandbox command, a separate process on a free loopback port:
 *
 * node tools/examples/run-example.ts bulk-orders
 *
 * An example is `examples/<name>.ts`, or a folder with a `main.ts`. Its faults are in
 * `examples/<name>.faults.json`, or in `faults.json` in the folder. The packages of a folder are
 * installed if they are missing. A folder also gets its own PostgreSQL and Redis, unless
 * `DATABASE_URL` and `REDIS_URL` are set. The exit code is the example's.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import '../build/links.mjs'
import { ensureBuilt, root } from '../build/ensure-built.ts'
import { install } from '../programs/install.ts'
import { startPostgres, startRedis } from '../services/start.ts'

const name = process.argv[2] ?? ''
const folder = join(root, 'examples', name)
const isFolder = existsSync(join(folder, 'main.ts'))
const example = isFolder ? join(folder, 'main.ts') : `${folder}.ts`
if (!/^[\w-]+$/.test(name) || !existsSync(example)) {
  process.stderr.write(`Unknown example: ${JSON.stringify(name)}.\n`)
  process.exit(2)
}

ensureBuilt()
if (isFolder) install('examples')
const services: (() => void)[] = []
try {
  const environment = isFolder ? startServers() : {}
  const faults = isFolder ? join(folder, 'faults.json') : `${folder}.faults.json`
  const { server, baseUrl, apiKey } = await startSandbox(faults)
  services.push(() => server.kill())
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', example], {
    cwd: root,
    env: {
      ...environment,
      ...process.env,
      CUSTOMER_ORDERING_BASE_URL: baseUrl,
      CUSTOMER_ORDERING_API_KEY: apiKey,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  process.exitCode = code ?? 1
} finally {
  for (const stop of services) stop()
}

/** Returns the addresses of the servers for a folder: those of the environment, or new ones. */
function startServers(): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [name, start] of [
    ['DATABASE_URL', startPostgres],
    ['REDIS_URL', startRedis],
  ] as const) {
    if (process.env[name] !== undefined) continue
    const service = start()
    services.push(() => service.stop())
    found[name] = service.url
  }
  return found
}

async function startSandbox(
  faults: string,
): Promise<{ readonly server: ChildProcess; readonly baseUrl: string; readonly apiKey: string }> {
  const flags = ['sandbox', '--port', '0', '--quiet', ...(existsSync(faults) ? ['--faults', faults] : [])]
  const server = spawn(process.execPath, [join(root, 'dist/command.js'), ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface(server.stdout)) {
    const [, baseUrl, apiKey] = /listening on (\S+) \(API key: (\S+)\)/.exec(line) ?? []
    if (baseUrl === undefined || apiKey === undefined) break
    return { server, baseUrl, apiKey }
  }
  server.kill()
  throw new Error('The sandbox did not start.')
}
