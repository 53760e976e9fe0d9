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

/**
 * Runs one transaction on the rows. It must make all of its requests at once or in `after`: IndexedDB commits as soon as
 * nothing is outstanding, so nothing else may be waited for in between.
 *
 * Resolves when the transaction is complete, which is when a write is kept: with `strict` durability it has left the
 * operating system's buffers. Rejects with the error for which it was aborted.
 */
export function transact<T>(
  transaction: IDBTransaction,
  body: (transacting: Transacting<T>) => void,
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
    transaction.oncomplete = () => {
      if (settled === undefined) reject(new Error('a transaction ended without a result'))
      else resolve(settled.value)
    }
    // Not `onerror`, while which the transaction's own error is still null.
    transaction.onabort = () => reject(thrown === undefined ? transaction.error : thrown.error)
    guarded(() =>
      body({
        rows: transaction.objectStore(ROWS),
        after: (request, next) => {
          request.onsuccess = () => guarded(() => next(request.result))
        },
        settle: (value) => {
          settled = { value }
        },
      }),
    )
  })
}
