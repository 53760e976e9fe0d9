/**
 * What may be so whatever the phase of a record: what the clocks say of it, and the conditions that the cells of the rules are
 * made of. Each is named after what it finds.
 */
import { isAnonymous } from './identity.ts'
import type { Intent } from './intent.ts'
import { isPending, isUnsent, type JournalRecord } from './record.ts'

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

/** What a call wants to buy, as far as its identity goes. */
export type Wanted = Pick<Intent, 'slot' | 'fingerprint' | 'idempotencyKey' | 'misfit'>

/** Everything besides record and command that a rule depends on. */
export interface Facts extends Timing {
  /** What `create` and `enqueue` ask for. */
  readonly wanted: Wanted | undefined
  /** True if the current API key is the one that sent the record's key, or if that does not matter. */
  readonly sameApiKey: boolean
  /** True if the record still names itself as it did when it was written. */
  readonly isGenuine: (record: JournalRecord) => boolean
  /** True if a call of this process works on the order. */
  readonly isLive: boolean
  /** True if the claim of another process no longer counts: this call has waited long enough, or is told to take over. */
  readonly outwaited: boolean
  /** Key of the order without a name that was in doubt when this call began: the call asks for that one again. */
  readonly asked: string | undefined
  /** True once the service's whole list was read and does not have the order. */
  readonly isNotListed: boolean
  /** True to repeat also what recovery would leave to a person. */
  readonly replaysAll: boolean
  /** When the person decided, milliseconds since 1970. */
  readonly decidedAt: number
  /** Id of the order that the person found. */
  readonly orderId: string | undefined
}

/** The facts of a command for which nothing is out of the ordinary. */
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

/** What is orthogonal to a phase. */
export type Condition<Known> = (record: Known, facts: Facts) => boolean

export const misfit: Condition<unknown> = (_record, { wanted }) => wanted?.misfit !== undefined

export const otherPayload: Condition<JournalRecord> = ({ fingerprint }, { wanted }) =>
  fingerprint !== wanted?.fingerprint

export const otherKey: Condition<JournalRecord> = ({ key }, { wanted }) =>
  wanted?.idempotencyKey !== undefined && wanted.idempotencyKey !== key

/** The window of a key that was left began when it was first sent, and nobody remembers when that was. */
export const keyLeftBefore: Condition<JournalRecord> = ({ left }, { wanted }) =>
  wanted?.idempotencyKey !== undefined && left?.includes(wanted.idempotencyKey) === true

/** A second key goes on the wire only where the service itself refused everything under the first one. */
export const otherKeyUnproven: Condition<JournalRecord> = (record, facts) => {
  const { attempts, rejection, foreign } = record
  const provenRefused = attempts === 0 || (rejection?.kind === 'refused' && !foreign)
  return otherKey(record, facts) && !provenRefused && rejection?.kind !== 'abandoned'
}

/** None of its keys may be sent: the caller's has no other after it. */
export const keyTooOld: Condition<JournalRecord> = (record, facts) =>
  isSameAgain(record, facts) && startOf(record, facts) === undefined

/** What a conflict leaves may have been bought under this very key. */
export const foreignKeyTooOld: Condition<JournalRecord> = (record, facts) =>
  keyTooOld(record, facts) && (record.foreign || record.rejection?.kind === 'conflict')

export const otherApiKey: Condition<JournalRecord> = (_record, { sameApiKey }) => !sameApiKey

export const nameless: Condition<JournalRecord> = ({ slot }) => isAnonymous(slot)
export const named: Condition<JournalRecord> = ({ slot }) => !isAnonymous(slot)

/** A call like it is at work. One that reads an order that exists is waited for: there is nothing to tell apart. */
export const namelessTwin: Condition<JournalRecord> = ({ slot, state }) =>
  isAnonymous(slot) && state === 'open'

/** Left alone for so long that this call may mean another order. */
export const namelessAndOld: Condition<JournalRecord> = ({ slot, updatedAt }, { now }) => {
  const untouched = now - updatedAt
  return isAnonymous(slot) && (untouched < -CLOCK_SKEW || untouched > ADOPTION_WINDOW)
}

/** Its row has the next one like it by now. */
export const replaced: Condition<JournalRecord> = ({ slot, key }, { asked }) =>
  asked !== undefined && isAnonymous(slot) && key !== asked

/** Another order in its place would be a second charge. */
export const boughtMeanwhile: Condition<JournalRecord> = ({ key }, { asked }) => asked === key

export const damaged: Condition<JournalRecord> = (record, { isGenuine }) => !isGenuine(record)
export const damagedAgain: Condition<JournalRecord> = (record, facts) =>
  isSameAgain(record, facts) && damaged(record, facts)

export const startsFirst: Condition<JournalRecord> = (record, facts) => startOf(record, facts) === 'first'
export const startsNext: Condition<JournalRecord> = (record, facts) => startOf(record, facts) === 'next'

/** A store that was restored from a backup looks just so, and the order may have been sent since. */
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

/** A call wrote the record after a person decided to give it up: it may have sent the order, which that person has not seen. */
export const changedSince: Condition<JournalRecord> = ({ updatedAt }, { decidedAt, now }) =>
  // Once the clock went back, nobody can tell. What is far ahead was written before, by a clock that is wrong.
  decidedAt > now || (updatedAt > decidedAt && updatedAt <= now + CLOCK_SKEW)

export const otherOrder: Condition<JournalRecord> = ({ order }, { orderId }) =>
  order?.id !== undefined && order.id !== orderId

/** True for a call that asks for a closed order once more, under a key that the order has had or will have by itself. */
function isSameAgain(record: JournalRecord, facts: Facts): boolean {
  return !isAnonymous(record.slot) && !otherKey(record, facts)
}
