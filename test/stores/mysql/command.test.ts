import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { MysqlStore } from '../../../src/stores/mysql.ts'
import { failsWithoutServer, findsNoStore, settlesThroughCommand } from '../support/command.ts'
import { during, sqlServer } from '../support/during.ts'
import { enginesFolder } from '../support/engines.ts'
import { makeMysqlPool } from '../support/mysql.ts'
import { describeWith } from '../support/services.ts'

const folder = fileURLToPath(enginesFolder)

describeWith('mariadb', 'the command over MariaDB', () => {
  const server = sqlServer('mariadb')
  const pool = during(
    async () => makeMysqlPool(server().url),
    (opened) => opened.end(),
  )

  it("the command settles an order in doubt with the project's mysql2", async () => {
    await settlesThroughCommand(new MysqlStore({ client: pool() }), `--store ${server().url}`, folder)
  })

  it('the command exits with 2 for a database without an order store, and creates nothing', async () => {
    await pool().query('CREATE DATABASE empty')
    const store = Object.assign(new URL(server().url), { pathname: '/empty' })
    await findsNoStore(store.href, folder)
    const [rows] = await pool().query('SHOW TABLES IN empty')
    expect(rows).toEqual([])
  })

  it('the command exits with 1, and prints no password, if no server listens', () =>
    failsWithoutServer('mysql://ada:secret-word@127.0.0.1:1/x', folder))
})
