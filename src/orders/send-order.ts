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
   * The refusal that an earlier call received under this key. If the service repeats it, the order
   * continues under a new key.
   */
  readonly earlier: Rejection | undefined
  readonly operation: string
  /** True in recovery: the request is sent once per key, whatever the response. */
  readonly once: boolean
  /** True for an enqueued order, which stays enqueued if the service processes no request. */
  readonly queued: boolean
  /**
   * True if the service has processed no request with the key: its window begins with this call.
   */
  readonly unused: boolean
  /** Milliseconds since 1970. Default: the end of the record's safe-retry window. */
  readonly sendUntil: number | undefined
}

export interface Sent {
  readonly charged: Charged
  readonly order: Order | undefined
  readonly orderId: string | undefined
  /** Outcome of the last attempt. */
  readonly outcome: Outcome | undefined
  readonly ending: Ending<Order>
  /** Number of attempts under all keys. */
  readonly attempts: number
  readonly record: JournalRecord
  /** False if the outcome could not be stored. */
  readonly remembered: boolean
  /** True if another call changed the record, so that the outcome was not stored. */
  readonly overtaken: boolean
  /** True if only this call can have created the order: a new key was sent exactly once. */
  readonly fresh: boolean
}

/** Claim the record first, so that no other call sends the order at the same time. */
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
  /** The API key whose tag the record contains. */
  let claimedFor = options.credential
  for (;;) {
    const { record } = mine
    const fresh =
      record.keyOrigin === 'random' && !record.ambiguous && record.attempts === 0 && record.state === 'open'
    let history: History = { ambiguous: record.ambiguous, proven: record.state === 'created' }
    let verdict: Verdict | undefined
    let outcome: Outcome | undefined
    // True while the store lacks the tag of the proxy's API key. Without the tag, a later process
    // might repeat the order under another API key.
    let unwritten = false
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
        // The proxy's first response names its API key. The tag is stored with the outcome.
        if (claimedFor === null && answerOf(result)?.headers.get(API_KEY_TAG) && !isProxied(apiKeyTag)) {
          mine = { ...mine, record: { ...mine.record, apiKeyTag: tagOf(context, key, null) } }
          unwritten = true
        }
        // The order of a 2xx response is stored, so redact API keys in it first.
        const success = result.kind === 'answer' && result.status < 300
        outcome = classify(
          success ? bare({ ...result, text: redact(result.text, secrets, LIKE_A_KEY) }) : result,
          (order) => contradiction(runtime.deriveId, record, echoOf(order), 'response'),
        )
        unused &&= !mayHaveProcessed(outcome.kind)
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
        // Store the tag of a new API key before the request is sent, or another process would
        // assume that the old API key sent the order.
        const content = apply(mine.record, { type: 'tagged', apiKeyTag: tag })
        const written = await context.journal.write(mine, content, options.deadline)
        if (written.result !== 'written') return false
        mine = written.found
        unwritten = false
        claimedFor = apiKey
        // Check again: if the machine slept during the write, the claim or the window may be over.
        return !isLate()
      },
      isLate,
    })
    const { trail } = ending
    attempts += trail.attempts
    const meaning = meaningOf(verdict, history, record)
    const heard = rejectionOf(meaning, outcome, trail)
    const moves = heard !== undefined && movesOn(context, record, heard, earlier)
    // If `moves`, this order's own refused payload caused a conflict, so treat the conflict as a
    // refusal.
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
    // The attempt under a new key is a retry. Without a retry left, the order stays refused.
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
      // The failed write may still be applied later. Closing the record below prevents that.
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
    // A caller who aborts a recovery does not abort the order, so a later recovery may repeat it.
    const hold = ending.end !== 'aborted' ? verdict?.hold : options.once ? undefined : 'aborted'
    const refused = outcome !== undefined && OUTCOMES[outcome.kind].hold === 'refused'
    if (rejection !== undefined && options.queued && !refused) {
      const { attempts: made } = trail
      const requeued = apply(mine.record, { type: 'requeued', heard: earlier, attempts: made, unused })
      // Do not report 'no': nothing was bought so far, but the next recovery sends the order.
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
 * True if the claim is no longer valid, or the safe-retry window is over: a process that was
 * suspended, or whose clock jumped, must not send an order that another call may have claimed.
 */
export function isTooLate({ busyUntil = 0, updatedAt }: JournalRecord, until: number, now: number): boolean {
  const claimHolds = now < busyUntil && now >= updatedAt - CLOCK_SKEW
  return !claimHolds || now > until
}

/** Under another API key, the same idempotency key may buy an existing order a second time. */
export function mayBeSentUnder(
  context: OrderContext,
  record: JournalRecord,
  { ambiguous, proven }: History,
  credential: string | null,
): boolean {
  return !(ambiguous || proven) || sameApiKey(context, record, credential)
}

/** A refusal that was not stored leaves an open record, which recovery may still send. */
export function chargedAsStored(result: Written['result'], charged: Charged): Charged {
  return result === 'written' ? charged : 'unknown'
}

export function meaningOf(verdict: Verdict | undefined, history: History, record: JournalRecord): Meaning {
  const meaning: Meaning = verdict ?? judgeOutcome('not_sent', history)
  // A refusal proves nothing if the key belongs to a payload that this store never sent.
  if (record.foreign && meaning.charged === 'no')
    return { charged: 'unknown', state: 'rejected', rejection: 'conflict' }
  return meaning
}

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
 * True if the service repeated a refusal, or reports a conflict although it refused every payload
 * under the key. A service that stores refusals by key would repeat the refusal forever, so the
 * order continues under a new key.
 */
export function movesOn(
  context: OrderContext,
  record: JournalRecord,
  heard: Rejection,
  earlier: Rejection | undefined,
): boolean {
  if (earlier === undefined || record.keyOrigin === 'caller') return false
  // `record.refused` may come from a concurrent call, so also require a refusal before this call.
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

/** With a store in memory, another process may derive and send the same key. */
export function isShared({ journal }: OrderContext, { keyOrigin }: JournalRecord): boolean {
  return keyOrigin === 'derived' && journal.store.durability === 'memory'
}

function mayHaveProcessed(kind: OutcomeKind): boolean {
  const { rejection } = OUTCOMES[kind].clean
  return rejection !== 'not_processed' && rejection !== 'cancelled'
}

function lastOf(secrets: ReadonlySet<string>): string | null {
  return [...secrets].at(-1) ?? null
}
