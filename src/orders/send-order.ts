import { bare, defined } from '../defined.ts'
import type { Charged } from '../errors.ts'
import { API_KEY_TAG, IF_API_KEY_TAG } from '../http/api-key-tag.ts'
import { answerOf } from '../http/attempt.ts'
import { type CallSettings, type Ending, type Judgement, perform, type Trail } from '../http/call.ts'
import type { Deadline } from '../http/deadline.ts'
import { LIKE_A_KEY, redact } from '../http/redact.ts'
import { MAX_ITEM_BYTES } from '../http/request.ts'
import type { Order } from '../schemas/order.ts'
import { nextKey, sameApiKey, tagOf } from './claim.ts'
import { CLOCK_SKEW } from './conditions.ts'
import { CREATE_ORDER, ORDERS_PATH, type OrderContext } from './context.ts'
import { contradiction, echoOf } from './evidence.ts'
import { isProxied } from './identity.ts'
import type { FoundRecord, Written } from './journal.ts'
import { proveCreated, rememberedOrder } from './newest.ts'
import {
  classify,
  type History,
  judgeOutcome,
  type Meaning,
  OUTCOMES,
  type Outcome,
  type OutcomeKind,
  type Verdict,
} from './outcome.ts'
import type { JournalRecord, Rejection } from './record.ts'
import { apply, type Proof } from './transitions.ts'

export interface SendOptions {
  readonly settings: CallSettings
  readonly deadline: Deadline
  readonly callId: string
  /** API key of the first attempt. */
  readonly credential: string | null
  /**
   * The refusal that an earlier call received under this key. If this call receives the same
   * refusal, it continues with a key that was never sent.
   */
  readonly earlier: Rejection | undefined
  /** The client method that sends the record, as events name it. */
  readonly operation: string
  /** True to send only once, whatever the response. Only recovery sets this. */
  readonly once: boolean
  /**
   * True if the order was enqueued and never sent. If the order is neither bought nor refused, it
   * stays enqueued for the next recovery.
   */
  readonly queued: boolean
  /** True if the service has not processed the key yet: the key's window begins with this call. */
  readonly unused: boolean
  /** When sending must end, in milliseconds since 1970. Default: the record's window. */
  readonly sendUntil: number | undefined
}

/** Result of sending a record, which the call has tried to store. */
export interface Sent {
  readonly charged: Charged
  /** The order, if it is readable. */
  readonly order: Order | undefined
  readonly orderId: string | undefined
  /** Result of the last attempt, if there was one. */
  readonly outcome: Outcome | undefined
  readonly ending: Ending<Order>
  /** Number of attempts of the call, over all generations. */
  readonly attempts: number
  /** The last version of the record that this call wrote or read. */
  readonly record: JournalRecord
  /** False if the outcome could not be stored. */
  readonly remembered: boolean
  /** True if the outcome was not stored because another call wrote the record after the claim. */
  readonly overtaken: boolean
  /** True if a fresh key was sent exactly once and got a response: this call created the order. */
  readonly fresh: boolean
}

/**
 * Sends a claimed record's key and body until the outcome table requires a stop. Stores the outcome
 * and returns it. Claim the record first: nothing may be sent for another call's version.
 */
