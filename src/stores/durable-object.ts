import { StoreError } from '../errors/classes.ts'
import { CloudflareEngine, Unproven } from './cloudflare/engine.ts'
import { EngineStore } from './engine.ts'
import { given, hasMethod } from './options.ts'
import type { Query } from './sql/sqlite.ts'

export type { EngineStore } from './engine.ts'

/** The part of a Durable Object's storage that the store uses. */
export interface DurableObjectSqlStorage {
  /** SQLite, which the object's class must have. */
  readonly sql: {
    /** Runs one statement synchronously. */
    exec(query: string, ...bindings: (string | number)[]): { toArray(): Record<string, unknown>[] }
  }
  /** Resolves when all writes so far are durable. */
  sync(): Promise<void>
}

/** Options of {@link DurableObjectStore}. */
export interface DurableObjectStoreOptions {
  /** `ctx.storage` of an object whose class is in `new_sqlite_classes`. */
  readonly storage: DurableObjectSqlStorage
}

/**
 * How often a write waits for the end of a transaction. Code of the same object may begin one each
 * time, but a transaction that contains the call never ends while the call waits.
 */
const ATTEMPTS = 50

/**
 * Remembers orders in the storage of the Durable Object in which the client runs.
 *
 * Every write waits for `storage.sync()`, so an acknowledged write is durable. Before that, the
 * platform's output gate holds back every response and request of the object.
 *
 * The first call creates two tables, or brings them up to date. Writes within an asynchronous
 * `storage.transaction()` reject: its rollback could remove an order after the order was sent.
 *
 * @example
 * const store = new DurableObjectStore({ storage: ctx.storage })
 */
export class DurableObjectStore extends EngineStore {
  /**
   * Creates the store. Writes nothing.
   *
   * @throws {StoreError} if `storage` is not the storage of an object with SQLite
   */
  constructor(options: DurableObjectStoreOptions) {
    const { storage }: DurableObjectStoreOptions = given('DurableObjectStore', options, { storage: true })
    checkStorage(storage)
    const read: Query = async (text, parameters) => storage.sql.exec(text, ...parameters).toArray()
    const write: Query = async (text, parameters) => {
      await alone(storage)
      const rows = storage.sql.exec(text, ...parameters).toArray()
      try {
        await storage.sync()
      } catch {
        // The platform's own error may name a failure that comes before a commit elsewhere.
        throw new Unproven('the object could not make the write durable')
      }
      return rows
    }
    const place = 'the Durable Object'
    super('DurableObjectStore', new CloudflareEngine({ place, object: storage, read, write }))
  }
}

/**
 * Resolves outside every transaction. A statement that follows without an `await` is then committed
 * by itself, because the platform begins an asynchronous transaction in an event of its own.
 */
async function alone(storage: DurableObjectSqlStorage): Promise<void> {
  const setting = () => Number(storage.sql.exec('PRAGMA foreign_keys').toArray()[0]?.['foreign_keys'])
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    // Commits what the object has written so far. Also leaves a `transactionSync()` of the caller.
    await storage.sync()
    const before = setting()
    // Within a transaction, SQLite ignores a change of this setting.
    storage.sql.exec(`PRAGMA foreign_keys = ${1 - before}`)
    const changed = setting() !== before
    storage.sql.exec(`PRAGMA foreign_keys = ${before}`)
    if (changed) return
  }
  throw new StoreError(
    'Cannot write to the order store in the Durable Object: the call is inside storage.transaction(), ' +
      'whose rollback would forget the order, or other code of the object kept transactions open. ' +
      'Nothing was written. Call the client outside of transactions, or try again.',
    { applied: false },
  )
}

function checkStorage(storage: unknown): void {
  try {
    const sql: unknown = Reflect.get(Object(storage), 'sql')
    // The platform has `sql` in every object. Without SQLite, its members throw when they are used.
    Reflect.get(Object(sql), 'databaseSize')
    if (hasMethod(sql, 'exec') && hasMethod(storage, 'sync')) return
  } catch {
    // The object's class has no SQLite. The message below explains it.
  }
  throw new StoreError(
    'DurableObjectStore needs `storage`, the ctx.storage of a Durable Object with SQLite ' +
      '(its class is in new_sqlite_classes).',
  )
}
