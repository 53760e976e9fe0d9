import { type MARKS, ROWS } from './schema.ts'

export interface Transacting<T> {
  readonly rows: IDBObjectStore
  /**
   * Runs `next` with the result of a request. If `next` throws, the transaction aborts and
   * {@link transact} rejects with that error.
   */
  after<R>(request: IDBRequest<R>, next: (result: R) => void): void
  settle(value: T): void
}

/** Throws `InvalidStateError` if the connection is closing. */
export function begin(
  database: IDBDatabase,
  mode: 'readonly' | 'readwrite',
  store: typeof ROWS | typeof MARKS = ROWS,
): IDBTransaction {
  return database.transaction(store, mode, { durability: 'strict' })
}

/** How long a transaction waits for its turn, and the error after that time. */
export interface Patience {
  readonly timeout: number
  readonly late: () => Error
}

/**
 * `body` must make all requests immediately or in `after`, and must await nothing: IndexedDB
 * commits as soon as no request is pending.
 *
 * Resolves when the transaction is complete. With `strict` durability, its writes have then left
 * the operating system's buffers.
 *
 * A page that is frozen inside a transaction blocks the transactions of all other pages. So this
 * function aborts its own transaction if the first request has no result in time: the call rejects,
 * and its write cannot happen later.
 */
export function transact<T>(
  transaction: IDBTransaction,
  body: (transacting: Transacting<T>) => void,
  { timeout, late }: Patience,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let settled: { readonly value: T } | undefined
    let thrown: { readonly error: unknown } | undefined
    const guarded = (action: () => void): void => {
      try {
        action()
      } catch (error) {
        thrown = { error }
        transaction.abort()
      }
    }
    const timer = setTimeout(() => {
      try {
        transaction.abort()
        thrown = { error: late() }
        // A read leaves nothing behind, so it need not wait until the abort is complete.
        if (transaction.mode === 'readonly') reject(thrown.error)
      } catch {
        // The transaction has already ended, and the event with its result follows.
      }
    }, timeout)
    transaction.oncomplete = () => {
      clearTimeout(timer)
      if (settled === undefined) reject(new Error('a transaction ended without a result'))
      else resolve(settled.value)
    }
    // Rejects here, not in `onerror`, because the transaction's own error is null until the abort.
    transaction.onabort = () => {
      clearTimeout(timer)
      reject(thrown === undefined ? transaction.error : thrown.error)
    }
    guarded(() =>
      body({
        rows: transaction.objectStore(transaction.objectStoreNames[0] ?? ROWS),
        after: (request, next) => {
          request.onsuccess = () => {
            clearTimeout(timer)
            guarded(() => next(request.result))
          }
        },
        settle: (value) => {
          settled = { value }
        },
      }),
    )
  })
}
