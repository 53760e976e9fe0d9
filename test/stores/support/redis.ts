import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../../support/run.ts'
import { serviceScript } from './services.ts'

const script = serviceScript('redis')

/** A private server, or a private cluster of three; see tools/services/redis.sh. */
export class RedisServers {
  readonly ports: readonly number[]
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

  get port(): number {
    return this.ports[0] ?? 0
  }

  /** Sends a command to a server on a separate connection, and returns the lines of the reply. */
  async ask(...command: (string | number)[]): Promise<readonly string[]> {
    return await this.askAt(this.port, ...command)
  }

  async askAt(port: number, ...command: (string | number)[]): Promise<readonly string[]> {
    const { stdout } = await run('redis-cli', ['-h', '127.0.0.1', '-p', String(port), ...command.map(String)])
    const lines = stdout.split('\n').map((line) => line.replace(/\r$/, ''))
    return lines.filter((line) => line !== '')
  }

  /** Kills all servers, as a crash would, and restarts them with their stored data. */
  async crash(): Promise<void> {
    await run(script, ['restart', this.directory])
  }

  async stop(): Promise<void> {
    await run(script, ['stop', this.directory])
  }
}
