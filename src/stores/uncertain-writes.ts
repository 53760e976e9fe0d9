import { StoreError } from '../errors/classes.ts'
import type { StoredRow } from './store.ts'

/** Beyond this number of rows, no later error promises that nothing was written. */
const MOST_ROWS = 10_000

/**
 * Tracks the rows that an earlier write may still change, because that write is in progress or
 * ended without a result.
 *
 * A failed write to such a row must not promise that nothing was written: an order that was
 * reported as not charged could still appear in the store.
 */
export class UncertainWrites {
  readonly #rows: Map<string, number> = new Map()
  #overflown = false

  async run<T>({ scope, id }: StoredRow, write: () => Promise<T>): Promise<T> {
    const name = JSON.stringify([scope, id])
    const uncertain = (this.#rows.get(name) ?? 0) + 1
    this.#rows.set(name, uncertain)
    if (this.#rows.size > MOST_ROWS) this.#overflown = true
    try {
      const result = await write()
      this.#settle(name)
      return result
    } catch (error) {
      if (!(error instanceof StoreError) || error.applied !== false) throw error
      this.#settle(name)
      if (!this.#overflown && !this.#rows.has(name)) throw error
      throw new StoreError(error.message, { cause: error.cause })
    }
  }

  #settle(name: string): void {
    const left = (this.#rows.get(name) ?? 0) - 1
    if (left > 0) this.#rows.set(name, left)
    else this.#rows.delete(name)
  }
}
