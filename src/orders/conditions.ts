/** Checks of a record's times, and the conditions of the table in rules.ts. */
import { isAnonymous } from './identity.ts'
import type { Intent } from './intent.ts'
import { isPending, type JournalRecord } from './record.ts'

/**
 * The key under which a rejected order is sent: its current key, its first key, or a key that was
 * never sent.
 */
export type Start = 'same' | 'first' | 'next'

/**
 * Milliseconds since the last write of an anonymous order. Within this time, an identical call
 * continues the order. A later call may want a second order.
 */
export const ADOPTION_WINDOW: number = 15 * 60 * 1000

/**
 * Milliseconds by which the clocks of two machines may differ. If a time is further in the future,
 * the clock was set back.
 */
export const CLOCK_SKEW: number = 30 * 1000

/** Milliseconds by which a clock may be wrong when a person abandons an order. */
export const CLOCK_ERROR: number = 5 * 60 * 1000

export interface Timing {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly safeRetryWindow: number
  /**
   * Milliseconds for which a call may send. The service must remember the key until the last send.
   */
  readonly totalTimeout: number
}

export function isRemembered(sentAt: number, { now, totalTimeout, safeRetryWindow }: Timing): boolean {
  const since = now - sentAt
  // A small negative age is clock skew. Below that, the clock was set back: the age is unknown.
  return since >= -CLOCK_SKEW && since + totalTimeout <= safeRetryWindow
}

/**
 * Chooses the key of a rejected order, or undefined if no key may be sent. Prefers a
 * derived first key: a process that has lost the record derives the same key, and the service
 * charges each key only once.
 */
export function startOf(record: JournalRecord, timing: Timing): Start | undefined {
  const { keyOrigin, generation, firstSentAt, first, createdAt } = record
  const isOpen = firstSentAt === undefined || isRemembered(firstSentAt, timing)
  // Do not change this key. After a conflict, something may have been bought under it. A caller's
  // key never changes.
  if (record.foreign || record.rejection?.kind === 'conflict' || keyOrigin === 'caller')
    return isOpen ? 'same' : undefined
  const isFirst = generation === 0 || keyOrigin === 'random'
  if (isFirst) return isOpen ? 'same' : 'next'
  if (isRemembered(first?.sentAt ?? createdAt, timing)) return 'first'
  return firstSentAt === undefined ? 'same' : 'next'
}

export function inWindow(record: JournalRecord, timing: Timing): boolean {
  return isRemembered(record.firstSentAt ?? record.createdAt, timing)
}

/** If true, the clock was set back, so it is unknown when the record's keys were first sent. */
export function isFromFuture(
  { firstSentAt, first, updatedAt }: Pick<JournalRecord, 'firstSentAt' | 'first' | 'updatedAt'>,
  now: number,
): boolean {
  const latest = Math.max(firstSentAt ?? 0, first?.sentAt ?? 0)
  const known = Math.min(now, updatedAt) + CLOCK_SKEW
  return latest !== 0 && (latest > known || updatedAt > now + CLOCK_SKEW)
}

export function isBusy(
  record: { readonly updatedAt: number; readonly busyUntil?: number | undefined },
  now: number,
): boolean {
  // Ignore a claim from the future: the clock was set back, and the record would look busy until
  // the clock catches up.
  return now < (record.busyUntil ?? 0) && now >= record.updatedAt - CLOCK_SKEW
}

export type Wanted = Pick<Intent, 'slot' | 'fingerprint' | 'idempotencyKey'>

export interface Facts extends Timing {
  /** Undefined for commands other than `create`. */
  readonly wanted: Wanted | undefined
  /** True if the current API key may send the record's key. */
  readonly sameApiKey: boolean
  readonly isGenuine: (record: JournalRecord) => boolean
  /** True if a call of this process is working on the order. */
  readonly isLive: boolean
  /** True if this call may ignore the claim of another process. */
  readonly outwaited: boolean
  /** Key of the unfinished anonymous order that this call found at its start and continues. */
  readonly asked: string | undefined
  /** When a person called `resolve()`, in milliseconds since 1970. */
  readonly decidedAt: number
  /** The order id that was passed to `resolve()`. */
  readonly orderId: string | undefined
}

export const PLAIN_FACTS: Omit<Facts, keyof Timing> = {
  wanted: undefined,
  sameApiKey: true,
  isGenuine: () => true,
  isLive: false,
  outwaited: false,
  asked: undefined,
  decidedAt: 0,
  orderId: undefined,
}

