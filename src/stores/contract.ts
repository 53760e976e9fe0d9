import type { ContractCase } from './contract/case.ts'
import { claimsNoMoreThanMemory, lifetime } from './contract/lifetime.ts'
import { paging } from './contract/paging.ts'
import { pruning } from './contract/pruning.ts'
import { racing } from './contract/racing.ts'
import { writing } from './contract/writing.ts'
import type { OrderStore } from './store.ts'

export { type HistoryOptions, type RecordedHistory, recordHistory } from './contract/history.ts'
export { type CallSpan, explainHistory, type RecordedCall } from './contract/linearizability.ts'

/** The two functions of a test runner that the suite uses. Vitest, `node:test`, Bun, Jest and Mocha have them. */
export interface ContractRunner {
  /** Groups the tests that `body` registers. */
  describe(title: string, body: () => void): unknown
  /** Registers a test, which fails if the promise rejects. */
  it(title: string, body: () => Promise<void>): unknown
}

/** What {@link storeContract} needs. */
export interface StoreContractOptions {
  /** The runner's own functions, for example `{ describe, it }` of `node:test`. */
  readonly test: ContractRunner
  /** Opens a store without rows. Called once for every test, which closes what it got. */
  readonly createStore: () => OrderStore | Promise<OrderStore>
  /**
   * Opens another handle to the rows of a store that is open, as a second process would. Without it nothing is tested
   * across handles. Leave it out only for a store that has a single one, as a store in memory does.
   */
  readonly openSecond?: (store: OrderStore) => OrderStore | Promise<OrderStore>
  /**
   * Opens the rows of a store that was closed. Needed by every store whose `durability` is more than `'memory'`: one
   * test fails without it.
   */
  readonly reopenStore?: (store: OrderStore) => OrderStore | Promise<OrderStore>
  /** Removes what `createStore` made, after all handles are closed. */
  readonly removeStore?: (store: OrderStore) => unknown
  /** Decides the order of operations where tests mix them; a failing test names it. A whole number, default 1. */
  readonly seed?: number
  /**
   * Size of the concurrent histories: calls at the same time, and calls of each client. Default 8 and 200. The tests
   * that use it make 1,600 calls, so give a runner with a time limit enough for that many writes.
   */
  readonly history?: { readonly clients: number; readonly operations: number }
}

const GROUPS: readonly (readonly [title: string, cases: readonly ContractCase[]])[] = [
  ['reading and writing', writing],
  ['racing writers', racing],
  ['paging', paging],
  ['pruning', pruning],
  ['opening and closing', lifetime],
]

/**
 * Registers, with any test runner, the tests that every {@link OrderStore} must pass: rows come back exactly, of racing
 * writers exactly one wins, no open row is ever omitted or pruned, histories are linearizable, and what was written
 * is there after opening again.
 *
 * It cannot show that a write outlives a power failure, or the process's sudden death: that is for tests of your own.
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
      openSecond: async () => {
        if (options.openSecond === undefined) throw new Error('`openSecond` was not handed to the suite')
        const second = await options.openSecond(store)
        handles.push(second)
        return second
      },
      reopen: async () => {
        if (options.reopenStore === undefined) throw new Error('`reopenStore` was not handed to the suite')
        await store.close()
        const again = await options.reopenStore(store)
        handles.push(again)
        return again
      },
    })
  } catch (error) {
    // Cleaning up after a failed test often fails for the same reason: the test's own error is the one to show.
    await cleanUp().catch(() => {})
    throw error
  }
  await cleanUp()
}