export async function sendOrder(
  context: OrderContext,
  claimed: FoundRecord,
  options: SendOptions,
): Promise<Sent> {
  const { connection } = context
  const { runtime } = connection
  let mine = claimed
  let attempts = 0
  let retriesLeft = options.settings.maxRetries
  let { earlier, unused } = options
  let credential: string | null | undefined = options.credential
  /** The API key whose tag is in the record. */
  let claimedFor = options.credential
  for (;;) {
    const { record } = mine
    const fresh =
      record.keyOrigin === 'random' && !record.ambiguous && record.attempts === 0 && record.state === 'open'
    let history: History = { ambiguous: record.ambiguous, proven: record.state === 'created' }
    let verdict: Verdict | undefined
    let outcome: Outcome | undefined
    // True while the proxy has named its API key but the stored record has no tag for it. Without
    // the tag, a later process would repeat the order under whichever API key the proxy uses then.
    let unwritten = false
    // Recovery passes its own limit. Any other call uses the record's window.
    const sendUntil = options.sendUntil ?? (record.firstSentAt ?? runtime.now()) + context.safeRetryWindow

    const headers: Record<string, string> = { ...options.settings.headers }

    const isLate = (): boolean => isTooLate(mine.record, sendUntil, runtime.now())

    const ending: Ending<Order> = await perform<Order>(connection, {
      endpoint: { ...CREATE_ORDER, operation: options.operation },
      path: ORDERS_PATH,
      query: undefined,
      body: record.body,
      idempotencyKey: record.key,
      settings: { ...options.settings, headers, maxRetries: retriesLeft },
      deadline: options.deadline,
      callId: options.callId,
      attemptsBefore: attempts,
      maxBytes: MAX_ITEM_BYTES,
      credential,
      judge: (result, { secrets }): Judgement<Order> => {
        const { key, apiKeyTag } = mine.record
        // The tag is known only after the proxy's first response. It is written together with the
        // outcome.
        if (claimedFor === null && answerOf(result)?.headers.get(API_KEY_TAG) && !isProxied(apiKeyTag)) {
          mine = { ...mine, record: { ...mine.record, apiKeyTag: tagOf(context, key, null) } }
          unwritten = true
        }
        // A success is stored, so API keys are redacted here. Of a refusal, only the code is
        // stored, and `rejectionOf` redacts it.
        const success = result.kind === 'answer' && result.status < 300
        outcome = classify(
          success ? bare({ ...result, text: redact(result.text, secrets, LIKE_A_KEY) }) : result,
          (order) => contradiction(runtime.deriveId, record, echoOf(order), 'response'),
        )
        unused &&= !isLookedAt(outcome.kind)
        verdict = judgeOutcome(outcome.kind, history)
        history = verdict.history
        if (outcome.order !== undefined) return { next: 'done', value: outcome.order }
        return verdict.next === 'stop' || options.once
          ? { next: 'stop' }
          : { next: 'retry', pace: verdict.next }
      },
      beforeSend: async (apiKey) => {
        if (isLate()) return false
        const { key, apiKeyTag } = mine.record
        const unchanged = apiKey === claimedFor && apiKey !== null
        const tag = unchanged ? apiKeyTag : tagOf(context, key, apiKey, apiKeyTag)
        if (isProxied(tag) && context.idempotencyScope === 'apiKey') headers[IF_API_KEY_TAG] = tag
        if (tag === apiKeyTag && !unwritten) return true
        if (tag !== apiKeyTag && !mayBeSentUnder(context, mine.record, history, apiKey)) return false
        // The API key was rotated, or is known only now. The record must name it before the request
        // is sent, or another process would assume the wrong key.
        const content = apply(mine.record, { type: 'tagged', apiKeyTag: tag })
        const written = await context.journal.write(mine, content, options.deadline)
        if (written.result !== 'written') return false
        mine = written.found
        unwritten = false
        claimedFor = apiKey
        // The machine may have slept during the write.
        return !isLate()
      },
      isLate,
    })
    const { trail } = ending
    attempts += trail.attempts
    const meaning = meaningOf(verdict, history, record)
    const heard = rejectionOf(meaning, outcome, trail)
    const moves = heard !== undefined && movesOn(context, record, heard, earlier)
    // Treat a conflict as a refusal if only this order's own refused payloads can explain it.
    const rejection: Rejection | undefined = moves ? { ...heard, kind: 'refused' } : heard
    const sent = { ending, attempts, record: mine.record, outcome }
    const unordered = ({ result }: Written): Sent => ({
      ...sent,
      order: undefined,
      orderId: undefined,
      charged: chargedAsStored(result, moves ? 'no' : meaning.charged),
      remembered: result === 'written',
      overtaken: result === 'lost',
      fresh: false,
    })

    retriesLeft -= trail.retries + 1
    // A new key counts as a retry. If no retry is left, the order stays refused, and a later call
    // uses a new key.
    const goesOn = retriesLeft >= 0 && options.deadline.over() === undefined
    if (rejection !== undefined && moves && goesOn) {
      const { busyUntil: until = 0, claim } = mine.record
      const left = apply(mine.record, { type: 'refused', rejection, attempts: trail.attempts })
      const next = apply(left, { type: 'moved_on', key: nextKey(context, left) })
      claimedFor = lastOf(trail.secrets)
      const apiKeyTag = tagOf(context, next.key, claimedFor)
      const content = apply(next, { type: 'claimed', now: runtime.now(), until, claim, apiKeyTag })
      const written = await context.journal.write(mine, content, options.deadline)
      if (written.result === 'written') {
        mine = written.found
        earlier = undefined
        unused = true
        credential = undefined
        continue
      }
      // If the write may still be applied, closing the record below prevents that.
    }

    if (meaning.state === 'created') {
      const order = outcome?.order
      const orderId = outcome?.orderId ?? record.order?.id
      const { record: sentAs } = mine
      const proof: Proof = {
        sent: sentAs,
        order: order && rememberedOrder(context, order),
        orderId,
        attempts: trail.attempts,
        claim: sentAs.claim,
      }
      const proven = await proveCreated(context, mine, proof, options.deadline)
      return {
        ...sent,
        order,
        orderId,
        charged: 'yes',
        remembered: proven === 'stored',
        overtaken: false,
        fresh: fresh && trail.attempts === 1,
      }
    }
    // A caller who aborts a recovery has not aborted the order, so recovery may repeat it.
    const hold = ending.end !== 'aborted' ? verdict?.hold : options.once ? undefined : 'aborted'
    const refused = outcome !== undefined && OUTCOMES[outcome.kind].hold === 'refused'
    if (rejection !== undefined && options.queued && !refused) {
      const { attempts: made } = trail
      const requeued = apply(mine.record, { type: 'requeued', heard: earlier, attempts: made, unused })
      // Do not report 'no', although nothing was bought so far: the next recovery sends the order.
      return {
        ...unordered(await context.journal.settle(mine, requeued, options.deadline)),
        charged: 'unknown',
      }
    }
    const { ambiguous } = history
    const content = apply(
      mine.record,
      rejection === undefined
        ? { type: 'left_open', ambiguous, hold, attempts: trail.attempts }
        : { type: 'closed', rejection, attempts: trail.attempts, shared: isShared(context, record), unused },
    )
    return unordered(await context.journal.settle(mine, content, options.deadline))
  }
}

