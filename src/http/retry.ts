/**
 * Why a call repeats its request. The reason decides how long the call waits and which limit
 * applies:
 * - `now`: the connection was lost, often a stale keep-alive connection. The call's first retry is
 *   immediate, and a later retry waits as for `backoff`;
 * - `backoff`: after exponential backoff with full jitter;
 * - `refresh`: immediately, because a 401 may mean that the API key was rotated and a fresh one is
 *   available;
 * - `poll`: the service is still processing an earlier request with this key; a poll does not count
 *   as a retry;
 * - `replay`: a successful response could not be read, so the request is repeated with the same key
 *   to read the response.
 */
export type Pace = 'now' | 'backoff' | 'refresh' | 'poll' | 'replay'

export interface Counts {
  /** Retries with pace `now`, `backoff` or `refresh`, which count against `maxRetries`. */
  readonly retries: number
  readonly polls: number
  readonly replays: number
}

export const noCounts: Counts = { retries: 0, polls: 0, replays: 0 }

export type Decision =
  /** Repeat the request after `wait` milliseconds. */
  | { readonly wait: number; readonly counts: Counts }
  /** `stopped`: no retry is left. `deadline`: the next attempt would begin after the deadline. */
  | { readonly stop: 'stopped' | 'deadline' }

export interface Situation {
  readonly pace: Pace
  readonly counts: Counts
  readonly maxRetries: number
  /** Minimum wait in milliseconds that the service asked for in `Retry-After`. */
  readonly retryAfter?: number | undefined
  /** Milliseconds until the call's deadline. */
  readonly remaining: number
  /** A random number for the jitter, at least 0 and below 1. */
  readonly random: number
}

/** `maxRetries` does not limit replays: the order exists, and a replay only reads it. */
export const MAX_REPLAYS = 2

const BACKOFF_BASE = 250
const BACKOFF_CAP = 10_000
const POLL_BASE = 500
const POLL_CAP = 5_000

/**
 * Retries use exponential backoff with full jitter: the longest wait doubles from 250 ms to 10
 * seconds. Polls wait 0.5 to 5 seconds. `Retry-After` may lengthen any wait.
 */
export function decide({ pace, counts, maxRetries, retryAfter = 0, remaining, random }: Situation): Decision {
  const counter = pace === 'poll' ? 'polls' : pace === 'replay' ? 'replays' : 'retries'
  const before = counts[counter]
  const most = { polls: Number.POSITIVE_INFINITY, replays: MAX_REPLAYS, retries: maxRetries }
  if (before >= most[counter]) return { stop: 'stopped' }
  const step = Math.min(POLL_CAP, POLL_BASE * 2 ** before)
  const backoff = random * Math.min(BACKOFF_CAP, BACKOFF_BASE * 2 ** before)
  // A poll waits at least half the step, because the service is still processing the order.
  const paced = pace === 'poll' ? (before === 0 ? step : step / 2 + (random * step) / 2) : backoff
  const immediate = pace === 'refresh' || (before === 0 && (pace === 'now' || pace === 'replay'))
  const wait = Math.max(immediate ? 0 : paced, retryAfter)
  // Stops if the wait would pass the deadline. A shorter wait could overload the server again, and
  // waiting until the deadline would replace the service's response with a timeout.
  return wait >= remaining ? { stop: 'deadline' } : { wait, counts: { ...counts, [counter]: before + 1 } }
}

/** HTTP dates (RFC 9110 section 5.6.7): two forms that end in GMT, and one without a time zone. */
const ZONED_DATE =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME_DATE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * Returns the wait of a `Retry-After` header in milliseconds (RFC 9110 section 10.2.3: seconds or
 * an HTTP date), or undefined if the header is negative, malformed or empty. Accepts fractions of a
 * second, because a call that ignored them would retry too early.
 */
export function parseRetryAfter(header: string | null, now: number): number | undefined {
  const text = typeof header === 'string' ? header.trim() : ''
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Math.ceil(Number(text) * 1000), Number.MAX_SAFE_INTEGER)
  const date = ASCTIME_DATE.test(text) ? `${text} GMT` : text
  if (date === text && !ZONED_DATE.test(text)) return undefined
  const at = Date.parse(date)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
