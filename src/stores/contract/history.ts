import type { OrderStore, StoredRow } from '../store.ts'
import type { RecordedCall } from './linearizability.ts'
import { makeRow } from './rows.ts'
import { seeded } from './seeded.ts'

/** Size and seed of a history. */
export interface HistoryOptions {
  /** Seed for the choice of calls. The store's timing does not depend on it. Default 1. */
  readonly seed?: number
  /** Number of concurrent clients. Each makes one call at a time. Default 8. */
  readonly clients?: number
  /** Number of calls per client. Default 200. */
  readonly operations?: number
}

/** The recorded calls of the clients. */
export interface RecordedHistory {
  /** The recorded calls with their results. */
  readonly calls: readonly RecordedCall[]
  /**
   * Errors of rejected calls. `calls` contains rejected writes, with the result `'unknown'`, but no
   * rejected reads.
   */
  readonly failures: readonly unknown[]
}

/**
 * Number of calls that each client makes on a pair of rows. All clients then continue with a new
 * pair, so that inserts race again.
 */
const CALLS_PER_PAIR = 16

/** Longest pause between two calls of a client, in turns of the microtask queue. */
const LONGEST_PAUSE = 4

/**
 * Runs concurrent clients that get, insert and update the same few rows, and records their results
 * for {@link explainHistory}. The store must be empty.
 *
 * @param stores handles to the same rows, distributed among the clients
 * @throws {RangeError} if `stores` is empty
 * @example
 * const { calls } = await recordHistory([new MyStore()])
 * console.log(explainHistory(calls) ?? 'linearizable')
 */
export async function recordHistory(
  stores: readonly OrderStore[],
  { seed = 1, clients = 8, operations = 200 }: HistoryOptions = {},
): Promise<RecordedHistory> {
  const calls: RecordedCall[] = []
  const failures: unknown[] = []
  let clock = 0

  const runClient = async (client: number, store: OrderStore): Promise<void> => {
    const next = seeded(seed * 1_000 + client)
    /** The last version of each row that the client saw. */
    const seen = new Map<string, StoredRow>()
    for (let operation = 0; operation < operations; operation++) {
      const pair = Math.floor(operation / CALLS_PER_PAIR)
      const fresh = makeRow(pair * 2 + next(2), { data: `written by ${client} in call ${operation}` })
      for (let pause = next(LONGEST_PAUSE + 1); pause > 0; pause--) await undefined
      const { scope, id } = fresh
      const last = seen.get(id)
      const choice = next(10)
      const called = ++clock
      const span = (): { client: number; called: number; returned: number } => ({
        client,
        called,
        returned: ++clock,
      })
      const lost = { client, called, returned: Number.POSITIVE_INFINITY }
      if (last !== undefined && choice < 6) {
        const row = {
          ...fresh,
          version: last.version + 1,
          open: next(2) === 0,
          updatedAt: last.updatedAt + 1,
        }
        try {
          const updated = await store.update(row, last.version)
          calls.push({ ...span(), kind: 'update', row, expectedVersion: last.version, updated })
          // A client that lost the race sometimes tries its outdated version again.
          if (updated) seen.set(id, row)
          else if (choice < 4) seen.delete(id)
        } catch (error) {
          failures.push(error)
          calls.push({ ...lost, kind: 'update', row, expectedVersion: last.version, updated: 'unknown' })
        }
      } else if (choice >= 8 || (last === undefined && choice < 4)) {
        try {
          const result = await store.insert(fresh)
          calls.push({ ...span(), kind: 'insert', row: fresh, result })
          seen.set(id, result.inserted ? fresh : result.current)
        } catch (error) {
          failures.push(error)
          calls.push({ ...lost, kind: 'insert', row: fresh, result: 'unknown' })
        }
      } else {
        try {
          const found = await store.get(scope, id)
          calls.push({ ...span(), kind: 'get', scope, id, found })
          if (found !== undefined) seen.set(id, found)
        } catch (error) {
          failures.push(error)
        }
      }
    }
  }

  await Promise.all(
    Array.from({ length: clients }, (_, client) => {
      const store = stores[client % stores.length]
      if (store === undefined) throw new RangeError('recordHistory needs at least one store')
      return runClient(client, store)
    }),
  )
  return { calls, failures }
}
