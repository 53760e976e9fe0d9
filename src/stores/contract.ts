import { alike } from './contract/alike.ts'
import type { ContractCase } from './contract/case.ts'
import { claimsNoMoreThanMemory, lifetime } from './contract/lifetime.ts'
import { paging } from './contract/paging.ts'
import { pruning } from './contract/pruning.ts'
import { racing } from './contract/racing.ts'
import { writing } from './contract/writing.ts'
import type { OrderStore } from './store.ts'

export { type HistoryOptions, type RecordedHistory, recordHistory } from './contract/history.ts'
export { type CallSpan, explainHistory, type RecordedCall } from './contract/linearizability.ts'

/**
 * The two functions of a test runner that the suite uses.
 *
 * Vitest, `node:test`, Bun, Jest and Mocha provide both.
 */
export interface ContractRunner {
  /** Groups the tests that `body` registers. */
  describe(title: string, body: () => void): unknown
  /** Registers a test, which fails if the promise rejects. */
  it(title: string, body: () => Promise<void>): unknown
}

/** Options of {@link storeContract}. */
export interface StoreContractOptions {
  /** The runner's own functions, for example `{ describe, it }` of `node:test`. */
  readonly test: ContractRunner
  /** Opens an empty store. Called once for every test; the suite closes the store. */
  readonly createStore: () => OrderStore | Promise<OrderStore>
  /**
   * Opens another handle to the rows of an open store, as a second process would.
   *
   * Without it, the suite skips the tests with two handles. Omit it only for a store that has a
   * single handle, such as a store in memory.
   */
  readonly openSecond?: (store: OrderStore) => OrderStore | Promise<OrderStore>
  /**
   * Opens the rows of a closed store again.
   *
   * Unless `durability` is `'memory'`, one test fails without this function.
   */
  readonly reopenStore?: (store: OrderStore) => OrderStore | Promise<OrderStore>
  /** Deletes what `createStore` created, after all handles are closed. */
  readonly removeStore?: (store: OrderStore) => unknown
  /** Seed for the order of operations, an integer. Default 1. */
  readonly seed?: number
  /**
   * Size of the concurrent histories: number of clients, and calls per client.
   *
   * Default 8 and 200, so each test makes 1,600 calls: raise your runner's time limit if necessary.
   */
  readonly history?: { readonly clients: number; readonly operations: number }
  /**
   * The largest `data` that the store accepts, in bytes of UTF-8.
   *
   * By default, the suite writes 4.4 MB.
   */
  readonly maxBytes?: number
}

const GROUPS: readonly (readonly [title: string, cases: readonly ContractCase[]])[] = [
  ['reading and writing', [...writing, ...alike]],
  ['racing writers', racing],
  ['paging', paging],
  ['pruning', pruning],
  ['opening and closing', lifetime],
]

/**
 * Registers, with any test runner, the tests that every {@link OrderStore} must pass.
 *
 * They check these rules: rows are returned unchanged; one of several racing writers wins; no open
 * row is ever omitted or pruned; histories are linearizable; rows survive closing and reopening the
 * store.
 *
 * The suite cannot show that a write survives a power failure or a crash of the process. Write your
 * own tests for that.
 *
 * @example
 * import { describe, it } from 'node:test'
 * storeContract({ test: { describe, it }, createStore: () => new MyStore() })
 */
export function storeContract(options: StoreContractOptions): void {
  const { test } = options
  for (const [group, cases] of GROUPS) {
    test.describe(group, () => {
      for (const contractCase of cases) {
        if (contractCase.needs !== undefined && options[contractCase.needs] === undefined) continue
        test.it(contractCase.title, () => runCase(contractCase, options))
      }
      if (cases === lifetime && options.reopenStore === undefined) {
        test.it(claimsNoMoreThanMemory.title, () => runCase(claimsNoMoreThanMemory, options))
      }
    })
  }
}

async function runCase(contractCase: ContractCase, options: StoreContractOptions): Promise<void> {
  const store = await options.createStore()
  const handles = [store]
  const cleanUp = async (): Promise<void> => {
    for (const handle of handles) await handle.close()
    await options.removeStore?.(store)
  }
  try {
    await contractCase.run({
      store,
      seed: options.seed ?? 1,
      history: options.history ?? { clients: 8, operations: 200 },
      maxBytes: options.maxBytes ?? Number.POSITIVE_INFINITY,
      openSecond: async () => {
        if (options.openSecond === undefined) throw new Error('`openSecond` was not passed to the suite')
        const second = await options.openSecond(store)
        handles.push(second)
        return second
      },
      reopen: async () => {
        if (options.reopenStore === undefined) throw new Error('`reopenStore` was not passed to the suite')
        await store.close()
        const again = await options.reopenStore(store)
        handles.push(again)
        return again
      },
    })
  } catch (error) {
    // Cleanup after a failed test often fails for the same reason. Report the test's own error.
    await cleanUp().catch(() => {})
    throw error
  }
  await cleanUp()
}
