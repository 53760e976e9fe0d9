import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { PostgresStore } from '../../../src/stores/postgres.ts'
import { command, settlesThroughCommand } from '../support/command.ts'
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
    for (const line of ['unresolved', 'recover --yes --safe-retry-window 1200000']) {
      const { code, out, err } = await command(`${line} --store ${store.href} --account shop`, folder)
      expect({ code, out }).toEqual({ code: 2, out: '' })
      expect(err).toContain('has no order store: it lacks the table customer_ordering_rows. Check --store.')
    }
    const inside = new (pg().Pool)({ connectionString: store.href })
    const { rows } = await inside.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'", [])
    await inside.end()
    expect(rows).toEqual([])
  })

  it('the command exits with 1, and prints no password, if no server listens', async () => {
    const line = 'unresolved --store postgres://ada:secret-word@127.0.0.1:1/x --account shop'
    const { code, out, err } = await command(line, folder)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/^customer-ordering-sdk: /)
    expect(err).not.toContain('secret-word')
  })

  /** Connections outside the pool. */
  async function others(): Promise<number> {
    const { rows } = await pool().query(
      "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend'",
      [],
    )
    return rows.length - pool().totalCount
  }
})
