import { defined } from '../defined.ts'
import type { Order } from '../schemas/order.ts'
import type { Intent } from './intent.ts'
import { type FirstKey, type Hold, highestGeneration, type RecordContent, type Rejection } from './record.ts'

/** `key` is the salt of the tags in `fields`. */
export interface IntentKey extends Pick<RecordContent, 'key' | 'keyOrigin' | 'generation' | 'fields'> {}

export interface Proof {
  /** The record as this call sent it. Undefined if the order was found in a list or by its id. */
  readonly sent: RecordContent | undefined
  /** The part of the order that is remembered. */
  readonly order: Partial<Order> | undefined
  readonly orderId: string | undefined
  readonly attempts: number
  readonly claim: string
}

/** The comments of the events are printed in `docs/protocol.md`. */
export type RecordEvent =
  /** An order is requested for the first time, or again after its record was closed. */
  | {
      readonly type: 'asked'
      readonly order: Pick<Intent, 'slot' | 'fingerprint' | 'externalOrderId' | 'body'>
      readonly key: IntentKey
      readonly claim: string
    }
  /** A call or a recovery continues an order that an earlier call opened. */
  | { readonly type: 'resumed'; readonly by: 'call' | 'recovery' }
  /** A call claims the record. This write permits the call to send. */
  | {
      readonly type: 'claimed'
      readonly now: number
      readonly until: number
      readonly claim: string
      readonly apiKeyTag: string
    }
  /** The record gets the tag of the API key that sends the next request. */
  | { readonly type: 'tagged'; readonly apiKeyTag: string }
  /** The service refused the request, and the order continues under another key. */
  | { readonly type: 'refused'; readonly rejection: Rejection; readonly attempts: number }
  /** The order continues under a key that was never sent. */
  | { readonly type: 'moved_on'; readonly key: IntentKey }
  /** The order returns to its first key, whose window is still open. */
  | { readonly type: 'went_back'; readonly key: IntentKey; readonly createdAt: number }
  /** The call ended, and the record is closed without an order. */
  | {
      readonly type: 'closed'
      readonly rejection: Rejection
      readonly attempts: number
      /** True if another process may also have sent the key. */
      readonly shared: boolean
      /** True if the service processed no request with the key. The key's window has not begun. */
      readonly unused: boolean
    }
  /** The call ended with an unknown outcome. */
  | {
      readonly type: 'left_open'
      readonly ambiguous: boolean
      readonly hold: Hold | undefined
      readonly attempts: number
    }
  /** An order exists and was charged. */
  | ({ readonly type: 'proven' } & Proof)
  /** The clock went back, so the age of the keys is unknown. */
  | { readonly type: 'distrusted'; readonly busy: boolean; readonly claim: string }
  /** The record is rewritten, so that the store rejects a write that an earlier call abandoned. */
  | { readonly type: 'rewritten'; readonly claim: string }
  /** A person abandoned the order. */
  | {
      readonly type: 'abandoned'
      /** Undefined if the key is also the order's name, and so cannot change. */
      readonly key: IntentKey | undefined
      readonly claim: string
    }

type Event<Type extends RecordEvent['type']> = Extract<RecordEvent, { readonly type: Type }>

export function apply(record: RecordContent | undefined, event: RecordEvent): RecordContent {
  if (event.type === 'asked') return asked(record, event)
  if (record === undefined) throw new TypeError(`unreachable: no record for the event ${event.type}`)
  switch (event.type) {
    case 'resumed':
      return resumed(record, event)
    case 'claimed':
      return claimed(record, event)
    case 'tagged':
      return { ...record, apiKeyTag: event.apiKeyTag }
    case 'refused': {
      const attempts = record.attempts + event.attempts
      return { ...record, attempts, rejection: event.rejection, refused: true }
    }
    case 'moved_on':
      return movedOn(record, event.key)
    case 'went_back':
      return wentBack(record, event)
    case 'closed':
      return closed(record, event)
    case 'left_open':
      return leftOpen(record, event)
    case 'proven':
      return proven(record, event)
    case 'distrusted':
      return distrusted(record, event)
    case 'rewritten':
      return { ...record, claim: event.claim }
    case 'abandoned':
      return abandoned(record, event)
  }
}

/** True if the proof adds nothing to the record, so that no write is needed. */
export function isKnown(newest: RecordContent, { sent, order, orderId }: Proof): boolean {
  if (newest.state !== 'created') return false
  if (newest.readable) return true
  if (order !== undefined || (orderId !== undefined && newest.order?.id === undefined)) return false
  // A write is needed to release this call's own claim.
  return newest.busyUntil === undefined || newest.claim !== sent?.claim
}

function asked(record: RecordContent | undefined, { order, key, claim }: Event<'asked'>): RecordContent {
  const { highest, first, firstSentAt } = record ?? {}
  const { slot, fingerprint, externalOrderId, body } = order
  return {
    slot,
    ...key,
    state: 'open',
    // A closed record is ambiguous only if it was abandoned under a key that is also the order's
    // name. The new request uses the same key, so the doubt remains.
    ambiguous: record?.ambiguous === true,
    attempts: record?.attempts ?? 0,
    fingerprint,
    body,
    apiKeyTag: '',
    claim,
    readable: false,
    refused: record?.refused === true,
    foreign: record?.foreign === true,
    ...defined({ externalOrderId, highest, first, firstSentAt }),
  }
}

