import type { PostgresClient, PostgresParameter } from '../../../src/stores/postgres.ts'
import { engine } from './engines.ts'

/** The part of pg that the tests use. Its types are not installed with the project. */
export interface PgClient extends PostgresClient {
  connect(): Promise<unknown>
  end(): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
}

export interface PgPooledClient extends PgClient {
  release(destroy?: boolean): void
}

export interface PgPool extends PostgresClient {
  readonly totalCount: number
  connect(): Promise<PgPooledClient>
  end(): Promise<void>
  on(event: 'error' | 'connect', listener: (subject: never) => void): unknown
}

interface Pg {
  readonly Pool: new (options: object) => PgPool
  readonly Client: new (options: object) => PgClient
  readonly types: { setTypeParser(oid: number, parser: (text: string) => unknown): void }
}

export interface PGliteDatabase extends PostgresClient {
  readonly closed: boolean
  exec(sql: string): Promise<unknown>
  transaction<T>(body: (transaction: PostgresClient) => Promise<T>): Promise<T>
  close(): Promise<void>
}

interface PGliteModule {
  readonly PGlite: { create(directory?: string): Promise<PGliteDatabase> }
}

export interface PostgresJs {
  unsafe(text: string, parameters?: PostgresParameter[]): Promise<readonly unknown[]>
  end(options?: { timeout: number }): Promise<void>
}

export const pg = (name: 'pg' | 'pg-8.0' = 'pg'): Pg => engine<Pg>(name)
export const pglite = (): PGliteModule => engine<PGliteModule>('@electric-sql/pglite')
export const postgresJs = (): ((url: string, options?: object) => PostgresJs) => engine('postgres')

/** A pool that ignores that the server ends its idle connections. */
export function makePool(url: string, options: object = {}): PgPool {
  const pool = new (pg().Pool)({ connectionString: url, max: 8, ...options })
  pool.on('error', () => {})
  return pool
}

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
