import {
  type InsertResult,
  type ListRowsOptions,
  type OrderStore,
  type PruneOptions,
  type RowPage,
  type StoredRow,
  StoreError,
} from 'customer-ordering-sdk'
import { type OrderObject, PRUNE_BATCH } from './order-object.ts'

/** The binding of the objects' class. */
export type OrderObjects = Pick<DurableObjectNamespace<OrderObject>, 'getByName'>

/**
 * Keeps orders in Durable Objects, which all workers share. Each scope (an account at a service)
 * has its own object, which handles all calls for that account one after the other.
 */
export class DurableObjectStore implements OrderStore {
  readonly durability = 'server'
  readonly #objects: OrderObjects

  constructor(objects: OrderObjects) {
    this.#objects = objects
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    const row = await this.#object(scope).get(id)
    return row && { ...row, scope }
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    const { scope, ...rest } = storable(row)
    const current = await this.#object(scope).insert(rest)
    return current === undefined ? { inserted: true } : { inserted: false, current: { ...current, scope } }
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    const { scope, ...rest } = storable(row)
    return await this.#object(scope).update(rest, expectedVersion)
  }

  async listOpen(scope: string, { after = '', limit }: ListRowsOptions): Promise<RowPage> {
    return of(scope, await this.#object(scope).page('open', after, 0, limit))
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    const { after = '', since = 0, limit } = options
    return of(scope, await this.#object(scope).page('all', after, since, limit))
  }

  /** Removes rows in batches, so that orders do not wait until all rows are removed. */
  async prune(scope: string, options: PruneOptions): Promise<number> {
    const { createdBefore, rejectedBefore } = options
    for (let removed = 0; ; ) {
      const batch = await this.#object(scope).prune({ createdBefore, rejectedBefore })
      removed += batch
      if (batch < PRUNE_BATCH) return removed
    }
  }

  async close(): Promise<void> {}

  /** Returns a new stub for each call, because a stub stays broken after its object has died. */
  #object(scope: string): DurableObjectStub<OrderObject> {
    return this.#objects.getByName(wellFormed(scope))
  }
}

function of(scope: string, { rows, next }: RowPage): RowPage {
  const own = rows.map((row) => ({ ...row, scope }))
  return next === undefined ? { rows: own } : { rows: own, next }
}

/** Copies the fields. Throws if `data` would not be read back unchanged. */
function storable({ scope, id, version, open, state, createdAt, updatedAt, data }: StoredRow): StoredRow {
  return { scope, id, version, open, state, createdAt, updatedAt, data: wellFormed(data) }
}

/**
 * Rejects half of a surrogate pair: it has no UTF-8 form, and would be read back as another
 * character.
 */
function wellFormed(text: string): string {
  if (!text.isWellFormed()) throw new StoreError('The order store cannot keep half of a surrogate pair.')
  return text
}
