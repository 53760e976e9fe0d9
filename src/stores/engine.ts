import { StoreError } from '../errors/classes.ts'
import { explain, type Failures } from './failure.ts'
import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from './store.ts'
import { storable } from './strings.ts'

export type Operation = 'get' | 'open' | 'list' | 'insert' | 'update' | 'prune'

/** The values of an operation: the fields of a row, and those of a query. */
export interface Values extends Partial<StoredRow> {
  readonly scope: string
  readonly expected?: number
  readonly since?: number
  readonly before?: number
  readonly limit?: number
}

export interface Result {
  /** The number of rows written or removed. */
  readonly written: number
  /** The rows read. An insert that finds a row may return it. */
  readonly rows: readonly StoredRow[]
  /** The cursor of an engine that has ended a page before its limit. */
  readonly next?: string
  /** More rows to prune, for an engine with batches of its own. */
  readonly more?: boolean
  /** The operation has proven by itself that it was not refused, see {@link Engine.refusal}. */
  readonly proven?: true
}

/** What differs between the databases in which rows are stored. */
export interface Engine {
  readonly durability: StoreDurability
  readonly failures: Failures
  /** Prepares the database. Called before every operation. */
  open?(): Promise<unknown>
  /**
   * Runs one operation, which commits by itself.
   *
   * Throws if the database's state makes a read prove nothing.
   */
  run(operation: Operation, values: Values): Result | Promise<Result>
  /**
   * Why this database refuses writes, if it does, for example because a newer version of this
   * package has changed its tables.
   *
   * Asked after a write that wrote nothing, and after an error that looks like damage.
   */
  refusal?(): Promise<StoreError | undefined>
  /** The error says that the tables lack something that the operation uses. */
  isMisfit?(error: unknown): boolean
  /** Closes what the engine has opened. */
  close?(): void | Promise<void>
}

/** Most rows that one operation returns or removes: each must end soon. */
export const BATCH = 500

/** An attempt fails if the existing row is pruned before the store reads it. */
const INSERT_ATTEMPTS = 3

export function isRead(operation: Operation): boolean {
  return operation === 'get' || operation === 'open' || operation === 'list'
}

/**
 * What the stores in databases have in common.
 *
 * Every call commits by itself. Every failure is a `StoreError` that explains what happened and
 * what to do. Its `cause`, if any, is a plain error with only a code of the database or of its
 * client, for example `SQLITE_FULL`: neither error contains a message of a server or a part of a
 * connection string.
 */
export class EngineStore implements OrderStore {
  /** What an acknowledged write survives. */
  readonly durability: StoreDurability
  readonly #name: string
  readonly #engine: Engine
  readonly #uncertain: UncertainWrites = new UncertainWrites()
  #closed = false

  /** @internal `name` is that of the class that callers construct. */
  constructor(name: string, engine: Engine) {
    this.#name = name
    this.#engine = engine
    this.durability = engine.durability
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return (await this.#run('get', { scope, id })).rows[0]
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

  async listOpen(scope: string, { after = '', limit }: ListRowsOptions): Promise<RowPage> {
    return await this.#page('open', { scope, id: after }, limit, ({ id }) => id)
  }

  /**
   * Removes old closed rows, a few hundred at a time.
   *
   * If the call rejects midway, the rows removed so far stay removed, and the next call continues.
   */
  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    let removed = 0
    for (const [state, before] of [
      ['created', createdBefore],
      ['rejected', rejectedBefore],
    ] as const) {
      for (let more = true; more; ) {
        const batch = await this.#run('prune', { scope, state, before: wholeTime(before) })
        removed += batch.written
        more = batch.more ?? batch.written === BATCH
      }
    }
    return removed
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    const { after, limit, since = 0 } = options
    // Every id sorts after '', so the first page includes rows written exactly at `since`.
    const [updatedAt, id] = after === undefined ? [since, ''] : fromListCursor(after)
    return await this.#page('list', { scope, id, since: wholeTime(updatedAt) }, limit, listCursor)
  }

  /**
   * Closes the store, but not a database client that you passed.
   *
   * Later calls reject with `StoreError`. Closing again does nothing.
   */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    try {
      await this.#engine.close?.()
    } catch (error) {
      throw explain(error, 'close', this.#engine.failures)
    }
  }

  /** @internal Returns undefined if there is nothing to wait for. */
  protected open(): Promise<unknown> | undefined {
    if (this.#closed) throw new StoreError(`The order store was closed. Create a new ${this.#name}.`)
    return this.#engine.open?.().catch((error) => {
      throw explain(error, 'open', this.#engine.failures)
    })
  }

  async #page(
    operation: 'open' | 'list',
    values: Values,
    limit: number,
    cursor: (last: StoredRow) => string,
  ): Promise<RowPage> {
    const most = Math.min(limit, BATCH)
    // One row beyond the limit shows whether there is a next page.
    const { rows, next } = await this.#run(operation, { ...values, limit: most + 1 })
    return next === undefined ? toPage(rows, most, cursor) : { rows, next }
  }

  async #run(operation: Operation, values: Values): Promise<Result> {
    for (const value of Object.values(values)) if (typeof value === 'string') storable(value)
    const opening = this.open()
    // A close() may follow in the same step.
    if (opening !== undefined) await opening
    const engine = this.#engine
    const reads = isRead(operation)
    try {
      const result = await engine.run(operation, values)
      const silent = !reads && result.written === 0 && result.rows.length === 0 && !result.proven
      const refusal = silent ? await engine.refusal?.() : undefined
      if (refusal !== undefined) throw refusal
      return result
    } catch (error) {
      // The original error is reported if the question fails, too.
      const refusal = engine.isMisfit?.(error) ? await engine.refusal?.().catch(() => undefined) : undefined
      throw refusal ?? explain(error, reads ? 'read from' : 'write to', engine.failures)
    }
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

/** Beyond this number of rows, no later error promises that nothing was written. */
const MOST_ROWS = 10_000

/**
 * Tracks the rows that an earlier write may still change, because that write is in progress or
 * ended without a result.
 *
 * A failed write to such a row must not promise that nothing was written: an order that was
 * reported as not charged could still appear in the store.
 */
class UncertainWrites {
  readonly #rows: Map<string, number> = new Map()
  #overflown = false

  async run<T>({ scope, id }: StoredRow, write: () => Promise<T>): Promise<T> {
    const name = JSON.stringify([scope, id])
    this.#rows.set(name, (this.#rows.get(name) ?? 0) + 1)
    this.#overflown ||= this.#rows.size > MOST_ROWS
    if (this.#overflown) this.#rows.clear()
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

/** `found` has one row beyond the limit if there is a next page. */
function toPage(found: readonly StoredRow[], limit: number, cursor: (last: StoredRow) => string): RowPage {
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  return found.length <= limit || last === undefined ? { rows } : { rows, next: cursor(last) }
}

/** The cursor of `list`: rows written at the same time sort by id. */
function listCursor({ updatedAt, id }: StoredRow): string {
  return `${updatedAt} ${id}`
}

function fromListCursor(after: string): readonly [updatedAt: number, id: string] {
  const [, updatedAt, id] = /^(\d{1,16}) (.*)$/s.exec(after) ?? []
  if (updatedAt === undefined || id === undefined) {
    throw new StoreError('The option `after` must be the `next` of a page that this store returned.')
  }
  return [Number(updatedAt), id]
}
