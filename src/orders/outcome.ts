import { defined } from '../defined.ts'
import type { Charged } from '../errors.ts'
import type { Pace } from '../http/retry.ts'
import type { Hold, RecordState, RejectionKind } from './record.ts'

/** Every way in which one attempt to create an order can end, and the end of a call that sent nothing (more). */
export type OutcomeKind =
  | 'created'
  | 'created_flawed'
  | 'created_unreadable'
  | 'success_unreadable'
  | 'contradicted'
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
  | 'transport_closed'
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
const NOT_SENT: Meaning = { charged: 'no', state: 'rejected', rejection: 'cancelled' }
/** This payload was not bought, but another one under the key may have been. */
const CONFLICT: Meaning = { charged: 'unknown', state: 'rejected', rejection: 'conflict' }

/** A row. Nothing but a proof of a charge means anything after doubt, and what means nothing by itself leaves doubt. */
function row(clean: Meaning, next: OutcomeRow['next'], hold?: Hold): OutcomeRow {
  const ambiguous = clean === YES ? YES : UNKNOWN
  return { clean, ambiguous, next, leavesDoubt: clean === UNKNOWN, ...defined({ hold }) }
}

/**
 * The outcome table: what each answer says about the wallet. `docs/guide/responses.md` prints it, with the
 * words of `outcome-words.ts`, and a test compares the two. A kind without a row does not compile.
 */
export const OUTCOMES: Readonly<Record<OutcomeKind, OutcomeRow>> = {
  created: row(YES, 'stop'),
  created_flawed: row(YES, 'stop'),
  created_unreadable: row(YES, 'replay'),
  // Captive portals and proxies answer 200 to anything, so it proves no charge.
  success_unreadable: row(UNKNOWN, 'replay'),
  // Somebody else's order: a shifted response, or a proxy that returns what another request got.
  contradicted: row(UNKNOWN, 'replay'),
  redirected: row(UNKNOWN, 'stop'),
  // A 402 may exist because an earlier attempt drained the wallet; the same goes for stock, validation, publication.
  refused: row(REFUSED, 'stop', 'refused'),
  refused_unprocessed: row(NOT_PROCESSED, 'stop', 'refused'),
  unauthorized: row(NOT_PROCESSED, 'stop'),
  forbidden: row(NOT_PROCESSED, 'stop'),
  too_early: row(NOT_PROCESSED, 'backoff'),
  rate_limited: row(NOT_PROCESSED, 'backoff'),
  conflict: row(CONFLICT, 'stop', 'refused'),
  in_progress: row(UNKNOWN, 'poll'),
  conflict_unknown: row(UNKNOWN, 'backoff'),
  request_timeout: row(UNKNOWN, 'backoff'),
  server_error: row(UNKNOWN, 'backoff'),
  // A gateway or firewall may have replaced the service's answer after the order was made.
  unrecognised: row(UNKNOWN, 'stop'),
  unreachable: row(NOT_PROCESSED, 'backoff'),
  untrusted: row(NOT_PROCESSED, 'stop'),
  // It stays closed.
  transport_closed: row(NOT_PROCESSED, 'stop'),
  connection_closed: row(UNKNOWN, 'now'),
  connection_lost: row(UNKNOWN, 'backoff'),
  timed_out: row(UNKNOWN, 'backoff'),
  aborted: row(UNKNOWN, 'stop', 'aborted'),
  not_sent: row(NOT_SENT, 'stop'),
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
    next: proven && row.next !== 'stop' ? 'replay' : row.next,
    history: { ambiguous: history.ambiguous || row.leavesDoubt, proven },
    ...(meaning.state === 'open' ? defined({ hold: row.hold }) : {}),
  }
}
