/**
 * Checks of a record's times, and the conditions that the rules use. A condition is true if the
 * record is as the condition's name describes.
 */
import { isAnonymous } from './identity.ts'
import type { Intent } from './intent.ts'
import { isPending, isUnsent, type JournalRecord } from './record.ts'

/**
 * The key with which a cleanly closed order is ordered again. `same`: the current key. `first`: the
 * first key, whose window is still open although later keys were sent. `next`: a key that was never
 * sent.
 */
export type Start = 'same' | 'first' | 'next'

/**
 * For this many milliseconds after the last write of an anonymous order, an identical call
 * continues that order.
 */
export const ADOPTION_WINDOW: number = 15 * 60 * 1000

/**
 * Milliseconds by which two machines' clocks may differ. If a record's times are further in the
 * future, the clock went back.
 */
export const CLOCK_SKEW: number = 30 * 1000

/** The facts that decide whether a key may be sent again. */
export interface Timing {
  /** Wall clock, milliseconds since 1970. */
  readonly now: number
  readonly safeRetryWindow: number
  /**
   * Milliseconds that sending may take. Subtracted from the window, because a call may send until
   * its very end.
   */
  readonly totalTimeout: number
}

/**
 * True if a call that starts now ends while the service still remembers a key that was first sent
 * at `sentAt`.
 */
export function isRemembered(sentAt: number, { now, totalTimeout, safeRetryWindow }: Timing): boolean {
  const since = now - sentAt
  // A small negative age is clock skew. Below that, the clock went back: the real age is unknown.
  return since >= -CLOCK_SKEW && since + totalTimeout <= safeRetryWindow
}

/**
 * The key for an order whose requests were all cleanly refused, or never processed. Undefined if no
 * key may be sent. The first key is preferred: a process that has lost the record derives the same
 * key, and the service charges each key only once.
 */
export function startOf(record: JournalRecord, timing: Timing): Start | undefined {
  const { keyOrigin, generation, firstSentAt, first, createdAt } = record
  const isOpen = firstSentAt === undefined || isRemembered(firstSentAt, timing)
  // No other key may replace this key: after a conflict, something may have been bought under this
  // key, and a caller's key has no successor.
  if (record.foreign || record.rejection?.kind === 'conflict' || keyOrigin === 'caller')
    return isOpen ? 'same' : undefined
  const isFirst = generation === 0 || keyOrigin === 'random'
  if (isFirst) return isOpen ? 'same' : 'next'
  if (isRemembered(first?.sentAt ?? createdAt, timing)) return 'first'
  return firstSentAt === undefined ? 'same' : 'next'
}

/**
 * True while the key may be sent again safely: a call that starts now ends while the service still
 * remembers the key.
 */
export function inWindow(record: JournalRecord, timing: Timing): boolean {
  return isUnsent(record)
    ? startOf(record, timing) !== undefined
    : isRemembered(record.firstSentAt ?? record.createdAt, timing)
}

/**
 * True if the record of an order that was apparently never sent is so old that it may come from a
 * restored backup. The order may have been sent after the backup, under a key that the service has
 * forgotten by now.
 */
export function mayBeRestored(record: JournalRecord, timing: Timing): boolean {
  return isUnsent(record) && !isRemembered(record.updatedAt, timing)
}

/**
 * True if the record's times are in the future. The clock went back, so it is unknown when the
 * record's keys were first sent.
 */
export function isFromFuture(
  { firstSentAt, first, updatedAt }: Pick<JournalRecord, 'firstSentAt' | 'first' | 'updatedAt'>,
  now: number,
): boolean {
  const latest = Math.max(firstSentAt ?? 0, first?.sentAt ?? 0)
  const known = Math.min(now, updatedAt) + CLOCK_SKEW
  return latest !== 0 && (latest > known || updatedAt > now + CLOCK_SKEW)
}

/** True if the call that claimed the record may still be running. */
export function isBusy(record: Pick<JournalRecord, 'updatedAt' | 'busyUntil'>, now: number): boolean {
  // Ignore a claim from the future: the clock went back, and the record would look busy until the
  // clock catches up.
  return now < (record.busyUntil ?? 0) && now >= record.updatedAt - CLOCK_SKEW
}

/** The identity of the order that a call wants to buy. */
export type Wanted = Pick<Intent, 'slot' | 'fingerprint' | 'idempotencyKey' | 'misfit'>

/** Everything that a rule depends on besides the record and the command. */
export interface Facts extends Timing {
  /** The order that `create` or `enqueue` was called with. Undefined for other commands. */
  readonly wanted: Wanted | undefined
  /** True if the current API key sent the record's key, or if that does not matter. */
  readonly sameApiKey: boolean
  /** True if the record's row, payload and key still belong together. */
  readonly isGenuine: (record: JournalRecord) => boolean
  /** True if a call of this process is working on the order. */
  readonly isLive: boolean
  /**
   * True if this call may ignore the claim of another process, because this call has waited long
   * enough or may take over.
   */
  readonly outwaited: boolean
  /** Key of the unfinished anonymous order that this call found at its start and continues. */
  readonly asked: string | undefined
  /** True once the service's whole order list was read and the order was not in it. */
  readonly isNotListed: boolean
  /** True to repeat requests that recovery would leave to a person. */
  readonly replaysAll: boolean
  /** When the person decided about the order, in milliseconds since 1970. */
  readonly decidedAt: number
  /** Id of the order that the person found at the service. */
  readonly orderId: string | undefined
}

/** Defaults of the facts that a command does not set. */
export const PLAIN_FACTS: Omit<Facts, keyof Timing> = {
  wanted: undefined,
  sameApiKey: true,
  isGenuine: () => true,
  isLive: false,
  outwaited: false,
  asked: undefined,
  isNotListed: false,
  replaysAll: false,
  decidedAt: 0,
  orderId: undefined,
}

