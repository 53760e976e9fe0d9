import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from './store.ts'

interface Slot {
  row: StoredRow
  position: number
}

/** The rows of one scope. Both collections are in the order of `position`. */
interface Shelf {
  readonly slots: Map<string, Slot>
  readonly open: Set<Slot>
}

const INSERTED: InsertResult = Object.freeze({ inserted: true })

/**
 * Remembers orders in this process, until the process ends. This store prevents duplicates from
 * retries and racing calls through one instance, but not after a crash. It is the client's default
 * store, and the reference implementation of the rules in `customer-ordering-sdk/stores/contract`.
 * Its methods never reject.
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
  #lastPosition = 0

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return this.#shelves.get(scope)?.slots.get(id)?.row
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    const shelf = this.#shelf(row.scope)
    const current = shelf.slots.get(row.id)?.row
    if (current !== undefined) return { inserted: false, current }
    const slot = { row: copy(row), position: ++this.#lastPosition }
    shelf.slots.set(row.id, slot)
    if (row.open) shelf.open.add(slot)
    return INSERTED
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    const shelf = this.#shelves.get(row.scope)
    const slot = shelf?.slots.get(row.id)
    if (shelf === undefined || slot === undefined || slot.row.version !== expectedVersion) return false
    if (slot.row.open && !row.open) shelf.open.delete(slot)
    if (!slot.row.open && row.open) {
      // Moves the row to the end: a caller that pages through the open rows may already have passed
      // the old position, and must not miss the row.
      slot.position = ++this.#lastPosition
      shelf.slots.delete(row.id)
      shelf.slots.set(row.id, slot)
      shelf.open.add(slot)
    }
    slot.row = copy(row)
    return true
  }

  async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    return page(this.#shelves.get(scope)?.open ?? [], options, 0)
  }

  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    const slots = this.#shelves.get(scope)?.slots ?? new Map<string, Slot>()
    let removed = 0
    for (const { row } of slots.values()) {
      const before = row.state === 'created' ? createdBefore : rejectedBefore
      if (!row.open && row.state !== 'open' && row.updatedAt < before) {
        slots.delete(row.id)
        removed++
      }
    }
    return removed
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    return page(this.#shelves.get(scope)?.slots.values() ?? [], options, options.since ?? 0)
  }

  async close(): Promise<void> {}

  #shelf(scope: string): Shelf {
    let shelf = this.#shelves.get(scope)
    if (shelf === undefined) {
      shelf = { slots: new Map(), open: new Set() }
      this.#shelves.set(scope, shelf)
    }
    return shelf
  }
}

/** Frozen, because callers share the copy. A row is flat, so a shallow freeze is enough. */
function copy(row: StoredRow): StoredRow {
  return Object.freeze({
    scope: row.scope,
    id: row.id,
    version: row.version,
    open: row.open,
    state: row.state,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    data: row.data,
  })
}

function page(slots: Iterable<Slot>, { after, limit }: ListRowsOptions, since: number): RowPage {
  const passed = after === undefined ? 0 : Number(after)
  const rows: StoredRow[] = []
  let last = passed
  for (const slot of slots) {
    if (slot.position <= passed || slot.row.updatedAt < since) continue
    if (rows.length === limit) return { rows, next: String(last) }
    rows.push(slot.row)
    last = slot.position
  }
  return { rows }
}
