import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, it } from 'vitest'
import { StoreError } from '../../../src/errors.ts'
import { enginesFolder } from './redis-clients.ts'

const run = promisify(execFile)
const script = fileURLToPath(new URL('../../../scripts/services/redis.sh', import.meta.url))

/** What the tests need beside the project itself; why it is missing, or undefined. */
function missing(needed: 'clients' | 'server'): string | undefined {
  const packages = ['redis', 'ioredis'].map(
    (name) => new URL(`node_modules/${name}/package.json`, enginesFolder),
  )
  if (!packages.every((file) => existsSync(file))) return 'run `npm ci` in test/stores/engines'
  if (needed === 'clients') return undefined
  try {
    for (const program of ['redis-server', 'redis-cli'])
      execFileSync(program, ['--version'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'no Redis server is installed'
  }
}

/** Runs tests that need more than the project; without it they are one line that says so, or, in CI, a failure. */
export function describeWith(needed: 'clients' | 'server', title: string, body: () => void): void {
  const why = missing(needed)
  if (why === undefined) describe(title, { timeout: 120_000 }, body)
  else if (process.env['CI'] === 'true')
    it(title, () => {
      throw new Error(`CI must run these tests: ${why}`)
    })
  else it.skip(`${title}: NOT RUN, ${why}`, () => {})
}

/** Says in one line which tests do not run, and why, if so. For one file of a folder to call. */
export function announceMissing(what = 'the tests of RedisStore on real servers'): void {
  const why = missing('server')
  if (why !== undefined && process.env['CI'] !== 'true') console.warn(`NOT RUN: ${what}, ${why}`)
}

/** One server, or a cluster of three, of one's own; see scripts/services/redis.sh. */
export class RedisServers {
  readonly ports: readonly number[]
  /** Where they keep everything. */
  readonly directory: string

  private constructor(directory: string, ports: readonly number[]) {
    this.directory = directory
    this.ports = ports
  }

  /** @param settings such as `--appendonly no` */
  static async start(kind: 'single' | 'cluster', ...settings: string[]): Promise<RedisServers> {
    const directory = mkdtempSync(join(tmpdir(), 'redis-store-'))
    const owner = ['--owner', String(process.pid)]
    const { stdout } = await run(script, ['start', directory, kind, ...owner, ...settings])
    return new RedisServers(directory, stdout.trim().split('\n').map(Number))
  }

  /** The port of the first server. */
  get port(): number {
    return this.ports[0] ?? 0
  }

  /** Asks a server something, with a connection of its own, and returns the lines of its answer. */
  async ask(...command: (string | number)[]): Promise<readonly string[]> {
    return await this.askAt(this.port, ...command)
  }

  async askAt(port: number, ...command: (string | number)[]): Promise<readonly string[]> {
    const { stdout } = await run('redis-cli', ['-h', '127.0.0.1', '-p', String(port), ...command.map(String)])
    const lines = stdout.split('\n').map((line) => line.replace(/\r$/, ''))
    return lines.filter((line) => line !== '')
  }

  /** Kills all servers as a crash would, and starts them again with what they wrote down. */
  async crash(): Promise<void> {
    await run(script, ['restart', this.directory])
  }

  async stop(): Promise<void> {
    await run(script, ['stop', this.directory])
  }
}

/** What a function throws, or the promise it returns rejects with; must be a StoreError. */
export async function failureOf(action: () => unknown): Promise<StoreError> {
  try {
    await action()
  } catch (error) {
    if (error instanceof StoreError) return error
    throw error
  }
  throw new Error('it did not fail')
}
