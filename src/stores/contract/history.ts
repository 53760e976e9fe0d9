import type { OrderStore, StoredRow } from '../store.ts'
import type { RecordedCall } from './linearizability.ts'
import { makeRow } from './rows.ts'
import { seeded } from './seeded.ts'

/** Size and seed of a history. */
export interface HistoryOptions {
  /** Seed for the choice of calls. Default 1. The timing of the store still varies between runs. */
  readonly seed?: number
  /** Number of concurrent clients. Each makes one call at a time. Default 8. */
  readonly clients?: number
  /** Number of calls per client. Default 200. */
  readonly operations?: number
}

/** The calls that {@link recordHistory} recorded. */
export interface RecordedHistory {
  /** Each call with its result. */
  readonly calls: readonly RecordedCall[]
  /**
   * Errors of rejected calls.
   *
   * `calls` includes rejected writes, with the result `'unknown'`, but not rejected reads.
   */
  readonly failures: readonly unknown[]
}

/**
 * After this many calls, each client continues with a new pair of rows, so that inserts race again.
 */
const CALLS_PER_PAIR = 16

const MAX_MICROTASKS_BETWEEN_CALLS = 4

/**
 * Runs concurrent clients that get, insert and update the same few rows, and records the calls for
 * {@link explainHistory}.
 *
 * The store must be empty.
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
    const lastSeen = new Map<string, StoredRow>()
    for (let operation = 0; operation < operations; operation++) {
      const pair = Math.floor(operation / CALLS_PER_PAIR)
      const fresh = makeRow(pair * 2 + next(2), { data: `written by ${client} in call ${operation}` })
      for (let pause = next(MAX_MICROTASKS_BETWEEN_CALLS + 1); pause > 0; pause--) await undefined
      const { scope, id } = fresh
      const last = lastSeen.get(id)
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
          // After a lost race, do not always forget the row. The next update may then expect an
          // outdated version, so it must resolve to false.
          if (updated) lastSeen.set(id, row)
          else if (choice < 4) lastSeen.delete(id)
        } catch (error) {
          failures.push(error)
          calls.push({ ...lost, kind: 'update', row, expectedVersion: last.version, updated: 'unknown' })
        }
      } else if (choice >= 8 || (last === undefined && choice < 4)) {
        try {
          const result = await store.insert(fresh)
          calls.push({ ...span(), kind: 'insert', row: fresh, result })
          lastSeen.set(id, result.inserted ? fresh : result.current)
        } catch (error) {
          failures.push(error)
          calls.push({ ...lost, kind: 'insert', row: fresh, result: 'unknown' })
        }
      } else {
        try {
          const found = await store.get(scope, id)
          calls.push({ ...span(), kind: 'get', scope, id, found })
          if (found !== undefined) lastSeen.set(id, found)
        } catch (error) {
          failures.push(error)
        }
      }
    }
  }

  await Promise.all(
    Array.from({ length: clients }, (_, client) => {
      const store = stores[client % stores.length]
      if (store === undefined) throw new RangeError('recordHistory() needs at least one store')
      return runClient(client, store)
    }),
  )
  return { calls, failures }
}
