/**
 * Orders per second over each store, beside the least statements by hand around the same request. The
 * service has no network.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { CustomerOrderingClient, MemoryStore, type OrderStore } from 'customer-ordering-sdk'
import { MysqlStore } from 'customer-ordering-sdk/stores/mysql'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { RedisStore } from 'customer-ordering-sdk/stores/redis'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'
import { makeMysqlPool } from '../../test/stores/support/mysql.ts'
import { makePool } from '../../test/stores/support/postgres-clients.ts'
import { connect } from '../../test/stores/support/redis-clients.ts'
import { startMariadb, startPostgres, startRedis } from '../services/start.ts'
import { compare, median, ratio, table } from './compare.ts'
import { instantService, KEY, orderBody } from './orders.ts'

/** A store, and the least statements of its engine for one order: some before the request, one after it. */
interface Engine {
  readonly name: string
  readonly store: OrderStore
  before?(id: string): Promise<unknown> | unknown
  after?(id: string): Promise<unknown> | unknown
  close(): Promise<void> | void
}

/** Strings as long as the records of an open and of a created order. */
const OPEN = 'x'.repeat(1_000)
const CREATED = 'x'.repeat(1_100)

/** Two writes: SQLite reads without waiting. Both files have the store's settings. */
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
    name: '`SqliteStore`, two synced writes',
    store,
    before: (id) => insert.run(id, OPEN),
    after: (id) => update.run(CREATED, id),
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
    name: '`PostgresStore`, a read and two commits',
    store,
    before: async (id) => {
      await pool.query('SELECT data FROM bare WHERE id = $1', [id])
      await pool.query('INSERT INTO bare VALUES ($1, $2)', [id, OPEN])
    },
    after: (id) => pool.query('UPDATE bare SET data = $1 WHERE id = $2', [CREATED, id]),
    close: async () => {
      await pool.end()
      server.stop()
    },
  }
}

/** On MariaDB, with the pool of the store, which sends two statements where one by hand does. */
async function mysql(): Promise<Engine> {
  const server = startMariadb()
  const pool = makeMysqlPool(server.url, { connectionLimit: 16 })
  const store = new MysqlStore({ client: pool })
  await store.migrate()
  await pool.query('CREATE TABLE bare (id VARCHAR(64) PRIMARY KEY, data LONGTEXT)')
  return {
    name: '`MysqlStore`, a read and two commits',
    store,
    before: async (id) => {
      await pool.query(`SELECT data FROM bare WHERE id = '${id}'`)
      await pool.query(`INSERT INTO bare VALUES ('${id}', '${OPEN}')`)
    },
    after: (id) => pool.query(`UPDATE bare SET data = '${CREATED}' WHERE id = '${id}'`),
    close: async () => {
      await pool.end()
      server.stop()
    },
  }
}

/** Uses an append-only file that is synced every second, Redis's default, and ioredis for both. */
async function redis(): Promise<Engine> {
  const server = startRedis()
  const { client, close } = await connect('ioredis', [Number(new URL(server.url).port)])
  // The store's interface of a client has only what the store calls.
  const { call }: { call(...command: string[]): Promise<unknown> } = Object(client)
  const send = call.bind(client)
  return {
    name: '`RedisStore`, a read and two writes',
    store: new RedisStore({ client }),
    before: async (id) => {
      await send('GET', `bare:${id}`)
      await send('SET', `bare:${id}`, OPEN, 'NX')
    },
    after: (id) => send('SET', `bare:${id}`, CREATED),
    close: () => {
      close()
      server.stop()
    },
  }
}

let id = 0
const engines: readonly Engine[] = [
  { name: '`MemoryStore`', store: new MemoryStore(), close: () => {} },
  sqlite(),
  await postgres(),
  await mysql(),
  await redis(),
]
const placing = new Map(
  engines.map(({ name, store }) => {
    const options = { baseUrl: 'https://api.example.com', apiKey: KEY, account: 'bench', store }
    const client = new CustomerOrderingClient({ ...options, fetch: instantService })
    return [name, () => client.orders.create(orderBody())] as const
  }),
)
const plain = new CustomerOrderingClient({
  baseUrl: 'https://api.example.com',
  apiKey: KEY,
  fetch: instantService,
})

/** Places an order without `create()`. */
async function byHand({ before, after }: Engine): Promise<void> {
  const name = `bare-${++id}`
  await before?.(name)
  await plain.request({ method: 'POST', path: '/v1/orders', body: orderBody() })
  await after?.(name)
}
const byHands = new Map(engines.map((engine) => [`by hand ${engine.name}`, () => byHand(engine)] as const))
const rows: string[][] = []
for (const at of [1, 16, 64]) {
  const subjects = new Map<string, () => Promise<unknown>>([...placing, ...byHands])
  const costs = await compare({ subjects, rounds: 10, calls: 128, at, warmUp: 384 })
  const times = (name: string): number[] => (costs.get(name) ?? []).map(({ time }) => time)
  const rate = (name: string): string => Math.round(1_000_000 / median(times(name))).toLocaleString('en')
  for (const { name } of engines) {
    const compared = ratio(times(name), times(`by hand ${name}`)).toFixed(2)
    rows.push([name, String(at), rate(name), rate(`by hand ${name}`), compared])
  }
}
for (const { close } of engines) await close()
const head = ['', 'at a time', 'orders a second', 'by hand', 'time as a ratio to by hand']
process.stdout.write(`\`create()\` with a service that has no network, beside the least statements by hand around \`client.request()\`.
The databases run on the same processors, so orders a second are a lower limit.

${table(
  head,
  rows.toSorted(([a = ''], [b = '']) => a.localeCompare(b)),
)}`)
process.exit()
