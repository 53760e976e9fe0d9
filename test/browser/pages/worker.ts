/** A web worker that writes a row and reports whether it was the first to do so. */
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'

const store = new IndexedDbStore({ name: 'shared' })
const times = { createdAt: 1, updatedAt: 1 }
const row = {
  scope: 'scope',
  id: 'id',
  version: 1,
  open: true,
  state: 'open',
  data: 'worker',
  ...times,
} as const
store.insert(row).then(({ inserted }) => postMessage(inserted))
