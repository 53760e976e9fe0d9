import { MysqlStore } from 'customer-ordering-sdk/stores/mysql'
import { describe } from 'vitest'
import { contractOver } from '../support/contract-over.ts'
import { sqlServer, two } from '../support/during.ts'
import { type Mysql2Connection, type Mysql2Pool, makeMysqlPool, mysql2 } from '../support/mysql.ts'
import { describeWith } from '../support/services.ts'

describeWith('mariadb', 'MysqlStore on a MariaDB server', () => {
  const server = sqlServer('mariadb', '--log-bin --sync-binlog=1 --max-allowed-packet=64M')

  function through(name: string, open: () => Mysql2Pool | Promise<Mysql2Connection>, operations?: number) {
    const clients = two<Mysql2Pool | Mysql2Connection>(open, (client) => client.end())
    const tableOf = (number: number): string => `${name}_${number}`
    contractOver(clients, (client, number) => new MysqlStore({ client, table: tableOf(number) }), {
      remove: (number) =>
        clients()[0].query(`DROP TABLE IF EXISTS ${tableOf(number)}, ${tableOf(number)}_versions`),
      ...(operations === undefined ? {} : { operations }),
    })
  }

  describe('through two pools of mysql2', () => through('pools', () => makeMysqlPool(server().url)))

  describe('through two pools with unusual options', () => {
    const options = {
      ...{ flags: '-FOUND_ROWS', rowsAsArray: true, nestTables: true, namedPlaceholders: true },
      ...{ supportBigNumbers: true, bigNumberStrings: true, charset: 'latin1' },
      typeCast: (field: { string(): string | null }) => field.string(),
    }
    through('options', () => makeMysqlPool(server().url, options), 60)
  })

  describe('through two pools of the oldest mysql2 that it supports', () =>
    through('oldest', () => mysql2('mysql2-3.9').createPool({ uri: server().url }), 60))

  describe('through two connections of mysql2', () =>
    through('connections', () => mysql2().createConnection({ uri: server().url }), 60))
})
