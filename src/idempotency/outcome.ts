import type { Charged } from '../errors.ts'
import type { Pace } from '../http/retry.ts'
import type { Hold, RecordState, RejectionKind } from './record.ts'

/** Every way in which one attempt to create an order can end, and the end of a call that sent nothing (more). */
export type OutcomeKind =
  | 'created'
  | 'created_flawed'
  | 'created_unreadable'
  | 'success_unreadable'
  | 'redirected'
  | 'refused'
  | 'refused_unprocessed'
  | 'unauthorized'
  | 'forbidden'
  | 'too_early'
  | 'rate_limited'
  | 'conflict'
  | 'in_progress'
  | 'conflict_unknown'
  | 'request_timeout'
  | 'server_error'
  | 'unrecognised'
  | 'unreachable'
  | 'untrusted'
  | 'connection_closed'
  | 'connection_lost'
  | 'timed_out'
  | 'aborted'
  | 'not_sent'

/** What an ending means where nothing was in doubt before it. */
export interface Meaning {
  readonly charged: Charged
  readonly state: RecordState
  readonly rejection?: RejectionKind
}

/** One row of the table. */
export interface OutcomeRow {
  /** What the attempt ended with, in words; `docs/errors.md` prints it. */
  readonly when: string
  /** What it means if every earlier attempt under the key was surely refused or surely unsent. */
  readonly clean: Meaning
  /** What it means if an earlier attempt under the key is in doubt. */
  readonly ambiguous: Meaning
  /** Whether and how the call goes on, always with the same key and body. */
  readonly next: Pace | 'stop'
  /** Whether the attempt itself leaves doubt: it may have reached the service and nobody knows what became of it. */
  readonly leavesDoubt: boolean
  /** What recovery must not repeat by itself, where the ending says so. */
  readonly hold?: Hold
}

const YES: Meaning = { charged: 'yes', state: 'created' }
const UNKNOWN: Meaning = { charged: 'unknown', state: 'open' }
const REFUSED: Meaning = { charged: 'no', state: 'rejected', rejection: 'refused' }
const NOT_PROCESSED: Meaning = { charged: 'no', state: 'rejected', rejection: 'not_processed' }

/**
 * The outcome table (design sections 4; research/reliability 1.1 to 1.4). `docs/errors.md` prints it and a test
 * compares the two. A kind without a row does not compile.
 */
