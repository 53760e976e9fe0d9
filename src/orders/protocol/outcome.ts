/** What one attempt shows: the outcome table, and how an attempt's result finds its row. */
import { defined, isObject, ownValue } from '../../defined.ts'
import type { Charged, Issue } from '../../errors/classes.ts'
import { outcomeOfStatus, type StatusOutcome } from '../../errors/statuses.ts'
import type { AttemptResult } from '../../http/attempt.ts'
import type { Pace } from '../../http/retry.ts'
import { checkNow, parseJson, wrong } from '../../schemas/check.ts'
import { type Order, orderSchema } from '../../schemas/order.ts'
import { readProblem } from '../../schemas/problem.ts'
import { filled } from '../../schemas/shape.ts'
import type { Hold, RecordState, RejectionKind } from '../record/record.ts'

/** Outcome of one attempt to create an order; `not_sent` if the call ended before the attempt. */
export type OutcomeKind =
  | 'created'
  | 'created_flawed'
  | 'created_unreadable'
  | 'success_unreadable'
  | 'contradicted'
  | 'redirected'
  | StatusOutcome
  | 'unreachable'
  | 'untrusted'
  | 'transport_closed'
  | 'connection_closed'
  | 'connection_lost'
  | 'timed_out'
  | 'aborted'
  | 'not_sent'

export interface Meaning {
  readonly charged: Charged
  readonly state: RecordState
  readonly rejection?: RejectionKind
}

export interface OutcomeRow {
  /** Applies if no earlier attempt under the key can have been charged. */
  readonly clean: Meaning
  /** Applies if an earlier attempt under the key may have been charged. */
  readonly ambiguous: Meaning
  readonly next: Pace | 'stop'
  /** True if the attempt may have reached the service, and its outcome is unknown. */
  readonly leavesDoubt: boolean
  readonly hold?: Hold
}

const YES: Meaning = { charged: 'yes', state: 'created' }
const UNKNOWN: Meaning = { charged: 'unknown', state: 'open' }
const REFUSED: Meaning = { charged: 'no', state: 'rejected', rejection: 'refused' }
const NOT_PROCESSED: Meaning = { charged: 'no', state: 'rejected', rejection: 'not_processed' }
const NOT_SENT: Meaning = { charged: 'no', state: 'rejected', rejection: 'cancelled' }

/** After an ambiguous attempt, every outcome except a proven charge means `UNKNOWN`. */
function row(clean: Meaning, next: OutcomeRow['next'], hold?: Hold): OutcomeRow {
  const ambiguous = clean === YES ? YES : UNKNOWN
  return { clean, ambiguous, next, leavesDoubt: clean === UNKNOWN, ...defined({ hold }) }
}

/** Printed in `docs/guide/responses.md` by `npm run docs:tables`. */
export const OUTCOMES: Readonly<Record<OutcomeKind, OutcomeRow>> = {
  created: row(YES, 'stop'),
  created_flawed: row(YES, 'stop'),
  created_unreadable: row(YES, 'replay'),
  // Captive portals and proxies return 200 for anything: a 200 without an order does not show
  // whether the wallet was charged.
  success_unreadable: row(UNKNOWN, 'replay'),
  // A proxy may have returned the response to another request.
  contradicted: row(UNKNOWN, 'replay'),
  redirected: row(UNKNOWN, 'stop'),
  // After an ambiguous attempt, do not repeat the order: that attempt may have used up the balance
  // or the stock, and so caused this refusal.
  refused: row(REFUSED, 'stop', 'refused'),
  refused_unprocessed: row(NOT_PROCESSED, 'stop', 'refused'),
  unauthorized: row(NOT_PROCESSED, 'stop'),
  forbidden: row(NOT_PROCESSED, 'stop'),
  too_early: row(NOT_PROCESSED, 'backoff'),
  rate_limited: row(NOT_PROCESSED, 'backoff'),
  // This payload was not bought, but the payload that owns the key may have been.
  conflict: row(UNKNOWN, 'stop', 'conflict'),
  in_progress: row(UNKNOWN, 'poll'),
  conflict_unknown: row(UNKNOWN, 'backoff'),
  request_timeout: row(UNKNOWN, 'backoff'),
  server_error: row(UNKNOWN, 'backoff'),
  // A gateway may have replaced the service's response after the order was created.
  unrecognised: row(UNKNOWN, 'stop'),
  unreachable: row(NOT_PROCESSED, 'backoff'),
  untrusted: row(NOT_PROCESSED, 'stop'),
  // A closed transport stays closed, so a retry is useless.
  transport_closed: row(NOT_PROCESSED, 'stop'),
  connection_closed: row(UNKNOWN, 'now'),
  connection_lost: row(UNKNOWN, 'backoff'),
  timed_out: row(UNKNOWN, 'backoff'),
  aborted: row(UNKNOWN, 'stop', 'aborted'),
  not_sent: row(NOT_SENT, 'stop'),
}

