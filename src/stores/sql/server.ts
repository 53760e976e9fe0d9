import { type SqlEngine, SqlStore } from './store.ts'

/** `CREATE TABLE … AS`, for example, copies a table without its primary key. */
export const KEYLESS: string =
  'its table has no primary key (scope, id), so one order could be bought twice. Remove duplicate ' +
  'rows, then run ALTER TABLE … ADD PRIMARY KEY (scope, id).'

/** An engine whose tables another user of a server may have to create. */
export interface ServerEngine extends SqlEngine {
  /** Creates the tables, or brings them up to date. */
  migrate(): Promise<unknown>
}

/** A store in a database server. */
export class ServerStore extends SqlStore {
  readonly #engine: ServerEngine

  constructor(name: string, engine: ServerEngine) {
    super(name, engine)
    this.#engine = engine
  }

  /**
   * Creates the tables, or brings them up to date.
   *
   * Never drops anything. The first read or write does the same. Call `migrate` to find problems at
   * start-up, or to create the tables as a different user. You can call it again, even from several
   * processes at the same time. If the tables are up to date, the user needs no right to create
   * tables.
   *
   * @throws {StoreError} if the database cannot be reached or cannot store orders safely, or the
   * user may not create the tables
   * @example
   * await store.migrate()
   */
  async migrate(): Promise<void> {
    this.checkOpen()
    await this.#engine.migrate()
  }
}

/** Calls `action` the first time, and again after it has failed. */
export function once<T>(action: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= action().catch((error) => {
      result = undefined
      throw error
    })
    return result
  }
}
