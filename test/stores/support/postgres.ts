import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { serviceScript } from './services.ts'

const script = serviceScript('postgres')

/** Time limit of hooks that start or stop a database on a busy machine. */
export const HOOK_TIMEOUT = 120_000

/** A private server, see tools/services/postgres.sh. */
export class PostgresServer {
  readonly url: string
  /** The server's directory. */
  readonly directory: string

  private constructor(directory: string, url: string) {
    this.directory = directory
    this.url = url
  }

  static async start(serverOptions = ''): Promise<PostgresServer> {
    const output = await run(['start', String(process.pid)], { POSTGRES_OPTIONS: serverOptions })
    const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(output)?.[1] ?? ''
    return new PostgresServer(value('directory'), value('url'))
  }

  /** The URL for another user or database. */
  urlFor(change: { readonly user?: string; readonly password?: string; readonly database?: string }): string {
    const url = new URL(this.url)
    if (change.user !== undefined) url.username = change.user
    if (change.password !== undefined) url.password = change.password
    if (change.database !== undefined) url.pathname = `/${change.database}`
    return url.href
  }

  /** The path of a file of the server. */
  pathOf(name: string): string {
    return join(this.directory, name)
  }

  async restart(): Promise<void> {
    await run(['restart', this.directory])
  }

  async crash(): Promise<void> {
    await run(['crash', this.directory])
  }

  async stop(): Promise<void> {
    await run(['stop', this.directory])
  }
}

async function run(parameters: string[], environment: Record<string, string> = {}): Promise<string> {
  const { stdout } = await promisify(execFile)(script, parameters, {
    env: { ...process.env, ...environment },
  })
  return stdout
}