/** What earlier attempts under the current key prove. */
export interface History {
  /** An attempt may have reached the service, and no trustworthy response came back. */
  readonly ambiguous: boolean
  /** A response to an attempt, or the record, proves that the wallet was charged. */
  readonly proven: boolean
}

export interface Verdict extends Meaning {
  readonly next: Pace | 'stop'
  readonly history: History
  readonly hold?: Hold
}

export function judgeOutcome(kind: OutcomeKind, history: History): Verdict {
  const row = OUTCOMES[kind]
  const meaning = history.proven ? YES : history.ambiguous ? row.ambiguous : row.clean
  const proven = history.proven || row.clean.charged === 'yes'
  return {
    ...meaning,
    // After a proven charge, further attempts only replay the response, to read the order.
    next: proven && row.next !== 'stop' ? 'replay' : row.next,
    history: { ambiguous: history.ambiguous || row.leavesDoubt, proven },
    ...(meaning.state === 'open' ? defined({ hold: row.hold }) : {}),
  }
}

export interface Outcome {
  readonly kind: OutcomeKind
  readonly order?: Order
  /** Present even if only the id of the order is readable. */
  readonly orderId?: string
  /** What is wrong with the body of a 2xx response. */
  readonly issues?: readonly Issue[]
  readonly status?: number
  readonly code?: string
}

/** @param contradiction returns the field in which the order differs from its request, if any */
export function classify(
  result: AttemptResult,
  contradiction: (order: object) => string | undefined,
): Outcome {
  switch (result.kind) {
    case 'aborted':
      return { kind: 'aborted' }
    case 'timeout':
      return { kind: 'timed_out' }
    case 'redirect':
      return { kind: 'redirected', status: result.status }
    case 'failed':
      if (result.unsent === 'unreachable') return { kind: 'unreachable' }
      if (result.unsent === 'certificate') return { kind: 'untrusted' }
      if (result.unsent === 'transport_closed') return { kind: 'transport_closed' }
      if (result.unsent === 'late') return { kind: 'not_sent' }
      return { kind: result.closed ? 'connection_closed' : 'connection_lost' }
    case 'answer':
      return result.status >= 200 && result.status < 300
        ? classifySuccess(result, contradiction)
        : classifyError(result.status, result.text)
  }
}

function classifySuccess(
  result: AttemptResult & { readonly kind: 'answer' },
  contradiction: (order: object) => string | undefined,
): Outcome {
  const { status } = result
  // Without a readable order, only a 201 proves a charge: a login page comes with 200, too.
  const unreadable: OutcomeKind = status === 201 ? 'created_unreadable' : 'success_unreadable'
  if (result.problem !== undefined) return { kind: unreadable, status }
  const body = parseJson(result.text)?.json
  if (body === undefined) return { kind: unreadable, status, ...wrong('is not JSON') }
  const field = isObject(body) ? contradiction(body) : undefined
  if (field !== undefined) return { kind: 'contradicted', status, ...wrong('is not what was sent', field) }
  const checked = checkNow(orderSchema, body)
  if ('value' in checked) return { kind: 'created', order: checked.value, orderId: checked.value.id, status }
  const orderId = ownValue(body, 'id')
  if (status === 201 && filled.fits(orderId))
    return { kind: 'created_flawed', orderId, status, issues: checked.issues }
  return { kind: unreadable, status, issues: checked.issues }
}

function classifyError(status: number, text: string): Outcome {
  const { recognised, idempotency, code } = readProblem(text)
  return { kind: outcomeOfStatus(status, recognised, idempotency), status, ...defined({ code }) }
}
