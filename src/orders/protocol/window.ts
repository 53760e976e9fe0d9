/** The clock's part of the rules: how long a key may be sent, and when a claim holds. */
import { CLOCK_SKEW } from '../../http/deadline.ts'
import type { JournalRecord, RecordContent } from '../record/record.ts'

export { CLOCK_SKEW } from '../../http/deadline.ts'

/** The same for a person's decision, which must hold under any clock that somebody may have. */
export const PERSON_SKEW: number = 5 * 60 * 1000

export interface Timing {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly safeRetryWindow: number
  /** Milliseconds that the next attempt may take. */
  readonly attempt: number
}

/**
 * The one rule before every attempt, in every command: the attempt must end inside the window of
 * its key, under any clock that differs by {@link CLOCK_SKEW}. The window of a key counts from the
 * first time that the key was sent. A key that was never sent has its whole window.
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

/**
 * True if a call that claimed the record must not send it now: another call may have claimed the
 * order meanwhile, or the window of its key is over.
 */
export function isLate(record: JournalRecord, timing: Timing): boolean {
  return !isBusy(record, timing.now) || !mayAttempt(record.firstSentAt, timing)
}

/**
 * True while any call may still send the order, under every clock that is wrong by at most
 * {@link PERSON_SKEW}: its claim was written at `updatedAt`, and is as long as the claim says.
 */
export function mayBeRunning(
  { busyUntil = 0, othersUntil = 0, updatedAt }: JournalRecord,
  now: number,
): boolean {
  const length = Math.max(busyUntil, othersUntil) - updatedAt
  return length > 0 && Math.abs(now - updatedAt) <= length + PERSON_SKEW
}

/** If true, the clock was set back, so it is unknown when the record's keys were first sent. */
export function isFromFuture(
  { firstSentAt = 0, firstKeySentAt = 0, updatedAt }: JournalRecord,
  now: number,
): boolean {
  const latest = Math.max(firstSentAt, firstKeySentAt)
  const known = Math.min(now, updatedAt) + CLOCK_SKEW
  return latest !== 0 && (latest > known || updatedAt > now + CLOCK_SKEW)
}

/**
 * Which key a refused order is sent under: its current key, its derived first key, or one that was
 * never sent.
 */
export type Start = 'same' | 'first' | 'next'

/**
 * Prefers a derived first key: a process that has lost the record derives the same key, and the
 * service charges each key only once. Returns undefined if no key may be sent: a caller's key never
 * changes.
 */
export function startOf(record: RecordContent, timing: Timing): Start | undefined {
  const { origin, firstSentAt, firstKeySentAt } = record
  const isOpen = mayAttempt(firstSentAt, timing)
  if (origin === 'caller') return isOpen ? 'same' : undefined
  const isLeft = origin === 'derived' && firstKeySentAt !== undefined
  if (isLeft && mayAttempt(firstKeySentAt, timing)) return 'first'
  return isOpen ? 'same' : 'next'
}
