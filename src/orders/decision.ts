import { isUnsent, type JournalRecord } from './record.ts'

/**
 * With which key an order is sent that was cleanly closed and is asked for again: the current one, the first one of all
 * (whose window is open, although later ones were sent since), or one that was never sent.
 */
export type Start = 'same' | 'first' | 'next'

/** How long an anonymous order may be left alone and still count as the same one when it is asked for again. */
export const ADOPTION_WINDOW: number = 15 * 60 * 1000

/** How far two machines' clocks may differ before a record from the future counts as a clock that went back. */
export const CLOCK_SKEW: number = 30 * 1000

/** What decides whether a key may be sent again. */
export interface Timing {
  /** Wall clock, milliseconds since 1970. */
  readonly now: number
  readonly safeRetryWindow: number
  /** Milliseconds that sending may take; subtracted from the window, because a call may send until its very end. */
  readonly totalTimeout: number
}

/** True while the service still remembers a key that was first sent at that time, with room for a whole call. */
export function isRemembered(sentAt: number, { now, totalTimeout, safeRetryWindow }: Timing): boolean {
  const since = now - sentAt
  // A negative age means that the clock went back, so the real age is not known and may be anything.
  return since >= -CLOCK_SKEW && since + totalTimeout <= safeRetryWindow
}

/**
 * The key with which an order is sent whose requests so far were all cleanly refused, or never looked at; undefined if
 * there is none that may be sent. The first key comes before any other, because a store that has forgotten everything can
 * compute it: what is charged under it is charged once.
 */
export function startOf(record: JournalRecord, timing: Timing): Start | undefined {
  const { keyOrigin, generation, firstSentAt, first, createdAt } = record
  const isOpen = firstSentAt === undefined || isRemembered(firstSentAt, timing)
  // What a conflict leaves may have been bought under this very key, and a caller's key has no other after it.
  if (record.foreign || record.rejection?.kind === 'conflict' || keyOrigin === 'caller')
    return isOpen ? 'same' : undefined
  const isFirst = generation === 0 || keyOrigin === 'random'
  if (isFirst) return isOpen ? 'same' : 'next'
  if (isRemembered(first?.sentAt ?? createdAt, timing)) return 'first'
  return firstSentAt === undefined ? 'same' : 'next'
}

/** True while repeating the key is safe: the service still remembers it, with room for a whole call. */
export function inWindow(record: JournalRecord, timing: Timing): boolean {
  return isUnsent(record)
    ? startOf(record, timing) !== undefined
    : isRemembered(record.firstSentAt ?? record.createdAt, timing)
}

/**
 * True if a record that looks never sent is so old that a store restored from a backup may look just so: it may have been
 * sent since, under a key that the service has forgotten.
 */
export function mayBeRestored(record: JournalRecord, timing: Timing): boolean {
  return isUnsent(record) && !isRemembered(record.updatedAt, timing)
}

/**
 * True if the record comes from the future: the clock went back since, so nobody knows when its keys were first sent.
 */
export function isFromFuture(
  { firstSentAt, first, updatedAt }: Pick<JournalRecord, 'firstSentAt' | 'first' | 'updatedAt'>,
  now: number,
): boolean {
  const latest = Math.max(firstSentAt ?? 0, first?.sentAt ?? 0)
  const known = Math.min(now, updatedAt) + CLOCK_SKEW
  return latest !== 0 && (latest > known || updatedAt > now + CLOCK_SKEW)
}

/** True if a call that claimed the record may still be at work. */
export function isBusy(record: Pick<JournalRecord, 'updatedAt' | 'busyUntil'>, now: number): boolean {
  // A claim from the future means that the clock went back; it would look busy for as long as the clock is behind.
  return now < (record.busyUntil ?? 0) && now >= record.updatedAt - CLOCK_SKEW
}
