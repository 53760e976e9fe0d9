import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { PostgresClient, PostgresParameter } from 'customer-ordering-sdk/stores/postgres'
import { describe, it } from 'vitest'

/** As much of pg as the tests use. Its own types are not installed with the project. */
export interface PgClient extends PostgresClient {
  connect(): Promise<unknown>
  end(): Promise<void>
  getTransactionStatus(): string | null
  on(event: 'error', listener: (error: Error) => void): unknown
}

export interface PgPooledClient extends PgClient {
  release(destroy?: boolean): void
}

export interface PgPool extends PostgresClient {
  readonly totalCount: number
  readonly idleCount: number
  connect(): Promise<PgPooledClient>
  end(): Promise<void>
  on(event: 'error' | 'connect', listener: (subject: never) => void): unknown
}

/** Options of pg's clients and pools. */
export interface PgOptions {
  readonly connectionString?: string
  readonly max?: number
  readonly options?: string
  readonly connectionTimeoutMillis?: number
  readonly query_timeout?: number
  readonly statement_timeout?: number
}

interface Pg {
  readonly Pool: new (options: PgOptions) => PgPool
  readonly Client: new (options: PgOptions) => PgClient
  readonly types: { setTypeParser(oid: number, parser: (text: string) => unknown): void }
}

export interface PGliteDatabase extends PostgresClient {
  exec(sql: string): Promise<unknown>
  transaction<T>(body: (transaction: PostgresClient) => Promise<T>): Promise<T>
  close(): Promise<void>
}

interface PGliteModule {
  readonly PGlite: { create(directory?: string): Promise<PGliteDatabase> }
}

/** As much of postgres.js as the tests use. */
export interface PostgresJs {
  unsafe(text: string, parameters?: PostgresParameter[]): Promise<readonly unknown[]>
  end(options?: { timeout: number }): Promise<void>
}

const enginesFolder = new URL('../engines/', import.meta.url)
const requireEngine = createRequire(new URL('package.json', enginesFolder))
const script = fileURLToPath(new URL('../../../scripts/services/postgres.sh', import.meta.url))

/** A module of test/stores/engines, typed by the one who asks. */
function engine<T>(name: string): T {
  return requireEngine(name) as T
}

export const pg = (): Pg => engine<Pg>('pg')
export const pglite = (): PGliteModule => engine<PGliteModule>('@electric-sql/pglite')
export const postgresJs = (): ((url: string, options?: object) => PostgresJs) => engine('postgres')

/** What the tests need beside the project itself; why it is missing, or undefined. */
function missing(needed: 'clients' | 'server'): string | undefined {
  if (!existsSync(new URL('node_modules/pg/package.json', enginesFolder)))
    return 'run `npm ci` in test/stores/engines'
  if (needed === 'clients') return undefined
  try {
    execFileSync(script, ['check'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'no PostgreSQL server is installed'
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

/** A server of one's own, see scripts/services/postgres.sh. */
export class PostgresServer {
  readonly url: string
  readonly #directory: string

  private constructor(directory: string, url: string) {
    this.#directory = directory
    this.url = url
  }

  static async start(serverOptions = ''): Promise<PostgresServer> {
    const output = await run(['start', String(process.pid)], { POSTGRES_OPTIONS: serverOptions })
    const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(output)?.[1] ?? ''
    return new PostgresServer(value('directory'), value('url'))
  }

  /** The same server for another user or database. */
  urlFor(change: { readonly user?: string; readonly password?: string; readonly database?: string }): string {
    const url = new URL(this.url)
    if (change.user !== undefined) url.username = change.user
    if (change.password !== undefined) url.password = change.password
    if (change.database !== undefined) url.pathname = `/${change.database}`
    return url.href
  }

  async restart(): Promise<void> {
    await run(['restart', this.#directory])
  }

  async crash(): Promise<void> {
    await run(['crash', this.#directory])
  }

  async stop(): Promise<void> {
    await run(['stop', this.#directory])
  }
}

async function run(parameters: string[], environment: Record<string, string> = {}): Promise<string> {
  const { stdout } = await promisify(execFile)(script, parameters, {
    env: { ...process.env, ...environment },
  })
  return stdout
}

/** A pool that does not mind when the server ends its idle connections. */
export function makePool(url: string, options: PgOptions = {}): PgPool {
  const pool = new (pg().Pool)({ connectionString: url, max: 8, ...options })
  pool.on('error', () => {})
  return pool
}

/** Runs one statement with a connection of its own. */
export async function execute(url: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new (pg().Client)({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query(sql)
    return (rows ?? []).map((row) => ({ ...(row as object) }))
  } finally {
    await client.end()
  }
}
