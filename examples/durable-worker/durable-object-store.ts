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

/** Where the objects are found: the binding of their class. */
export type OrderObjects = Pick<DurableObjectNamespace<OrderObject>, 'getByName'>

/**
 * Remembers orders in Durable Objects, for all workers wherever they run. Each scope, which is an account at a service, has
 * an object of its own, so of all calls about one account there is a single order.
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

  /** One batch after the other, so that orders get their turn between them. */
  async prune(scope: string, options: PruneOptions): Promise<number> {
    const { createdBefore, rejectedBefore } = options
    for (let removed = 0; ; ) {
      const batch = await this.#object(scope).prune({ createdBefore, rejectedBefore })
      removed += batch
      if (batch < PRUNE_BATCH) return removed
    }
  }

  async close(): Promise<void> {}

  /** A new stub for each call: one whose object has died stays broken. */
  #object(scope: string): DurableObjectStub<OrderObject> {
    return this.#objects.getByName(wellFormed(scope))
  }
}

function of(scope: string, { rows, next }: RowPage): RowPage {
  const own = rows.map((row) => ({ ...row, scope }))
  return next === undefined ? { rows: own } : { rows: own, next }
}

/** A copy of the fields, with texts that come back as they are. */
function storable({ scope, id, version, open, state, createdAt, updatedAt, data }: StoredRow): StoredRow {
  return { scope, id, version, open, state, createdAt, updatedAt, data: wellFormed(data) }
}

/** Half of a surrogate pair has no UTF-8 form, and would come back as another character. */
function wellFormed(text: string): string {
  if (!text.isWellFormed()) throw new StoreError('The order store cannot keep half of a surrogate pair.')
  return text
}
