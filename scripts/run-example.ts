/**
 * Runs an example against the sandbox command, which is a process of its own on a free loopback port:
 *
 *     node scripts/run-example.ts quickstart
 *
 * `examples/<name>.faults.json`, where there is one, says what goes wrong. The exit code is the example's.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ensureBuilt, root } from './ensure-built.ts'

const name = process.argv[2] ?? ''
const example = join(root, 'examples', `${name}.ts`)
if (!/^[\w-]+$/.test(name) || !existsSync(example)) {
  process.stderr.write(`There is no example named ${JSON.stringify(name)}.\n`)
  process.exit(2)
}

ensureBuilt()
const { server, baseUrl, apiKey } = await startSandbox(join(root, 'examples', `${name}.faults.json`))
try {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', example], {
    cwd: root,
    env: { ...process.env, CUSTOMER_ORDERING_BASE_URL: baseUrl, CUSTOMER_ORDERING_API_KEY: apiKey },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  process.exitCode = code ?? 1
} finally {
  server.kill()
}

async function startSandbox(
  faults: string,
): Promise<{ readonly server: ChildProcess; readonly baseUrl: string; readonly apiKey: string }> {
  const flags = ['--port', '0', '--quiet', ...(existsSync(faults) ? ['--faults', faults] : [])]
  const server = spawn(process.execPath, [join(root, 'dist/sandbox/cli.js'), ...flags], {
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
