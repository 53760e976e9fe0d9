import { ROWS } from './schema.ts'

/** What the body of a transaction gets to work with. */
export interface Transacting<T> {
  readonly rows: IDBObjectStore
  /** Runs `next` with the result of a request. What it throws aborts the transaction and is what {@link transact} rejects with. */
  after<R>(request: IDBRequest<R>, next: (result: R) => void): void
  /** Says what {@link transact} resolves to. */
  settle(value: T): void
}

/** Begins a transaction on the rows; throws `InvalidStateError`, and has begun nothing, if the connection is closing. */
export function begin(database: IDBDatabase, mode: 'readonly' | 'readwrite'): IDBTransaction {
  return database.transaction(ROWS, mode, { durability: 'strict' })
}

/** How long a transaction waits for its turn, and what it rejects with when that time is over. */
export interface Patience {
  readonly timeout: number
  readonly late: () => Error
}

/**
 * Runs one transaction on the rows. It must make all of its requests at once or in `after`: IndexedDB commits as soon as
 * nothing is outstanding, so nothing else may be waited for in between.
 *
 * Resolves when the transaction is complete, which is when a write is kept: with `strict` durability it has left the
 * operating system's buffers. Rejects with the error for which it was aborted.
 *
 * Transactions take turns, those of other pages too, and a page that is frozen inside of one keeps everybody waiting. So
 * one that has no result of its first request in time is taken back, which is certain to leave nothing of it.
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
      } catch {
        // It has ended already, and the event that says how is on its way.
      }
    }, timeout)
    transaction.oncomplete = () => {
      clearTimeout(timer)
      if (settled === undefined) reject(new Error('a transaction ended without a result'))
      else resolve(settled.value)
    }
    // Not `onerror`, while which the transaction's own error is still null.
    transaction.onabort = () => {
      clearTimeout(timer)
      reject(thrown === undefined ? transaction.error : thrown.error)
    }
    guarded(() =>
      body({
        rows: transaction.objectStore(ROWS),
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
