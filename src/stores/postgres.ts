import { StoreError } from '../errors/classes.ts'
import { explain, isMisfit } from './postgres/failure.ts'
import { checkVersion, migrate } from './postgres/migrate.ts'
import { fromCursor, toPage, toRow, wholeTime } from './postgres/rows.ts'
import { type Names, namesOf, PRUNE_BATCH, type Statements, statementsFor } from './postgres/schema.ts'
import { type PostgresClient, type Query, type Session, sessionOf } from './postgres/session.ts'
import { fromStored, toStored } from './postgres/text.ts'
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

export type { PostgresClient, PostgresParameter } from './postgres/session.ts'

/** Options of {@link PostgresStore}. */
export interface PostgresStoreOptions {
  /**
   * A pg `Pool` (best), a pg `Client` or a `PGlite` that nothing else uses, or any object with a
   * method `query`. The client must connect to the primary, because a standby lags behind. The
   * store never closes the client.
   */
  readonly client: PostgresClient
  /**
   * Name of the table of the rows, default `customer_ordering_rows`. The store appends `_versions`
   * to this name for its second table.
   */
  readonly table?: string
  /** Name of an existing schema for both tables, default `public`. */
  readonly schema?: string
}

const DEFAULT_TABLE = 'customer_ordering_rows'
const DEFAULT_SCHEMA = 'public'

/** An attempt fails if the existing row is pruned before the store reads it. */
const INSERT_ATTEMPTS = 3

/**
 * Remembers orders in PostgreSQL, for any number of processes on any number of machines. Every
 * write is one conditional statement with its own commit, and the call waits for that commit. An
 * acknowledged write is as durable as the database server.
 *
 * The first call, or {@link PostgresStore.migrate}, creates the two tables or brings them up to
 * date.
 *
 * Calls reject if their connection is inside a transaction: a rollback could remove an order from
 * the store after the order was sent. {@link PostgresStore.within} is the exception, for orders
 * that are sent later.
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
    // Without `Object`, a call without options would throw a TypeError, not a StoreError.
    const { client, table = DEFAULT_TABLE, schema = DEFAULT_SCHEMA }: PostgresStoreOptions = Object(options)
    checkClient(client)
    this.#session = sessionOf(client)
    this.#names = namesOf(schema, table)
    this.#statements = statementsFor(this.#names)
  }

  /**
   * Creates the tables, or brings them up to date. Never drops anything. The first read or write
   * does the same. Call `migrate` to find problems at start-up, or to create the tables as a
   * different role. You can call it again, even from several processes at the same time. If the
   * tables are up to date, the role needs no right to create tables.
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
   * Removes old closed rows, a few hundred per statement. If the call rejects midway, the rows
   * removed so far stay removed, and the next call continues.
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
    // Every id sorts after '', so the first page includes rows written exactly at `since`.
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
   * Closes the store, but not the database client that you passed. Later calls reject with
   * `StoreError`. Closing again does nothing.
   */
  async close(): Promise<void> {
    this.#closed = true
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
          // A second statement reads the existing row: the INSERT cannot see a row that was
          // committed while it waited.
          const current = await this.#get(query, name)
          if (current !== undefined) return { inserted: false, current }
          await this.#checkVersion(query)
        }
        throw new StoreError(
          'Cannot write to the order store in PostgreSQL: ' +
            'other processes keep writing and pruning the same record. Nothing was written; try again.',
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
      throw explain(error, task)
    }
  }

  /** Reports the upgrade if a newer version of this package made the tables look damaged. */
  async #newerOr(error: unknown, query: Query): Promise<unknown> {
    try {
      await this.#checkVersion(query)
      return error
    } catch (newer) {
      return newer instanceof StoreError ? newer : error
    }
  }

  #checkVersion(query: Query): Promise<void> {
    return checkVersion(query, this.#statements)
  }

  #checkOpen(): void {
    if (this.#closed) throw new StoreError('The order store was closed. Create a new PostgresStore.')
  }

  async #migrate(): Promise<void> {
    this.#checkOpen()
    try {
      await this.#session.use((query) => migrate(query, this.#names, this.#statements))
    } catch (error) {
      throw explain(error, 'open')
    }
  }
}

function checkClient(client: unknown): void {
  const query: unknown =
    typeof client === 'object' && client !== null ? Reflect.get(client, 'query') : undefined
  if (typeof query === 'function') return
  throw new StoreError(
    'PostgresStore needs a client with a method `query(text, parameters)`, such as a pg Pool or a PGlite.',
  )
}
