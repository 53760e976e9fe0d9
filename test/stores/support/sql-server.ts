import { join } from 'node:path'
import { run } from '../../support/run.ts'
import { serviceScript } from './services.ts'

/** Time limit of hooks that start or stop a database on a busy machine. */
export const HOOK_TIMEOUT = 120_000

/** A private PostgreSQL or MariaDB, see tools/services. */
export class SqlServer {
  readonly #script: string
  readonly url: string
  readonly directory: string

  private constructor(script: string, directory: string, url: string) {
    this.#script = script
    this.directory = directory
    this.url = url
  }

  /** @param serverOptions such as `--log-bin` */
  static async start(name: 'postgres' | 'mariadb', serverOptions = ''): Promise<SqlServer> {
    const script = serviceScript(name)
    const env = { ...process.env, [`${name.toUpperCase()}_OPTIONS`]: serverOptions }
    const { stdout } = await run(script, ['start', String(process.pid)], { env })
    const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(stdout)?.[1] ?? ''
    return new SqlServer(script, value('directory'), value('url'))
  }

  urlFor(change: {
    readonly user?: string
    readonly password?: string
    readonly database?: string
    readonly port?: string
  }): string {
    const url = new URL(this.url)
    if (change.user !== undefined) url.username = change.user
    if (change.password !== undefined) url.password = change.password
    if (change.port !== undefined) url.port = change.port
    if (change.database !== undefined) url.pathname = `/${change.database}`
    return url.href
  }

  pathOf(name: string): string {
    return join(this.directory, name)
  }

  async restart(): Promise<void> {
    await run(this.#script, ['restart', this.directory])
  }

  async crash(): Promise<void> {
    await run(this.#script, ['crash', this.directory])
  }

  async stop(): Promise<void> {
    await run(this.#script, ['stop', this.directory])
  }
}
