/**
 * The keys of an order: how long each may be sent, while which claim, which one is next, and under
 * which API key.
 */
import { CLOCK_SKEW } from '../../http/deadline.ts'
import { apiKeyTag, derivedKey, isNameless, isProxied, proxiedTag } from '../../identity/keys.ts'
import type { Job, OrderContext } from '../record/context.ts'
import type { Intent } from '../record/intent.ts'
import { isPending, type JournalRecord, type RecordContent } from '../record/record.ts'

/** Like {@link CLOCK_SKEW}, for a person's decision, which must hold under any clock that anybody has. */
export const PERSON_SKEW: number = 5 * 60 * 1000

export interface Timing {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly safeRetryWindow: number
  /** Milliseconds that the next attempt may take. */
  readonly attempt: number
}

interface CallTiming extends Timing {
  /**
   * When the call's claim ends. After a crash, the claim of a call with an endless time limit must not keep
   * others away for longer than a key may be sent under any clock.
   */
  readonly until: number
}

export function timingOf(
  { connection, safeRetryWindow }: OrderContext,
  { settings, deadline }: Pick<Job, 'settings' | 'deadline'>,
): CallTiming {
  const now = connection.runtime.now()
  const left = deadline.remaining()
  const attempt = Math.min(settings.timeout, Math.max(0, left))
  return { now, safeRetryWindow, attempt, until: now + Math.min(left, safeRetryWindow + 2 * PERSON_SKEW) }
}

/**
 * The one rule before every attempt, in every command: the attempt must end inside the window of its
 * key, under any clock that differs by {@link CLOCK_SKEW}. The window counts from the first send.
 */
export function mayAttempt(
  firstSentAt: number | undefined,
  { now, safeRetryWindow, attempt }: Timing,
): boolean {
  return now + attempt + CLOCK_SKEW <= (firstSentAt ?? now) + safeRetryWindow
}

/** True while the call that claimed the record may be working on it. */
export function isBusy({ busyUntil = 0, updatedAt }: JournalRecord, now: number): boolean {
  // Ignore a claim from the future: the clock was set back, and the record would look busy until
  // the clock catches up.
  return now < busyUntil && now >= updatedAt - CLOCK_SKEW
}

/** True if another call may have claimed the order meanwhile, or the window of its key is over. */
export function isLate(record: JournalRecord, timing: Timing): boolean {
  return !isBusy(record, timing.now) || !mayAttempt(record.firstSentAt, timing)
}

/** True while a call may still send the order, by any clock that is wrong by {@link PERSON_SKEW}. */
export function mayBeRunning(
  { busyUntil = 0, othersUntil = 0, updatedAt }: JournalRecord,
  now: number,
): boolean {
  const end = Math.max(busyUntil, othersUntil)
  // If this clock went back, the record may be from any moment of the claim.
  const start = updatedAt - Math.max(0, end - updatedAt)
  return end > 0 && now >= start - PERSON_SKEW && now <= end + PERSON_SKEW
}

/** True if the clock was set back, so that the age of the record's keys is unknown. */
export function isFromFuture(
  { firstSentAt = 0, firstKeySentAt = 0, updatedAt }: JournalRecord,
  now: number,
): boolean {
  const latest = Math.max(firstSentAt, firstKeySentAt)
  const known = Math.min(now, updatedAt) + CLOCK_SKEW
  return latest !== 0 && (latest > known || updatedAt > now + CLOCK_SKEW)
}

/** A key of an order. `firstSentAt` is undefined if the key was never sent. */
export type Key = Pick<RecordContent, 'key' | 'origin' | 'generation' | 'firstSentAt'>

/** Which key a refused order is sent under. Undefined if none may be: a caller's key never changes. */
export function startOf(
  record: RecordContent,
  timing: Timing,
  given: string | undefined,
): 'same' | 'first' | 'next' | undefined {
  const { origin, firstSentAt, firstKeySentAt } = record
  // Also if an attempt would take longer than the window: the key that was never sent must come first.
  const isOpen = firstSentAt === undefined || mayAttempt(firstSentAt, timing)
  // A key that the caller gives now is the caller's.
  if (origin === 'caller' || given !== undefined) return isOpen ? 'same' : undefined
  // Prefer a derived first key: a process that has lost the record derives the same key, and the
  // service charges each key only once.
  const isLeft = origin === 'derived' && firstKeySentAt !== undefined
  if (isLeft && mayAttempt(firstKeySentAt, timing)) return 'first'
  return isOpen ? 'same' : 'next'
}

/** @param record the record that the call continues; undefined for a new order */
export function startKey(
  context: OrderContext,
  intent: Intent | undefined,
  record: JournalRecord | undefined,
  timing: Timing,
): Key {
  const given = intent?.idempotencyKey ?? intent?.duplicateKey
  if (record === undefined)
    return given === undefined
      ? madeKey(context, intent?.externalOrderId, 0)
      : { key: given, origin: 'caller', generation: 0, firstSentAt: undefined }
  const { key, origin, generation, firstSentAt, firstKeySentAt } = record
  const same: Key = { key, origin: given === undefined ? origin : 'caller', generation, firstSentAt }
  if (record.state !== 'rejected') return same
  const start = startOf(record, timing, given)
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
    return { key: runtime.randomId(), origin: 'random', generation, firstSentAt: undefined }
  const key = derivedKey(runtime.deriveId, { server, account, externalOrderId, generation })
  return { key, origin: 'derived', generation, firstSentAt: undefined }
}

/**
 * @param stored tag in the record. Until a response names the proxy's tag, a page sends this one, and
 * the proxy sends the order only if its own tag is equal.
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
