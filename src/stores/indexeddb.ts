import { StoreError } from '../errors/classes.ts'
import { Connection } from './indexeddb/connection.ts'
import { codeOf, explain, outOfTurn } from './indexeddb/failure.ts'
import { type RowIndex, toIndexed, toRow } from './indexeddb/schema.ts'
import { begin, type Patience, type Transacting, transact } from './indexeddb/transaction.ts'
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

const DEFAULT_OPEN_TIMEOUT = 3_000

/** Rows per transaction. A long transaction delays the transactions of all other pages. */
const MOST_ROWS = 500

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
 * Every failure is a `StoreError` that explains what happened and what to do. Its `cause`, if any,
 * is a plain error whose `code` is the name of the browser's error, for example
 * `QuotaExceededError`.
 *
 * @example
 * const store = new IndexedDbStore({ name: 'orders' })
 */
export class IndexedDbStore implements OrderStore {
  /** `'device'`: acknowledged writes survive the end of the page and of the browser. */
  readonly durability: StoreDurability = 'device'
  readonly #name: string
  readonly #connection: Connection
  readonly #patience: Patience
  readonly #uncertain: UncertainWrites = new UncertainWrites()

  /**
   * Creates the store. The first read or write opens the database.
   *
   * @throws {StoreError} if an option is wrong
   */
  constructor(options: IndexedDbStoreOptions) {
    // Without `Object`, a call without options would throw a TypeError, not a StoreError.
    const { name, openTimeout = DEFAULT_OPEN_TIMEOUT }: IndexedDbStoreOptions = Object(options)
    if (typeof name !== 'string' || name === '') {
      throw new StoreError(
        'The option `name` of IndexedDbStore must be a non-empty string, such as "orders".',
      )
    }
    if (!Number.isSafeInteger(openTimeout) || openTimeout < 1 || openTimeout > 2 ** 31 - 1) {
      throw new StoreError(
        'The option `openTimeout` of IndexedDbStore must be a whole number of milliseconds, 1 to 2147483647.',
      )
    }
    this.#name = name
    this.#connection = new Connection(name, openTimeout)
    this.#patience = { timeout: openTimeout, late: () => outOfTurn(name, openTimeout) }
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return await this.#run('read', ({ rows, after, settle }) => {
      after(rows.get([scope, id]), (found) => settle(found === undefined ? undefined : toRow(found)))
    })
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    const stored = toIndexed(row)
    return await this.#write<InsertResult>(row, ({ rows, after, settle }) => {
      after(rows.get([stored.scope, stored.id]), (found) => {
        if (found !== undefined) return settle({ inserted: false, current: toRow(found) })
        rows.add(stored)
        settle({ inserted: true })
      })
    })
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    const stored = toIndexed(row)
    return await this.#write(row, ({ rows, after, settle }) => {
      after(rows.get([stored.scope, stored.id]), (found) => {
        if (found === undefined || toRow(found).version !== expectedVersion) return settle(false)
        rows.put(stored)
        settle(true)
      })
    })
  }

  async listOpen(scope: string, { after, limit }: ListRowsOptions): Promise<RowPage> {
    const from = after === undefined ? [scope] : [scope, after]
    return await this.#page('open', scope, from, limit, ({ id }) => id)
  }

  /**
   * Removes old closed rows, a few hundred per transaction.
   *
   * If the call rejects midway, the rows removed so far stay removed, and the next call continues.
   */
  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    const created = await this.#prune(scope, 'created', createdBefore)
    return created + (await this.#prune(scope, 'rejected', rejectedBefore))
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    const { after, limit, since = 0 } = options
    const position = after === undefined ? undefined : /^(\S+) (.*)$/s.exec(after)
    if (position === null) {
      throw new StoreError('The option `after` must be the `next` of a page that this store returned.')
    }
    const from = position === undefined ? [scope, since] : [scope, Number(position[1]), position[2] ?? '']
    return await this.#page('list', scope, from, limit, ({ updatedAt, id }) => `${updatedAt} ${id}`)
  }

  /**
   * Closes the database after the calls in progress. Later calls reject. Closing again does
   * nothing.
   */
  async close(): Promise<void> {
    await this.#connection.close()
  }

  /** `from` is the last key of the previous page, or a prefix of keys, which sorts before them. */
  async #page(
    index: RowIndex,
    scope: string,
    from: IDBValidKey[],
    limit: number,
    positionOf: (last: StoredRow) => string,
  ): Promise<RowPage> {
    const most = Math.min(limit, MOST_ROWS)
    return await this.#run('read', ({ rows, after, settle }) => {
      // An array sorts after every number and string. One row beyond the limit shows whether there
      // is a next page.
      const range = IDBKeyRange.bound(from, [scope, []], true)
      after(rows.index(index).getAll(range, most + 1), (found) => {
        const page = found.slice(0, most).map(toRow)
        const last = found.length > most ? page.at(-1) : undefined
        settle(last === undefined ? { rows: page } : { rows: page, next: positionOf(last) })
      })
    })
  }

  async #prune(scope: string, state: 'created' | 'rejected', before: number): Promise<number> {
    let removed = 0
    for (;;) {
      const batch = await this.#run<number>('write', ({ rows, after, settle }) => {
        const range = IDBKeyRange.bound([scope, state], [scope, state, before], true, true)
        after(rows.index('closed').getAllKeys(range, MOST_ROWS), (keys) => {
          for (const key of keys) rows.delete(key)
          settle(keys.length)
        })
      })
      removed += batch
      if (batch < MOST_ROWS) return removed
    }
  }

  #write<T>(row: StoredRow, body: (transacting: Transacting<T>) => void): Promise<T> {
    return this.#uncertain.run(row, () => this.#run('write', body))
  }

  async #run<T>(access: 'read' | 'write', body: (transacting: Transacting<T>) => void): Promise<T> {
    const { database, transaction } = await this.#begin(access)
    try {
      return await transact(transaction, body, this.#patience)
    } catch (error) {
      if (LOST.has(codeOf(error))) this.#connection.drop(database)
      throw explain(error, access, this.#name)
    }
  }

  /** Begins again on a new connection if the browser has just closed the old one. */
  async #begin(access: 'read' | 'write') {
    const mode = access === 'read' ? 'readonly' : 'readwrite'
    for (let attempt = 1; ; attempt++) {
      const database = await this.#connection.database()
      try {
        return { database, transaction: begin(database, mode) }
      } catch (error) {
        this.#connection.drop(database)
        if (codeOf(error) !== 'InvalidStateError' || attempt === BEGIN_ATTEMPTS) {
          throw explain(error, access, this.#name)
        }
      }
    }
  }
}
