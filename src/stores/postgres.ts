import { StoreError } from '../errors/classes.ts'
import { type Engine, isRead, type Operation, type Result, type Values } from './engine.ts'
import { given, hasMethod } from './options.ts'
import { type Connection, connectionOf, type PostgresClient } from './postgres/connection.ts'
import { isMisfit, POSTGRES_FAILURES } from './postgres/failure.ts'
import {
  migrate,
  type Names,
  namesOf,
  SCHEMA_VERSION,
  type Statements,
  statementsFor,
} from './postgres/schema.ts'
import { fromStored, toStored } from './postgres/text.ts'
import { toRow } from './rows.ts'
import { once, ServerStore } from './sql/server.ts'
import { newerTables } from './sql/text.ts'
import type { StoreDurability, StoredRow } from './store.ts'

export type { EngineStore } from './engine.ts'
export type { PostgresClient, PostgresParameter } from './postgres/connection.ts'
export type { ServerStore } from './sql/server.ts'

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

const FAILED = 'Cannot use the order store in PostgreSQL'

/**
 * Remembers orders in PostgreSQL, for any number of processes on any number of machines.
 *
 * Every call is one statement with its own commit, and the call waits for that commit. An
 * acknowledged write is as durable as the database server.
 *
 * Calls reject if their connection is inside a transaction: a rollback could remove an order from
 * the store after the order was sent. They also reject if the server is a standby, or if row-level
 * security hides rows: an order that is missing there may exist.
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
    const {
      client,
      table = 'customer_ordering_rows',
      schema = 'public',
    }: PostgresStoreOptions = given('PostgresStore', options, { client: true, table: true, schema: true })
    if (!hasMethod(client, 'query'))
      throw new StoreError(
        'PostgresStore needs a client with a method `query(text, parameters)`, such as a pg Pool or a PGlite.',
      )
    super('PostgresStore', new PostgresEngine(connectionOf(client), namesOf(schema, table)))
  }
}

class PostgresEngine implements Engine {
  readonly durability: StoreDurability = 'server'
  readonly failures = POSTGRES_FAILURES
  readonly isMisfit = isMisfit
  readonly open: () => Promise<void>
  readonly #connection: Connection
  readonly #statements: Statements

  constructor(connection: Connection, names: Names) {
    this.#connection = connection
    const statements = statementsFor(names)
    this.#statements = statements
    this.open = once(() => migrate(connection.query, names, statements))
  }

  async run(operation: Operation, values: Values): Promise<Result> {
    const reads = isRead(operation)
    const { text, parameters } = this.#statements[reads ? 'read' : operation === 'prune' ? 'prune' : 'write']
    // An update expects another version than -1.
    const defaults = { id: '', since: 0, limit: 1, expected: -1 }
    const given = { ...defaults, ...values, kind: operation, deaf: this.#connection.deaf }
    const bound = parameters.map((parameter) => {
      const value = given[parameter]
      return typeof value === 'boolean' ? value : toStored(String(value))
    })
    const result = await this.#connection.query(text, bound)
    const refusal = refusalOf(result ?? '')
    if (refusal !== undefined) throw refusal
    // The procedures refuse by themselves.
    const proven = true
    if (operation === 'prune') return { rows: [], written: Number(result), proven }
    if (result === 'written') return { rows: [], written: 1, proven }
    const found: unknown = JSON.parse(result ?? (reads ? 'null' : '[]'))
    if (Array.isArray(found))
      return { rows: found.map((row) => decode(values.scope, row)), written: 0, proven }
    throw new StoreError('The database client returned no result. Check that it returns the rows of CALL.')
  }

  async refusal(): Promise<StoreError | undefined> {
    const version = Number(await this.#connection.query(this.#statements.version))
    return version > SCHEMA_VERSION ? newerTables(version, SCHEMA_VERSION, FAILED) : undefined
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
const REFUSALS: Readonly<Record<string, string>> = {
  standby: 'this server is a standby, which lags behind. Connect to the primary.',
  filtered:
    'row-level security hides rows of its table from this role. Nothing was written. ' +
    'Disable it for that table, or exempt the role with BYPASSRLS.',
  deaf:
    'the server waits for synchronous standbys, and this client does not show when that ' +
    'wait is cancelled. Nothing was written. Pass a Pool or Client of pg.',
}

function refusalOf(result: string): StoreError | undefined {
  const [word = '', version = ''] = result.split(' ', 2)
  if (word === 'newer') return newerTables(version, SCHEMA_VERSION, FAILED)
  const refusal = REFUSALS[word]
  if (refusal === undefined) return undefined
  return new StoreError(`${FAILED}: ${refusal}`, word === 'deaf' ? { applied: false } : {})
}
