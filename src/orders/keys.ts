import type { OrderContext } from './context.ts'
import { requestOf } from './evidence.ts'
import { apiKeyTag, derivedKey, fieldTags, isProxied, proxiedTag } from './identity.ts'
import type { Intent } from './intent.ts'
import { highestGeneration, isUnsent, type KeyOrigin, type RecordContent } from './record.ts'
import type { IntentKey } from './transitions.ts'

/** A key for a generation of an intent: derived where everything it is derived from is known, else random. */
export function makeKey(
  context: OrderContext,
  externalOrderId: string | undefined,
  generation: number,
): { readonly key: string; readonly keyOrigin: KeyOrigin } {
  const { runtime } = context.connection
  const { server, account } = context
  if (externalOrderId === undefined || account === undefined)
    return { key: runtime.randomId(), keyOrigin: 'random' }
  return {
    key: derivedKey(runtime.deriveId, { server, account, externalOrderId, generation }),
    keyOrigin: 'derived',
  }
}

/** A key of a remembered order that was never sent. */
export function nextKey(context: OrderContext, record: RecordContent): IntentKey {
  return keyOf(context, record, highestGeneration(record) + 1)
}

/** The key of a generation of a remembered order. Without the body there are no tags, and a conflict names no fields then. */
export function keyOf(context: OrderContext, record: RecordContent, generation: number): IntentKey {
  const made = makeKey(context, record.externalOrderId, generation)
  const fields = fieldTags(context.connection.runtime.deriveId, made.key, requestOf(record))
  return { ...made, generation, fields }
}

/** What decides about the key of an order that begins. */
interface Beginning {
  /** True if the caller gave a closed record another key, which is the next generation. */
  readonly moved: boolean
  /** Key of a deliberate duplicate. */
  readonly duplicateKey: string | undefined
}

/** The key of an order that begins: the remembered one, the caller's, or one of our own. */
export function beginningKey(
  context: OrderContext,
  { idempotencyKey, externalOrderId, request }: Intent,
  closed: RecordContent | undefined,
  { moved, duplicateKey }: Beginning,
): IntentKey {
  const made = (): Pick<IntentKey, 'key' | 'keyOrigin'> => {
    if (idempotencyKey !== undefined) return { key: idempotencyKey, keyOrigin: 'caller' }
    if (closed !== undefined && !moved) return closed
    if (duplicateKey !== undefined) return { key: duplicateKey, keyOrigin: 'random' }
    return makeKey(context, externalOrderId, 0)
  }
  const { key, keyOrigin } = made()
  const generation = closed === undefined ? 0 : moved ? highestGeneration(closed) + 1 : closed.generation
  return {
    key,
    keyOrigin,
    generation,
    fields: fieldTags(context.connection.runtime.deriveId, key, request),
  }
}

/**
 * Tag of the API key that sends a record's key.
 * @param stored the tag that the record has. A page that was opened again knows it before the proxy has responded, and
 * sends it along: the proxy then refuses to send the order with any other API key.
 */
export function tagOf(context: OrderContext, key: string, credential: string | null, stored = ''): string {
  const { credentials, runtime } = context.connection
  if (credential !== null) return apiKeyTag(runtime.deriveId, key, credential)
  const { proxyTag } = credentials
  if (proxyTag !== undefined) return proxiedTag(runtime.deriveId, key, proxyTag)
  return isProxied(stored) ? stored : apiKeyTag(runtime.deriveId, key, null)
}

/** True if the record's key may be sent again with this API key. */
export function sameApiKey(context: OrderContext, record: RecordContent, credential: string | null): boolean {
  return (
    context.idempotencyScope === 'customer' ||
    record.apiKeyTag === tagOf(context, record.key, credential, record.apiKeyTag) ||
    isUnsent(record)
  )
}
