import { StoreError } from '../errors/classes.ts'
import { toText } from './bytes.ts'
import { connectionOf, type MysqlClient, type Query } from './mysql/connection.ts'
import { explain, isDuplicate, isMisfit } from './mysql/failure.ts'
import { checkKey, checkName, first, migrate, type Names, refusalOf, type Tables } from './mysql/schema.ts'
import { toRow } from './rows.ts'
import { once, type ServerEngine, ServerStore } from './sql/server.ts'
import type { Result } from './sql/store.ts'
import type { StatementName, Values } from './sql/text.ts'
import type { StoreDurability, StoredRow } from './store.ts'

export type { MysqlClient, MysqlConnection, MysqlPool, MysqlPoolConnection } from './mysql/connection.ts'

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

const DEFAULT_TABLE = 'customer_ordering_rows'

const FAILED = 'Cannot use the order store in MySQL'

/**
 * Remembers orders in MySQL 8 or MariaDB 10.11 and newer, for any number of processes on any number
 * of machines.
 *
 * Every call is one statement with its own commit. An acknowledged write is as durable as the
 * database server: a server whose settings could lose commits in a crash is rejected.
 *
 * The first call, or {@link MysqlStore.migrate}, creates two InnoDB tables, or brings them up to
 * date.
 *
 * Calls reject if their connection is inside a transaction or has autocommit off: a rollback could
 * remove an order from the store after the order was sent. They also reject if the server is
 * read-only, because it may be a replica: an order that is missing there may exist.
 *
 * Every failure is a `StoreError` that explains what happened and what to do. Its `cause`, if any,
 * is a plain error with only a code, for example `1213`. Neither error contains a message from the
 * server or part of a connection string.
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
    // Without `Object`, a call without options would throw a TypeError, not a StoreError.
    const { client, table = DEFAULT_TABLE, database }: MysqlStoreOptions = Object(options)
    checkClient(client)
    // The name of the second table is longer.
    checkName('table', table, 64 - '_versions'.length)
    if (database !== undefined) checkName('database', database, 64)
    super('MysqlStore', new MysqlEngine(connectionOf(client), { table, database }))
  }
}

class MysqlEngine implements ServerEngine {
  readonly durability: StoreDurability = 'server'
  readonly #query: Query
  readonly migrate: () => Promise<Tables>

  constructor(query: Query, names: Names) {
    this.#query = query
    this.migrate = once(() =>
      migrate(query, names).catch((error) => {
        throw explain(error, 'open')
      }),
    )
  }

  async run(name: StatementName, values: Values): Promise<Result> {
    const reads = name === 'get' || name === 'open' || name === 'list'
    checkKey(String(values.scope))
    if (values.id !== undefined) checkKey(String(values.id))
    const tables = await this.migrate()
    const { text, parameters } = tables.statements[name]
    const bound = parameters.map((parameter) => {
      const value = values[parameter]
      return typeof value === 'string' ? Buffer.from(value) : String(Number(value))
    })
    const refusal = async (): Promise<StoreError | undefined> =>
      refusalOf((await first(this.#query, tables.refusal))['refusal'], FAILED)
    try {
      const found = await this.#query(text, bound)
      if (reads) return { written: 0, rows: rowsOf(found, String(values.scope)) }
      const written = Number(Object(found).affectedRows)
      // The server writes nothing in a state that proves nothing.
      const refused = written === 0 ? await refusal() : undefined
      if (refused !== undefined) throw refused
      return { written, rows: [] }
    } catch (error) {
      if (name === 'insert' && isDuplicate(error)) return { written: 0, rows: [] }
      // A newer version of this package may have changed what the statement uses.
      const newer = isMisfit(error) ? await refusal().catch(() => undefined) : undefined
      throw newer ?? explain(error, reads ? 'read from' : 'write to')
    }
  }

  /** The store closes nothing: the caller owns the client. */
  close(): void {}
}

function rowsOf(found: unknown, scope: string): StoredRow[] {
  const rows: unknown[] = Array.isArray(found) ? found : []
  // A LEFT JOIN returns a row without an id if it finds nothing.
  const [server]: unknown[] = rows
  if (server === undefined)
    throw new StoreError('The database client returned no result. Pass a pool of mysql2/promise.')
  const refusal = refusalOf(Object(server).refusal, FAILED)
  if (refusal !== undefined) throw refusal
  return rows.filter((row) => Object(row).id !== null).map((row) => decode(scope, Object(row)))
}

/** Numbers come as strings if the caller's connection says so. */
function decode(scope: string, row: Readonly<Record<string, unknown>>): StoredRow {
  return toRow(scope, {
    id: toText(row['id']),
    version: Number(row['version']),
    open: Number(row['open']),
    state: toText(row['state']),
    createdAt: Number(row['createdAt']),
    updatedAt: Number(row['updatedAt']),
    data: toText(row['data']),
  })
}

function checkClient(client: unknown): void {
  if (
    ['getConnection', 'execute', 'promise'].some(
      (name) => typeof Reflect.get(Object(client), name) === 'function',
    )
  )
    return
  throw new StoreError(
    'MysqlStore needs a pool or connection of mysql2, such as createPool() of mysql2/promise.',
  )
}
