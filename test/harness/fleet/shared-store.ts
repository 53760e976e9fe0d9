/** Stores that a fleet can share, and their servers. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RedisServers } from '../../stores/support/redis.ts'
import { SqlServer } from '../../stores/support/sql-server.ts'
import { Workerd } from '../../stores/workers/workerd.ts'
import { bundleOf } from '../simulation/bundle.ts'
import type { StoreAddress, StoreName } from './open-store.ts'

export interface SharedStore {
  readonly name: StoreName
  readonly program: string
  /** The folders with all files of the store or its server. */
  readonly folder: string
  /** Opens a store without rows. `process` is the number of the process that opens it. */
  address(round: string, process: number): StoreAddress
  /** Kills the server, and restarts it with its stored data. Absent if there is no server. */
  crash?(): Promise<void>
  stop(): Promise<void>
}

/** Starts the store's server, and bundles the program of the processes. */
export async function startSharedStore(name: StoreName): Promise<SharedStore> {
  const { file, remove } = await bundleOf('fleet', {
    entryPoints: [fileURLToPath(new URL('./processes/race.ts', import.meta.url))],
    // Resolve the clients of database servers from here.
    define: {
      'import.meta.url': JSON.stringify(new URL('../../stores/support/engines.ts', import.meta.url)),
    },
  })
  const started = await start(name)
  return { ...started, program: file, stop: () => started.stop().finally(remove) }
}

async function start(name: StoreName): Promise<Omit<SharedStore, 'program'>> {
  switch (name) {
    case 'sqlite': {
      const folder = mkdtempSync(join(tmpdir(), 'fleet-'))
      return {
        name,
        folder,
        address: (round) => ({ store: name, path: join(folder, `${round}.db`) }),
        stop: async () => rmSync(folder, { recursive: true, force: true }),
      }
    }
    case 'postgres':
    case 'mysql': {
      const server = await SqlServer.start(name === 'mysql' ? 'mariadb' : name)
      return {
        name,
        folder: server.directory,
        address: (round) => ({ store: name, url: server.url, table: `fleet_${round}` }),
        crash: () => server.crash(),
        stop: () => server.stop(),
      }
    }
    case 'redis': {
      // With `everysec`, Redis confirms writes that it has not passed to the system yet while it
      // waits for the disk.
      const servers = await RedisServers.start('single', '--appendfsync', 'always')
      return {
        name,
        folder: servers.directory,
        address: (round, process) => ({
          store: name,
          port: servers.port,
          prefix: `fleet-${round}:`,
          // Half of the fleet uses one client, half the other.
          client: process % 2 === 0 ? 'ioredis' : 'node-redis',
        }),
        crash: () => servers.crash(),
        stop: () => servers.stop(),
      }
    }
    case 'd1':
    case 'object': {
      const folder = mkdtempSync(join(tmpdir(), 'workerd-'))
      let workerd = await Workerd.start({ folder })
      const url = await workerd.url
      return {
        name,
        folder,
        address: (round) => ({ store: name, url: url.href, name: `fleet_${round}_` }),
        crash: async () => {
          await workerd.kill()
          workerd = await Workerd.start({ folder, port: Number(url.port) })
        },
        stop: async () => {
          await workerd.kill()
          rmSync(folder, { recursive: true, force: true })
        },
      }
    }
  }
}
