import { StoreError } from '../errors.ts'
import type { StoredRow } from './store.ts'

/** Maximum number of rows to track. Beyond that, no failure counts as certain any more. */
const MOST_ROWS = 10_000

/**
 * Tracks rows with a write that may still be applied: it is in progress, or ended without a result.
 * For such a row, no failed write may promise that nothing was written: an order reported as `'no'`
 * could reappear.
 */
export class UncertainWrites {
  readonly #rows: Map<string, number> = new Map()
  #overflown = false

  /**
   * Runs one write of a row. Removes `applied: false` from its failure while another write may be
   * applied.
   */
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
