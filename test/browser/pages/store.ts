/** Gives tests control over the store in the page. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'
import type { StoredRow } from '../../../src/stores/store.ts'

function makeRow(id: string, data = 'text'): StoredRow {
  return { scope: 'scope', id, version: 1, open: true, state: 'open', createdAt: 1, updatedAt: 1, data }
}

/** Random, because the browser compresses what it stores; without halves of surrogate pairs. */
function randomText(length: number): string {
  return String.fromCharCode(...crypto.getRandomValues(new Uint16Array(length)).map((unit) => unit & 0x7fff))
}

/** The reason of a rejected promise as plain data, or undefined if it was fulfilled. */
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

/** How a request to open or delete a database ends first. */
function endOf(request: IDBOpenDBRequest): Promise<string> {
  return new Promise((resolve) => {
    for (const type of ['success', 'error', 'blocked']) request.addEventListener(type, () => resolve(type))
  })
}

/** Holds a transaction open until told to end it, like a tab that is frozen inside one. */
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

/**
 * Places an order with a store, at a service in this page. Returns the outcome and the number of
 * requests.
 */
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
    randomText: typeof randomText
    failureOf: typeof failureOf
    endOf: typeof endOf
    holdTransaction: typeof holdTransaction
    placeOrder: typeof placeOrder
    /** Ends the transaction of {@link holdTransaction}. */
    release: () => void
    /** A store that stays open between two steps of a test. */
    store: IndexedDbStore
    /** A connection that does not close for other pages. */
    connection: IDBDatabase
  }
}

Object.assign(window, { IndexedDbStore, makeRow, randomText, failureOf, endOf, holdTransaction, placeOrder })
