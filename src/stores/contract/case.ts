import type { OrderStore } from '../store.ts'

/** What a case receives. */
export interface Bench {
  /** A store without rows, made for this case. */
  readonly store: OrderStore
  /** Seed for the order of operations in cases that mix them. */
  readonly seed: number
  /** Size of the cases that record histories. */
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
