/** A private MariaDB, and the part of mysql2 that the tests use. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { MysqlConnection, MysqlPool, MysqlPoolConnection } from '../../../src/stores/mysql.ts'
import { during } from './during.ts'
import { engine } from './engines.ts'
import { serviceScript } from './services.ts'

const script = serviceScript('mariadb')

/** A private server, see tools/services/mariadb.sh. */
export class MariadbServer {
  readonly url: string
  /** The server's directory. */
  readonly directory: string

  private constructor(directory: string, url: string) {
    this.directory = directory
    this.url = url
  }

  /** @param serverOptions such as `--log-bin` */
  static async start(serverOptions = ''): Promise<MariadbServer> {
    const output = await run(['start', String(process.pid)], { MARIADB_OPTIONS: serverOptions })
    const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(output)?.[1] ?? ''
    return new MariadbServer(value('directory'), value('url'))
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

export const mariadbServer = (options?: string): (() => MariadbServer) =>
  during(
    () => MariadbServer.start(options),
    (server) => server.stop(),
  )

/** The types of mysql2 are not installed with the project. */
export interface Mysql2Connection extends MysqlConnection {
  end(): Promise<void>
}

export interface Mysql2Pool extends MysqlPool {
  query(text: string): Promise<readonly unknown[]>
  end(): Promise<void>
}

interface Mysql2Options {
  readonly uri?: string
  readonly connectionLimit?: number
  readonly connectTimeout?: number
  readonly flags?: string
  readonly rowsAsArray?: boolean
  readonly nestTables?: boolean
  readonly namedPlaceholders?: boolean
  readonly supportBigNumbers?: boolean
  readonly bigNumberStrings?: boolean
  readonly typeCast?: unknown
  readonly charset?: string
  readonly multipleStatements?: boolean
}

interface Mysql2 {
  createPool(options: Mysql2Options): Mysql2Pool
  createConnection(options: Mysql2Options): Promise<Mysql2Connection>
}

export const mysql2 = (name: 'mysql2' | 'mysql2-3.9' = 'mysql2'): Mysql2 => engine<Mysql2>(`${name}/promise`)

/** The callback interface of mysql2. */
export const mysql2Callbacks = (): {
  createPool(options: Mysql2Options): { promise(): MysqlPool; end(done: () => void): void }
} => engine('mysql2')

export function makeMysqlPool(uri: string, options: Mysql2Options = {}): Mysql2Pool {
  return mysql2().createPool({ uri, connectionLimit: 8, ...options })
}

/** Runs statements on one connection of a pool, and returns it to the pool whatever its state. */
export async function leaveBehind(pool: MysqlPool, ...statements: string[]): Promise<MysqlPoolConnection> {
  const connection = await pool.getConnection()
  for (const statement of statements) await connection.query(statement)
  connection.release()
  return connection
}