function resumed(record: RecordContent, { by }: Event<'resumed'>): RecordContent {
  const { rejection: _rejection, hold, ...rest } = record
  // An earlier call may have sent the record, so a later refusal does not prove that nothing was
  // bought. A recovery keeps the hold, because it may not reach the service.
  return { ...rest, ambiguous: true, ...(by === 'recovery' ? defined({ hold }) : {}) }
}

/** A call whose claim is taken over does not notice this, and may send until its claim ends. */
function claimed(
  { othersUntil: before = 0, ...record }: RecordContent,
  { now, until: busyUntil, claim, apiKeyTag }: Event<'claimed'>,
): RecordContent {
  const until = claim === record.claim ? before : Math.max(before, record.busyUntil ?? 0)
  const othersUntil = until > now ? until : undefined
  const { firstSentAt = now } = record
  return { ...record, firstSentAt, busyUntil, claim, apiKeyTag, ...defined({ othersUntil }) }
}

function movedOn(record: RecordContent, key: IntentKey): RecordContent {
  const { firstSentAt: _sent, ...next } = withKey(record, key)
  const first = key.keyOrigin === 'derived' ? firstKeyOf(record) : undefined
  return { ...next, refused: false, ...defined({ first }) }
}

function wentBack(record: RecordContent, { key, createdAt }: Event<'went_back'>): RecordContent {
  const { sentAt: firstSentAt = createdAt, refused = false } = record.first ?? {}
  return { ...withKey(record, key), refused, firstSentAt, highest: highestGeneration(record) }
}

function withKey(record: RecordContent, key: IntentKey): RecordContent {
  const { rejection: _rejection, hold: _hold, first: _first, highest: _highest, ...rest } = record
  return { ...rest, ...key, ambiguous: false, foreign: false }
}

function firstKeyOf(record: RecordContent): FirstKey | undefined {
  const { generation, keyOrigin, first, firstSentAt: sentAt = 0, rejection, refused } = record
  if (generation !== 0 || keyOrigin !== 'derived') return first
  return { sentAt, refused, ...defined({ rejection }) }
}

function closed(
  record: RecordContent,
  { rejection, attempts, shared, unused }: Omit<Event<'closed'>, 'type'>,
): RecordContent {
  const { body, hold: _hold, ...rest } = unused ? neverSent(released(record)) : released(record)
  const isConflict = rejection.kind === 'conflict'
  return {
    ...rest,
    // Keep the body, to compare it with an order that is later found by its reference.
    ...(isConflict ? defined({ body }) : {}),
    attempts: record.attempts + attempts,
    state: 'rejected',
    rejection,
    refused: record.refused || rejection.kind === 'refused',
    // If this store has a refusal and no other process uses the key, the conflict is with the
    // refused payload, so the key is not foreign.
    foreign: record.foreign || (isConflict && (shared || !record.refused)),
  }
}

function leftOpen(record: RecordContent, { ambiguous, hold, attempts }: Event<'left_open'>): RecordContent {
  return {
    ...released(record),
    ambiguous,
    attempts: record.attempts + attempts,
    // Keep an earlier hold: this call may be a recovery that did not reach the service.
    ...defined({ hold: hold ?? record.hold }),
  }
}

function proven(newest: RecordContent, { sent, order, orderId, attempts, claim }: Proof): RecordContent {
  const { hold: _hold, rejection: _rejection, body, order: known, ...rest } = released(newest)
  // The order exists under the key that this call sent, even if another call has changed the key.
  const { key, keyOrigin, generation, fields, fingerprint, apiKeyTag, firstSentAt } = sent ?? newest
  return {
    ...rest,
    ...{ key, keyOrigin, generation, fields, fingerprint, apiKeyTag, claim },
    state: 'created',
    ambiguous: false,
    readable: order !== undefined,
    attempts: newest.attempts + attempts,
    ...defined({
      order: order ?? known ?? (orderId === undefined ? undefined : { id: orderId }),
      firstSentAt,
      // Without the order, keep the body: a replay of the request returns the order.
      body: order === undefined ? (body ?? sent?.body) : undefined,
    }),
  }
}

/** With a known age, the window of the keys would open again once the clock catches up. */
function distrusted(record: RecordContent, { busy, claim }: Event<'distrusted'>): RecordContent {
  const { firstSentAt, first } = record
  const { othersUntil: _others, ...unclaimed } = released(record)
  return {
    // A claim from the future is invalid. This write would make it valid, so release the claim.
    ...(busy ? record : unclaimed),
    claim,
    ...(firstSentAt === undefined ? {} : { firstSentAt: 0 }),
    ...(first === undefined ? {} : { first: { ...first, sentAt: 0 } }),
  }
}

/** The next call buys again. It uses another key, unless the key is also the order's name. */
function abandoned(record: RecordContent, { key, claim }: Event<'abandoned'>): RecordContent {
  const next =
    key === undefined
      ? { ...record, generation: record.generation + 1, refused: false, foreign: false }
      : { ...movedOn(record, key), first: { sentAt: 0, refused: false } }
  const facts = { rejection: { kind: 'abandoned' }, attempts: 0, shared: false, unused: false } as const
  return { ...closed(next, facts), claim }
}

function released({ busyUntil: _busyUntil, ...record }: RecordContent): RecordContent {
  return record
}

function neverSent({ firstSentAt: _sent, ...record }: RecordContent): RecordContent {
  return record
}
