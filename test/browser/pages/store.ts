/** Hands the store to tests that say in the page what is to happen. */
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'
import type { StoredRow } from '../../../src/idempotency/store.ts'

/** A row with one or another text in it. */
function makeRow(id: string, data = 'text'): StoredRow {
  return { scope: 'scope', id, version: 1, open: true, state: 'open', createdAt: 1, updatedAt: 1, data }
}

/** What a promise was rejected with, as plain data; undefined if it was not. */
async function failureOf(promise: Promise<unknown>): Promise<{ code: unknown; message: string } | undefined> {
  try {
    await promise
    return undefined
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const code: unknown = error.cause instanceof Error ? Reflect.get(error.cause, 'code') : undefined
    return { code, message: `${error.name}: ${error.message}` }
  }
}

declare global {
  interface Window {
    IndexedDbStore: typeof IndexedDbStore
    makeRow: typeof makeRow
    failureOf: typeof failureOf
    /** A store that stays open between two steps of a test. */
    store: IndexedDbStore
    /** A connection that does not give way. */
    connection: IDBDatabase
  }
}

Object.assign(window, { IndexedDbStore, makeRow, failureOf })