export const OUTCOMES: Readonly<Record<OutcomeKind, OutcomeRow>> = {
  created: {
    when: '2xx with a readable order',
    clean: YES,
    ambiguous: YES,
    next: 'stop',
    leavesDoubt: false,
  },
  created_flawed: {
    when: '201 with a usable id and another field wrong',
    clean: YES,
    ambiguous: YES,
    next: 'stop',
    leavesDoubt: false,
  },
  created_unreadable: {
    when: '201 whose body is cut, stalled, too large or no order',
    clean: YES,
    ambiguous: YES,
    next: 'replay',
    leavesDoubt: false,
  },
  success_unreadable: {
    // Captive portals and proxies answer 200 to anything, so it proves no charge.
    when: 'another 2xx without a readable order',
    clean: UNKNOWN,
    ambiguous: UNKNOWN,
    next: 'replay',
    leavesDoubt: true,
  },
  redirected: {
    when: '3xx, never followed',
    clean: UNKNOWN,
    ambiguous: UNKNOWN,
    next: 'stop',
    leavesDoubt: true,
  },
  refused: {
    when: '400, 402, 404 or 422 with a recognisable error body',
    clean: REFUSED,
    // A 402 may exist because an earlier attempt drained the wallet; the same goes for stock, validation, publication.
    ambiguous: UNKNOWN,
    next: 'stop',
    leavesDoubt: false,
    hold: 'refused',
  },
  refused_unprocessed: {
    when: '405, 406, 411, 413, 414, 415 or 431 with a recognisable error body',
    clean: NOT_PROCESSED,
    ambiguous: UNKNOWN,
    next: 'stop',
    leavesDoubt: false,
    hold: 'refused',
  },
  unauthorized: { when: '401', clean: NOT_PROCESSED, ambiguous: UNKNOWN, next: 'stop', leavesDoubt: false },
  forbidden: {
    when: '403 with a recognisable error body',
    clean: NOT_PROCESSED,
    ambiguous: UNKNOWN,
    next: 'stop',
    leavesDoubt: false,
  },
  too_early: { when: '425', clean: NOT_PROCESSED, ambiguous: UNKNOWN, next: 'backoff', leavesDoubt: false },
  rate_limited: {
    when: '429',
    clean: NOT_PROCESSED,
    ambiguous: UNKNOWN,
    next: 'backoff',
    leavesDoubt: false,
  },
  conflict: {
    when: '409 IDEMPOTENCY_CONFLICT',
    // This payload was not bought, but another one under the key may have been.
    clean: { charged: 'unknown', state: 'rejected', rejection: 'conflict' },
    ambiguous: UNKNOWN,
    next: 'stop',
    leavesDoubt: false,
    hold: 'refused',
  },
  in_progress: {
    when: '409 IDEMPOTENCY_IN_PROGRESS',
    clean: UNKNOWN,
    ambiguous: UNKNOWN,
    next: 'poll',
    leavesDoubt: true,
  },
  conflict_unknown: {
    when: '409 with another code, or none',
    clean: UNKNOWN,
    ambiguous: UNKNOWN,
    next: 'backoff',
    leavesDoubt: true,
  },
  request_timeout: { when: '408', clean: UNKNOWN, ambiguous: UNKNOWN, next: 'backoff', leavesDoubt: true },
  server_error: { when: '5xx', clean: UNKNOWN, ambiguous: UNKNOWN, next: 'backoff', leavesDoubt: true },
  unrecognised: {
    // A gateway or firewall may have replaced the service's answer after the order was made.
    when: 'any other status, or 400, 402, 403, 404, 422 without a recognisable error body',
    clean: UNKNOWN,
    ambiguous: UNKNOWN,
    next: 'stop',
    leavesDoubt: true,
  },
  unreachable: {
    when: "no connection: DNS, refused, connect timeout (only with Node's own fetch)",
    clean: NOT_PROCESSED,
    ambiguous: UNKNOWN,
    next: 'backoff',
    leavesDoubt: false,
  },
  untrusted: {
    when: "TLS certificate rejected (only with Node's own fetch)",
    clean: NOT_PROCESSED,
    ambiguous: UNKNOWN,
    next: 'stop',
    leavesDoubt: false,
  },
  connection_closed: {
    when: 'connection reset or closed before an answer',
    clean: UNKNOWN,
    ambiguous: UNKNOWN,
    next: 'now',
    leavesDoubt: true,
  },
  connection_lost: {
    when: 'any other network failure, also all of them in browsers and with a custom fetch',
    clean: UNKNOWN,
    ambiguous: UNKNOWN,
    next: 'backoff',
    leavesDoubt: true,
  },
  timed_out: {
    when: 'no answer within the time of one attempt',
    clean: UNKNOWN,
    ambiguous: UNKNOWN,
    next: 'backoff',
    leavesDoubt: true,
  },
  aborted: {
    when: "the caller's signal while an attempt is under way",
    clean: UNKNOWN,
    ambiguous: UNKNOWN,
    next: 'stop',
    leavesDoubt: true,
    hold: 'aborted',
  },
  not_sent: {
    when: 'the call ends between attempts, or before the first',
    clean: { charged: 'no', state: 'rejected', rejection: 'cancelled' },
    ambiguous: UNKNOWN,
    next: 'stop',
    leavesDoubt: false,
  },
}

/** What happened under the current key before the attempt that is being judged. */
export interface History {
  /** An attempt may have reached the service and no trustworthy answer came back. */
  readonly ambiguous: boolean
  /** The service answered 201 to an attempt: the charge is proven, whatever comes later. */
  readonly proven: boolean
}

/** What an attempt means, given what happened before it. */
export interface Verdict extends Meaning {
  readonly next: Pace | 'stop'
  /** The history that the next attempt is judged with. */
  readonly history: History
  readonly hold?: Hold
}

/** Judges one ending: the outcome table, plus the one rule that a proof of a charge beats everything after it. */
export function judgeOutcome(kind: OutcomeKind, history: History): Verdict {
  const row = OUTCOMES[kind]
  const meaning = history.proven ? YES : history.ambiguous ? row.ambiguous : row.clean
  const proven = history.proven || row.clean.charged === 'yes'
  return {
    ...meaning,
    // After a 201 every further attempt only serves to read the order, so it is a replay whatever its end.
    next:
      proven && kind !== 'created' && kind !== 'created_flawed' && row.next !== 'stop' ? 'replay' : row.next,
    history: { ambiguous: history.ambiguous || row.leavesDoubt, proven },
    ...(meaning.state === 'open' && row.hold !== undefined ? { hold: row.hold } : {}),
  }
}
