import { defined } from '../defined.ts'
import type { Order } from '../schemas/order.ts'
import type { Intent } from './intent.ts'
import {
  type FirstKey,
  type Hold,
  highestGeneration,
  isUnsent,
  type RecordContent,
  type Rejection,
} from './record.ts'

/** A key of an intent, and the tags of the payload's fields, which are salted with it. */
export interface IntentKey extends Pick<RecordContent, 'key' | 'keyOrigin' | 'generation' | 'fields'> {}

/** How a call learnt that an order exists. */
export interface Proof {
  /** The record as this call sent it; undefined where the order was found in a list or by its id. */
  readonly sent: RecordContent | undefined
  /** As much of the order as is remembered, where it is readable. */
  readonly order: Partial<Order> | undefined
  readonly orderId: string | undefined
  /** HTTP requests made by the call. */
  readonly attempts: number
  readonly claim: string
}

/** Every way in which a record changes. What a clock, a key maker or an id source says comes in as a value. */
export type RecordEvent =
  /** An order is written down: a new one, or a closed one that is asked for again. No call has claimed it yet. */
  | {
      readonly type: 'asked'
      readonly order: Pick<Intent, 'slot' | 'fingerprint' | 'externalOrderId' | 'body'>
      readonly key: IntentKey
      /** True if the caller gave a closed record another key. */
      readonly moved: boolean
      /** What was refused under this key, for `recover()`; hearing it again leads to another key. */
      readonly heard: Rejection | undefined
      readonly claim: string
    }
  /** A call goes on with what an earlier one opened. */
  | { readonly type: 'resumed'; readonly by: 'call' | 'recovery' }
  /** A call claims the record: the write of it allows the call to send. */
  | {
      readonly type: 'claimed'
      readonly now: number
      readonly until: number
      readonly claim: string
      readonly apiKeyTag: string
    }
  /** The claim names the API key that sends next. */
  | { readonly type: 'tagged'; readonly apiKeyTag: string }
  /** The service refused the current key's request; the order goes on under another key. */
  | { readonly type: 'refused'; readonly rejection: Rejection; readonly attempts: number }
  /** The order goes on with a key that was never sent. */
  | { readonly type: 'moved_on'; readonly key: IntentKey }
  /** The order goes back to its first key, whose window is open. */
  | { readonly type: 'went_back'; readonly key: IntentKey; readonly createdAt: number }
  /** The call ended, and nothing was bought. */
  | {
      readonly type: 'closed'
      readonly rejection: Rejection
      readonly attempts: number
      /** True if somebody else may have sent the key as well. */
      readonly shared: boolean
      /** True if the service looked at no request with the key: its window has not begun. */
      readonly unused: boolean
    }
  /** The call ended, and nobody knows how. */
  | {
      readonly type: 'left_open'
      readonly ambiguous: boolean
      readonly hold: Hold | undefined
      readonly attempts: number
    }
  /** The service has not looked at an enqueued order: the next recovery sends it. */
  | {
      readonly type: 'requeued'
      readonly heard: Rejection | undefined
      readonly attempts: number
      readonly unused: boolean
    }
  /** An order exists and was charged. */
  | ({ readonly type: 'proven' } & Proof)
  /** The clock went back, so nobody knows how old the keys are. */
  | { readonly type: 'distrusted'; readonly busy: boolean; readonly claim: string }
  /** The call that left the record open is taken for dead. */
  | { readonly type: 'taken_over'; readonly claim: string }
  /** Nothing changes but the writer: a write that was given up before comes too late. */
  | { readonly type: 'rewritten'; readonly claim: string }
  /** A person gave the order up. `key` is its next one; undefined where the key is the order's name. */
  | { readonly type: 'abandoned'; readonly key: IntentKey | undefined; readonly claim: string }

type Event<Type extends RecordEvent['type']> = Extract<RecordEvent, { readonly type: Type }>

/** The next content of a record. Nothing else makes one. */
export function apply(record: RecordContent | undefined, event: RecordEvent): RecordContent {
  if (event.type === 'asked') return asked(record, event)
  if (record === undefined) throw new TypeError(`There is no record to be ${event.type}.`)
  switch (event.type) {
    case 'resumed':
      return resumed(record, event)
    case 'claimed': {
      const { now, until: busyUntil, claim, apiKeyTag } = event
      return { ...record, firstSentAt: record.firstSentAt ?? now, busyUntil, claim, apiKeyTag }
    }
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
    case 'requeued':
      return requeued(record, event)
    case 'proven':
      return proven(record, event)
    case 'distrusted':
      return distrusted(record, event)
    case 'taken_over':
      return { ...released(record), claim: event.claim }
    case 'rewritten':
      return { ...record, claim: event.claim }
    case 'abandoned':
      return abandoned(record, event)
  }
}

/** True if a created record already says all that a proof says. */
export function isKnown(newest: RecordContent, { sent, order, orderId }: Proof): boolean {
  if (newest.state !== 'created') return false
  if (newest.readable) return true
  if (order !== undefined || (orderId !== undefined && newest.order?.id === undefined)) return false
  // Its own claim is given up with a write.
  return newest.busyUntil === undefined || newest.claim !== sent?.claim
}

