/** What a test and its worker send each other, and the platform's types that both use. */
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
  | { readonly task: 'create'; readonly reference: string }
  | { readonly task: 'recover' }
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
