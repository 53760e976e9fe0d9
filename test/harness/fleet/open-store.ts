/** The location of shared stores, and how each process opens one. */

import { MysqlStore } from '../../../src/stores/mysql.ts'
import { PostgresStore } from '../../../src/stores/postgres.ts'
import { RedisStore } from '../../../src/stores/redis.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { makeMysqlPool } from '../../stores/support/mysql.ts'
import { makePool } from '../../stores/support/postgres-clients.ts'
import { type ClientName, connect } from '../../stores/support/redis-clients.ts'

export const STORE_NAMES = ['sqlite', 'postgres', 'mysql', 'redis'] as const
export type StoreName = (typeof STORE_NAMES)[number]

/** The data that a process needs to open the store. */
export type StoreAddress =
  | { readonly store: 'sqlite'; readonly path: string }
  | { readonly store: 'postgres' | 'mysql'; readonly url: string; readonly table: string }
  | { readonly store: 'redis'; readonly port: number; readonly prefix: string; readonly client: ClientName }

/** An open store, and a function that releases everything under it. */
export interface OpenStore {
  readonly store: OrderStore
  close(): Promise<void>
}

/** Opens the store for one process. */
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
  }
}
