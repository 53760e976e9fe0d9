/** The part of mysql2 that the tests use. */
import type { MysqlConnection, MysqlPool, MysqlPoolConnection } from '../../../src/stores/mysql.ts'
import { engine } from './engines.ts'

/** The types of mysql2 are not installed with the project. */
export interface Mysql2Connection extends MysqlConnection {
  end(): Promise<void>
}

export interface Mysql2Pool extends MysqlPool {
  query(text: string): Promise<readonly unknown[]>
  end(): Promise<void>
}

interface Mysql2 {
  createPool(options: object): Mysql2Pool
  createConnection(options: object): Promise<Mysql2Connection>
}

export const mysql2 = (name: 'mysql2' | 'mysql2-3.9' = 'mysql2'): Mysql2 => engine<Mysql2>(`${name}/promise`)

/** The callback interface of mysql2. */
export const mysql2Callbacks = (): {
  createPool(options: object): { promise(): MysqlPool; end(done: () => void): void }
} => engine('mysql2')

export function makeMysqlPool(uri: string, options: object = {}): Mysql2Pool {
  return mysql2().createPool({ uri, connectionLimit: 8, ...options })
}

/** Runs statements on one connection of a pool, and returns it to the pool whatever its state. */
export async function leaveBehind(pool: MysqlPool, ...statements: string[]): Promise<MysqlPoolConnection> {
  const connection = await pool.getConnection()
  for (const statement of statements) await connection.query(statement)
  connection.release()
  return connection
}

/** A pool over another one, which passes each statement of the store to `execute`. */
export function poolWith(
  pool: MysqlPool,
  execute: (
    statement: Parameters<MysqlConnection['execute']>[0],
    connection: MysqlPoolConnection,
  ) => Promise<readonly unknown[]>,
): MysqlPool {
  return {
    getConnection: async () => {
      const connection = await pool.getConnection()
      return {
        query: (text) => connection.query(text),
        execute: (statement) => execute(statement, connection),
        release: () => connection.release(),
        destroy: () => connection.destroy(),
      }
    },
  }
}
