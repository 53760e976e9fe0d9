/**
 * What one attempt shows: the outcome table, how an attempt's result finds its row, and whether the
 * order in a response belongs to a record. A response may belong to another request, and another
 * integration may use the same references.
 */
import type { EchoedField } from '../../call-options.ts'
import { defined, isObject, ownValue } from '../../defined.ts'
import type { Issue } from '../../errors/classes.ts'
import { outcomeOfStatus, type StatusOutcome } from '../../errors/statuses.ts'
import type { AttemptResult } from '../../http/attempt.ts'
import { REDACTED } from '../../http/redact.ts'
import type { Pace } from '../../http/retry.ts'
import { CanonicalJsonError } from '../../identity/canonical.ts'
import { fieldTag } from '../../identity/keys.ts'
import { checkNow, parseJson, wrong } from '../../schemas/check.ts'
import { type Order, orderSchema } from '../../schemas/order.ts'
import { readProblem } from '../../schemas/problem.ts'
import { filled } from '../../schemas/shape.ts'
import type { Hold, JournalRecord, RejectionKind } from '../record/record.ts'

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

/** @param asked what was sent */
export function classify(result: AttemptResult, asked: Asked): Outcome {
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
        ? classifySuccess(result, asked)
        : classifyError(result.status, result.text)
  }
}

function classifySuccess(result: AttemptResult & { readonly kind: 'answer' }, asked: Asked): Outcome {
  const { status } = result
  // Without a readable order, only a 201 proves a charge: a login page comes with 200, too.
  const unreadable: OutcomeKind = status === 201 ? 'created_unreadable' : 'success_unreadable'
  if (result.problem !== undefined) return { kind: unreadable, status }
  const body = parseJson(result.text)?.json
  if (body === undefined) return { kind: unreadable, status, ...wrong('is not JSON') }
  const field = isObject(body) ? contradiction(asked, echoOf(body)) : undefined
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

/** The repeated fields that have the expected type. */
export interface Echo {
  readonly externalOrderId?: string | undefined
  readonly serviceId?: string | undefined
  readonly quantity?: number | undefined
  readonly target?: string | undefined
  /** The integration that placed the order. */
  readonly sourceSystem?: string | undefined
}

export type Asked = Pick<JournalRecord, 'slot' | 'externalOrderId' | 'fingerprint'>

export function echoOf(order: object): Echo {
  const quantity = ownValue(order, 'quantity')
  return {
    externalOrderId:
      stringIn(ownValue(order, 'metadata'), 'externalOrderId') ?? stringIn(order, 'externalOrderId'),
    serviceId: stringIn(order, 'serviceId'),
    quantity: typeof quantity === 'number' ? quantity : undefined,
    target: stringIn(order, 'target'),
    sourceSystem: sourceSystemIn(order),
  }
}

/** The one matcher: returns the fields in which an order differs from what was sent. */
export function differences(asked: Asked, echo: Echo): readonly EchoedField[] {
  const { externalOrderId } = echo
  const other =
    asked.externalOrderId !== undefined &&
    externalOrderId !== undefined &&
    externalOrderId !== asked.externalOrderId &&
    !externalOrderId.includes(REDACTED)
  const fields = (['serviceId', 'quantity', 'target'] as const).filter((field) => {
    const shown = echo[field]
    return shown !== undefined && !mayHaveTag(asked, field, shown)
  })
  return other ? ['externalOrderId', ...fields] : fields
}

/**
 * Returns the first field that proves a response to our own key to be another request's. An equal
 * reference proves that it is ours: services trim, normalise and count down the other fields. A
 * service may also spell a target differently, so the target alone proves nothing.
 */
export function contradiction(asked: Asked, echo: Echo): EchoedField | undefined {
  if (asked.externalOrderId !== undefined && echo.externalOrderId === asked.externalOrderId) return undefined
  return differences(asked, echo).find((field) => field !== 'target')
}

/**
 * Compares an order that was found in the list or by its id. The id in the record came with a response
 * to its own key, so that order is its order, however the service shows its fields now.
 */
export function differencesFound(
  asked: Asked & Partial<JournalRecord>,
  found: Echo & { readonly id: string },
): readonly EchoedField[] {
  const fields = differences(asked, found)
  if (asked.order?.id === found.id) return fields.filter((field) => field === 'externalOrderId')
  const own = sourceSystemOf(asked)
  const isOther = own !== undefined && found.sourceSystem !== undefined && found.sourceSystem !== own
  return isOther ? [...fields, 'sourceSystem'] : fields
}

/** The integration that the stored request names. */
export function sourceSystemOf({ body = '' }: Partial<JournalRecord>): string | undefined {
  const request = parseJson(body)?.json
  return isObject(request) ? sourceSystemIn(request) || undefined : undefined
}

function sourceSystemIn(object: object): string | undefined {
  return stringIn(object, 'sourceSystem') ?? stringIn(ownValue(object, 'metadata'), 'sourceSystem')
}

/** A field without a tag proves nothing, and a value in which an API key was redacted neither. */
function mayHaveTag({ slot, fingerprint }: Asked, field: string, shown: string | number): boolean {
  if (!Object.hasOwn(fingerprint, field) || String(shown).includes(REDACTED)) return true
  try {
    return fieldTag(slot, field, shown) === fingerprint[field]
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    // This client sends only values with a canonical form, so the request had another value.
    return false
  }
}

function stringIn(object: unknown, name: string): string | undefined {
  const value = ownValue(object, name)
  return typeof value === 'string' ? value : undefined
}
