import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { PostgresStore } from '../../../src/stores/postgres.ts'
import { failsWithoutServer, findsNoStore, settlesThroughCommand } from '../support/command.ts'
import { during, sqlServer } from '../support/during.ts'
import { enginesFolder } from '../support/engines.ts'
import { type PgPool, pg } from '../support/postgres-clients.ts'
import { describeWith } from '../support/services.ts'

const folder = fileURLToPath(enginesFolder)

describeWith('postgres', 'the command over PostgreSQL', () => {
  const server = sqlServer('postgres')
  const pool = during(
    async (): Promise<PgPool> => new (pg().Pool)({ connectionString: server().url }),
    (opened) => opened.end(),
  )

  it("the command settles an order in doubt with the project's pg, and closes its connections", async () => {
    await settlesThroughCommand(new PostgresStore({ client: pool() }), `--store ${server().url}`, folder)
    await expect.poll(others).toBe(0)
  })

  it('the command exits with 2 for a database without an order store, and creates nothing', async () => {
    await pool().query('CREATE DATABASE empty', [])
    const store = Object.assign(new URL(server().url), { pathname: '/empty' })
    await findsNoStore(store.href, folder)
    const inside = new (pg().Pool)({ connectionString: store.href })
    const { rows } = await inside.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'", [])
    await inside.end()
    expect(rows).toEqual([])
  })

  it('the command exits with 1, and prints no password, if no server listens', () =>
    failsWithoutServer('postgres://ada:secret-word@127.0.0.1:1/x', folder))

  /** Connections outside the pool. */
  async function others(): Promise<number> {
    const { rows } = await pool().query(
      "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend'",
      [],
    )
    return rows.length - pool().totalCount
  }
})
