import { defined } from '../defined.ts'
import { makeKey, type OrderContext } from './context.ts'
import { fieldTags } from './identity.ts'
import type { Intent } from './intent.ts'
import type { RecordContent } from './journal.ts'
import { highestGeneration, type JournalRecord, type KeyOrigin } from './record.ts'
import { leftKeys } from './record-endings.ts'

/** What decides about the key of an order that begins. */
interface Beginning {
  /** True if the caller gave a closed record another key, which is the next generation. */
  readonly moved: boolean
  /** Key of a deliberate duplicate. */
  readonly duplicateKey?: string | undefined
}

/**
 * An open record that no call has claimed: a new order, or a closed one that is asked for again. What is known of the key
 * stays known: when it was first sent decides until when it may be.
 * @param closed what is remembered of the same order
 */
export function unsentContent(
  context: OrderContext,
  intent: Intent,
  closed: JournalRecord | undefined,
  { moved, duplicateKey }: Beginning,
): RecordContent {
  const { runtime } = context.connection
  const same = moved ? undefined : closed
  const { key, keyOrigin } = keyFor(context, intent, same, duplicateKey)
  const { highest, first, firstSentAt } = same ?? {}
  const left = moved && closed !== undefined ? leftKeys(closed) : closed?.left
  const used = closed === undefined ? 0 : highestGeneration(closed) + 1
  return {
    slot: intent.slot,
    key,
    keyOrigin,
    generation: same?.generation ?? used,
    state: 'open',
    // A closed record is in doubt only if a person gave it up under a key that cannot change.
    ambiguous: same?.ambiguous === true,
    attempts: closed?.attempts ?? 0,
    fingerprint: intent.fingerprint,
    fields: fieldTags(runtime.deriveId, key, intent.request),
    body: intent.body,
    apiKeyTag: '',
    claim: runtime.randomId(),
    readable: false,
    refused: same?.refused === true,
    foreign: same?.foreign === true,
    ...defined({ externalOrderId: intent.externalOrderId, highest, first, firstSentAt, left }),
  }
}

/** The key that is sent: the remembered one, the caller's, or one of our own. */
function keyFor(
  context: OrderContext,
  { idempotencyKey, externalOrderId }: Intent,
  closed: JournalRecord | undefined,
  duplicateKey: string | undefined,
): { readonly key: string; readonly keyOrigin: KeyOrigin } {
  if (idempotencyKey !== undefined) return { key: idempotencyKey, keyOrigin: 'caller' }
  if (closed !== undefined) return closed
  if (duplicateKey !== undefined) return { key: duplicateKey, keyOrigin: 'random' }
  return makeKey(context, externalOrderId, 0)
}
