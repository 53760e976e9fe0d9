import { StoreError } from '../errors/classes.ts'
import {
  BATCH,
  type Engine,
  EngineStore,
  isRead,
  type Operation,
  type Result,
  type Values,
} from './engine.ts'
import type { Failures } from './failure.ts'
import { Connection } from './indexeddb/connection.ts'
import { codeOf, indexedDbFailures, outOfTurn } from './indexeddb/failure.ts'
import { toIndexed } from './indexeddb/schema.ts'
import { begin, type Patience, type Transacting, transact } from './indexeddb/transaction.ts'
import { checkMilliseconds, given } from './options.ts'
import { toRow } from './rows.ts'
import type { StoreDurability, StoredRow } from './store.ts'

export type { EngineStore } from './engine.ts'

/** Options of {@link IndexedDbStore}. */
export interface IndexedDbStoreOptions {
  /** Name of a database that only the store uses. All pages of an origin share the database. */
  readonly name: string
  /**
   * How long to wait for the database to open, and then for each read or write to begin, in
   * milliseconds.
   *
   * Default 3000. Without a limit, a frozen tab could block all calls of other tabs. After that
   * time, the call rejects with `StoreError`. The next call tries again.
   */
  readonly openTimeout?: number
}

const BEGIN_ATTEMPTS = 3

/** Names of errors after which a connection may be unusable, even without a `close` event. */
const LOST: ReadonlySet<string> = new Set(['AbortError', 'InvalidStateError', 'UnknownError'])

/**
 * Remembers orders in a browser, for all pages and workers of an origin.
 *
 * An acknowledged write survives the end of the page, its process and the browser. It also survives
 * a power failure if the disk loses no writes that it has acknowledged. Each write is one
 * transaction with strict durability. In rare cases, a killed Chromium deletes the database
 * (google/leveldb issue 1287).
 *
 * The browser may delete the database: when the user clears site data, when space runs out, or when
 * a private window closes. Give every order an `externalOrderId`, so that its key can be computed
 * again, and call `navigator.storage.persist()`.
 *
 * The first call opens the database. If another page wants to upgrade the database, the store
 * closes its connection, and the next call opens a new one. If the database is deleted, all later
 * calls of this store reject: with a new, empty database, the page could buy the same orders twice.
 *
 * @example
 * const store = new IndexedDbStore({ name: 'orders' })
 */
export class IndexedDbStore extends EngineStore {
  /**
   * Creates the store. The first read or write opens the database.
   *
   * @throws {StoreError} if an option is wrong
   */
  constructor(options: IndexedDbStoreOptions) {
    const { name, openTimeout = 3_000 }: IndexedDbStoreOptions = given('IndexedDbStore', options, {
      name: true,
      openTimeout: true,
    })
    if (typeof name !== 'string' || name === '') {
      throw new StoreError(
        'The option `name` of IndexedDbStore must be a non-empty string, such as "orders".',
      )
    }
    checkMilliseconds('IndexedDbStore', 'openTimeout', openTimeout, 1)
    super('IndexedDbStore', new IndexedDbEngine(name, openTimeout))
  }
}

class IndexedDbEngine implements Engine {
  /** Acknowledged writes survive the end of the page and of the browser. */
  readonly durability: StoreDurability = 'device'
  readonly failures: Failures
  readonly #connection: Connection
  readonly #patience: Patience

  constructor(name: string, openTimeout: number) {
    this.failures = indexedDbFailures(name)
    this.#connection = new Connection(name, openTimeout)
    this.#patience = { timeout: openTimeout, late: () => outOfTurn(name, openTimeout) }
  }

  async run(operation: Operation, values: Values): Promise<Result> {
    const { database, transaction } = await this.#begin(isRead(operation) ? 'readonly' : 'readwrite')
    try {
      return await transact(transaction, bodyOf(operation, values), this.#patience)
    } catch (error) {
      if (LOST.has(codeOf(error))) this.#connection.drop(database)
      throw error
    }
  }

  /** Closes the database after the calls in progress. */
  async close(): Promise<void> {
    await this.#connection.close()
  }

  /** Begins again on a new connection if the browser has just closed the old one. */
  async #begin(mode: 'readonly' | 'readwrite') {
    for (let attempt = 1; ; attempt++) {
      const database = await this.#connection.database()
      try {
        return { database, transaction: begin(database, mode) }
      } catch (error) {
        this.#connection.drop(database)
        if (codeOf(error) !== 'InvalidStateError' || attempt === BEGIN_ATTEMPTS) throw error
      }
    }
  }
}

const WRITTEN: Result = { written: 1, rows: [] }
const NOT_WRITTEN: Result = { written: 0, rows: [] }

function bodyOf(operation: Operation, values: Values): (transacting: Transacting<Result>) => void {
  const { scope, id = '', state = '', since = 0, before = 0 } = values
  const row = (found: unknown): StoredRow => toRow(scope, Object(found))
  return ({ rows, after, settle }) => {
    const found = (...page: unknown[]): void => settle({ written: 0, rows: page.map(row) })
    switch (operation) {
      case 'get':
        return after(rows.get([scope, id]), (current) => (current === undefined ? found() : found(current)))
      case 'insert':
        return after(rows.get([scope, id]), (current) => {
          if (current !== undefined) return found(current)
          rows.add(toIndexed(values))
          settle(WRITTEN)
        })
      case 'update':
        return after(rows.get([scope, id]), (current) => {
          if (current === undefined || row(current).version !== values.expected) return settle(NOT_WRITTEN)
          rows.put(toIndexed(values))
          settle(WRITTEN)
        })
      case 'open':
      case 'list': {
        const from = operation === 'open' ? [scope, id] : [scope, since, id]
        // An array sorts after every number and string.
        const range = IDBKeyRange.bound(from, [scope, []], true)
        return after(rows.index(operation).getAll(range, values.limit), (page) => found(...page))
      }
      case 'prune': {
        const range = IDBKeyRange.bound([scope, state], [scope, state, before], true, true)
        return after(rows.index('closed').getAllKeys(range, BATCH), (keys) => {
          for (const key of keys) rows.delete(key)
          settle({ written: keys.length, rows: [] })
        })
      }
    }
  }
}
