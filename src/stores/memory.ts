import { Packer } from './memory/pack.ts'
import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from './store.ts'

/** The rows of one scope. A closed row is packed. A removed row leaves a hole. */
interface Shelf {
  /** Cursors are positions: the index in `rows`, plus `first`. */
  rows: (StoredRow | string | undefined)[]
  /** At the same index as the row. */
  ids: string[]
  first: number
  /** By id. */
  readonly positions: Map<string, number>
  readonly open: Set<number>
}

const INSERTED: InsertResult = Object.freeze({ inserted: true })

const MANY_ROWS = 100_000

/**
 * Remembers orders in this process, until the process ends.
 *
 * This store prevents duplicates from retries and racing calls through one instance, but not after
 * a crash. It is the client's default store, and the reference implementation of the rules in
 * `customer-ordering-sdk/stores/contract`. Its methods never reject.
 *
 * Each instance has its own rows. The method `close` does nothing.
 *
 * @example
 * const client = new CustomerOrderingClient({ store: new MemoryStore() })
 */
export class MemoryStore implements OrderStore {
  /** `'memory'`: lost when the process ends. */
  readonly durability: StoreDurability = 'memory'
  readonly #shelves = new Map<string, Shelf>()
  readonly #packer = new Packer()
  #count = 0
  #warned = false

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    const shelf = this.#shelves.get(scope)
    const position = shelf?.positions.get(id)
    return shelf === undefined || position === undefined ? undefined : this.#rowAt(scope, shelf, position)
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    const shelf = this.#shelf(row.scope)
    const known = shelf.positions.get(row.id)
    const current = known === undefined ? undefined : this.#rowAt(row.scope, shelf, known)
    if (current !== undefined) return { inserted: false, current }
    this.#append(shelf, row)
    this.#count++
    if (this.#count >= MANY_ROWS && !this.#warned) {
      this.#warned = true
      console.warn(
        `MemoryStore remembers ${this.#count} orders, and forgets all of them when this process ends. ` +
          'Use a durable store, such as SqliteStore, or a shorter `retention`.',
      )
    }
    return INSERTED
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    const shelf = this.#shelves.get(row.scope)
    const position = shelf?.positions.get(row.id)
    if (shelf === undefined || position === undefined) return false
    const current = this.#rowAt(row.scope, shelf, position)
    if (current?.version !== expectedVersion) return false
    if (row.open && !current.open) {
      // Moves the row to the end: a caller that pages through the open rows may already have passed
      // the old position, and must not miss the row.
      shelf.rows[position - shelf.first] = undefined
      this.#append(shelf, row)
      return true
    }
    shelf.rows[position - shelf.first] = this.#kept(row)
    if (!row.open) shelf.open.delete(position)
    return true
  }

  async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    return this.#page(scope, this.#shelves.get(scope)?.open ?? [], options, 0)
  }

  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    const shelf = this.#shelf(scope)
    let removed = 0
    for (const position of positionsFrom(shelf, 0)) {
      const row = this.#rowAt(scope, shelf, position)
      const before = row?.state === 'created' ? createdBefore : rejectedBefore
      if (row === undefined || row.open || row.state === 'open' || row.updatedAt >= before) continue
      shelf.rows[position - shelf.first] = undefined
      shelf.positions.delete(row.id)
      removed++
    }
    const holes = shelf.rows.findIndex((row) => row !== undefined)
    const leading = holes < 0 ? shelf.rows.length : holes
    shelf.rows = shelf.rows.slice(leading)
    shelf.ids = shelf.ids.slice(leading)
    shelf.first += leading
    this.#count -= removed
    return removed
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    const shelf = this.#shelf(scope)
    const positions = positionsFrom(shelf, Number(options.after ?? -1) + 1)
    return this.#page(scope, positions, options, options.since ?? 0)
  }

  async close(): Promise<void> {}

  #shelf(scope: string): Shelf {
    let shelf = this.#shelves.get(scope)
    if (shelf === undefined) {
      shelf = { rows: [], ids: [], first: 0, positions: new Map(), open: new Set() }
      this.#shelves.set(scope, shelf)
    }
    return shelf
  }

  #append(shelf: Shelf, row: StoredRow): void {
    const position = shelf.first + shelf.rows.push(this.#kept(row)) - 1
    shelf.ids.push(row.id)
    shelf.positions.set(row.id, position)
    if (row.open) shelf.open.add(position)
  }

  /** An open row is frozen, because callers share it. A row is flat, so a shallow freeze is enough. */
  #kept(row: StoredRow): StoredRow | string {
    if (!row.open) return this.#packer.pack(row)
    const { scope, id, version, open, state, createdAt, updatedAt, data } = row
    return Object.freeze({ scope, id, version, open, state, createdAt, updatedAt, data })
  }

  #rowAt(scope: string, { rows, ids, first }: Shelf, position: number): StoredRow | undefined {
    const row = rows[position - first]
    if (typeof row !== 'string') return row
    return this.#packer.unpack(scope, ids[position - first] ?? '', row)
  }

  #page(
    scope: string,
    positions: Iterable<number>,
    { after, limit }: ListRowsOptions,
    since: number,
  ): RowPage {
    const shelf = this.#shelf(scope)
    const passed = Number(after ?? -1)
    const rows: StoredRow[] = []
    let last = passed
    for (const position of positions) {
      const row = position > passed ? this.#rowAt(scope, shelf, position) : undefined
      if (row === undefined || row.updatedAt < since) continue
      if (rows.length === limit) return { rows, next: String(last) }
      rows.push(row)
      last = position
    }
    return { rows }
  }
}

function* positionsFrom({ rows, first }: Shelf, start: number): Generator<number, void, undefined> {
  for (let index = Math.max(0, start - first); index < rows.length; index++) yield first + index
}
