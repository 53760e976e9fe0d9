import { StoreError } from '../errors/classes.ts'
import { CloudflareEngine, type Query, Unproven } from './cloudflare/engine.ts'
import type { Columns } from './rows.ts'
import { SqlStore } from './sql/store.ts'

/** The part of a D1 binding that the store uses. */
export interface D1Binding {
  /** Prepares a statement with `?` for each value. */
  prepare(query: string): {
    /** Sets the values. */
    bind(...values: unknown[]): {
      /** Runs the statement, and resolves when the primary has committed it. */
      all(): Promise<{
        readonly results: readonly object[]
        readonly meta?: { readonly served_by_primary?: boolean }
      }>
    }
  }
}

/** Options of {@link D1Store}. */
export interface D1StoreOptions {
  /**
   * The binding of the database, such as `env.DB`.
   *
   * Not a session (`withSession()`), which may read a replica that lags behind.
   */
  readonly database: D1Binding
}

/**
 * Remembers orders in a Cloudflare D1 database, for all workers that have its binding.
 *
 * Every call is one statement with its own commit at the primary of the database. The first call
 * creates two tables, or brings them up to date.
 *
 * Create a store for each request of a worker: calls that share a store wait for each other in
 * memory, which a worker does not allow between two requests.
 *
 * Every failure is a `StoreError` that explains what happened and what to do. Its `cause`, if any,
 * is a plain error with a code, for example `SQLITE_FULL` or `D1_ERROR`.
 *
 * @example
 * const store = new D1Store({ database: env.DB })
 */
export class D1Store extends SqlStore {
  /**
   * Creates the store. Sends nothing to the database.
   *
   * @throws {StoreError} if `database` is not the binding of a D1 database
   */
  constructor(options: D1StoreOptions) {
    // Without `Object`, a call without options would throw a TypeError, not a StoreError.
    const { database }: D1StoreOptions = Object(options)
    checkBinding(database)
    const query: Query = async (text, parameters) => {
      const { results, meta } = await database
        .prepare(text)
        .bind(...parameters)
        .all()
      if (meta?.served_by_primary === false)
        throw new Unproven(
          'a read replica responded, which lags behind. Pass the binding itself, not a session',
        )
      return results.map((row): Columns => ({ ...row }))
    }
    super('D1Store', new CloudflareEngine({ place: 'D1', object: database, read: query, write: query }))
  }
}

function checkBinding(database: unknown): void {
  const has = (method: string): boolean => typeof Reflect.get(Object(database), method) === 'function'
  if (has('prepare') && !has('getBookmark')) return
  throw new StoreError(
    has('getBookmark')
      ? 'D1Store needs the binding itself, such as env.DB: a session may read a replica that lags behind.'
      : 'D1Store needs `database`, the binding of a D1 database, such as env.DB.',
  )
}
