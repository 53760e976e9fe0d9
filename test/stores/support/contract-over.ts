import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { describe, it } from 'vitest'
import type { OrderStore } from '../../../src/stores/store.ts'

interface Further {
  /** Removes the rows of the store with this number. */
  readonly remove?: (number: number) => unknown
  /** Calls of each client in the histories. Default: as many as the contract makes. */
  readonly operations?: number
}

/** The contract with two clients of the same rows. `open` opens the rows with this number. */
export function contractOver<Client>(
  clients: () => readonly [Client, Client],
  open: (client: Client, number: number) => OrderStore,
  { remove = () => {}, operations }: Further = {},
): void {
  let number = 0
  storeContract({
    test: { describe, it },
    createStore: () => open(clients()[0], ++number),
    openSecond: () => open(clients()[1], number),
    reopenStore: () => open(clients()[1], number),
    removeStore: () => remove(number),
    ...(operations === undefined ? {} : { history: { clients: 8, operations } }),
  })
}
