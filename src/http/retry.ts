/**
 * Why a call goes on, which decides how long it waits and what it counts against:
 * - `now`: at once, for the first retry after a socket closed under the request (a stale keep-alive connection);
 * - `backoff`: after a random delay that doubles;
 * - `refresh`: at once, because a 401 may only mean that the API key was rotated and a fresh one can be had;
 * - `poll`: the service is still working on this key; waiting for it is not a retry;
 * - `replay`: the answer was a success that could not be read; the same key is sent again to read it.
 */
export type Pace = 'now' | 'backoff' | 'refresh' | 'poll' | 'replay'

/** How often a call has gone on so far, by kind. */
export interface Counts {
  /** Retries with pace `now`, `backoff` or `refresh`; these count against `maxRetries`. */
  readonly retries: number
  readonly polls: number
  readonly replays: number
}

export const noCounts: Counts = { retries: 0, polls: 0, replays: 0 }

/** What the policy decides: wait that many milliseconds and send again, or stop and why. */
export type Decision =
  | { readonly wait: number; readonly counts: Counts }
  /** `exhausted`: no further try is allowed; `deadline`: one is, but it would begin after the call's deadline. */
  | { readonly stop: 'exhausted' | 'deadline' }

/** Everything the decision depends on. */
export interface Situation {
  readonly pace: Pace
  readonly counts: Counts
  /** Most retries; zero means none. Polls and replays are not retries. */
  readonly maxRetries: number
  /** Milliseconds the service asked to wait: a lower bound. */
  readonly retryAfter?: number | undefined
  /** Milliseconds until the call's deadline. */
  readonly remaining: number
  /** From 0 up to, not including, 1. */
  readonly random: number
}

/** Most times that a success which could not be read is asked for again, whatever `maxRetries` says. */
export const MAX_REPLAYS = 2

const BACKOFF_BASE = 250
const BACKOFF_CAP = 10_000
const POLL_BASE = 500
const POLL_CAP = 5_000

/** The one retry policy of all calls (design: full jitter, 250 ms doubling up to 10 s; polls from 0.5 s to 5 s). */
export function decide(situation: Situation): Decision {
  const { pace, counts, maxRetries, retryAfter, remaining, random } = situation
  let wait: number
  let next: Counts
  if (pace === 'poll') {
    // Equal jitter: never sooner than half the step, because the earlier request really is still running.
    const step = Math.min(POLL_CAP, POLL_BASE * 2 ** counts.polls)
    wait = counts.polls === 0 ? POLL_BASE : step / 2 + (random * step) / 2
    next = { ...counts, polls: counts.polls + 1 }
  } else if (pace === 'replay') {
    if (counts.replays >= MAX_REPLAYS) return { stop: 'exhausted' }
    wait = counts.replays === 0 ? 0 : random * BACKOFF_BASE
    next = { ...counts, replays: counts.replays + 1 }
  } else {
    if (counts.retries >= maxRetries) return { stop: 'exhausted' }
    const atOnce = pace === 'refresh' || (pace === 'now' && counts.retries === 0)
    wait = atOnce ? 0 : random * Math.min(BACKOFF_CAP, BACKOFF_BASE * 2 ** counts.retries)
    next = { ...counts, retries: counts.retries + 1 }
  }
  if (retryAfter !== undefined) wait = Math.max(wait, retryAfter)
  // Sleeping less than told would be a second overload; sleeping past the deadline would hide the real answer.
  return wait >= remaining ? { stop: 'deadline' } : { wait, counts: next }
}

/** The two forms of an HTTP date that name their zone, and the old one (asctime) that does not. */
const ZONED_DATE =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME_DATE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * Milliseconds that a `Retry-After` header asks for (RFC 9110 section 10.2.3: seconds or an HTTP date), or undefined if
 * it says nothing usable: negative, malformed or empty. A fraction is no mistake to be punished by calling too early.
 */
export function parseRetryAfter(header: string | null, now: number): number | undefined {
  const text = header?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Math.ceil(Number(text) * 1000), Number.MAX_SAFE_INTEGER)
  const date = ASCTIME_DATE.test(text) ? `${text} GMT` : text
  if (date === text && !ZONED_DATE.test(text)) return undefined
  const at = Date.parse(date)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
