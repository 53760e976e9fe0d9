/**
 * The six ways in which a record changes: claim, settle, prove, abandon, distrust, and empty, which
 * leaves no record (`Journal.empty`). The comments are printed in `docs/protocol.md`.
 */
import { isNameless } from '../../identity/keys.ts'
import type { Order } from '../../schemas/order.ts'
import type { Intent } from '../record/intent.ts'
import {
  type Hold,
  isPending,
  type JournalRecord,
  type RecordContent,
  type Rejection,
} from '../record/record.ts'
import { type Key, PERSON_SKEW } from './keys.ts'

export interface Claim {
  readonly now: number
  /** When the call ends at the latest. */
  readonly until: number
  /** Id of the call. */
  readonly claim: string
  readonly apiKeyTag: string
}

/**
 * A call claims the record. This write permits the call to send. A new order, the same order again,
 * its next key and another API key are all claimed by this one transition.
 *
 * @param record the record that is continued; undefined for a new order
 * @param intent the payload; undefined to send what the record has
 */
export function claim(
  record: RecordContent | undefined,
  intent: Intent | undefined,
  key: Key,
  { now, until, claim: id, apiKeyTag }: Claim,
): RecordContent {
  const payload = intent ?? record
  if (payload === undefined) throw new TypeError('unreachable: a claim without an order')
  const { slot, fingerprint, body, externalOrderId } = payload
  const own = record?.claim === id
  const isSameKey = record?.key === key.key
  const others = record === undefined ? 0 : othersEnd(record, id)
  const highest = Math.max(record?.highest ?? 0, record?.generation ?? 0)
  const left = isSameKey ? record : firstKey(record, key)
  return {
    slot,
    key: key.key,
    origin: key.origin,
    generation: key.generation,
    state: record?.state === 'created' ? 'created' : 'open',
    // An earlier call may have sent the key, so a later refusal does not prove that nothing was
    // bought. The key of an abandoned order stays ambiguous if it is also the order's name.
    ambiguous: isSameKey && (record.ambiguous || (record.state === 'open' && !own)),
    attempts: record?.attempts ?? 0,
    fingerprint,
    firstSentAt: key.firstSentAt ?? now,
    // The time that is left has fractions of a millisecond.
    busyUntil: Math.ceil(until),
    apiKeyTag,
    claim: id,
    externalOrderId,
    body,
    order: record?.order,
    maybeHidden: record?.maybeHidden,
    highest: highest > key.generation ? highest : undefined,
    firstKeySentAt: left?.firstKeySentAt,
    firstRejection: left?.firstRejection,
    // Forget a call only once no two clocks can differ about its end: its own may be slow, and this one fast.
    othersUntil: others > 0 && others + 2 * PERSON_SKEW > now ? others : undefined,
  }
}

/** A call whose claim is taken over does not notice this: until then, it may send and return the order. */
function othersEnd({ claim, othersUntil = 0, busyUntil = 0 }: RecordContent, id: string): number {
  return claim === id ? othersUntil : Math.max(othersUntil, busyUntil)
}

type FirstKey = Pick<RecordContent, 'firstKeySentAt' | 'firstRejection'>

/** Remembers what is known of the derived first key while a later key is current. */
function firstKey(record: RecordContent | undefined, { origin, generation }: Key): FirstKey | undefined {
  if (record === undefined || origin !== 'derived' || generation === 0) return undefined
  if (record.generation > 0 || record.origin !== 'derived') return record
  return { firstKeySentAt: record.firstSentAt, firstRejection: record.rejection }
}

export interface Ending {
  /** Why the record is closed without an order; undefined leaves it open. */
  readonly rejection: Rejection | undefined
  readonly ambiguous: boolean
  readonly hold: Hold | undefined
  readonly attempts: number
  /** True if the service processed no request with the key, so that its window has not begun. */
  readonly unused: boolean
}

/** A call ended without a proof of a charge: the record is closed, or stays open. */
export function settle(
  record: RecordContent,
  { rejection, ambiguous, hold, attempts, unused }: Ending,
): RecordContent {
  const ended = { ...record, busyUntil: undefined, attempts: record.attempts + attempts }
  if (rejection === undefined) return { ...ended, ambiguous, hold }
  const firstSentAt = unused ? undefined : record.firstSentAt
  return { ...ended, state: 'rejected', rejection, firstSentAt, body: undefined, hold: undefined }
}

