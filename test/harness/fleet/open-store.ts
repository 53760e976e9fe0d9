/** The location of shared stores, and how each process opens one. */

import { type D1Binding, D1Store } from '../../../src/stores/d1.ts'
import { MysqlStore } from '../../../src/stores/mysql.ts'
import { PostgresStore } from '../../../src/stores/postgres.ts'
import { RedisStore } from '../../../src/stores/redis.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { makeMysqlPool } from '../../stores/support/mysql.ts'
import { makePool } from '../../stores/support/postgres-clients.ts'
import { type ClientName, connect } from '../../stores/support/redis-clients.ts'

export const STORE_NAMES = ['sqlite', 'postgres', 'mysql', 'redis', 'd1'] as const
export type StoreName = (typeof STORE_NAMES)[number]

export type StoreAddress =
  | { readonly store: 'sqlite'; readonly path: string }
  | { readonly store: 'postgres' | 'mysql'; readonly url: string; readonly table: string }
  | { readonly store: 'redis'; readonly port: number; readonly prefix: string; readonly client: ClientName }
  | { readonly store: 'd1'; readonly url: string; readonly tables: string }

export interface OpenStore {
  readonly store: OrderStore
  close(): Promise<void>
}

export async function openStore(address: StoreAddress): Promise<OpenStore> {
  switch (address.store) {
    case 'sqlite': {
      const store = new SqliteStore({ path: address.path })
      return { store, close: () => store.close() }
    }
    case 'postgres': {
      const pool = makePool(address.url, { max: 4, connectionTimeoutMillis: 2_000 })
      const store = new PostgresStore({ client: pool, table: address.table })
      return { store, close: () => pool.end() }
    }
    case 'mysql': {
      const pool = makeMysqlPool(address.url, { connectionLimit: 4, connectTimeout: 2_000 })
      const store = new MysqlStore({ client: pool, table: address.table })
      return { store, close: () => pool.end() }
    }
    case 'redis': {
      const options = address.client === 'ioredis' ? { maxRetriesPerRequest: 3 } : {}
      const connection = await connect(address.client, [address.port], options)
      const store = new RedisStore({ client: connection.client, prefix: address.prefix })
      return { store, close: async () => connection.close() }
    }
    case 'd1': {
      const store = new D1Store({ database: remoteD1(address.url, address.tables) })
      return { store, close: () => store.close() }
    }
  }
}

/** The D1 binding of a worker, which runs the statements of other processes. */
function remoteD1(url: string, tables: string): D1Binding {
  const run = async (text: string, parameters: readonly unknown[]): Promise<readonly object[]> => {
    const sql = text.replaceAll('customer_ordering_', tables)
    const response = await fetch(url, {
      method: 'POST',
      body: JSON.stringify({ store: 'd1', name: 'fleet', task: 'sql', sql, parameters }),
      signal: AbortSignal.timeout(5_000),
    })
    const { value, error } = (await response.json()) as { value?: object[]; error?: { message: string } }
    if (value === undefined) throw new Error(error?.message ?? 'Network connection lost.')
    return value
  }
  return {
    prepare: (text) => ({
      bind: (...parameters) => ({ all: async () => ({ results: await run(text, parameters) }) }),
    }),
  }
}