export type Condition<Known> = (record: Known, facts: Facts) => boolean

export const otherPayload: Condition<JournalRecord> = ({ fingerprint }, { wanted }) =>
  // An adopted order has no payload of ours.
  fingerprint !== '' && fingerprint !== wanted?.fingerprint

export const otherKey: Condition<JournalRecord> = ({ key }, { wanted }) =>
  wanted?.idempotencyKey !== undefined && wanted.idempotencyKey !== key

export const keyTooOld: Condition<JournalRecord> = (record, facts) => startOf(record, facts) === undefined

/** A person must settle the conflict first: something may have been bought under the key. */
export const conflictTooOld: Condition<JournalRecord> = (record, facts) =>
  keyTooOld(record, facts) && (record.foreign || record.rejection?.kind === 'conflict')

export const otherApiKey: Condition<JournalRecord> = (_record, { sameApiKey }) => !sameApiKey

export const nameless: Condition<JournalRecord> = ({ slot }) => isAnonymous(slot)
export const named: Condition<JournalRecord> = ({ slot }) => !isAnonymous(slot)

/**
 * Another call is placing an identical anonymous order, and only the caller knows whether both
 * calls mean one order. False once the order exists, because the other call then only reads it.
 */
export const namelessTwin: Condition<JournalRecord> = ({ slot, state }) =>
  isAnonymous(slot) && state === 'open'

export const namelessAndOld: Condition<JournalRecord> = ({ slot, updatedAt }, { now }) => {
  const untouched = now - updatedAt
  return isAnonymous(slot) && (untouched < -CLOCK_SKEW || untouched > ADOPTION_WINDOW)
}

/** The row of this call's anonymous order now contains a later, identical order. */
export const replaced: Condition<JournalRecord> = ({ slot, key }, { asked }) =>
  asked !== undefined && isAnonymous(slot) && key !== asked

/** Another call bought this call's order in the meantime: a new order would be a second charge. */
export const boughtMeanwhile: Condition<JournalRecord> = ({ key }, { asked }) => asked === key

export const damaged: Condition<JournalRecord> = (record, { isGenuine }) => !isGenuine(record)

export const startsFirst: Condition<JournalRecord> = (record, facts) => startOf(record, facts) === 'first'
export const startsNext: Condition<JournalRecord> = (record, facts) => startOf(record, facts) === 'next'

export const aborted: Condition<JournalRecord> = ({ hold }) => hold === 'aborted'
export const refusedAfterDoubt: Condition<JournalRecord> = ({ hold }) => hold === 'refused'

export const bodyGone: Condition<JournalRecord> = ({ body }) => body === undefined
export const pastWindow: Condition<JournalRecord> = (record, facts) => !inWindow(record, facts)
export const notRepeatable: Condition<JournalRecord> = (record, facts) =>
  pastWindow(record, facts) || otherApiKey(record, facts) || bodyGone(record, facts)
export const neitherRepeatableNorNamed: Condition<JournalRecord> = (record, facts) =>
  notRepeatable(record, facts) && record.order?.id === undefined

export const live: Condition<JournalRecord> = (_record, { isLive }) => isLive
export const settled: Condition<JournalRecord> = (record) => !isPending(record)
export const unsettled: Condition<JournalRecord> = (record) => isPending(record)

/** A call wrote the record after a person called `resolve()`, and may have sent the order. */
export const changedSince: Condition<JournalRecord> = ({ updatedAt }, { decidedAt, now }) =>
  // If the clock was set back, assume a change. Ignore an `updatedAt` far in the future: it comes
  // from a wrong clock.
  decidedAt > now || (updatedAt > decidedAt && updatedAt <= now + CLOCK_SKEW)

/**
 * A call may still send the order under its old key, if a clock is wrong by up to five minutes. After
 * the order was abandoned, the next call uses another key, so both could be charged.
 */
export const mayStillRun: Condition<JournalRecord> = (
  { busyUntil = 0, othersUntil = 0, updatedAt },
  { now },
) => {
  const until = Math.max(busyUntil, othersUntil)
  return until !== 0 && Math.abs(now - updatedAt) <= until - updatedAt + CLOCK_ERROR
}

export const otherOrder: Condition<JournalRecord> = ({ order }, { orderId }) =>
  order?.id !== undefined && order.id !== orderId
