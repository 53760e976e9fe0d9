import { StoreError } from '../errors.ts'
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
  /** Name of the database, which all pages of an origin share. It is the store's own: no other may use it. */
  readonly name: string
  /**
   * Longest wait for the database to open, and then for the turn of a read or write, milliseconds, default 3000. A browser
   * can leave a request to open without an answer, and a frozen tab can keep all others waiting; when the time is over, the
   * call rejects with `StoreError`, and the next one tries again.
   */
  readonly openTimeout?: number
}

const DEFAULT_OPEN_TIMEOUT = 3_000

/** Most rows that one transaction returns or removes: others wait for it. */
const MOST_ROWS = 500

/** How often a transaction is begun before it is given up because the connection is closed each time. */
const BEGIN_ATTEMPTS = 3

/** Names of errors after which a connection may be of no use any more, though the browser said nothing of it. */
const LOST: ReadonlySet<string> = new Set(['AbortError', 'InvalidStateError', 'UnknownError'])

/**
 * Remembers orders in a browser, for all pages and workers of an origin. An acknowledged write survives the end of the
 * page, of its process and of the browser and, as far as the disk keeps what it acknowledged, a power failure: each is
 * one transaction with strict durability, and is acknowledged when that is complete.
 *
 * The browser may delete it: on the user's demand, when room is short, at the end of a private window. Give every
 * order an `externalOrderId`, with which its key can be computed again, and ask for `navigator.storage.persist()`.
 *
 * The database is opened by the first call. It is given up when another page wants to delete it or a newer version of
 * this package wants to change it, and opened again by the next call. If it was deleted, every call rejects instead: an empty
 * one in its place would let orders be bought again that this page has seen placed.
 *
 * Every failure is a `StoreError` that says what happened and what to do; its `cause` is a plain error whose `code` is
 * the name of the browser's error, for example `QuotaExceededError`.
 *
 * @example
 * const store = new IndexedDbStore({ name: 'orders' })
 */
export class IndexedDbStore implements OrderStore {
  readonly durability: StoreDurability = 'device'
  readonly #name: string
  readonly #connection: Connection
  readonly #patience: Patience
  readonly #uncertain: UncertainWrites = new UncertainWrites()

  /** @throws {StoreError} if an option is wrong; the database is not touched yet */
  constructor(options: IndexedDbStoreOptions) {
    const { name, openTimeout = DEFAULT_OPEN_TIMEOUT } = options
    if (typeof name !== 'string' || name === '') {
      throw new StoreError(
        'The option `name` of IndexedDbStore must be the name of a database, such as "orders".',
      )
    }
    if (!Number.isSafeInteger(openTimeout) || openTimeout < 1 || openTimeout > 2 ** 31 - 1) {
      throw new StoreError(
        'The option `openTimeout` of IndexedDbStore must be a whole number of milliseconds, 1 or more.',
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

  /** Removes closed rows that are old enough, some hundred per transaction. If it rejects midway, the next call goes on. */
  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    const created = await this.#prune(scope, 'created', createdBefore)
    return created + (await this.#prune(scope, 'rejected', rejectedBefore))
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    const { after, limit, since = 0 } = options
    const position = after === undefined ? undefined : /^(\S+) (.*)$/s.exec(after)
    if (position === null) {
      throw new StoreError('The option `after` is not the `next` of a page of this store.')
    }
    const from = position === undefined ? [scope, since] : [scope, Number(position[1]), position[2] ?? '']
    return await this.#page('list', scope, from, limit, ({ updatedAt, id }) => `${updatedAt} ${id}`)
  }

  /** Closes the database when what is under way is done. Further calls reject; closing again does nothing. */
  async close(): Promise<void> {
    await this.#connection.close()
  }

  /** The rows behind `from`, which no key of the index equals: the end of a page, or a shorter key than any. */
  async #page(
    index: RowIndex,
    scope: string,
    from: IDBValidKey[],
    limit: number,
    positionOf: (last: StoredRow) => string,
  ): Promise<RowPage> {
    const most = Math.min(limit, MOST_ROWS)
    return await this.#run('read', ({ rows, after, settle }) => {
      // An array stands behind every number and text. One more row than asked for tells whether there is a next page.
      const range = IDBKeyRange.bound(from, [scope, []], true)
      after(rows.index(index).getAll(range, most + 1), (found) => {
        const page = found.slice(0, most).map(toRow)
        const last = found.length > most ? page.at(-1) : undefined
        settle(last === undefined ? { rows: page } : { rows: page, next: positionOf(last) })
      })
    })
  }

  /** One batch after the other, so that other pages get their turn between them. */
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

  /** Runs one transaction; whatever fails becomes a {@link StoreError}. */
  async #run<T>(access: 'read' | 'write', body: (transacting: Transacting<T>) => void): Promise<T> {
    const { database, transaction } = await this.#begin(access)
    try {
      return await transact(transaction, body, this.#patience)
    } catch (error) {
      if (LOST.has(codeOf(error))) this.#connection.drop(database)
      throw explain(error, access, this.#name)
    }
  }

  /** Begins a transaction, if need be on a connection that is opened again: the browser may just have closed the old one. */
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
