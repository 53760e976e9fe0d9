/** The suite of stores in a page, to be run test by test from outside. */
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'

const NAME = 'contract'
const cases = new Map<string, () => Promise<void>>()
const open = () => new IndexedDbStore({ name: NAME, openTimeout: 30_000 })

storeContract({
  test: { describe: (_title, body) => body(), it: (title, body) => cases.set(title, body) },
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

/** Runs one test; what it failed with, as text. */
async function runCase(title: string): Promise<string | undefined> {
  const body = cases.get(title)
  if (body === undefined) return 'there is no such test'
  try {
    await body()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

declare global {
  interface Window {
    runCase: typeof runCase
  }
}

window.runCase = runCase
