/** The location of shared stores, and how each process opens one. */
import { randomUUID } from 'node:crypto'
import { type D1Binding, D1Store } from '../../../src/stores/d1.ts'
import { MysqlStore } from '../../../src/stores/mysql.ts'
import { PostgresStore } from '../../../src/stores/postgres.ts'
import { RedisStore } from '../../../src/stores/redis.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { makeMysqlPool } from '../../stores/support/mysql.ts'
import { makePool } from '../../stores/support/postgres-clients.ts'
import { type ClientName, connect } from '../../stores/support/redis-clients.ts'
import { type Reply, resultOf, type Task, workerStore } from '../../stores/workers/platform.ts'

export const STORE_NAMES = ['sqlite', 'postgres', 'mysql', 'redis', 'd1', 'object'] as const
export type StoreName = (typeof STORE_NAMES)[number]

export type StoreAddress =
  | { readonly store: 'sqlite'; readonly path: string }
  | { readonly store: 'postgres' | 'mysql'; readonly url: string; readonly table: string }
  | { readonly store: 'redis'; readonly port: number; readonly prefix: string; readonly client: ClientName }
  | { readonly store: 'd1' | 'object'; readonly url: string; readonly name: string }

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
      const store = new D1Store({ database: remoteD1(address) })
      return { store, close: () => store.close() }
    }
    case 'object': {
      const store = workerStore(randomUUID(), (task) => perform(address, task))
      return { store, close: async () => {} }
    }
  }
}

type WorkerAddress = StoreAddress & { readonly store: 'd1' | 'object' }

async function perform({ store, url, name }: WorkerAddress, task: Task): Promise<unknown> {
  const body = JSON.stringify({ store, name, ...task })
  const response = await fetch(url, { method: 'POST', body, signal: AbortSignal.timeout(5_000) })
  return resultOf((await response.json()) as Reply)
}

/** The D1 binding of a worker, which runs the statements of other processes. All rounds share the database. */
const remoteD1 = (address: WorkerAddress): D1Binding => ({
  prepare: (text) => ({
    bind: (...parameters) => ({
      all: async () => {
        const sql = text.replaceAll('customer_ordering_', address.name)
        const task = { task: 'sql', sql, parameters: parameters as (string | number)[] } as const
        return { results: (await perform(address, task)) as object[] }
      },
    }),
  }),
})
