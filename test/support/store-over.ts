import type { OrderStore, StoredRow } from '../../src/stores/store.ts'

/** A store that forwards to another one, with some operations replaced. */
export function storeOver(store: OrderStore, own: Partial<OrderStore>): OrderStore {
  return {
    durability: store.durability,
    get: (scope, id) => store.get(scope, id),
    insert: (row) => store.insert(row),
    update: (row, expectedVersion) => store.update(row, expectedVersion),
    listOpen: (scope, options) => store.listOpen(scope, options),
    list: (scope, options) => store.list(scope, options),
    prune: (scope, options) => store.prune(scope, options),
    close: () => store.close(),
    ...own,
  }
}

/** A store that reports every row it has written. */
export function writesNoted(store: OrderStore, written: (row: StoredRow) => void): OrderStore {
  return storeOver(store, {
    async insert(row) {
      const result = await store.insert(row)
      if (result.inserted) written(row)
      return result
    },
    async update(row, expectedVersion) {
      const updated = await store.update(row, expectedVersion)
      if (updated) written(row)
      return updated
    },
  })
}

/** A store that runs this before each update, with the number of the update. */
export function beforeUpdates(store: OrderStore, act: (count: number) => unknown): OrderStore {
  let count = 0
  return storeOver(store, {
    update: async (row, version) => {
      await act(++count)
      return await store.update(row, version)
    },
  })
}
