import { StoreError } from '../../errors/classes.ts'
import { explain } from '../failure.ts'
import { makeMark } from '../strings.ts'
import { indexedDbFailures } from './failure.ts'
import { createSchema, MARK, MARKS, SCHEMA_VERSION } from './schema.ts'
import { begin, transact } from './transaction.ts'

/**
 * The connection to one database. The first use opens the connection. The connection closes when
 * another page wants to upgrade or delete the database. The next use opens it again, unless the
 * database was deleted.
 */
export class Connection {
  readonly #name: string
  readonly #openTimeout: number
  #opening: Promise<IDBDatabase> | undefined
  #current: IDBDatabase | undefined
  #mark: string | undefined
  #deleted = false
  #closed = false

  constructor(name: string, openTimeout: number) {
    this.#name = name
    this.#openTimeout = openTimeout
  }

  /** Not async, so that a call made just before {@link close} still gets the open database. */
  database(): Promise<IDBDatabase> {
    if (this.#closed) {
      return Promise.reject(new StoreError('The order store was closed. Create a new IndexedDbStore.'))
    }
    if (this.#deleted) return Promise.reject(this.#deletedError())
    if (this.#opening === undefined) {
      const opening = this.#open().catch((error: unknown) => {
        if (this.#opening === opening) this.#opening = undefined
        throw explain(error, 'open', indexedDbFailures(this.#name))
      })
      this.#opening = opening
    }
    return this.#opening
  }

  /** The browser first completes the open transactions. The next use reopens the database. */
  drop(database: IDBDatabase): void {
    database.close()
    if (this.#current === database) this.#current = this.#opening = undefined
  }

  async close(): Promise<void> {
    this.#closed = true
    const opening = this.#opening
    this.#opening = undefined
    await opening?.then(
      (database) => database.close(),
      // Opening failed, so there is nothing to close. The caller of database() has the error.
      () => {},
    )
  }

  async #open(): Promise<IDBDatabase> {
    const database = await openDatabase(this.#name, this.#openTimeout, () => {
      // A new, empty database would let the orders of the deleted database be bought again.
      if (this.#mark !== undefined) throw this.#deletedError()
    })
    this.#current = database
    database.onversionchange = ({ newVersion }) => {
      if (newVersion === null) this.#deleted = true
      this.drop(database)
    }
    // The browser closes the connection if the site's data is deleted or the files are damaged.
    database.onclose = () => this.drop(database)
    try {
      const timeout = this.#openTimeout
      const patience = { timeout, late: () => unanswered(this.#name, timeout) }
      const mark = await transact<unknown>(
        begin(database, 'readonly', MARKS),
        ({ rows, after, settle }) => after(rows.get(MARK), settle),
        patience,
      )
      if (typeof mark !== 'string') throw new DOMException('', 'NotFoundError')
      this.#mark ??= mark
      if (mark !== this.#mark) throw this.#deletedError()
    } catch (error) {
      this.drop(database)
      throw error
    }
    return database
  }

  #deletedError(): StoreError {
    this.#deleted = true
    return new StoreError(
      `The IndexedDB database "${this.#name}" was deleted while its order store was in use, so its ` +
        'orders are forgotten. Orders in progress may have been charged: look for them at the service, ' +
        'then reload the page or create a new IndexedDbStore.',
    )
  }
}

/** If site data is blocked, some browsers throw on access, and others return null. */
function indexedDbOf(): IDBFactory {
  const factory: IDBFactory | null | undefined = globalThis.indexedDB
  if (factory === undefined || factory === null) {
    throw new StoreError(
      'IndexedDbStore needs IndexedDB, which this runtime does not have, or blocks for this page. ' +
        'In a browser, allow site data. Elsewhere, use another store, such as SqliteStore.',
    )
  }
  return factory
}

/** @param beforeCreating throws if the database must not be created again */
function openDatabase(name: string, timeout: number, beforeCreating: () => void): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDbOf().open(name, SCHEMA_VERSION)
    let blocked = false
    let over = false
    let refused: { readonly error: unknown } | undefined
    const timer = setTimeout(() => {
      over = true
      reject(unanswered(name, timeout, blocked))
    }, timeout)
    request.onblocked = () => {
      blocked = true
    }
    request.onupgradeneeded = ({ oldVersion }) => {
      try {
        if (oldVersion === 0) {
          beforeCreating()
          createSchema(request.result, makeMark(18))
        }
      } catch (error) {
        refused = { error }
        request.transaction?.abort()
      }
    }
    request.onsuccess = () => {
      clearTimeout(timer)
      // No caller waits for this connection any more. Left open, it would block other pages.
      if (over) request.result.close()
      else resolve(request.result)
    }
    request.onerror = () => {
      clearTimeout(timer)
      reject(refused === undefined ? request.error : refused.error)
    }
  })
}

function unanswered(name: string, timeout: number, blocked = false): StoreError {
  return new StoreError(
    `Cannot open the order store in the IndexedDB database "${name}": ` +
      (blocked
        ? 'another tab of this site keeps an older version of the database open. Close or reload that tab.'
        : `the browser did not respond within ${timeout} ms. Another tab of this site may be blocking ` +
          'the database: close the other tabs and try again.') +
      ' Nothing was written.',
    { applied: false },
  )
}
