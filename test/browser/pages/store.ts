/** Hands the store to tests that say in the page what is to happen. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'
import type { StoredRow } from '../../../src/stores/store.ts'

/** A row with one or another text in it. */
function makeRow(id: string, data = 'text'): StoredRow {
  return { scope: 'scope', id, version: 1, open: true, state: 'open', createdAt: 1, updatedAt: 1, data }
}

/** What a promise was rejected with, as plain data; undefined if it was not. */
async function failureOf(
  promise: Promise<unknown>,
): Promise<{ code: unknown; message: string; applied: unknown; charged: unknown } | undefined> {
  try {
    await promise
    return undefined
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const code: unknown = error.cause instanceof Error ? Reflect.get(error.cause, 'code') : undefined
    const [applied, charged]: unknown[] = [Reflect.get(error, 'applied'), Reflect.get(error, 'charged')]
    return { code, message: `${error.name}: ${error.message}`, applied, charged }
  }
}

/** A transaction that does not end until it is told to, as in a tab that is frozen inside of one. */
function holdTransaction(database: IDBDatabase): () => void {
  let held = true
  const rows = database.transaction('rows', 'readwrite').objectStore('rows')
  const again = (): void => {
    if (held) rows.get(['no', 'row']).onsuccess = again
  }
  again()
  return () => {
    held = false
  }
}

/** Places an order over a store, at a service in this page; what came of it, and how many requests there were. */
async function placeOrder(store: IndexedDbStore, externalOrderId: string) {
  const { baseUrl, apiKey, fetch, requests } = createSandbox()
  const client = new CustomerOrderingClient({ baseUrl, apiKey: () => apiKey, fetch, account: 'shop', store })
  const request = { serviceId: 'svc_standard', target: '@ada', quantity: 1, metadata: { externalOrderId } }
  return { failure: await failureOf(client.orders.create(request)), requests: requests.length }
}

declare global {
  interface Window {
    IndexedDbStore: typeof IndexedDbStore
    makeRow: typeof makeRow
    failureOf: typeof failureOf
    holdTransaction: typeof holdTransaction
    placeOrder: typeof placeOrder
    /** Ends what {@link holdTransaction} began. */
    release: () => void
    /** A store that stays open between two steps of a test. */
    store: IndexedDbStore
    /** A connection that does not give way. */
    connection: IDBDatabase
  }
}

Object.assign(window, { IndexedDbStore, makeRow, failureOf, holdTransaction, placeOrder })
