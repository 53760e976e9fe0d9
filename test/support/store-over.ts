import type { OrderStore } from '../../src/idempotency/store.ts'

/** A store over another one, with some operations of its own. */
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
