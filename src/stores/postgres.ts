import { StoreError } from '../errors/classes.ts'
import {
  type Connection,
  connectionOf,
  type PostgresClient,
  type PostgresParameter,
} from './postgres/connection.ts'
import { explain, isMisfit } from './postgres/failure.ts'
import { migrate, newerTables } from './postgres/migrate.ts'
import {
  type Names,
  namesOf,
  PRUNE_BATCH,
  SCHEMA_VERSION,
  type Statements,
  statementsFor,
} from './postgres/schema.ts'
import { fromStored, toStored, wholeTime } from './postgres/text.ts'
import { fromListCursor, listCursor, toPage, toRow } from './rows.ts'
import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from './store.ts'
import { UncertainWrites } from './uncertain-writes.ts'

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

/** An attempt fails if the existing row is pruned before the store reads it. */
const INSERT_ATTEMPTS = 3

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
export class PostgresStore implements OrderStore {
  /** `'server'`: shared by all machines that use the database. */
  readonly durability: StoreDurability = 'server'
  readonly #connection: Connection
  readonly #names: Names
  readonly #statements: Statements
  readonly #uncertain: UncertainWrites = new UncertainWrites()
  #migrated: Promise<void> | undefined
  #closed = false

  /**
   * Creates the store. Sends nothing to the database.
   *
   * @throws {StoreError} if an option is wrong
   */
  constructor(options: PostgresStoreOptions) {
    // Without `Object`, a call without options would throw a TypeError, not a StoreError.
    const { client, table = DEFAULT_TABLE, schema = DEFAULT_SCHEMA }: PostgresStoreOptions = Object(options)
    checkClient(client)
    this.#connection = connectionOf(client)
    this.#names = namesOf(schema, table)
    this.#statements = statementsFor(this.#names)
  }

  /**
   * Creates the tables, or brings them up to date.
   *
   * Never drops anything. The first read or write does the same. Call `migrate` to find problems at
   * start-up, or to create the tables as a different role. You can call it again, even from several
   * processes at the same time. If the tables are up to date, the role needs no right to create
   * tables.
   *
   * @throws {StoreError} if the database cannot be reached or cannot store orders safely, or the
   * role may not create the tables
   * @example
   * await store.migrate()
   */
  migrate(): Promise<void> {
    this.#migrated ??= this.#migrate().catch((error) => {
      this.#migrated = undefined
      throw error
    })
    return this.#migrated
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return (await this.#read(scope, 'get', id, '0', 1))[0]
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    return await this.#uncertain.run(row, async () => {
      for (let attempt = 1; attempt <= INSERT_ATTEMPTS; attempt++) {
        const result = await this.#write(row, -1)
        if (result === 'written') return { inserted: true }
        if (result !== undefined) return { inserted: false, current: decode(row.scope, JSON.parse(result)) }
      }
      throw new StoreError(
        'Cannot write to the order store in PostgreSQL: ' +
          'other processes keep writing and pruning the same record. Nothing was written; try again.',
        { applied: false },
      )
    })
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    return await this.#uncertain.run(row, async () => (await this.#write(row, expectedVersion)) === 'written')
  }

  async listOpen(scope: string, { after, limit }: ListRowsOptions): Promise<RowPage> {
    // One row beyond the limit shows whether there is a next page.
    const found = await this.#read(scope, 'open', after ?? '', '0', limit + 1)
    return toPage(found, limit, ({ id }) => id)
  }

  /**
   * Removes old closed rows, a few hundred per statement.
   *
   * If the call rejects midway, the rows removed so far stay removed, and the next call continues.
   */
  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    let removed = 0
    for (const [state, before] of [
      ['created', createdBefore],
      ['rejected', rejectedBefore],
    ] as const) {
      const parameters = [toStored(scope), state, wholeTime(before)]
      let batch = 0
      do {
        batch = Number(await this.#run('write to', this.#statements.prune, parameters))
        removed += batch
      } while (batch === PRUNE_BATCH)
    }
    return removed
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    const { after, limit, since = 0 } = options
    // Every id sorts after '', so the first page includes rows written exactly at `since`.
    const [updatedAt, id] = after === undefined ? [since, ''] : fromListCursor(after)
    const found = await this.#read(scope, 'list', id, wholeTime(updatedAt), limit + 1)
    return toPage(found, limit, listCursor)
  }

  /**
   * Closes the store, but not the database client that you passed.
   *
   * Later calls reject with `StoreError`. Closing again does nothing.
   */
  async close(): Promise<void> {
    this.#closed = true
  }

  async #read(
    scope: string,
    kind: 'get' | 'open' | 'list',
    id: string,
    since: string,
    limit: number,
  ): Promise<StoredRow[]> {
    const parameters = [toStored(scope), kind, toStored(id), since, String(limit)]
    const result = await this.#run('read from', this.#statements.read, parameters)
    const found: unknown = JSON.parse(result ?? 'null')
    if (Array.isArray(found)) return found.map((row: unknown) => decode(scope, row))
    throw new StoreError('The database client returned no result. Check that it returns the rows of CALL.')
  }

  /** Returns `written`, the existing row after a failed insert, or nothing. */
  #write(row: StoredRow, expectedVersion: number): Promise<string | undefined> {
    return this.#run('write to', this.#statements.write, [
      ...[toStored(row.scope), toStored(row.id), String(row.version), row.open, row.state],
      ...[String(row.createdAt), String(row.updatedAt), toStored(row.data)],
      ...[String(expectedVersion), this.#connection.deaf],
    ])
  }

  async #run(
    task: 'read from' | 'write to',
    statement: string,
    parameters: PostgresParameter[],
  ): Promise<string | undefined> {
    this.#checkOpen()
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
    return version > SCHEMA_VERSION ? newerTables(version, FAILED) : error
  }

  #checkOpen(): void {
    if (this.#closed) throw new StoreError('The order store was closed. Create a new PostgresStore.')
  }

  async #migrate(): Promise<void> {
    this.#checkOpen()
    try {
      await migrate(this.#connection.query, this.#names, this.#statements)
    } catch (error) {
      throw explain(error, 'open')
    }
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
  if (word === 'newer') return newerTables(version, FAILED)
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
