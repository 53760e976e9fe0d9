import type { OrderStore } from '../store.ts'

export interface Bench {
  readonly store: OrderStore
  readonly seed: number
  readonly history: { readonly clients: number; readonly operations: number }
  readonly maxBytes: number
  /** Only for cases with `needs: 'openSecond'`. */
  openSecond(): Promise<OrderStore>
  /** Only for cases with `needs: 'reopenStore'`. */
  reopen(): Promise<OrderStore>
}

export interface ContractCase {
  readonly title: string
  readonly run: (bench: Bench) => Promise<void>
  /** The suite skips the case if this option is missing. */
  readonly needs?: 'openSecond' | 'reopenStore'
}
