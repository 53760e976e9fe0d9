/** The store contract with IndexedDB. */
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'
import { describe, it } from 'vitest'
import { runAndReport } from '../support/page-report.ts'

const NAME = 'contract'
const open = () => new IndexedDbStore({ name: NAME, openTimeout: 30_000 })

const contract = (): void =>
  storeContract({
    test: { describe, it },
    createStore: open,
    openSecond: open,
    reopenStore: open,
    removeStore: () =>
      new Promise((resolve, reject) => {
        const request = indexedDB.deleteDatabase(NAME)
        request.onsuccess = resolve
        request.onerror = () => reject(request.error)
        request.onblocked = () => reject(new Error('a handle of the store was left open'))
      }),
  })

void runAndReport({ contract })
