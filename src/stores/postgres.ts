import { StoreError } from '../errors/classes.ts'
import {
  type Connection,
  connectionOf,
  type PostgresClient,
  type PostgresParameter,
} from './postgres/connection.ts'
import { explain, isMisfit } from './postgres/failure.ts'
import { migrate } from './postgres/migrate.ts'
import { type Names, namesOf, SCHEMA_VERSION, type Statements, statementsFor } from './postgres/schema.ts'
import { fromStored, toStored } from './postgres/text.ts'
import { toRow } from './rows.ts'
import { once, type ServerEngine, ServerStore } from './sql/server.ts'
import type { Result } from './sql/store.ts'
import { newerTables, type StatementName, type Values } from './sql/text.ts'
import type { StoreDurability, StoredRow } from './store.ts'

export type { PostgresClient, PostgresParameter } from './postgres/connection.ts'

/** Options of {@link PostgresStore}. */
export interface PostgresStoreOptions {
  /**
   * A pg `Pool` (best), a pg `Client` or a `PGlite` that nothing else uses, or any object with a
   * method `query`.
   *
   * The client must connect to the primary, because a standby lags behind. The store never closes
   * the client.
   */
  readonly client: PostgresClient
  /**
   * Name of the table of the rows, default `customer_ordering_rows`.
   *
   * The names of the store's second table and of its procedures begin with this name, too.
   */
  readonly table?: string
  /** Name of an existing schema for tables and procedures, default `public`. */
  readonly schema?: string
}

const DEFAULT_TABLE = 'customer_ordering_rows'
const DEFAULT_SCHEMA = 'public'

const FAILED = 'Cannot use the order store in PostgreSQL'

/**
 * Remembers orders in PostgreSQL, for any number of processes on any number of machines.
 *
 * Every call is one statement with its own commit, and the call waits for that commit. An
 * acknowledged write is as durable as the database server.
 *
 * The first call, or {@link PostgresStore.migrate}, creates two tables and three procedures, or
 * brings them up to date.
 *
 * Calls reject if their connection is inside a transaction: a rollback could remove an order from
 * the store after the order was sent. They also reject if the server is a standby, or if row-level
 * security hides rows: an order that is missing there may exist.
 *
 * Every failure is a `StoreError` that explains what happened and what to do. Its `cause`, if any,
 * is a plain error with only a code, for example `57014`. Neither error contains a message from the
 * server or part of a connection string.
 *
 * @example
 * import { Pool } from 'pg'
 * const store = new PostgresStore({ client: new Pool() })
 */
export class PostgresStore extends ServerStore {
  /**
   * Creates the store. Sends nothing to the database.
   *
   * @throws {StoreError} if an option is wrong
   */
  constructor(options: PostgresStoreOptions) {
    // Without `Object`, a call without options would throw a TypeError, not a StoreError.
    const { client, table = DEFAULT_TABLE, schema = DEFAULT_SCHEMA }: PostgresStoreOptions = Object(options)
    checkClient(client)
    super('PostgresStore', new PostgresEngine(connectionOf(client), namesOf(schema, table)))
  }
}

class PostgresEngine implements ServerEngine {
  readonly durability: StoreDurability = 'server'
  readonly #connection: Connection
  readonly #statements: Statements
  readonly migrate: () => Promise<void>

  constructor(connection: Connection, names: Names) {
    this.#connection = connection
    const statements = statementsFor(names)
    this.#statements = statements
    this.migrate = once(() =>
      migrate(connection.query, names, statements).catch((error) => {
        throw explain(error, 'open')
      }),
    )
  }

  async run(name: StatementName, values: Values): Promise<Result> {
    const reads = name === 'get' || name === 'open' || name === 'list'
    const { text, parameters } = this.#statements[reads ? 'read' : name === 'prune' ? 'prune' : 'write']
    // An update expects another version than -1.
    const defaults = { id: '', since: 0, limit: 1, expected: -1 }
    const given = { ...defaults, ...values, kind: name, deaf: this.#connection.deaf }
    const bound = parameters.map((parameter) => {
      const value = given[parameter]
      return typeof value === 'boolean' ? value : toStored(String(value))
    })
    const result = await this.#call(reads ? 'read from' : 'write to', text, bound)
    if (name === 'prune') return { rows: [], written: Number(result) }
    if (result === 'written') return { rows: [], written: 1 }
    const found: unknown = JSON.parse(result ?? (reads ? 'null' : '[]'))
    if (Array.isArray(found))
      return { rows: found.map((row) => decode(String(values.scope), row)), written: 0 }
    throw new StoreError('The database client returned no result. Check that it returns the rows of CALL.')
  }

  /** The store closes nothing: the caller owns the client. */
  close(): void {}

  async #call(
    task: 'read from' | 'write to',
    statement: string,
    parameters: PostgresParameter[],
  ): Promise<string | undefined> {
    await this.migrate()
    let result: string | undefined
    try {
      result = await this.#connection.query(statement, parameters)
    } catch (error) {
      throw explain(await this.#newerOr(error), task)
    }
    const refusal = refusalOf(result ?? '')
    if (refusal === undefined) return result
    throw refusal
  }

  /** Reports the upgrade if a newer version of this package changed what the statement uses. */
  async #newerOr(error: unknown): Promise<unknown> {
    if (!isMisfit(error)) return error
    const version = Number(await this.#connection.query(this.#statements.version).catch(() => 0))
    return version > SCHEMA_VERSION ? newerTables(version, SCHEMA_VERSION, FAILED) : error
  }
}

/** In the order of the procedures' `json_build_array`. */
function decode(scope: string, row: unknown): StoredRow {
  const [id, version, open, state, createdAt, updatedAt, data]: unknown[] = Array.isArray(row) ? row : []
  return toRow(scope, {
    ...{ version, open, state, createdAt, updatedAt },
    id: typeof id === 'string' ? fromStored(id) : id,
    data: typeof data === 'string' ? fromStored(data) : data,
  })
}

/** The procedures return these words instead of a result. */
function refusalOf(result: string): StoreError | undefined {
  const [word, version = ''] = result.split(' ', 2)
  if (word === 'newer') return newerTables(version, SCHEMA_VERSION, FAILED)
  if (word === 'standby')
    return new StoreError(`${FAILED}: this server is a standby, which lags behind. Connect to the primary.`)
  if (word === 'filtered')
    return new StoreError(
      `${FAILED}: row-level security hides rows of its table from this role. Nothing was written. ` +
        'Disable it for that table, or exempt the role with BYPASSRLS.',
    )
  if (word === 'deaf')
    return new StoreError(
      `${FAILED}: the server waits for synchronous standbys, and this client does not show when that ` +
        'wait is cancelled. Nothing was written. Pass a Pool or Client of pg.',
      { applied: false },
    )
  return undefined
}

function checkClient(client: unknown): void {
  const query: unknown =
    typeof client === 'object' && client !== null ? Reflect.get(client, 'query') : undefined
  if (typeof query === 'function') return
  throw new StoreError(
    'PostgresStore needs a client with a method `query(text, parameters)`, such as a pg Pool or a PGlite.',
  )
}
