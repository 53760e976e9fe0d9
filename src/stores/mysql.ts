import { StoreError } from '../errors/classes.ts'
import { type Engine, isRead, type Operation, type Result, type Values } from './engine.ts'
import { connectionOf, type MysqlClient, type Query } from './mysql/connection.ts'
import { isDuplicate, isMisfit, MYSQL_FAILURES } from './mysql/failure.ts'
import { checkKey, first, migrate, type Names, refusalOf, type Tables } from './mysql/schema.ts'
import { checkName, given, hasMethod } from './options.ts'
import { toRow } from './rows.ts'
import { once, ServerStore } from './sql/server.ts'
import { bind } from './sql/text.ts'
import type { StoreDurability, StoredRow } from './store.ts'

export type { EngineStore } from './engine.ts'
export type { MysqlClient, MysqlConnection, MysqlPool, MysqlPoolConnection } from './mysql/connection.ts'
export type { ServerStore } from './sql/server.ts'

/** Options of {@link MysqlStore}. */
export interface MysqlStoreOptions {
  /**
   * A pool of `mysql2/promise` or `mysql2` (best), or a connection that nothing else uses.
   *
   * The client must connect to the primary, because a replica lags behind. The store never closes
   * the client.
   */
  readonly client: MysqlClient
  /**
   * Name of the table of the rows, default `customer_ordering_rows`.
   *
   * The name of the store's second table begins with this name, too.
   */
  readonly table?: string
  /** Name of an existing database for the tables, default the database of the first connection. */
  readonly database?: string
}

/** In a name of MySQL. */
const FORBIDDEN = /[\p{Control}\p{Surrogate}\u{10000}-\u{10ffff}]|\s$/u

const FAILED = 'Cannot use the order store in MySQL'

/**
 * Remembers orders in MySQL 8 or MariaDB 10.11 and newer, for any number of processes on any number
 * of machines.
 *
 * Every call is one statement with its own commit. An acknowledged write is as durable as the
 * database server: a server whose settings could lose commits in a crash is rejected.
 *
 * Calls reject if their connection is inside a transaction or has autocommit off: a rollback could
 * remove an order from the store after the order was sent. They also reject if the server is
 * read-only, because it may be a replica: an order that is missing there may exist.
 *
 * @example
 * import { createPool } from 'mysql2/promise'
 * const store = new MysqlStore({ client: createPool('mysql://localhost/shop') })
 */
export class MysqlStore extends ServerStore {
  /**
   * Creates the store. Sends nothing to the database.
   *
   * @throws {StoreError} if an option is wrong
   */
  constructor(options: MysqlStoreOptions) {
    const {
      client,
      table = 'customer_ordering_rows',
      database,
    }: MysqlStoreOptions = given('MysqlStore', options, { client: true, table: true, database: true })
    const has = (name: string): boolean => hasMethod(client, name)
    // The database of an ORM may have one of the last two.
    if (!(has('promise') || has('getConnection') || (has('query') && has('execute'))))
      throw new StoreError(
        'MysqlStore needs a pool or connection of mysql2, such as createPool() of mysql2/promise.',
      )
    // The name of the second table is longer.
    checkName('MysqlStore', 'table', table, 64 - '_versions'.length, FORBIDDEN)
    if (database !== undefined) checkName('MysqlStore', 'database', database, 64, FORBIDDEN)
    super('MysqlStore', new MysqlEngine(connectionOf(client), { table, database }))
  }
}

class MysqlEngine implements Engine {
  readonly durability: StoreDurability = 'server'
  readonly failures = MYSQL_FAILURES
  readonly isMisfit = isMisfit
  readonly open: () => Promise<Tables>
  readonly #query: Query

  constructor(query: Query, names: Names) {
    this.#query = query
    this.open = once(() => migrate(query, names))
  }

  async run(operation: Operation, values: Values): Promise<Result> {
    const { scope, id = '' } = values
    checkKey(scope)
    checkKey(id)
    const statement = (await this.open()).statements[operation]
    const bound = bind(statement, values, (value) =>
      typeof value === 'string' ? Buffer.from(value) : String(Number(value)),
    )
    try {
      const found = await this.#query(statement.text, bound)
      return isRead(operation)
        ? { written: 0, rows: rowsOf(found, scope) }
        : { written: Number(Object(found).affectedRows), rows: [] }
    } catch (error) {
      if (operation === 'insert' && isDuplicate(error)) return { written: 0, rows: [], proven: true }
      throw error
    }
  }

  async refusal(): Promise<StoreError | undefined> {
    const { refusal } = await this.open()
    return refusalOf((await first(this.#query, refusal))['refusal'], FAILED)
  }
}

function rowsOf(found: unknown, scope: string): StoredRow[] {
  const rows: unknown[] = Array.isArray(found) ? found : []
  // A LEFT JOIN returns a row without an id if it finds nothing.
  const [server]: unknown[] = rows
  if (server === undefined)
    throw new StoreError('The database client returned no result. Pass a pool of mysql2/promise.')
  const refusal = refusalOf(Object(server).refusal, FAILED)
  if (refusal !== undefined) throw refusal
  return rows.filter((row) => Object(row).id !== null).map((row) => toRow(scope, Object(row)))
}
