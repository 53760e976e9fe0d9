import { StoreError } from '../errors/classes.ts'
import { CloudflareEngine, Unproven } from './cloudflare/engine.ts'
import { EngineStore } from './engine.ts'
import { given, hasMethod } from './options.ts'
import type { Query } from './sql/sqlite.ts'

export type { EngineStore } from './engine.ts'

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
 * @example
 * const store = new D1Store({ database: env.DB })
 */
export class D1Store extends EngineStore {
  /**
   * Creates the store. Sends nothing to the database.
   *
   * @throws {StoreError} if `database` is not the binding of a D1 database
   */
  constructor(options: D1StoreOptions) {
    const { database }: D1StoreOptions = given('D1Store', options, { database: true })
    const isSession = hasMethod(database, 'getBookmark')
    if (!hasMethod(database, 'prepare') || isSession)
      throw new StoreError(
        isSession
          ? 'D1Store needs the binding itself, such as env.DB: a session may read a replica that lags behind.'
          : 'D1Store needs `database`, the binding of a D1 database, such as env.DB.',
      )
    const query: Query = async (text, parameters) => {
      const { results, meta } = await database
        .prepare(text)
        .bind(...parameters)
        .all()
      if (meta?.served_by_primary === false)
        throw new Unproven(
          'a read replica responded, which lags behind. Pass the binding itself, not a session',
        )
      return results
    }
    super('D1Store', new CloudflareEngine({ place: 'D1', object: database, read: query, write: query }))
  }
}
