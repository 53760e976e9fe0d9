/** Sends a claimed order, under its next key if the service repeats a refusal, and stores the outcome. */
import { defined } from '../defined.ts'
import type { Charged } from '../errors/classes.ts'
import type { Ending, Trail } from '../http/call.ts'
import { redact } from '../http/redact.ts'
import type { Order } from '../schemas/order.ts'
import { nextKey, tagOf } from './claim.ts'
import type { OrderContext } from './context.ts'
import type { FoundRecord, Written } from './journal.ts'
import { KeyAttempts, type SendOptions } from './key-attempts.ts'
import { proveCreated, rememberedOrder } from './newest.ts'
import { type History, judgeOutcome, type Meaning, type Outcome, type Verdict } from './outcome.ts'
import type { JournalRecord, RecordContent, Rejection } from './record.ts'
import { apply, type Proof, type RecordEvent } from './transitions.ts'

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
  let { earlier } = options
  let credential: string | null | undefined = options.credential
  let attempts = 0
  let retriesLeft = options.settings.maxRetries
  let tried = new KeyAttempts(context, options, claimed, options.credential, options.unused)
  for (;;) {
    const ending = await tried.run(attempts, retriesLeft, credential)
    const { trail } = ending
    attempts += trail.attempts
    retriesLeft -= trail.retries + 1
    const meaning = meaningOf(tried.verdict, tried.history, tried.claimed)
    const heard = rejectionOf(meaning, tried.outcome, trail)
    const moves = heard !== undefined && movesOn(context, tried.claimed, heard, earlier)
    // If `moves`, this order's own refused payload caused a conflict, so treat the conflict as a
    // refusal.
    const rejection: Rejection | undefined = moves ? { ...heard, kind: 'refused' } : heard
    // The attempt under a new key is a retry. Without a retry left, the order stays refused.
    if (rejection !== undefined && moves && retriesLeft >= 0 && options.deadline.over() === undefined) {
      const claimedFor = lastOf(trail.secrets)
      const next = claimedAnew(context, tried.mine.record, rejection, trail.attempts, claimedFor)
      const written = await context.journal.write(tried.mine, next, options.deadline)
      if (written.result === 'written') {
        tried = new KeyAttempts(context, options, written.found, claimedFor, true)
        earlier = undefined
        credential = undefined
        continue
      }
      // The failed write may still be applied later. Closing the record below prevents that.
    }
    return await stored(context, options, tried, { ending, attempts, meaning, rejection, moves })
  }
}

/** The content of a refused record that continues under its next key, still claimed by this call. */
function claimedAnew(
  context: OrderContext,
  record: JournalRecord,
  rejection: Rejection,
  attempts: number,
  claimedFor: string | null,
): RecordContent {
  const { busyUntil: until = 0, claim } = record
  const left = apply(record, { type: 'refused', rejection, attempts })
  const next = apply(left, { type: 'moved_on', key: nextKey(context, left) })
  const apiKeyTag = tagOf(context, next.key, claimedFor)
  return apply(next, { type: 'claimed', now: context.connection.runtime.now(), until, claim, apiKeyTag })
}

interface Learnt {
  readonly ending: Ending<Order>
  readonly attempts: number
  readonly meaning: Meaning
  readonly rejection: Rejection | undefined
  readonly moves: boolean
}

/** Stores what the last key's attempts have shown. */
async function stored(
  context: OrderContext,
  options: SendOptions,
  { claimed, mine, history, verdict, outcome, unused }: KeyAttempts,
  { ending, attempts, meaning, rejection, moves }: Learnt,
): Promise<Sent> {
  const { journal } = context
  const { attempts: made } = ending.trail
  const nothing = { order: undefined, orderId: undefined, overtaken: false, fresh: false }
  const sent = { ...nothing, ending, attempts, record: mine.record, outcome }
  if (meaning.state === 'created') {
    const order = outcome?.order
    const orderId = outcome?.orderId ?? claimed.order?.id
    const proof: Proof = {
      sent: mine.record,
      order: order && rememberedOrder(context, order),
      orderId,
      attempts: made,
      claim: mine.record.claim,
    }
    const proven = await proveCreated(context, mine, proof, options.deadline)
    const fresh = isFresh(claimed) && made === 1
    return { ...sent, order, orderId, charged: 'yes', remembered: proven === 'stored', fresh }
  }
  const settled = async (event: RecordEvent, charged: Charged): Promise<Sent> => {
    const { result } = await journal.settle(mine, apply(mine.record, event), options.deadline)
    const remembered = result === 'written'
    return { ...sent, charged: chargedAsStored(result, charged), remembered, overtaken: result === 'lost' }
  }
  if (rejection === undefined) {
    // A caller who aborts a recovery does not abort the order, so a later recovery may repeat it.
    const hold = ending.end !== 'aborted' ? verdict?.hold : options.once ? undefined : 'aborted'
    const { ambiguous } = history
    return await settled({ type: 'left_open', ambiguous, hold, attempts: made }, meaning.charged)
  }
  const shared = isShared(context, claimed)
  const charged = moves ? 'no' : meaning.charged
  return await settled({ type: 'closed', rejection, attempts: made, shared, unused }, charged)
}

/** True if only this call can have sent the key, so that its first response is not a replay. */
function isFresh({ keyOrigin, ambiguous, attempts, state }: JournalRecord): boolean {
  return keyOrigin === 'random' && !ambiguous && attempts === 0 && state === 'open'
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

function lastOf(secrets: ReadonlySet<string>): string | null {
  return [...secrets].at(-1) ?? null
}
