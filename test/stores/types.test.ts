import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../../tools/build/ensure-built.ts'
import { enginesFolder } from './support/engines.ts'
import { describeWith } from './support/services.ts'

const POSTGRES = `
import { PGlite } from '@electric-sql/pglite'
import { Client, Pool } from 'pg'
import postgres from 'postgres'
import { type PostgresClient, PostgresStore } from 'customer-ordering-sdk/stores/postgres'

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

// @ts-expect-error It has no \`query\`.
stores.push(new PostgresStore({ client: { connect: () => {} } }))
`

const MYSQL = `
import { createConnection as createCallbackConnection, createPool as createCallbackPool } from 'mysql2'
import { createConnection, createPool } from 'mysql2/promise'
import { MysqlStore } from 'customer-ordering-sdk/stores/mysql'

new MysqlStore({ client: createPool({}) })
new MysqlStore({ client: await createConnection({}), table: 'rows', database: 'shop' })
new MysqlStore({ client: createCallbackPool({}) })
new MysqlStore({ client: createCallbackConnection({}) })

// @ts-expect-error
new MysqlStore({ client: { query: async () => [] } })
`

const REDIS = `
import { Cluster, Redis } from 'ioredis'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { RedisStore } from 'customer-ordering-sdk/stores/redis'

new RedisStore({ client: new Redis() })
new RedisStore({ client: new Cluster([]) })
new RedisStore({ client: createClient() })
new RedisStore({ client: createClient({ RESP: 3 }) })
new RedisStore({ client: createClientPool() })
new RedisStore({ client: createCluster({ rootNodes: [] }), prefix: 'shop:' })
new RedisStore({ client: createSentinel({ name: 'shop', sentinelRootNodes: [] }), persistence: 'assume' })
new RedisStore({ client: await createClient().on('error', () => {}).connect() })

// @ts-expect-error
new RedisStore({ client: { query: async () => [] } })
// @ts-expect-error
new RedisStore({})
`

const CLOUDFLARE = `
import type { D1Database, DurableObjectStorage } from '@cloudflare/workers-types'
import { D1Store } from 'customer-ordering-sdk/stores/d1'
import { DurableObjectStore } from 'customer-ordering-sdk/stores/durable-object'

declare const database: D1Database
declare const storage: DurableObjectStorage
new D1Store({ database })
new DurableObjectStore({ storage })

// @ts-expect-error
new D1Store({ database: storage })
// @ts-expect-error
new DurableObjectStore({ storage: database })
`

describeWith('clients', 'the types of stores on servers', () => {
  it.each([
    ['PostgresStore', 'pg, PGlite and postgres.js', POSTGRES],
    ['MysqlStore', 'mysql2', MYSQL],
    ['RedisStore', 'node-redis and ioredis', REDIS],
    ['D1Store and DurableObjectStore', '@cloudflare/workers-types', CLOUDFLARE],
  ])('%s accepts exactly the clients that %s declare', (_store, _clients, program) => {
    // The packages resolve from this folder.
    const folder = mkdtempSync(fileURLToPath(new URL('node_modules/.types-', enginesFolder)))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'program.mts'), program)
    const config = {
      extends: join(root, 'tsconfig.test.json'),
      compilerOptions: { typeRoots: [join(root, 'node_modules/@types')] },
      files: ['program.mts'],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const { stdout, status } = spawnSync(process.execPath, [compiler, '-p', folder], { encoding: 'utf8' })
    expect({ stdout, status }).toEqual({ stdout: '', status: 0 })
  })
})
