/** What a test and its worker send each other, and the platform's types that both use. */
import { StoreError } from '../../../src/errors/classes.ts'
import type { D1Binding } from '../../../src/stores/d1.ts'
import type { DurableObjectSqlStorage } from '../../../src/stores/durable-object.ts'
import type { OrderStore } from '../../../src/stores/store.ts'

export type Storage = DurableObjectSqlStorage & {
  transaction<T>(closure: () => Promise<T>): Promise<T>
  transactionSync<T>(closure: () => T): T
  deleteAll(): Promise<void>
}

export type D1 = D1Binding

export type StoreKind = 'd1' | 'object'

/** The rows of one test: a database of D1, or an object. */
export interface Place {
  readonly store: StoreKind
  readonly name: string
}

export type Method = Exclude<keyof OrderStore, 'durability'>

export type Task =
  | { readonly task: 'store'; readonly handle: string; readonly method: Method; readonly args: unknown[] }
  | { readonly task: 'sql'; readonly sql: string; readonly parameters?: readonly (string | number)[] }
  | { readonly task: 'remembered' }
  | { readonly task: 'abort' }
  | { readonly task: 'transaction'; readonly how: 'sync' | 'async'; readonly reference: string }

export type Reply =
  | { readonly value: unknown }
  | {
      readonly error: {
        readonly message: string
        readonly code?: unknown
        readonly applied?: unknown
        readonly charged?: unknown
        readonly cause?: unknown
      }
    }

/** The value of a reply. Throws its error. */
export function resultOf(reply: Reply): unknown {
  if (!('error' in reply)) return reply.value
  const { message, applied, charged, code, cause } = reply.error
  if (code !== 'store') throw Object.assign(new Error(message), { code, charged })
  const options =
    cause === undefined ? {} : { cause: Object.assign(new Error(String(cause)), { code: cause }) }
  throw new StoreError(message, applied === false ? { ...options, applied } : options)
}

/** A store that runs in a worker, or in the object. */
export function workerStore(handle: string, perform: (task: Task) => Promise<unknown>): OrderStore {
  const call = async <T>(method: Method, ...args: unknown[]): Promise<T> =>
    (await perform({ task: 'store', handle, method, args })) as T
  return {
    durability: 'server',
    get: (scope, id) => call('get', scope, id),
    insert: (row) => call('insert', row),
    update: (row, expectedVersion) => call('update', row, expectedVersion),
    listOpen: (scope, options) => call('listOpen', scope, options),
    list: (scope, options) => call('list', scope, options),
    prune: (scope, options) => call('prune', scope, options),
    close: () => call('close'),
  }
}