export interface Proof {
  /** The record as this call sent it. Undefined if the order was found in a list or by its id. */
  readonly sent?: RecordContent
  /** The order, if it was readable. */
  readonly order: Partial<Order> | undefined
  readonly orderId: string | undefined
  readonly attempts?: number
  /** Id of the call, if it has one. */
  readonly claim?: string
}

/** An order exists and was charged. A proof of a charge beats every other outcome. */
export function prove(
  newest: RecordContent,
  { sent, order, orderId, attempts = 0 }: Proof,
  id: string,
): RecordContent {
  const { slot, externalOrderId, order: known } = newest
  const others = othersEnd(newest, id)
  // The order exists under the key that this call sent, even if another call has changed the key.
  const { key, origin, generation, fingerprint, body, apiKeyTag, firstSentAt } = sent ?? newest
  return {
    slot,
    key,
    origin,
    generation,
    state: 'created',
    ambiguous: false,
    attempts: newest.attempts + attempts,
    fingerprint,
    apiKeyTag,
    claim: id,
    externalOrderId,
    order: order ?? known ?? (orderId === undefined ? undefined : { id: orderId }),
    firstSentAt,
    // Without the order, keep the body, of which a replay returns the order, and the calls that may send it.
    ...(order === undefined ? { body, othersUntil: others > 0 ? others : undefined } : { body: undefined }),
  }
}

/** True if the proof adds nothing to the record, so that no write is needed. */
export function isProven(newest: JournalRecord, { sent, order, orderId }: Proof): boolean {
  if (newest.state !== 'created') return false
  if (!isPending(newest)) return true
  if (order !== undefined || (orderId !== undefined && newest.order?.id === undefined)) return false
  // A write is needed to release this call's own claim.
  return newest.busyUntil === undefined || newest.claim !== sent?.claim
}

/**
 * True if the row has a later order, which a proof must not overwrite, because that order may have been
 * bought: a nameless twin, or what a person has permitted to buy again since the order was found. A key
 * that is the order's name stays the same, but not its generation.
 *
 * @param mine the record that the proof is about
 */
export function isLater(newest: RecordContent, mine: RecordContent, { sent, orderId }: Proof): boolean {
  const isMoved = newest.key !== mine.key || newest.generation !== mine.generation
  if (!isMoved || newest.state === 'rejected' || newest.order?.id === (orderId ?? '')) return false
  return sent === undefined || isNameless(newest.slot)
}

/** Identical orders without a reference or key share one row, but have different keys. */
export function isAnother(newest: RecordContent, mine: RecordContent): boolean {
  return isNameless(newest.slot) && newest.key !== mine.key
}

/**
 * A person closed the record without an order. The next call buys again. It uses another key, unless
 * the key is also the order's name.
 */
export function abandon(record: RecordContent, next: Key | undefined, id: string): RecordContent {
  const gone = { busyUntil: undefined, othersUntil: undefined, body: undefined, hold: undefined }
  const closed = { state: 'rejected', rejection: { kind: 'abandoned' }, claim: id } as const
  // A call that has died may have sent the key, so a later refusal does not prove that nothing was bought.
  if (next === undefined)
    return { ...record, ...gone, ...closed, generation: record.generation + 1, ambiguous: true }
  const { key, origin, generation } = next
  const unsent = { firstSentAt: undefined, highest: undefined, ambiguous: false, firstKeySentAt: 0 }
  return { ...record, ...gone, ...closed, key, origin, generation, ...unsent }
}

/**
 * The clock went back, so the age of the keys is unknown. With a known age, the window of the keys
 * would open again once the clock catches up. A call that holds the record may still be running.
 */
export function distrust(record: JournalRecord, now: number, id: string): JournalRecord {
  const { busyUntil = 0, othersUntil = 0, firstSentAt, firstKeySentAt, updatedAt } = record
  const end = Math.max(busyUntil, othersUntil)
  return {
    ...record,
    claim: id,
    // The next claim takes this write for one of its own call.
    ambiguous: record.ambiguous || record.state === 'open',
    busyUntil: undefined,
    firstSentAt: firstSentAt && 0,
    firstKeySentAt: firstKeySentAt && 0,
    othersUntil: end > 0 ? now + Math.max(0, end - updatedAt) : undefined,
  }
}
