/** Removes old closed records. Open records are never removed. */
import type { StoredRow } from '../../stores/store.ts'
import type { OrderContext } from './context.ts'
import type { Journal } from './journal.ts'

/** How far back to search for a witness, in multiples of its minimum age. */
const WITNESS_AGES: readonly number[] = [1.1, 2, 8, 32, 128]

const PRUNE_INTERVAL = 60 * 60 * 1000

const UNPRUNED = 'The store could not remove old records. Nothing was sent. Call again.'

/**
 * `close()` waits for the removal, so that the store can be closed. The first `create()` only begins
 * the hour: a worker with a client for each request would search for old records at each order.
 */
export function pruneHourly(command: 'create' | 'recover', context: OrderContext): void {
  const { runtime, reporter } = context.connection
  const { shared } = context.journal
  const since = runtime.monotonic()
  if (command === 'create') shared.pruning ??= { since, ended: Promise.resolve() }
  if (shared.pruning !== undefined && since - shared.pruning.since < PRUNE_INTERVAL) return
  const ended = prune(context).catch(({ code }: { readonly code?: string }) => {
    reporter.log('warn', 'old records could not be removed; no new attempt for an hour', { code })
  })
  shared.pruning = { since, ended }
}

export async function prune({ journal, retention, connection }: OrderContext): Promise<void> {
  const now = connection.runtime.now()
  const createdBefore = await prunableBefore(journal, retention.created, now)
  const rejectedBefore = await prunableBefore(journal, retention.rejected, now)
  const { store, scope } = journal
  const limits = { createdBefore, rejectedBefore }
  await journal.confirmed(() => store.prune(scope, limits), UNPRUNED)
}

/**
 * Returns the time before which records may be removed, or 0. To a clock that is far ahead, every
 * record looks old, so a record must also be older than another one, the witness, by three quarters
 * of the retention. A witness less than a quarter of the retention old may have the wrong clock's time.
 */
async function prunableBefore(journal: Journal, retention: number, now: number): Promise<number> {
  const { store, scope } = journal
  const minAge = retention / 4
  for (const factor of WITNESS_AGES) {
    const since = Math.floor(Math.max(0, now - minAge * factor))
    const { rows } = await journal.confirmed(() => store.list(scope, { since, limit: 100 }), UNPRUNED)
    const witness = rows.find(({ updatedAt }: StoredRow) => updatedAt <= now - minAge)
    if (witness !== undefined)
      return Math.floor(Math.min(now - retention, witness.updatedAt - (retention * 3) / 4))
  }
  return 0
}
