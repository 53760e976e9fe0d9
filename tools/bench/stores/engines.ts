import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { PostgresStore } from '../../../src/stores/postgres.ts'
import { RedisStore } from '../../../src/stores/redis.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { makePool } from '../../../test/stores/support/postgres-clients.ts'
import { connect } from '../../../test/stores/support/redis-clients.ts'
import { startPostgres, startRedis } from '../../services/start.ts'

/** A store, and the minimum work of its engine for one order. */
export interface Engine {
  readonly name: string
  readonly store: OrderStore
  /** Two sequential writes of a row with nothing else, which every store needs. */
  bare(id: string): Promise<unknown>
  close(): Promise<void> | void
}

/** Strings as long as the records of an open and of a created order. */
const OPEN = 'x'.repeat(720)
const CREATED = 'x'.repeat(830)

export async function openEngines(): Promise<Engine[]> {
  return [memory(), sqlite(), await postgres(), await redis()]
}

function memory(): Engine {
  const rows = new Map<string, string>()
  return {
    name: 'memory',
    store: new MemoryStore(),
    bare: async (id) => {
      await rows.set(id, OPEN)
      await rows.set(id, CREATED)
    },
    close: () => {},
  }
}

/** Both files have the store's settings, and are in the temporary folder. */
function sqlite(): Engine {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'))
  const store = new SqliteStore({ path: join(directory, 'orders.db') })
  const database = new DatabaseSync(join(directory, 'bare.db'))
  database.exec(
    'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE bare (id TEXT PRIMARY KEY, data TEXT)',
  )
  const insert = database.prepare('INSERT INTO bare VALUES (?, ?)')
  const update = database.prepare('UPDATE bare SET data = ? WHERE id = ?')
  return {
    name: 'sqlite',
    store,
    bare: async (id) => {
      await insert.run(id, OPEN)
      await update.run(CREATED, id)
    },
    close: async () => {
      await store.close()
      database.close()
      rmSync(directory, { recursive: true })
    },
  }
}

/** Uses fsync, as real servers do, and one pool for both. */
async function postgres(): Promise<Engine> {
  const server = startPostgres({ fsync: true })
  const pool = makePool(server.url, { max: 16 })
  const store = new PostgresStore({ client: pool })
  await store.migrate()
  await pool.query('CREATE TABLE bare (id text PRIMARY KEY, data text)')
  return {
    name: 'postgres',
    store,
    bare: async (id) => {
      await pool.query('INSERT INTO bare VALUES ($1, $2)', [id, OPEN])
      await pool.query('UPDATE bare SET data = $1 WHERE id = $2', [CREATED, id])
    },
    close: async () => {
      await pool.end()
      server.stop()
    },
  }
}

/** Uses an append-only file that is synced every second (Redis's default), and ioredis for both. */
async function redis(): Promise<Engine> {
  const server = startRedis()
  const { client, close } = await connect('ioredis', [Number(new URL(server.url).port)])
  const send = client as unknown as { call(...command: string[]): Promise<unknown> }
  return {
    name: 'redis',
    store: new RedisStore({ client }),
    bare: async (id) => {
      await send.call('SET', `bare:${id}`, OPEN, 'NX')
      await send.call('SET', `bare:${id}`, CREATED)
    },
    close: () => {
      close()
      server.stop()
    },
  }
}
