import { defined } from '../defined.ts'
import { parseJson } from '../http/request.ts'
import type { Order } from '../schemas/order.ts'
import { makeKey, type OrderContext, rememberedOrder } from './context.ts'
import type { Start } from './decision.ts'
import { fieldTags } from './identity.ts'
import type { RecordContent } from './journal.ts'
import { type FirstKey, highestGeneration, type JournalRecord, type Rejection } from './record.ts'

/** What a record's body asks for; nothing once that was dropped. */
export function requestOf({ body }: Pick<JournalRecord, 'body'>): Readonly<Record<string, unknown>> {
  const request = parseJson(body ?? '')?.json
  return typeof request === 'object' ? { ...request } : {}
}

/** The record with the key with which it is sent when it is asked for again. */
export function startedWith(context: OrderContext, record: JournalRecord, start: Start): JournalRecord {
  if (start === 'same') return record
  return start === 'first' ? firstGeneration(context, record) : nextGeneration(context, record)
}

/** What was heard under the key with which an order is sent again. */
export function heardUnder(
  record: JournalRecord,
  { key, generation }: Pick<JournalRecord, 'key' | 'generation'>,
): Rejection | undefined {
  if (record.key === key) return record.rejection
  return generation === 0 ? record.first?.rejection : undefined
}

/** The record with a key of the intent that was never sent. */
export function nextGeneration(context: OrderContext, record: JournalRecord): JournalRecord {
  const { firstSentAt: _sent, ...next } = withKey(context, record, highestGeneration(record) + 1)
  const first = next.keyOrigin === 'derived' ? leftBehind(record) : undefined
  // Of the others, no caller can name one: they are computed or drawn here.
  const left = record.keyOrigin === 'caller' ? leftKeys(record) : record.left
  return { ...next, refused: false, ...defined({ first, left }) }
}

/** The keys that an order has left once it leaves the current one, too. One that was never sent may still be. */
export function leftKeys({
  left,
  key,
  firstSentAt,
}: Pick<JournalRecord, 'left' | 'key' | 'firstSentAt'>): readonly string[] | undefined {
  return firstSentAt === undefined ? left : [...(left ?? []), key]
}

/** What is to be known of the first key once another takes its place. */
function leftBehind({ generation, keyOrigin, first, ...record }: JournalRecord): FirstKey | undefined {
  if (generation !== 0 || keyOrigin !== 'derived') return first
  const { firstSentAt: sentAt = 0, rejection, refused } = record
  return { sentAt, refused, ...defined({ rejection }) }
}

/** The record with the first key of the intent, which was sent before the current one. */
function firstGeneration(context: OrderContext, record: JournalRecord): JournalRecord {
  const { first, createdAt } = record
  const { sentAt = createdAt, refused = false } = first ?? {}
  return {
    ...withKey(context, record, 0),
    refused,
    firstSentAt: sentAt,
    highest: highestGeneration(record),
  }
}

/** The record with a key of another generation, under which nothing was heard yet. */
function withKey(context: OrderContext, record: JournalRecord, generation: number): JournalRecord {
  const { key, keyOrigin } = makeKey(context, record.externalOrderId, generation)
  const { rejection: _rejection, hold: _hold, first: _first, highest: _highest, ...rest } = record
  return {
    ...rest,
    key,
    keyOrigin,
    generation,
    // Tags are salted with the key. Without the body they cannot be made again, and a conflict names no fields then.
    fields: fieldTags(context.connection.runtime.deriveId, key, requestOf(record)),
    ambiguous: false,
    foreign: false,
  }
}

/** The record of an order whose key the service has not looked at: its window has not begun. */
export function neverSent<R extends RecordContent>({
  firstSentAt: _sent,
  ...record
}: R): Omit<R, 'firstSentAt'> {
  return record
}

/**
 * The record closed without an order.
 * @param shared true if somebody else may have sent the key as well
 */
export function closedContent(
  record: RecordContent,
  rejection: Rejection,
  attempts: number,
  shared = false,
): RecordContent {
  const { body, busyUntil: _busyUntil, hold: _hold, ...rest } = record
  return {
    ...rest,
    // An order that is found by its reference is compared with what was asked for.
    ...(rejection.kind === 'conflict' ? defined({ body }) : {}),
    attempts: record.attempts + attempts,
    state: 'rejected',
    rejection,
    refused: record.refused || rejection.kind === 'refused',
    // Where every payload under the key was refused, it is one of those that the key belongs to.
    foreign: record.foreign || (rejection.kind === 'conflict' && (shared || !record.refused)),
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
  record: RecordContent,
  attempts: number,
  earlier: Rejection | undefined,
): RecordContent {
  const { busyUntil: _busyUntil, ...rest } = record
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
    ...defined({ order: kept, firstSentAt: mine.firstSentAt }),
    // Without the order itself, the body is still needed to ask for it again.
    ...(order === undefined ? defined({ body: body ?? mine.body }) : {}),
  }
}
