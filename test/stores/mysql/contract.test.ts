import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { type MysqlClient, MysqlStore } from 'customer-ordering-sdk/stores/mysql'
import { describe, it } from 'vitest'
import { during, sqlServer } from '../support/during.ts'
import { makeMysqlPool, mysql2 } from '../support/mysql.ts'
import { describeWith } from '../support/services.ts'

/**
 * Runs the suite with a new table for every store. `clients` are two clients of the same database.
 */
function runContract(
  name: string,
  clients: () => readonly [MysqlClient, MysqlClient],
  drop: (sql: string) => Promise<unknown>,
  history?: number,
): void {
  let tables = 0
  const table = (): string => `${name}_${tables}`
  storeContract({
    test: { describe, it },
    createStore: () => {
      tables++
      return new MysqlStore({ client: clients()[0], table: table() })
    },
    openSecond: () => new MysqlStore({ client: clients()[1], table: table() }),
    reopenStore: () => new MysqlStore({ client: clients()[1], table: table() }),
    removeStore: () => drop(`DROP TABLE IF EXISTS ${table()}, ${table()}_versions`),
    ...(history === undefined ? {} : { history: { clients: 8, operations: history } }),
  })
}

describeWith('mariadb', 'MysqlStore on a MariaDB server', () => {
  const server = sqlServer('mariadb', '--log-bin --sync-binlog=1 --max-allowed-packet=64M')

  describe('through two pools of mysql2', () => {
    const pools = during(
      async () => [makeMysqlPool(server().url), makeMysqlPool(server().url)] as const,
      ([first, second]) => Promise.all([first.end(), second.end()]),
    )
    runContract('pools', pools, (sql) => pools()[0].query(sql))
  })

  describe('through two pools with unusual options', () => {
    const options = {
      ...{ flags: '-FOUND_ROWS', rowsAsArray: true, nestTables: true, namedPlaceholders: true },
      ...{ supportBigNumbers: true, bigNumberStrings: true, charset: 'latin1' },
      typeCast: (field: { string(): string | null }) => field.string(),
    }
    const pools = during(
      async () => [makeMysqlPool(server().url, options), makeMysqlPool(server().url, options)] as const,
      ([first, second]) => Promise.all([first.end(), second.end()]),
    )
    runContract('options', pools, (sql) => pools()[0].query(sql), 60)
  })

  describe('through two pools of the oldest mysql2 that it supports', () => {
    const open = () => mysql2('mysql2-3.9').createPool({ uri: server().url })
    const pools = during(
      async () => [open(), open()] as const,
      ([first, second]) => Promise.all([first.end(), second.end()]),
    )
    runContract('oldest', pools, (sql) => pools()[0].query(sql), 60)
  })

  describe('through two connections of mysql2', () => {
    const connections = during(
      async () => {
        const open = () => mysql2().createConnection({ uri: server().url })
        return [await open(), await open()] as const
      },
      ([first, second]) => Promise.all([first.end(), second.end()]),
    )
    runContract('connections', connections, (sql) => connections()[0].query(sql), 60)
  })
})
