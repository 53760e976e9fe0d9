import { type PostgresClient, PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { describe } from 'vitest'
import { contractOver } from '../support/contract-over.ts'
import { during, two } from '../support/during.ts'
import { makePool, pg, pglite, postgresJs } from '../support/postgres-clients.ts'
import { describeWith } from '../support/services.ts'
import { SqlServer } from '../support/sql-server.ts'

interface Client extends PostgresClient {
  end?(): Promise<void>
}

function through(clients: () => readonly [Client, Client], operations?: number): void {
  contractOver(clients, (client, number) => new PostgresStore({ client, table: `rows_${number}` }), {
    remove: (number) => clients()[0].query(`DROP TABLE IF EXISTS rows_${number}, rows_${number}_versions`),
    ...(operations === undefined ? {} : { operations }),
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
  const clients = (open: () => Client | Promise<Client>) => two<Client>(open, (client) => client.end?.())

  describe('through two pools of pg', () => through(clients(() => makePool(url('pools')))))

  describe('through two pools at the isolation level SERIALIZABLE', () => {
    const options = '-c default_transaction_isolation=serializable'
    through(
      clients(() => makePool(url('strict'), { options })),
      60,
    )
  })

  describe('through two pools of the oldest pg that it supports', () =>
    through(
      clients(() => new (pg('pg-8.0').Pool)({ connectionString: url('oldest') })),
      60,
    ))

  describe('through two clients of pg', () => {
    const connect = async (): Promise<Client> => {
      const client = new (pg().Client)({ connectionString: url('clients') })
      await client.connect()
      return client
    }
    through(clients(connect), 60)
  })

  describe('through postgres.js', () => {
    const connect = (): Client => {
      const sql = postgresJs()(url('postgres_js'), { onnotice: () => {} })
      return {
        query: async (text, parameters) => ({ rows: await sql.unsafe(text, parameters) }),
        end: () => sql.end({ timeout: 5 }),
      }
    }
    through(clients(connect), 60)
  })
})

describeWith('clients', 'PostgresStore on PGlite', () => {
  const database = during(
    () => pglite().PGlite.create(),
    (created) => created.close(),
  )
  through(() => [database(), database()])
})
