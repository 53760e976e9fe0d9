/** Clients of one store that continue while its server dies and restarts. */
import { setTimeout as pause } from 'node:timers/promises'
import { explainHistory, recordHistory } from 'customer-ordering-sdk/stores/contract'
import { expect, vi } from 'vitest'
import type { OrderStore } from '../../../src/stores/store.ts'

/** Fails unless the history of all calls is linearizable while a disaster hits the server twice. */
export async function expectHistoryThrough(
  disaster: () => Promise<void>,
  ...stores: readonly OrderStore[]
): Promise<void> {
  const handles = stores.map(patient)
  await handles[0]?.get('scope', 'id')
  const recording = recordHistory(handles, { seed: 7, operations: 600 })
  const disasters = (async () => {
    for (let count = 0; count < 2; count++) {
      await pause(100)
      await disaster()
    }
  })()
  const { calls, failures } = await recording
  await disasters
  expect(failures.length).toBeGreaterThan(0)
  expect(calls.filter((call) => 'updated' in call && call.updated === true).length).toBeGreaterThan(50)
  expect(explainHistory(calls)).toBeUndefined()
}

/**
 * Wraps the store so that a failed call ends only when the server is back. Otherwise the clients
 * would fail all their calls meanwhile. Each of them may have been applied, which leaves too many
 * possible histories.
 */
function patient(store: OrderStore): OrderStore {
  const slowly = async <T>(call: Promise<T>): Promise<T> => {
    try {
      return await call
    } catch (error) {
      await vi.waitFor(() => store.get('scope', 'id'), { timeout: 60_000, interval: 10 })
      throw error
    }
  }
  return {
    durability: store.durability,
    get: (scope, id) => slowly(store.get(scope, id)),
    insert: (row) => slowly(store.insert(row)),
    update: (row, expectedVersion) => slowly(store.update(row, expectedVersion)),
    listOpen: (scope, options) => slowly(store.listOpen(scope, options)),
    list: (scope, options) => slowly(store.list(scope, options)),
    prune: (scope, options) => slowly(store.prune(scope, options)),
    close: () => store.close(),
  }
}
