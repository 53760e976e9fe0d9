import type { OrderStore } from '../../src/stores/store.ts'

/**
 * A store that keeps nothing and costs nothing, so that only the rest of `create()` is measured.
 */
export const noStore: OrderStore = {
  durability: 'memory',
  get: async () => undefined,
  insert: async () => ({ inserted: true }),
  update: async () => true,
  listOpen: async () => ({ rows: [] }),
  list: async () => ({ rows: [] }),
  prune: async () => 0,
  close: async () => {},
}