/** What is known of the key stays known: when it was first sent decides until when it may be. */
function asked(
  record: RecordContent | undefined,
  { order, key, moved, heard, claim }: Event<'asked'>,
): RecordContent {
  const same = moved ? undefined : record
  const { highest, first, firstSentAt } = same ?? {}
  const left = moved && record !== undefined ? leftKeys(record) : record?.left
  const { slot, fingerprint, externalOrderId, body } = order
  return {
    slot,
    ...key,
    state: 'open',
    // A closed record is in doubt only if a person gave it up under a key that cannot change.
    ambiguous: same?.ambiguous === true,
    attempts: record?.attempts ?? 0,
    fingerprint,
    body,
    apiKeyTag: '',
    claim,
    readable: false,
    refused: same?.refused === true,
    foreign: same?.foreign === true,
    ...defined({ externalOrderId, highest, first, firstSentAt, left, rejection: heard }),
  }
}

/** Whoever opened it may have sent it, so nothing that is heard from now on is clean. Of a queued one, nothing is in doubt. */
function resumed(record: RecordContent, { by }: Event<'resumed'>): RecordContent {
  const { rejection: _rejection, hold, ...rest } = record
  if (isUnsent(record)) return { ...rest, ...defined({ hold }) }
  // Recovery that cannot reach the service has not lifted the hold.
  return { ...rest, ambiguous: true, ...(by === 'recovery' ? defined({ hold }) : {}) }
}

function movedOn(record: RecordContent, key: IntentKey): RecordContent {
  const { firstSentAt: _sent, ...next } = withKey(record, key)
  const first = key.keyOrigin === 'derived' ? firstKeyOf(record) : undefined
  // Of the others, no caller can name one: they are computed or drawn here.
  const left = record.keyOrigin === 'caller' ? leftKeys(record) : record.left
  return { ...next, refused: false, ...defined({ first, left }) }
}

function wentBack(record: RecordContent, { key, createdAt }: Event<'went_back'>): RecordContent {
  const { sentAt: firstSentAt = createdAt, refused = false } = record.first ?? {}
  return { ...withKey(record, key), refused, firstSentAt, highest: highestGeneration(record) }
}

/** The record with a key under which nothing was heard yet. */
function withKey(record: RecordContent, key: IntentKey): RecordContent {
  const { rejection: _rejection, hold: _hold, first: _first, highest: _highest, ...rest } = record
  return { ...rest, ...key, ambiguous: false, foreign: false }
}

/** The keys that an order has left once it leaves the current one, too. One that was never sent may still be. */
export function leftKeys({ left, key, firstSentAt }: RecordContent): readonly string[] | undefined {
  return firstSentAt === undefined ? left : [...(left ?? []), key]
}

/** What is to be known of the first key once another takes its place. */
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
    // An order that is found by its reference is compared with what was asked for.
    ...(isConflict ? defined({ body }) : {}),
    attempts: record.attempts + attempts,
    state: 'rejected',
    rejection,
    refused: record.refused || rejection.kind === 'refused',
    // Where every payload under the key was refused, it is one of those that the key belongs to.
    foreign: record.foreign || (isConflict && (shared || !record.refused)),
  }
}

function leftOpen(record: RecordContent, { ambiguous, hold, attempts }: Event<'left_open'>): RecordContent {
  return {
    ...released(record),
    ambiguous,
    attempts: record.attempts + attempts,
    // A hold that was there before stays: recovery that could not reach the service has not lifted it.
    ...defined({ hold: hold ?? record.hold }),
  }
}

function requeued(record: RecordContent, { heard, attempts, unused }: Event<'requeued'>): RecordContent {
  const queued = unused ? neverSent(released(record)) : released(record)
  return { ...queued, apiKeyTag: '', attempts: record.attempts + attempts, ...defined({ rejection: heard }) }
}

function proven(newest: RecordContent, { sent, order, orderId, attempts, claim }: Proof): RecordContent {
  const { hold: _hold, rejection: _rejection, body, order: known, ...rest } = released(newest)
  // The proof is for the key that this call sent, also where another call has moved on meanwhile.
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
      // Without the order itself, the body is still needed to ask for it again.
      body: order === undefined ? (body ?? sent?.body) : undefined,
    }),
  }
}

/** Without the mark, the window would open again as the clock catches up. */
function distrusted(record: RecordContent, { busy, claim }: Event<'distrusted'>): RecordContent {
  const { firstSentAt, first } = record
  return {
    // A claim from the future holds nothing; once the mark is written now, it would until the clock has caught up.
    ...(busy ? record : released(record)),
    claim,
    ...(firstSentAt === undefined ? {} : { firstSentAt: 0 }),
    ...(first === undefined ? {} : { first: { ...first, sentAt: 0 } }),
  }
}

/** The next call buys anew, under another key where the key is not the order's name; there, a refusal proves nothing. */
function abandoned(record: RecordContent, { key, claim }: Event<'abandoned'>): RecordContent {
  const next =
    key === undefined
      ? { ...record, generation: record.generation + 1, refused: false, foreign: false }
      : { ...movedOn(record, key), first: { sentAt: 0, refused: false } }
  const facts = { rejection: { kind: 'abandoned' }, attempts: 0, shared: false, unused: false } as const
  return { ...closed(next, facts), claim }
}

/** The record without its claim. */
function released({ busyUntil: _busyUntil, ...record }: RecordContent): RecordContent {
  return record
}

function neverSent({ firstSentAt: _sent, ...record }: RecordContent): RecordContent {
  return record
}
