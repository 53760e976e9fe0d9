import type { StoreError } from '../errors.ts'
import type { CallSettings } from '../http/call.ts'
import type { OrderStore } from '../stores/store.ts'
import type { OrderContext } from './context.ts'
import { deadlineOf, invalid, lookFor, type OrderName } from './named.ts'
import { isPending, type JournalRecord, type OrderRecord, publicRecord } from './record.ts'
import { type Unusable, unusableError } from './row.ts'

/** Which records to look at: one by name, or all that were written since a time (milliseconds since 1970). */
export type RememberedQuery = OrderName | { readonly since: number }

/**
 * Records of this scope; looks, never sends.
 * @param settings whose total time is that of a look for one name
 */
export async function* remembered(
  context: OrderContext,
  query: RememberedQuery,
  settings: CallSettings,
): AsyncGenerator<OrderRecord, void, undefined> {
  if ('since' in query) {
    if (!Number.isFinite(query.since)) throw invalid('since', 'must be a time in milliseconds since 1970')
    yield* views(context, { since: query.since })
    return
  }
  const deadline = deadlineOf(context, settings)
  const found = await lookFor(context, query, { operation: 'orders.remembered', settings, deadline })
  if (found !== undefined) yield publicRecord(found.record)
}

/** Records whose ending, or whose order, is not known. */
export async function* unresolved(context: OrderContext): AsyncGenerator<OrderRecord, void, undefined> {
  yield* views(context, { open: true })
}

/** All readable records first; then the error for those that are not, because an end would hide them. */
async function* views(
  context: OrderContext,
  which: { readonly open: true } | { readonly since: number },
): AsyncGenerator<OrderRecord, void, undefined> {
  let unusable: Unusable | undefined
  for await (const record of records(context, which)) {
    if (typeof record === 'string') unusable = record
    else if (!('open' in which) || isPending(record)) yield publicRecord(record)
  }
  if (unusable !== undefined) throw unusableError(unusable)
}

/** Each record once, although a store may repeat rows that change while they are listed; or why it is unreadable. */
export async function* records(
  context: OrderContext,
  which: { readonly open: true } | { readonly since: number },
): AsyncGenerator<JournalRecord | Unusable, void, undefined> {
  const seen = new Set<string>()
  for await (const row of context.journal.rows(which)) {
    if (seen.has(row.id)) continue
    seen.add(row.id)
    const record = await context.journal.decode(row)
    if (record !== 'forgotten') yield record
  }
}

/** Time between two removals of old records, milliseconds. */
const PRUNE_INTERVAL = 60 * 60 * 1000

// By store and not by client: clients that share a store need not each clear it up.
const pruned = new WeakMap<OrderStore, Map<string, number>>()

/** Removes closed records that are older than the client keeps them, at most once an hour; nobody waits for it. */
export function pruneClosed({ connection, journal, retention }: OrderContext): void {
  const { runtime, reporter } = connection
  const { store, scope } = journal
  const times = pruned.get(store) ?? new Map<string, number>()
  pruned.set(store, times)
  const last = times.get(scope)
  if (last !== undefined && runtime.monotonic() - last < PRUNE_INTERVAL) return
  times.set(scope, runtime.monotonic())
  journal.prune(retention).catch(({ code }: StoreError) => {
    reporter.log('warn', 'old records were not removed; tried again in an hour', { code })
  })
}
