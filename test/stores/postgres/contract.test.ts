import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { type PostgresClient, PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { afterAll, describe, it } from 'vitest'
import { during, embedded } from '../support/during.ts'
import { makePool, type PgPool, pg, postgresJs } from '../support/postgres-clients.ts'
import { describeWith } from '../support/services.ts'
import { SqlServer } from '../support/sql-server.ts'

/**
 * Runs the suite with a new table for every store. `clients` are two clients of the same database.
 */
function runContract(clients: () => readonly [PostgresClient, PostgresClient], history?: number): void {
  let tables = 0
  const table = (): string => `rows_${tables}`
  storeContract({
    test: { describe, it },
    createStore: () => {
      tables++
      return new PostgresStore({ client: clients()[0], table: table() })
    },
    openSecond: () => new PostgresStore({ client: clients()[1], table: table() }),
    reopenStore: () => new PostgresStore({ client: clients()[1], table: table() }),
    removeStore: () => clients()[0].query(`DROP TABLE IF EXISTS ${table()}, ${table()}_versions`),
    ...(history === undefined ? {} : { history: { clients: 8, operations: history } }),
  })
}

describeWith('postgres', 'PostgresStore on a PostgreSQL server', () => {
  const databases = ['pools', 'oldest', 'clients', 'strict', 'postgres_js']
  const server = during(
    async () => {
      const started = await SqlServer.start('postgres')
      const pool = makePool(started.url)
      for (const database of databases) await pool.query(`CREATE DATABASE ${database}`)
      await pool.end()
      return started
    },
    (started) => started.stop(),
  )
  const url = (database: string): string => server().urlFor({ database })

  /** Two pools while the tests of a `describe` run. */
  function pools(database: string, options?: Parameters<typeof makePool>[1]): () => [PgPool, PgPool] {
    let made: [PgPool, PgPool] | undefined
    const get = (): [PgPool, PgPool] => {
      made ??= [makePool(url(database), options), makePool(url(database), options)]
      return made
    }
    afterAll(async () => {
      for (const pool of made ?? []) await pool.end()
    })
    return get
  }

  describe('through two pools of pg', () => runContract(pools('pools')))

  describe('through two pools at the isolation level SERIALIZABLE', () =>
    runContract(pools('strict', { options: '-c default_transaction_isolation=serializable' }), 60))

  describe('through two pools of the oldest pg that it supports', () => {
    let pools: [PgPool, PgPool] | undefined
    const open = (): PgPool => new (pg('pg-8.0').Pool)({ connectionString: url('oldest') })
    afterAll(async () => {
      for (const pool of pools ?? []) await pool.end()
    })
    runContract(() => {
      pools ??= [open(), open()]
      return pools
    }, 60)
  })

  describe('through two clients of pg', () => {
    const clients = during(
      async () => {
        const [first, second] = [1, 2].map(() => new (pg().Client)({ connectionString: url('clients') }))
        if (first === undefined || second === undefined) throw new Error('unreachable')
        await first.connect()
        await second.connect()
        return [first, second] as const
      },
      ([first, second]) => Promise.all([first.end(), second.end()]),
    )
    runContract(clients, 60)
  })

  describe('through postgres.js', () => {
    const ends: (() => Promise<void>)[] = []
    const connect = (): PostgresClient => {
      const sql = postgresJs()(url('postgres_js'), { onnotice: () => {} })
      ends.push(() => sql.end({ timeout: 5 }))
      return { query: async (text, parameters) => ({ rows: await sql.unsafe(text, parameters) }) }
    }
    let clients: [PostgresClient, PostgresClient] | undefined
    afterAll(async () => {
      for (const end of ends) await end()
    })
    runContract(() => {
      clients ??= [connect(), connect()]
      return clients
    }, 60)
  })
})

describeWith('clients', 'PostgresStore on PGlite', () => {
  const database = embedded()
  runContract(() => [database(), database()])
})