/**
 * True once nothing may be sent on this claim. A process that was stopped, or whose clock jumped,
 * must not send an order that another call may have taken over.
 */
export function isTooLate({ busyUntil = 0, updatedAt }: JournalRecord, until: number, now: number): boolean {
  const claimHolds = now < busyUntil && now >= updatedAt - CLOCK_SKEW
  return !claimHolds || now > until
}

/**
 * False for an order that may exist, if another API key sent it: under this API key, the same
 * idempotency key may place a new order.
 */
export function mayBeSentUnder(
  context: OrderContext,
  record: JournalRecord,
  { ambiguous, proven }: History,
  credential: string | null,
): boolean {
  return !(ambiguous || proven) || sameApiKey(context, record, credential)
}

/**
 * `charged` according to the store. A refusal that was not stored leaves an open record, which
 * recovery may still send.
 */
export function chargedAsStored(result: Written['result'], charged: Charged): Charged {
  return result === 'written' ? charged : 'unknown'
}

/**
 * What the end of a call means: the table row of its last attempt, or of `not_sent` if there was no
 * attempt. A call that ends before a retry keeps the meaning of its last attempt.
 */
export function meaningOf(verdict: Verdict | undefined, history: History, record: JournalRecord): Meaning {
  const meaning: Meaning = verdict ?? judgeOutcome('not_sent', history)
  // The key belongs to a payload that this store never saw: no refusal under the key proves that
  // nothing was bought.
  if (record.foreign && meaning.charged === 'no')
    return { charged: 'unknown', state: 'rejected', rejection: 'conflict' }
  return meaning
}

/** How the record is closed, if the outcome closes it. */
function rejectionOf(
  { rejection: kind }: Meaning,
  outcome: Outcome | undefined,
  trail: Trail,
): Rejection | undefined {
  if (kind === undefined) return undefined
  const code = outcome?.code === undefined ? undefined : redact(outcome.code, trail.secrets)
  return { kind, ...defined({ status: outcome?.status, code }) }
}

/**
 * True if the order moves on to a key that was never sent. This is so if the service repeated a
 * refusal in a new call, or reports a conflict although it refused every payload under the key. A
 * service that remembers refusals by key would repeat the refusal forever. For any other service,
 * a new key changes nothing.
 */
export function movesOn(
  context: OrderContext,
  record: JournalRecord,
  heard: Rejection,
  earlier: Rejection | undefined,
): boolean {
  if (earlier === undefined || record.keyOrigin === 'caller') return false
  // A refusal of a concurrent call is not enough: this call did not begin after that refusal.
  if (heard.kind === 'conflict')
    return (
      record.refused &&
      !isShared(context, record) &&
      (earlier.kind === 'refused' || earlier.kind === 'conflict')
    )
  return (
    heard.kind === 'refused' &&
    earlier.kind === 'refused' &&
    heard.status === earlier.status &&
    heard.code === earlier.code
  )
}

/** True if a process without this store may have sent the key, because it derives the same key. */
export function isShared({ journal }: OrderContext, { keyOrigin }: JournalRecord): boolean {
  return keyOrigin === 'derived' && journal.store.durability === 'memory'
}

/** False if the outcome shows that the service did not process the order and its key. */
function isLookedAt(kind: OutcomeKind): boolean {
  const { rejection } = OUTCOMES[kind].clean
  return rejection !== 'not_processed' && rejection !== 'cancelled'
}

function lastOf(secrets: ReadonlySet<string>): string | null {
  return [...secrets].at(-1) ?? null
}
