import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'
import { IDBFactory, IDBKeyRange } from 'fake-indexeddb'
import { beforeEach, describe, it, vi } from 'vitest'

beforeEach(() => {
  vi.stubGlobal('indexedDB', new IDBFactory())
  vi.stubGlobal('IDBKeyRange', IDBKeyRange)
})

const open = () => new IndexedDbStore({ name: 'orders' })

describe('IndexedDbStore on an imitation of IndexedDB', () => {
  storeContract({ test: { describe, it }, createStore: open, openSecond: open, reopenStore: open })
})
