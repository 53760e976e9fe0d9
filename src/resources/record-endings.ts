import { defined } from '../defined.ts'
import { parseJson } from '../http/read.ts'
import { fieldTags } from '../idempotency/identity.ts'
import type { RecordContent } from '../idempotency/journal.ts'
import type { JournalRecord, Rejection } from '../idempotency/record.ts'
import type { Order } from '../schemas/order.ts'
import { makeKey, type OrderContext, rememberedOrder } from './order-context.ts'

/** What a record's body asks for; nothing once that was dropped. */
export function requestOf({ body }: Pick<JournalRecord, 'body'>): Readonly<Record<string, unknown>> {
  const request = parseJson(body ?? '')?.json
  return typeof request === 'object' ? { ...request } : {}
}

/** The record with the intent's next key, still to be sent. `attempts` were made under the key before. */
export function nextGeneration(
  context: OrderContext,
  record: JournalRecord,
  attempts: number,
): JournalRecord {
  const { runtime } = context.connection
  const generation = record.generation + 1
  const { key, keyOrigin } = makeKey(context, record.externalOrderId, generation)
  const { rejection: _rejection, hold: _hold, ...rest } = record
  return {
    ...rest,
    key,
    keyOrigin,
    generation,
    // Tags are salted with the key. Without the body they cannot be made again, and a conflict names no fields then.
    fields: fieldTags(runtime.deriveId, key, requestOf(record)),
    ambiguous: false,
    refused: false,
    foreign: false,
    attempts: record.attempts + attempts,
    firstSentAt: runtime.now(),
  }
}

/** The record closed without an order. */
export function closedContent(record: RecordContent, rejection: Rejection, attempts: number): RecordContent {
  const { body: _body, busyUntil: _busyUntil, hold: _hold, ...rest } = record
  return {
    ...rest,
    attempts: record.attempts + attempts,
    state: 'rejected',
    rejection,
    refused: record.refused || rejection.kind === 'refused',
    // Where every payload under the key was refused, it is one of those that the key belongs to.
    foreign: record.foreign || (rejection.kind === 'conflict' && !record.refused),
  }
}

/** The record left open, for the next call or for recovery. */
export function openContent(
  record: JournalRecord,
  ambiguous: boolean,
  hold: JournalRecord['hold'],
  attempts: number,
): RecordContent {
  // A hold that was there before stays: recovery that could not reach the service has not lifted it.
  const { busyUntil: _busyUntil, ...rest } = record
  return {
    ...rest,
    ambiguous,
    attempts: record.attempts + attempts,
    ...defined({ hold: hold ?? record.hold }),
  }
}

/**
 * The record as it was before it was claimed, for a recovery that found out that the service has not looked at it: the next
 * one sends it.
 * @param earlier what an earlier call heard under the key, see {@link unsentContent}
 */
export function requeuedContent(
  record: JournalRecord,
  attempts: number,
  earlier: Rejection | undefined,
): RecordContent {
  const { busyUntil: _busyUntil, firstSentAt: _firstSentAt, ...rest } = record
  const requeued = { ...rest, apiKeyTag: '', attempts: record.attempts + attempts }
  return { ...requeued, ...defined({ rejection: earlier }) }
}

/** What a call knows of an order that exists. */
export interface CreatedFacts {
  /** The order, where it is readable. */
  readonly order: Order | undefined
  readonly orderId: string | undefined
  /** HTTP requests made by the call. */
  readonly attempts: number
}

/** A created record over whatever version is the newest; nothing to write if that one already has the readable order. */
export function createdContent(
  context: OrderContext,
  newest: JournalRecord,
  mine: JournalRecord,
  { order, orderId, attempts }: CreatedFacts,
): RecordContent | undefined {
  if (newest.state === 'created' && (newest.readable || order === undefined)) {
    if (newest.readable || newest.busyUntil === undefined || newest.claim !== mine.claim) return undefined
  }
  const { busyUntil: _busyUntil, hold: _hold, rejection: _rejection, body, order: known, ...rest } = newest
  const kept =
    order !== undefined
      ? rememberedOrder(context, order)
      : (known ?? (orderId === undefined ? undefined : { id: orderId }))
  return {
    ...rest,
    // The proof is for the key that this call sent, also where another call has moved on meanwhile.
    key: mine.key,
    keyOrigin: mine.keyOrigin,
    generation: mine.generation,
    fields: mine.fields,
    fingerprint: mine.fingerprint,
    apiKeyTag: mine.apiKeyTag,
    claim: mine.claim,
    state: 'created',
    ambiguous: false,
    readable: order !== undefined,
    attempts: newest.attempts + attempts,
    ...defined({ order: kept }),
    // Without the order itself, the body is still needed to ask for it again.
    ...(order === undefined ? defined({ body: body ?? mine.body }) : {}),
  }
}
