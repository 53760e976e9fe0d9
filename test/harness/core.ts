/**
 * All that the harnesses know of the inside of `src/orders`. Otherwise they use the public surface,
 * the rows of the store and the service, so that another core runs under the same judge after
 * changes to this file. The model and the seeded bugs know more, and nothing else imports them.
 */
import type { OrderRecord } from '../../src/index.ts'
import { readIntent } from '../../src/orders/record/intent.ts'
import { isPending, type JournalRecord } from '../../src/orders/record/record.ts'
import { platformRuntime } from '../../src/runtime.ts'
import type { CreateOrderRequest } from '../../src/schemas/order.ts'
import type { StoredRow } from '../../src/stores/store.ts'

export { CLOCK_SKEW } from '../../src/http/deadline.ts'
export { scopeOf } from '../../src/identity/keys.ts'
export { OUTCOMES, type OutcomeKind } from '../../src/orders/protocol/outcome.ts'

/** A record as the invariants read it. */
export interface StoredRecord extends Omit<OrderRecord, 'attempts' | 'hold'> {
  /** Who made the key. A derived key is the same in every store. */
  readonly keyOrigin: 'caller' | 'derived' | 'random'
  readonly body?: string
  readonly hold?: string
  /** True if its refusal may hide a charge. */
  readonly maybeHidden?: true
  /** Empty until a call claims the record. */
  readonly apiKeyTag: string
  /** True if the order is as complete as it can be. */
  readonly readable: boolean
  /** First send of the first key, while a later one is current. 0 if it must not be sent again. */
  readonly firstKeySentAt?: number
  readonly updatedAt: number
}

/** The record of a row, or nothing if it is forgotten. Sealed text must be plain behind its mark. */
export function recordOf(row: Omit<StoredRow, 'scope' | 'id' | 'open' | 'state'>): StoredRecord | undefined {
  const { data, version, createdAt, updatedAt } = row
  const text = data.replace(/^sealed:/, '')
  if (!text.startsWith('{')) return undefined
  const content: Omit<StoredRecord, 'keyOrigin'> & Pick<JournalRecord, 'origin'> = JSON.parse(text)
  const readable = content.state === 'created' && !isPending(content)
  return { ...content, keyOrigin: content.origin, readable, version, createdAt, updatedAt }
}

/** True if the key of a record belongs to another payload, which may have been bought. */
export function isConflict({ hold }: Pick<StoredRecord, 'hold'>): boolean {
  return hold === 'conflict'
}

/** The slot of an order without a reference or key. */
export function namelessSlot(request: CreateOrderRequest): string {
  return readIntent(platformRuntime.deriveId, request, {}).slot
}
