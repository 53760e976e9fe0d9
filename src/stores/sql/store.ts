import { StoreError } from '../../errors/classes.ts'
import { fromListCursor, listCursor, toPage } from '../rows.ts'
import { storable } from '../storable.ts'
import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from '../store.ts'
import { UncertainWrites } from '../uncertain-writes.ts'
import { PRUNE_BATCH, type StatementName, type Values } from './text.ts'

/** What a store does in one engine. */
export interface SqlEngine {
  readonly durability: StoreDurability
  /**
   * Runs one statement, which commits by itself.
   *
   * Throws a `StoreError`, also if the server's state makes a read or a write that changed nothing
   * prove nothing.
   */
  run(name: StatementName, values: Values): Result | Promise<Result>
  /** Closes what the engine has opened. */
  close(): void | Promise<void>
}

export interface Result {
  /** The number of rows written. */
  readonly written: number
  /** The rows read. An INSERT that finds a row may return it. */
  readonly rows: readonly StoredRow[]
}

/** An attempt fails if the existing row is pruned before the store reads it. */
const INSERT_ATTEMPTS = 3

/** Implements a store with the six statements of an SQL engine. */
export class SqlStore implements OrderStore {
  /** What an acknowledged write survives. */
  readonly durability: StoreDurability
  readonly #name: string
  readonly #engine: SqlEngine
  readonly #uncertain: UncertainWrites = new UncertainWrites()
  #closed = false

  /** @param name the name of the class that callers construct */
  constructor(name: string, engine: SqlEngine) {
    this.#name = name
    this.#engine = engine
    this.durability = engine.durability
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return (await this.#read('get', scope, { id }))[0]
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    return await this.#uncertain.run(row, async () => {
      for (let attempt = 1; attempt <= INSERT_ATTEMPTS; attempt++) {
        const { written, rows } = await this.#run('insert', { ...row })
        if (written === 1) return { inserted: true }
        const current = rows[0] ?? (await this.get(row.scope, row.id))
        if (current !== undefined) return { inserted: false, current }
      }
      throw new StoreError(
        'Cannot write to the order store: other processes keep writing and pruning the same record. ' +
          'Nothing was written; try again.',
        { applied: false },
      )
    })
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    return await this.#uncertain.run(row, async () => {
      const { written } = await this.#run('update', { ...row, expected: expectedVersion })
      return written === 1
    })
  }

  async listOpen(scope: string, { after, limit }: ListRowsOptions): Promise<RowPage> {
    // One row beyond the limit shows whether there is a next page.
    const found = await this.#read('open', scope, { id: after ?? '', limit: limit + 1 })
    return toPage(found, limit, ({ id }) => id)
  }

  /**
   * Removes old closed rows, a few hundred per statement.
   *
   * If the call rejects midway, the rows removed so far stay removed, and the next call continues.
   */
  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    let removed = 0
    for (const [state, before] of [
      ['created', createdBefore],
      ['rejected', rejectedBefore],
    ] as const) {
      let batch = 0
      do {
        batch = (await this.#run('prune', { scope, state, before: wholeTime(before) })).written
        removed += batch
      } while (batch === PRUNE_BATCH)
    }
    return removed
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    const { after, limit, since = 0 } = options
    // Every id sorts after '', so the first page includes rows written exactly at `since`.
    const [updatedAt, id] = after === undefined ? [since, ''] : fromListCursor(after)
    const found = await this.#read('list', scope, { id, since: wholeTime(updatedAt), limit: limit + 1 })
    return toPage(found, limit, listCursor)
  }

  /**
   * Closes the store, but not a database client that you passed.
   *
   * Later calls reject with `StoreError`. Closing again does nothing.
   */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#engine.close()
  }

  protected checkOpen(): void {
    if (this.#closed) throw new StoreError(`The order store was closed. Create a new ${this.#name}.`)
  }

  async #read(name: 'get' | 'open' | 'list', scope: string, values: Values): Promise<readonly StoredRow[]> {
    return (await this.#run(name, { ...values, scope })).rows
  }

  async #run(name: StatementName, values: Values): Promise<Result> {
    this.checkOpen()
    for (const value of Object.values(values)) if (typeof value === 'string') storable(value)
    return await this.#engine.run(name, values)
  }
}

/**
 * Rounds a time up, and limits it to the safe integers.
 *
 * Every stored time is a safe integer, so comparisons have the same result.
 */
function wholeTime(time: number): number {
  if (Number.isNaN(time))
    throw new StoreError('A time passed to the order store is NaN. Pass milliseconds since 1970.')
  return Math.min(Math.max(Math.ceil(time), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
}
