// The stores on servers accept exactly the clients that their drivers declare.

import type { D1Database, DurableObjectStorage } from '@cloudflare/workers-types'
import { PGlite } from '@electric-sql/pglite'
import { D1Store } from 'customer-ordering-sdk/stores/d1'
import { DurableObjectStore } from 'customer-ordering-sdk/stores/durable-object'
import { MysqlStore } from 'customer-ordering-sdk/stores/mysql'
import { type PostgresClient, PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { RedisStore } from 'customer-ordering-sdk/stores/redis'
import { Cluster, Redis } from 'ioredis'
import { createConnection as createCallbackConnection, createPool as createCallbackPool } from 'mysql2'
import { createConnection, createPool } from 'mysql2/promise'
import { Client, Pool } from 'pg'
import postgres from 'postgres'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'

const pool = new Pool()
export const stores: PostgresStore[] = [
  new PostgresStore({ client: pool }),
  new PostgresStore({ client: new Client() }),
  new PostgresStore({ client: await PGlite.create() }),
]

const sql = postgres()
const client: PostgresClient = {
  query: async (text, parameters) => ({ rows: await sql.unsafe(text, parameters) }),
}
stores.push(new PostgresStore({ client }))

// @ts-expect-error It has no `query`.
stores.push(new PostgresStore({ client: { connect: () => {} } }))

new MysqlStore({ client: createPool({}) })
new MysqlStore({ client: await createConnection({}), table: 'rows', database: 'shop' })
new MysqlStore({ client: createCallbackPool({}) })
new MysqlStore({ client: createCallbackConnection({}) })

// @ts-expect-error
new MysqlStore({ client: { query: async () => [] } })

new RedisStore({ client: new Redis() })
new RedisStore({ client: new Cluster([]) })
new RedisStore({ client: createClient() })
new RedisStore({ client: createClient({ RESP: 3 }) })
new RedisStore({ client: createClientPool() })
new RedisStore({ client: createCluster({ rootNodes: [] }), prefix: 'shop:' })
new RedisStore({ client: createSentinel({ name: 'shop', sentinelRootNodes: [] }), persistence: 'assume' })
new RedisStore({
  client: await createClient()
    .on('error', () => {})
    .connect(),
})

// @ts-expect-error
new RedisStore({ client: { query: async () => [] } })
// @ts-expect-error
new RedisStore({})

declare const database: D1Database
declare const storage: DurableObjectStorage
new D1Store({ database })
new DurableObjectStore({ storage })

// @ts-expect-error
new D1Store({ database: storage })
// @ts-expect-error
new DurableObjectStore({ storage: database })
