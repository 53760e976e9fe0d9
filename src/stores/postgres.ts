import { StoreError } from '../errors.ts'
import { explain, explainWrite, isMisfit, KEYLESS } from './postgres/failure.ts'
import {
  inspection,
  migration,
  type Names,
  namesOf,
  PRUNE_BATCH,
  SCHEMA_VERSION,
  type Statements,
  statementsFor,
} from './postgres/schema.ts'
import {
  type PostgresClient,
  type Query,
  type Row,
  type Session,
  sessionOf,
  transactionOf,
} from './postgres/session.ts'
import { fromStored, toStored } from './postgres/text.ts'
import type {
  InsertResult,
  ListRowsOptions,
  OrderOutbox,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from './store.ts'
import { UncertainWrites } from './uncertain-writes.ts'

export type { PostgresClient, PostgresParameter } from './postgres/session.ts'

/** Options of {@link PostgresStore}. */
export interface PostgresStoreOptions {
  /**
   * A pg `Pool` (best), a pg `Client` or a `PGlite` that nothing else uses, or any object with a
   * method `query`. The store never closes it. It must connect to the primary: a standby lags
   * behind.
   */
  readonly client: PostgresClient
  /**
   * Name of the table, default `customer_ordering_rows`. A second table has the same name with
   * `_versions` appended.
   */
  readonly table?: string
  /** Schema of the tables, default `public`. It must exist. */
  readonly schema?: string
}

const DEFAULT_TABLE = 'customer_ordering_rows'
const DEFAULT_SCHEMA = 'public'

/**
 * Maximum number of attempts to insert a row. An attempt fails if the existing row is pruned before
 * the store reads it.
 */
const INSERT_ATTEMPTS = 3

/**
 * Remembers orders in PostgreSQL, for any number of processes on any number of machines. Every
 * write is one conditional statement with its own commit, and the call waits for that commit. An
 * acknowledged write is as durable as the database server.
 *
 * The first call, or {@link PostgresStore.migrate}, creates the two tables or brings them up to
 * date.
 *
 * Calls on a connection inside a transaction reject: a rollback could remove an order from the
 * store after it was sent. {@link PostgresStore.within} is the exception, for orders that are sent
 * later.
 *
 * Every failure is a `StoreError` that explains what happened and what to do. Its `cause` is a
 * plain error with only a code, for example `57014`. Neither error contains a message of the server
 * or a part of a connection string.
 *
 * @example
 * import { Pool } from 'pg'
 * const store = new PostgresStore({ client: new Pool() })
 */
export class PostgresStore implements OrderStore {
  /** Shared by all machines that use the database. */
  readonly durability: StoreDurability = 'server'
  readonly #session: Session
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
    // JavaScript callers may pass anything: the next check rejects a value without a client.
    const { client, table = DEFAULT_TABLE, schema = DEFAULT_SCHEMA }: PostgresStoreOptions = Object(options)
    checkClient(client)
    this.#session = sessionOf(client)
    this.#names = namesOf(schema, table)
    this.#statements = statementsFor(this.#names)
  }

  /**
   * Creates the tables, or brings them up to date. Never drops anything. The first call of any
   * other method does the same. Call `migrate` to find problems at start-up, or to create the
   * tables as a different role. You can call it again, even from several processes at the same
   * time. If the tables are up to date, the role needs no right to create tables.
   *
   * @throws {StoreError} if the database cannot store orders safely, or the role may not create the
   * tables
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
    const parameters = [toStored(scope), toStored(id)]
    return await this.#run('read from', this.#session, (query) => this.#get(query, parameters))
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    return await this.#uncertain.run(row, () => this.#insert(this.#session, row))
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    return await this.#uncertain.run(row, () => this.#update(this.#session, row, expectedVersion))
  }

  async #update(session: Session, row: StoredRow, expectedVersion: number): Promise<boolean> {
    const parameters = [
      ...[String(row.version), row.open, row.state, String(row.createdAt), String(row.updatedAt)],
      ...[toStored(row.data), toStored(row.scope), toStored(row.id), String(expectedVersion)],
    ]
    return await this.#run(
      'write to',
      session,
      async (query) => {
        if ((await query(this.#statements.update, parameters)).length === 1) return true
        await this.#checkVersion(query)
        return false
      },
      (updated) => updated,
    )
  }

  async listOpen(scope: string, { after, limit }: ListRowsOptions): Promise<RowPage> {
    // One row beyond the limit shows whether there is a next page.
    const parameters = [toStored(scope), toStored(after ?? ''), String(limit + 1)]
    return await this.#run('read from', this.#session, async (query) =>
      toPage(scope, await query(this.#statements.listOpen, parameters), limit, (last) => last.id),
    )
  }

  /**
   * Removes old closed rows, a few hundred per statement. If it rejects midway, the rows removed so
   * far stay removed, and the next call continues.
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
        batch = await this.#run(
          'write to',
          this.#session,
          async (query) => Number((await query(this.#statements.prune, parameters))[0]?.['removed']),
          (count) => count > 0,
        )
        removed += batch
      } while (batch === PRUNE_BATCH)
    }
    return removed
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    // Every id sorts after '', so the first page includes the rows at `since` itself.
    const [updatedAt, id] =
      options.after === undefined ? [wholeTime(options.since ?? 0), ''] : fromCursor(options.after)
    const parameters = [toStored(scope), updatedAt, toStored(id), String(options.limit + 1)]
    return await this.#run('read from', this.#session, async (query) =>
      toPage(
        scope,
        await query(this.#statements.list, parameters),
        options.limit,
        (last) => `${last.updatedAt} ${last.id}`,
      ),
    )
  }

  /**
   * Closes the store, but not your client. Later calls reject with `StoreError`. Closing again does
   * nothing.
   */
  async close(): Promise<void> {
    this.#closed = true
  }

  /**
   * Returns the store's rows inside your transaction, for `orders.enqueue`. Enqueued orders are
   * committed or rolled back together with everything else in the transaction. An order is sent
   * only after the commit, by any process that runs `orders.recover()`.
   *
   * Pass the connection on which the transaction began. Call {@link PostgresStore.migrate} first,
   * when the program starts. Keep the transaction short: a concurrent call for the same order waits
   * for its end.
   *
   * @throws {StoreError} if `client` has no method `query`
   * @example
   * await client.orders.enqueue(request, { within: store.within(connection) })
   */
  within(client: PostgresClient): OrderOutbox {
    checkClient(client)
    const session = transactionOf(client)
    return {
      get: async (scope, id) => {
        const parameters = [toStored(scope), toStored(id)]
        return await this.#run('read from', session, (query) => this.#get(query, parameters))
      },
      insert: (row) => this.#uncertain.run(row, () => this.#insert(session, row)),
      update: (row, expectedVersion) =>
        this.#uncertain.run(row, () => this.#update(session, row, expectedVersion)),
    }
  }

  async #insert(session: Session, row: StoredRow): Promise<InsertResult> {
    const name = [toStored(row.scope), toStored(row.id)]
    const parameters = [
      ...name,
      ...[String(row.version), row.open, row.state, String(row.createdAt), String(row.updatedAt)],
      toStored(row.data),
    ]
    return await this.#run<InsertResult>(
      'write to',
      session,
      async (query) => {
        for (let attempt = 1; attempt <= INSERT_ATTEMPTS; attempt++) {
          if ((await query(this.#statements.insert, parameters)).length === 1) return { inserted: true }
          // Reads the row in a second statement: an insert that waited for the row's writer does
          // not see the row.
          const current = await this.#get(query, name)
          if (current !== undefined) return { inserted: false, current }
          await this.#checkVersion(query)
        }
        throw new StoreError(
          'Cannot write to the order store: other processes keep writing and pruning the same record. Nothing was written; try again.',
          { applied: false },
        )
      },
      ({ inserted }) => inserted,
    )
  }

  async #get(query: Query, name: string[]): Promise<StoredRow | undefined> {
    const [found] = await query(this.#statements.get, name)
    return found === undefined ? undefined : toRow(fromStored(name[0] ?? ''), found)
  }

  /** Runs the statements of one call. Every error becomes a {@link StoreError}. */
  async #run<T>(
    task: 'read from' | 'write to',
    session: Session,
    action: (query: Query) => Promise<T>,
    writes?: (result: T) => boolean,
  ): Promise<T> {
    this.#checkOpen()
    await this.migrate()
    try {
      return await session.use(async (query) => {
        try {
          return await action(query)
        } catch (error) {
          throw isMisfit(error) || error instanceof StoreError ? await this.#newerOr(error, query) : error
        }
      }, writes)
    } catch (error) {
      const failed = `Cannot ${task} the order store in PostgreSQL`
      throw task === 'write to' ? explainWrite(error, failed) : explain(error, failed)
    }
  }

  /** Throws if a newer version of this package has upgraded the tables since they were opened. */
  async #checkVersion(query: Query): Promise<void> {
    checkVersion(await this.#version(query), 'Cannot use the order store in PostgreSQL')
  }

  /**
   * Returns an error that reports the upgrade if a newer version of this package has upgraded the
   * tables: they look damaged to this version. Otherwise returns the given error.
   */
  async #newerOr(error: unknown, query: Query): Promise<unknown> {
    try {
      await this.#checkVersion(query)
      return error
    } catch (newer) {
      return newer instanceof StoreError ? newer : error
    }
  }

  async #version(query: Query): Promise<number> {
    return Number((await query(this.#statements.version))[0]?.['version'])
  }

  #checkOpen(): void {
    if (this.#closed) throw new StoreError('The order store was closed. Create a new PostgresStore.')
  }

  async #migrate(): Promise<void> {
    this.#checkOpen()
    try {
      await this.#session.use(async (query) => {
        let version = await this.#inspect(query)
        if (version < SCHEMA_VERSION) {
          await query(migration(this.#names, version))
          version = await this.#inspect(query)
        }
        checkVersion(version, 'Cannot open the order store in PostgreSQL')
      })
    } catch (error) {
      throw explain(error, 'Cannot open the order store in PostgreSQL')
    }
  }

  /**
   * Throws if the database cannot store orders safely. Returns the version of the tables, or 0 if
   * there are none.
   */
  async #inspect(query: Query): Promise<number> {
    const [database = {}] = await query(...inspection(this.#names))
    const refusal = refusalOf(database, this.#names)
    if (refusal !== undefined)
      throw new StoreError(`Cannot open the order store in PostgreSQL: ${refusal} Nothing was changed.`)
    return database['has_versions'] === 'true' ? await this.#version(query) : 0
  }
}

/** Throws if a newer version of this package created or upgraded the tables. */
function checkVersion(found: number, failed: string): void {
  if (found <= SCHEMA_VERSION) return
  throw new StoreError(
    `${failed}: a newer version of customer-ordering-sdk wrote it ` +
      `(schema ${found}, this version supports ${SCHEMA_VERSION}). Update the package; nothing was changed.`,
    { applied: false },
  )
}

function checkClient(client: unknown): void {
  const query: unknown =
    typeof client === 'object' && client !== null ? Reflect.get(client, 'query') : undefined
  if (typeof query === 'function') return
  throw new StoreError(
    'PostgresStore needs a client with a method `query(text, parameters)`, such as a pg Pool or a PGlite.',
  )
}

function refusalOf(database: Row, { schema }: Names): string | undefined {
  if (database['has_schema'] === undefined)
    return 'the client does not return rows as objects keyed by column name. Turn off its array rows or its conversion of column names.'
  if (database['standby'] === 'true')
    return 'this server is a standby, which lags behind. Connect to the primary.'
  if (database['server_encoding'] !== 'UTF8' || database['client_encoding'] !== 'UTF8')
    return 'the database and the connection must have the encoding UTF8, or strings could come back changed.'
  if (database['has_schema'] !== 'true')
    return `the schema ${schema} does not exist. Create it, or set the option \`schema\` to an existing schema.`
  if (database['persistence'] === 'u')
    return 'its table is UNLOGGED, so a crash of the server empties it. Run ALTER TABLE … SET LOGGED.'
  if (database['lacks_key'] === 'true') return KEYLESS
  return undefined
}

/**
 * Formats a time to compare with `updatedAt`. Every `updatedAt` is a safe integer, so comparisons
 * have the same result if the time is rounded up, or replaced by the nearest safe integer.
 */
function wholeTime(time: number): string {
  if (Number.isNaN(time)) throw new StoreError('A time passed to the order store is not a number.')
  return String(Math.min(Math.max(Math.ceil(time), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER))
}

function toRow(scope: string, found: Row): StoredRow {
  const { id, version, open, state, created_at: createdAt, updated_at: updatedAt, data } = found
  if (
    typeof id !== 'string' ||
    (open !== 'true' && open !== 'false') ||
    (state !== 'open' && state !== 'created' && state !== 'rejected') ||
    typeof data !== 'string'
  ) {
    throw new StoreError(
      'The database returned a row that the order store did not write. Check that nothing else writes to its tables.',
    )
  }
  return {
    scope,
    id: fromStored(id),
    version: Number(version),
    open: open === 'true',
    state,
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
    data: fromStored(data),
  }
}

function toPage(
  scope: string,
  found: readonly Row[],
  limit: number,
  cursor: (last: StoredRow) => string,
): RowPage {
  const rows = found.slice(0, limit).map((row) => toRow(scope, row))
  const last = rows.at(-1)
  return found.length <= limit || last === undefined ? { rows } : { rows, next: cursor(last) }
}

function fromCursor(after: string): readonly [updatedAt: string, id: string] {
  const [, updatedAt, id] = /^(\d{1,16}) (.*)$/s.exec(after) ?? []
  if (updatedAt === undefined || id === undefined) {
    throw new StoreError('The option `after` must be the `next` of a page that this store returned.')
  }
  return [updatedAt, id]
}
