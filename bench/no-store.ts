import type { OrderStore } from '../src/stores/store.ts'

/** A store that keeps nothing and costs nothing: what `create()` does besides storing. */
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
