import { defined } from '../defined.ts'
import type { Issue } from '../errors.ts'
import type { AttemptResult } from '../http/attempt.ts'
import { checkNow } from '../schemas/check.ts'
import { type Order, orderSchema } from '../schemas/order.ts'
import { readProblem } from '../schemas/problem.ts'
import type { OutcomeKind } from './outcome.ts'

/** What one attempt to create an order brought. */
export interface Outcome {
  readonly kind: OutcomeKind
  /** The order as returned, where it is readable. */
  readonly order?: Order
  /** Its id, where at least that is readable. */
  readonly orderId?: string
  /** What is wrong with a success. */
  readonly issues?: readonly Issue[]
  /** HTTP status and code of a refusal. */
  readonly status?: number
  readonly code?: string
}

const WITH_ERROR_BODY: Readonly<Record<number, OutcomeKind>> = {
  400: 'refused',
  402: 'refused',
  404: 'refused',
  422: 'refused',
  403: 'forbidden',
  405: 'refused_unprocessed',
  406: 'refused_unprocessed',
  411: 'refused_unprocessed',
  413: 'refused_unprocessed',
  414: 'refused_unprocessed',
  415: 'refused_unprocessed',
  431: 'refused_unprocessed',
}

const BY_STATUS: Readonly<Record<number, OutcomeKind>> = {
  401: 'unauthorized',
  408: 'request_timeout',
  425: 'too_early',
  429: 'rate_limited',
}

/**
 * Names how an attempt to create an order ended: the left column of the outcome table.
 * @param contradiction the field in which an order differs from what was sent, if it does
 */
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
      // The look before the connection would have ended the call without a request.
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
  // Only the documented success status proves a charge by itself; a login page comes as 200, too.
  const unreadable: OutcomeKind = status === 201 ? 'created_unreadable' : 'success_unreadable'
  if (result.problem !== undefined) return { kind: unreadable, status }
  let body: unknown
  try {
    body = JSON.parse(result.text)
  } catch {
    return { kind: unreadable, status, issues: [{ path: '', message: 'is not JSON' }] }
  }
  const field = typeof body === 'object' && body !== null ? contradiction(body) : undefined
  if (field !== undefined)
    return { kind: 'contradicted', status, issues: [{ path: field, message: 'is not what was sent' }] }
  const checked = checkNow(orderSchema, body)
  if ('value' in checked) return { kind: 'created', order: checked.value, orderId: checked.value.id, status }
  const orderId = idOf(body)
  if (status === 201 && orderId !== undefined)
    return { kind: 'created_flawed', orderId, status, issues: checked.issues }
  return { kind: unreadable, status, issues: checked.issues }
}

function idOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('id' in body)) return undefined
  return typeof body.id === 'string' && body.id.trim() !== '' ? body.id : undefined
}

function classifyError(status: number, text: string): Outcome {
  const problem = readProblem(text)
  const refusal = { status, ...defined({ code: problem.code }) }
  if (status === 409) {
    if (problem.idempotency === 'IDEMPOTENCY_CONFLICT') return { kind: 'conflict', ...refusal }
    return { kind: problem.idempotency === undefined ? 'conflict_unknown' : 'in_progress', ...refusal }
  }
  const named = BY_STATUS[status] ?? (problem.recognised ? WITH_ERROR_BODY[status] : undefined)
  return { kind: named ?? (status >= 500 ? 'server_error' : 'unrecognised'), ...refusal }
}
