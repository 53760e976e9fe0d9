import { isAnonymous } from './identity.ts'
import { isUnsent, type JournalRecord } from './record.ts'

/**
 * With which key an order is sent that was cleanly closed and is asked for again: the current one, the first one of all
 * (whose window is open, although later ones were sent since), or one that was never sent.
 */
export type Start = 'same' | 'first' | 'next'

/** What a call wants to buy, as far as its identity goes. */
export interface Wanted {
  readonly slot: string
  readonly fingerprint: string
  /** Idempotency-Key given by the caller. */
  readonly idempotencyKey?: string | undefined
}

/** Everything besides record and wish that the decision depends on. */
export interface Circumstances {
  /** Wall clock, milliseconds since 1970. */
  readonly now: number
  readonly safeRetryWindow: number
  /** Milliseconds that the call may take; subtracted from the window, because it may send until its very end. */
  readonly totalTimeout: number
  /** True if the current API key is the one that sent the record's key, or if that does not matter. */
  readonly sameApiKey: boolean
  /** True once this call has waited long enough for the call that claimed the record: that one may be dead. */
  readonly outwaited?: boolean
}

/** What a call does with the record that it found. */
export type Action =
  /** Claim the record and send the stored key and body. */
  | { readonly action: 'continue' }
  /** Claim the closed record anew, with this call's body, under one of its keys or the caller's; `fresh`: as another order. */
  | { readonly action: 'reopen'; readonly key: Start | 'given' | 'fresh' }
  /** The service may forget the caller's key at any moment, and no other may take its place. */
  | { readonly action: 'spent' }
  | { readonly action: 'return' }
  /** The order exists but was never readable: repeat the request to read it, or look it up by its id. */
  | { readonly action: 'read'; readonly by: 'replay' | 'id' }
  | { readonly action: 'wait' }
  | { readonly action: 'duplicate' }
  | { readonly action: 'conflict'; readonly over: 'payload' | 'key' }
  | { readonly action: 'unresolved'; readonly because: 'window' | 'age' | 'api_key' | 'unreadable' }

/** How long an anonymous order may be left alone and still count as the same one when it is asked for again. */
export const ADOPTION_WINDOW: number = 15 * 60 * 1000

/** How far two machines' clocks may differ before a record from the future counts as a clock that went back. */
export const CLOCK_SKEW: number = 30 * 1000

/** What decides whether a key may be sent again. */
type Timing = Pick<Circumstances, 'now' | 'safeRetryWindow' | 'totalTimeout'>

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

/** What `create()` does with the record that it finds in its slot; docs/guide/concepts.md has it as a table. */
export function decideAction(record: JournalRecord, wanted: Wanted, circumstances: Circumstances): Action {
  const anonymous = isAnonymous(wanted.slot)
  const otherKey = wanted.idempotencyKey !== undefined && wanted.idempotencyKey !== record.key
  const fits = inWindow(record, circumstances)
  const busy = circumstances.outwaited !== true && isBusy(record, circumstances.now)

  if (record.state === 'rejected') {
    if (anonymous) return { action: 'reopen', key: 'fresh' }
    if (!otherKey) {
      const key = startOf(record, circumstances)
      if (key !== undefined) return { action: 'reopen', key }
      return record.rejection?.kind === 'conflict' || record.foreign
        ? { action: 'unresolved', because: 'window' }
        : { action: 'spent' }
    }
    // Its window began when it was first sent, and nobody remembers when that was.
    if (wanted.idempotencyKey !== undefined && record.left?.includes(wanted.idempotencyKey))
      return { action: 'spent' }
    // A second key goes on the wire only where the service itself refused everything under the first one.
    const provenRefused = record.attempts === 0 || (record.rejection?.kind === 'refused' && !record.foreign)
    return provenRefused || record.rejection?.kind === 'abandoned'
      ? { action: 'reopen', key: 'given' }
      : { action: 'conflict', over: 'key' }
  }
  if (record.fingerprint !== wanted.fingerprint) return { action: 'conflict', over: 'payload' }
  if (otherKey) return { action: 'conflict', over: 'key' }

  if (record.state === 'created') {
    // An order without a name is remembered until the next one like it takes its row over.
    if (record.readable) return anonymous ? { action: 'reopen', key: 'fresh' } : { action: 'return' }
    if (busy) return { action: 'wait' }
    if (fits && circumstances.sameApiKey && record.body !== undefined) return { action: 'read', by: 'replay' }
    return record.order?.id === undefined
      ? { action: 'unresolved', because: 'unreadable' }
      : { action: 'read', by: 'id' }
  }

  if (busy) return { action: anonymous ? 'duplicate' : 'wait' }
  if (!fits) return { action: 'unresolved', because: 'window' }
  if (!circumstances.sameApiKey) return { action: 'unresolved', because: 'api_key' }
  const untouched = circumstances.now - record.updatedAt
  if (anonymous && (untouched < -CLOCK_SKEW || untouched > ADOPTION_WINDOW))
    return { action: 'unresolved', because: 'age' }
  return { action: 'continue' }
}
