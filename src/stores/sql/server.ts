import { EngineStore } from '../engine.ts'

/** A store in a database server, in which another user may have to create the tables. */
export class ServerStore extends EngineStore {
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
    await this.open()
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

/** Runs calls one after another, for a connection that is inside one statement at a time. */
export function inTurn<Parameters extends unknown[], T>(
  call: (...parameters: Parameters) => Promise<T>,
): (...parameters: Parameters) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (...parameters) => {
    const result = last.then(() => call(...parameters))
    last = result.catch(() => {})
    return result
  }
}
