/** Which key an order is sent under, and which API key may send it. */
import { apiKeyTag, derivedKey, isNameless, isProxied, proxiedTag } from '../../identity/keys.ts'
import { type Facts, startFor } from '../protocol/rules.ts'
import type { Key } from '../protocol/transitions.ts'
import type { OrderContext } from '../record/context.ts'
import type { Intent } from '../record/intent.ts'
import { isPending, type JournalRecord, type RecordContent } from '../record/record.ts'

/** @param record the record that the call continues; undefined for a new order */
export function startKey(
  context: OrderContext,
  intent: Intent | undefined,
  record: JournalRecord | undefined,
  facts: Facts,
): Key {
  const given = intent?.idempotencyKey ?? intent?.duplicateKey
  if (record === undefined)
    return given === undefined
      ? madeKey(context, intent?.externalOrderId, 0)
      : { key: given, origin: 'caller', generation: 0 }
  const { key, origin, generation, firstSentAt, firstKeySentAt } = record
  const same: Key = { key, origin: given === undefined ? origin : 'caller', generation, firstSentAt }
  if (record.state !== 'rejected') return same
  const start = startFor(record, facts)
  if (start === 'next') return nextKey(context, record)
  if (start !== 'first') return same
  return { ...madeKey(context, record.externalOrderId, 0), firstSentAt: firstKeySentAt }
}

/** Never returns a key that was sent before. */
export function nextKey(context: OrderContext, record: RecordContent): Key {
  const generation = Math.max(record.generation, record.highest ?? 0) + 1
  return madeKey(context, record.externalOrderId, generation)
}

function madeKey(context: OrderContext, externalOrderId: string | undefined, generation: number): Key {
  const { server, account, connection } = context
  const { runtime } = connection
  if (externalOrderId === undefined || account === undefined)
    return { key: runtime.randomId(), origin: 'random', generation }
  const key = derivedKey(runtime.deriveId, { server, account, externalOrderId, generation })
  return { key, origin: 'derived', generation }
}

/**
 * @param stored tag in the record. A reloaded web page learns the proxy's tag only from a response.
 * Until then, it sends this tag, and the proxy sends the order only if its own tag is equal.
 */
export function tagOf(context: OrderContext, key: string, credential: string | null, stored = ''): string {
  const { credentials, runtime } = context.connection
  if (credential !== null) return apiKeyTag(runtime.deriveId, key, credential)
  const { proxyTag } = credentials
  if (proxyTag !== undefined) return proxiedTag(runtime.deriveId, key, proxyTag)
  return isProxied(stored) ? stored : apiKeyTag(runtime.deriveId, key, null)
}

/** Under another API key, the same idempotency key may buy an existing order a second time. */
export function sameApiKey(
  context: OrderContext,
  { key, apiKeyTag: tag }: RecordContent,
  credential: string | null,
): boolean {
  return context.idempotencyScope === 'customer' || tag === tagOf(context, key, credential, tag)
}

/** With a store in memory, another process may derive and send the same key. */
export function isShared({ journal }: OrderContext, { origin }: RecordContent): boolean {
  return origin !== 'random' && journal.store.durability === 'memory'
}

/** A closed order without a reference or key is not continued: an identical call is a new order. */
export function continued(record: JournalRecord | undefined): JournalRecord | undefined {
  if (record === undefined || !isNameless(record.slot)) return record
  return isPending(record) ? record : undefined
}
