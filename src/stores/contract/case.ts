import type { OrderStore } from '../store.ts'

/** The input of a test case. */
export interface Bench {
  /** A store without rows, made for this case. */
  readonly store: OrderStore
  /** Seed for the order of operations in cases with a random order. */
  readonly seed: number
  /** Number of clients and calls in cases that record histories. */
  readonly history: { readonly clients: number; readonly operations: number }
  /** Opens one more handle to the rows of `store`. Only cases that need `openSecond` may call it. */
  openSecond(): Promise<OrderStore>
  /** Closes `store` and opens its rows again. Only cases that need `reopenStore` may call it. */
  reopen(): Promise<OrderStore>
}

/** One rule and its test. */
export interface ContractCase {
  /** The rule, as a sentence about stores. */
  readonly title: string
  /** Rejects if the store breaks the rule. */
  readonly run: (bench: Bench) => Promise<void>
  /** The option that the case needs. */
  readonly needs?: 'openSecond' | 'reopenStore'
}
