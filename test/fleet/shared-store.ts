/** The stores that processes can share: where they are, how a process opens them, how their servers are ended and begun again. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OrderStore } from '../../src/idempotency/store.ts'
import { PostgresStore } from '../../src/stores/postgres.ts'
import { RedisStore } from '../../src/stores/redis.ts'
import { SqliteStore } from '../../src/stores/sqlite.ts'
import { PostgresServer } from '../stores/support/postgres.ts'
import { makePool } from '../stores/support/postgres-clients.ts'
import { RedisServers } from '../stores/support/redis.ts'
import { type ClientName, connect } from '../stores/support/redis-clients.ts'

export const STORE_NAMES = ['sqlite', 'postgres', 'redis'] as const
export type StoreName = (typeof STORE_NAMES)[number]

/** What a process has to know to open the store. */
export type StoreAddress =
  | { readonly store: 'sqlite'; readonly path: string }
  | { readonly store: 'postgres'; readonly url: string; readonly table: string }
  | { readonly store: 'redis'; readonly port: number; readonly prefix: string; readonly client: ClientName }

/** An open store, and how to let go of everything under it. */
export interface OpenStore {
  readonly store: OrderStore
  close(): Promise<void>
}

/** Opens the store, as each process does for itself. */
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
    case 'redis': {
      const options = address.client === 'ioredis' ? { maxRetriesPerRequest: 3 } : {}
      const connection = await connect(address.client, [address.port], options)
      const store = new RedisStore({ client: connection.client, prefix: address.prefix })
      return { store, close: async () => connection.close() }
    }
  }
}

/** What a fleet shares, for many rounds. */
export interface SharedStore {
  readonly name: StoreName
  /** A store without rows; `process` is the number of the process that opens it. */
  address(round: string, process: number): StoreAddress
  /** The server dies at once, as it is, and begins again with what it has written down. Absent if there is no server. */
  crash?(): Promise<void>
  stop(): Promise<void>
}

/** Starts what the store needs. */
export async function startSharedStore(name: StoreName): Promise<SharedStore> {
  switch (name) {
    case 'sqlite': {
      const folder = mkdtempSync(join(tmpdir(), 'fleet-'))
      return {
        name,
        address: (round) => ({ store: name, path: join(folder, `${round}.db`) }),
        stop: async () => rmSync(folder, { recursive: true, force: true }),
      }
    }
    case 'postgres': {
      const server = await PostgresServer.start()
      return {
        name,
        address: (round) => ({ store: name, url: server.url, table: `fleet_${round}` }),
        crash: () => server.crash(),
        stop: () => server.stop(),
      }
    }
    case 'redis': {
      const servers = await RedisServers.start('single')
      return {
        name,
        address: (round, process) => ({
          store: name,
          port: servers.port,
          prefix: `fleet-${round}:`,
          // Half of the fleet uses the one client, half the other.
          client: process % 2 === 0 ? 'ioredis' : 'node-redis',
        }),
        crash: () => servers.crash(),
        stop: () => servers.stop(),
      }
    }
  }
}
