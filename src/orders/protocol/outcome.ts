/** What one attempt shows: the outcome table, and how an attempt's result finds its row. */
import { defined, isObject, ownValue } from '../../defined.ts'
import type { Issue } from '../../errors/classes.ts'
import { outcomeOfStatus, type StatusOutcome } from '../../errors/statuses.ts'
import type { AttemptResult } from '../../http/attempt.ts'
import type { Pace } from '../../http/retry.ts'
import { checkNow, parseJson, wrong } from '../../schemas/check.ts'
import { type Order, orderSchema } from '../../schemas/order.ts'
import { readProblem } from '../../schemas/problem.ts'
import { filled } from '../../schemas/shape.ts'
import type { Hold, RejectionKind } from '../record/record.ts'

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

/** A charge, nothing certain, or why nothing was charged. */
export type Shown = 'charge' | 'doubt' | Exclude<RejectionKind, 'abandoned'>

export interface OutcomeRow {
  /** After an attempt in doubt, everything but a charge shows only doubt. */
  readonly shows: Shown
  readonly next: Pace | 'stop'
  readonly hold?: Hold
}

/** Printed in `docs/guide/responses.md` by `npm run docs:tables`. */
export const OUTCOMES: Readonly<Record<OutcomeKind, OutcomeRow>> = {
  created: { shows: 'charge', next: 'stop' },
  created_flawed: { shows: 'charge', next: 'stop' },
  created_unreadable: { shows: 'charge', next: 'replay' },
  // Captive portals and proxies return 200 for anything: a 200 without an order does not show
  // whether the wallet was charged.
  success_unreadable: { shows: 'doubt', next: 'replay' },
  // A proxy may have returned the response to another request.
  contradicted: { shows: 'doubt', next: 'replay' },
  redirected: { shows: 'doubt', next: 'stop' },
  // After an ambiguous attempt, do not repeat the order: that attempt may have used up the balance
  // or the stock, and so caused this refusal.
  refused: { shows: 'refused', next: 'stop', hold: 'refused' },
  refused_unprocessed: { shows: 'not_processed', next: 'stop', hold: 'refused' },
  unauthorized: { shows: 'not_processed', next: 'stop' },
  forbidden: { shows: 'not_processed', next: 'stop' },
  too_early: { shows: 'not_processed', next: 'backoff' },
  rate_limited: { shows: 'not_processed', next: 'backoff' },
  // This payload was not bought, but the payload that owns the key may have been.
  conflict: { shows: 'doubt', next: 'stop', hold: 'conflict' },
  in_progress: { shows: 'doubt', next: 'poll' },
  conflict_unknown: { shows: 'doubt', next: 'backoff' },
  request_timeout: { shows: 'doubt', next: 'backoff' },
  server_error: { shows: 'doubt', next: 'backoff' },
  // A gateway may have replaced the service's response after the order was created.
  unrecognised: { shows: 'doubt', next: 'stop' },
  unreachable: { shows: 'not_processed', next: 'backoff' },
  untrusted: { shows: 'not_processed', next: 'stop' },
  // A closed transport stays closed, so a retry is useless.
  transport_closed: { shows: 'not_processed', next: 'stop' },
  connection_closed: { shows: 'doubt', next: 'now' },
  connection_lost: { shows: 'doubt', next: 'backoff' },
  timed_out: { shows: 'doubt', next: 'backoff' },
  aborted: { shows: 'doubt', next: 'stop', hold: 'aborted' },
  not_sent: { shows: 'cancelled', next: 'stop' },
}

/** What earlier attempts under the current key prove. */
export interface History {
  /** An attempt may have reached the service, and no trustworthy response came back. */
  readonly ambiguous: boolean
  /** A response to an attempt, or the record, proves that the wallet was charged. */
  readonly proven: boolean
}

/** What the attempts under a key prove together, and what follows. */
export interface Verdict extends History, OutcomeRow {}

export function judgeOutcome(kind: OutcomeKind, before: History): Verdict {
  const { shows: alone, next, hold } = OUTCOMES[kind]
  const proven = before.proven || alone === 'charge'
  const shows = proven ? 'charge' : before.ambiguous ? 'doubt' : alone
  return {
    shows,
    // After a proven charge, further attempts only replay the response, to read the order.
    next: proven && next !== 'stop' ? 'replay' : next,
    ambiguous: before.ambiguous || alone === 'doubt',
    proven,
    ...(shows === 'doubt' ? defined({ hold }) : {}),
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
