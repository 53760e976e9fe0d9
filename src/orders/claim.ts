import type { Start } from './conditions.ts'
import type { OrderContext } from './context.ts'
import { requestOf } from './evidence.ts'
import { apiKeyTag, derivedKey, fieldTags, isProxied, proxiedTag } from './identity.ts'
import type { Intent } from './intent.ts'
import {
  highestGeneration,
  type JournalRecord,
  type KeyOrigin,
  type RecordContent,
  type Rejection,
} from './record.ts'
import type { Sends } from './rules.ts'
import type { IntentKey } from './transitions.ts'
import { apply } from './transitions.ts'

/** @param duplicateKey set if the caller passed `allowDuplicate` */
export function begunContent(
  context: OrderContext,
  intent: Intent,
  record: JournalRecord | undefined,
  as: Sends,
  duplicateKey: string | undefined,
): RecordContent {
  if (record !== undefined && as === 'stored') return apply(record, { type: 'resumed', by: 'call' })
  const isStart = as === 'same' || as === 'first' || as === 'next'
  const again = record !== undefined && isStart ? startedWith(context, record, as) : record
  return askedContent(context, intent, again, duplicateKey)
}

export function askedContent(
  context: OrderContext,
  intent: Intent,
  closed: RecordContent | undefined,
  duplicateKey?: string,
): RecordContent {
  const key = beginningKey(context, intent, closed, duplicateKey)
  const claim = context.connection.runtime.randomId()
  return apply(closed, { type: 'asked', order: intent, key, claim })
}

export function repeatedContent(record: JournalRecord): RecordContent {
  return apply(record, { type: 'resumed', by: 'recovery' })
}

export function claimedContent(
  context: OrderContext,
  content: RecordContent,
  remaining: number,
  credential: string | null,
): RecordContent {
  const { runtime } = context.connection
  const now = runtime.now()
  const apiKeyTag = tagOf(context, content.key, credential, content.apiKeyTag)
  return apply(content, {
    type: 'claimed',
    now,
    until: now + remaining,
    claim: runtime.randomId(),
    apiKeyTag,
  })
}

export function startedWith(context: OrderContext, record: JournalRecord, start: Start): RecordContent {
  if (start === 'same') return record
  if (start === 'next') return apply(record, { type: 'moved_on', key: nextKey(context, record) })
  const { createdAt } = record
  return apply(record, { type: 'went_back', key: keyOf(context, record, 0), createdAt })
}

export function refusalUnder(
  record: JournalRecord,
  { key, generation }: Pick<RecordContent, 'key' | 'generation'>,
): Rejection | undefined {
  if (record.key === key) return record.rejection
  return generation === 0 ? record.first?.rejection : undefined
}

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

/** Never returns a key that was sent before. */
export function nextKey(context: OrderContext, record: RecordContent): IntentKey {
  return keyOf(context, record, highestGeneration(record) + 1)
}

/** Without the body there are no field tags, and a conflict cannot name the fields that differ. */
export function keyOf(context: OrderContext, record: RecordContent, generation: number): IntentKey {
  const made = makeKey(context, record.externalOrderId, generation)
  const fields = fieldTags(context.connection.runtime.deriveId, made.key, requestOf(record))
  return { ...made, generation, fields }
}

export function beginningKey(
  context: OrderContext,
  { idempotencyKey, externalOrderId, request }: Intent,
  closed: RecordContent | undefined,
  duplicateKey: string | undefined,
): IntentKey {
  const made = (): Pick<IntentKey, 'key' | 'keyOrigin'> => {
    if (idempotencyKey !== undefined) return { key: idempotencyKey, keyOrigin: 'caller' }
    if (closed !== undefined) return closed
    if (duplicateKey !== undefined) return { key: duplicateKey, keyOrigin: 'random' }
    return makeKey(context, externalOrderId, 0)
  }
  const { key, keyOrigin } = made()
  return {
    key,
    keyOrigin,
    generation: closed?.generation ?? 0,
    fields: fieldTags(context.connection.runtime.deriveId, key, request),
  }
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

export function sameApiKey(context: OrderContext, record: RecordContent, credential: string | null): boolean {
  return (
    context.idempotencyScope === 'customer' ||
    record.apiKeyTag === tagOf(context, record.key, credential, record.apiKeyTag)
  )
}