/** A test of a record and the facts, with the same meaning in every phase. */
export type Condition<Known> = (record: Known, facts: Facts) => boolean

export const misfit: Condition<unknown> = (_record, { wanted }) => wanted?.misfit !== undefined

export const otherPayload: Condition<JournalRecord> = ({ fingerprint }, { wanted }) =>
  fingerprint !== wanted?.fingerprint

export const otherKey: Condition<JournalRecord> = ({ key }, { wanted }) =>
  wanted?.idempotencyKey !== undefined && wanted.idempotencyKey !== key

/**
 * The call passes a key that the order no longer uses. The record does not show when that key was
 * first sent, so the key's window is unknown.
 */
export const keyLeftBefore: Condition<JournalRecord> = ({ left }, { wanted }) =>
  wanted?.idempotencyKey !== undefined && left?.includes(wanted.idempotencyKey) === true

/**
 * Another key is safe only if the service itself refused everything that was sent under the
 * record's key.
 */
export const otherKeyUnproven: Condition<JournalRecord> = (record, facts) => {
  const { attempts, rejection, foreign } = record
  const provenRefused = attempts === 0 || (rejection?.kind === 'refused' && !foreign)
  return otherKey(record, facts) && !provenRefused && rejection?.kind !== 'abandoned'
}

/** No key may be sent: the window of the only allowed key is over. */
export const keyTooOld: Condition<JournalRecord> = (record, facts) =>
  isSameAgain(record, facts) && startOf(record, facts) === undefined

/** {@link keyTooOld} after a conflict: something may have been bought under this key. */
export const foreignKeyTooOld: Condition<JournalRecord> = (record, facts) =>
  keyTooOld(record, facts) && (record.foreign || record.rejection?.kind === 'conflict')

export const otherApiKey: Condition<JournalRecord> = (_record, { sameApiKey }) => !sameApiKey

export const nameless: Condition<JournalRecord> = ({ slot }) => isAnonymous(slot)
export const named: Condition<JournalRecord> = ({ slot }) => !isAnonymous(slot)

/**
 * Another call is placing an identical anonymous order, and this call may be for a different one.
 * If the other call only reads an existing order, this call waits for it.
 */
export const namelessTwin: Condition<JournalRecord> = ({ slot, state }) =>
  isAnonymous(slot) && state === 'open'

/** The anonymous order was last written so long ago that this call may be for another order. */
export const namelessAndOld: Condition<JournalRecord> = ({ slot, updatedAt }, { now }) => {
  const untouched = now - updatedAt
  return isAnonymous(slot) && (untouched < -CLOCK_SKEW || untouched > ADOPTION_WINDOW)
}

/** The row of this call's anonymous order now holds a later, identical order. */
export const replaced: Condition<JournalRecord> = ({ slot, key }, { asked }) =>
  asked !== undefined && isAnonymous(slot) && key !== asked

/**
 * The order that this call continues was bought after this call began: a new order would be a
 * second charge.
 */
export const boughtMeanwhile: Condition<JournalRecord> = ({ key }, { asked }) => asked === key

export const damaged: Condition<JournalRecord> = (record, { isGenuine }) => !isGenuine(record)
export const damagedAgain: Condition<JournalRecord> = (record, facts) =>
  isSameAgain(record, facts) && damaged(record, facts)

export const startsFirst: Condition<JournalRecord> = (record, facts) => startOf(record, facts) === 'first'
export const startsNext: Condition<JournalRecord> = (record, facts) => startOf(record, facts) === 'next'

/**
 * The record looks unsent, but may come from a backup. The order may have been sent after that
 * backup.
 */
export const maybeRestored: Condition<JournalRecord> = (record, facts) =>
  record.externalOrderId !== undefined && !facts.isNotListed && mayBeRestored(record, facts)

export const held: Condition<JournalRecord> = ({ hold }) => hold !== undefined
export const aborted: Condition<JournalRecord> = ({ hold }) => hold === 'aborted'
export const refusedAfterDoubt: Condition<JournalRecord> = ({ hold }) => hold === 'refused'
export const replaysAll: Condition<JournalRecord> = (_record, facts) => facts.replaysAll

export const bodyGone: Condition<JournalRecord> = ({ body }) => body === undefined
export const pastWindow: Condition<JournalRecord> = (record, facts) => !inWindow(record, facts)
export const notRepeatable: Condition<JournalRecord> = (record, facts) =>
  pastWindow(record, facts) || otherApiKey(record, facts) || bodyGone(record, facts)
export const neitherRepeatableNorNamed: Condition<JournalRecord> = (record, facts) =>
  notRepeatable(record, facts) && record.order?.id === undefined

export const live: Condition<JournalRecord> = (_record, { isLive }) => isLive
export const settled: Condition<JournalRecord> = (record) => !isPending(record)
export const unsettled: Condition<JournalRecord> = (record) => isPending(record)

/**
 * A call wrote the record after the person decided to abandon the order. That call may have sent
 * the order without the person knowing.
 */
export const changedSince: Condition<JournalRecord> = ({ updatedAt }, { decidedAt, now }) =>
  // If the clock went back, assume a change. Ignore an `updatedAt` far in the future: it was
  // written earlier, by a wrong clock.
  decidedAt > now || (updatedAt > decidedAt && updatedAt <= now + CLOCK_SKEW)

export const otherOrder: Condition<JournalRecord> = ({ order }, { orderId }) =>
  order?.id !== undefined && order.id !== orderId

/** True if a call places a named order again without a different key. */
function isSameAgain(record: JournalRecord, facts: Facts): boolean {
  return !isAnonymous(record.slot) && !otherKey(record, facts)
}
