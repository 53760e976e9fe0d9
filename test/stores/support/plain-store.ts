import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from '../../../src/stores/store.ts'

/** A correct store with accessible internals, so that each negative control can break one rule. */
export class PlainStore implements OrderStore {
  readonly durability: StoreDurability = 'memory'
  readonly rows: Map<string, StoredRow>
  /** Methods call each other through this object, so that a store can replace some of them. */
  readonly #self: PlainStore

  constructor(self?: PlainStore) {
    this.#self = self ?? this
    this.rows = self?.rows ?? new Map()
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    const row = this.#self.find(scope, id)
    return row && { ...row }
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    const current = this.#self.find(row.scope, row.id)
    if (current !== undefined) return { inserted: false, current: { ...current } }
    this.#self.put(row)
    return { inserted: true }
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    if (this.#self.find(row.scope, row.id)?.version !== expectedVersion) return false
    this.#self.put(row)
    return true
  }

  async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    return this.#self.page(scope, options, (row) => row.open)
  }

  async prune(scope: string, options: PruneOptions): Promise<number> {
    return this.#self.remove((row) => row.scope === scope && this.#self.isOld(row, options))
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    return this.#self.page(scope, options, (row) => row.updatedAt >= (options.since ?? 0))
  }

  async close(): Promise<void> {}

  name(scope: string, id: string): string {
    return JSON.stringify([scope, id])
  }

  of(scope: string): StoredRow[] {
    return [...this.rows.values()].filter((row) => row.scope === scope)
  }

  find(scope: string, id: string): StoredRow | undefined {
    return this.rows.get(this.#self.name(scope, id))
  }

  put(row: StoredRow): void {
    this.rows.set(this.#self.name(row.scope, row.id), { ...row })
  }

  limitFor(row: StoredRow, options: PruneOptions): number {
    return row.state === 'created' ? options.createdBefore : options.rejectedBefore
  }

  isOld(row: StoredRow, options: PruneOptions): boolean {
    return !row.open && row.updatedAt < this.#self.limitFor(row, options)
  }

  remove(wanted: (row: StoredRow) => boolean): number {
    let removed = 0
    for (const [name, row] of this.rows) {
      if (wanted(row) && this.rows.delete(name)) removed++
    }
    return removed
  }

  /** Rows in the order of their ids, which never change. */
  page(scope: string, { after = '', limit }: ListRowsOptions, wanted: (row: StoredRow) => boolean): RowPage {
    const rest = this.of(scope)
      .filter((row) => row.id > after && wanted(row))
      .sort((one, other) => (one.id < other.id ? -1 : 1))
    const rows = rest.slice(0, limit).map((row) => ({ ...row }))
    const last = rows.at(-1)
    return rest.length <= limit || last === undefined ? { rows } : { rows, next: last.id }
  }
}
