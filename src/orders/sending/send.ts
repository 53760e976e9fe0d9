/** Sends a claimed order, under its next key if the service repeats a refusal, and stores the outcome. */
import { bare, defined } from '../../defined.ts'
import type { Charged } from '../../errors/classes.ts'
import { type AttemptResult, answerOf } from '../../http/attempt.ts'
import { type Ending, type Judgement, perform, type Trail } from '../../http/call.ts'
import { Deadline, GRACE } from '../../http/deadline.ts'
import { LIKE_A_KEY, redact } from '../../http/redact.ts'
import { MAX_ITEM_BYTES } from '../../http/request.ts'
import { API_KEY_TAG, IF_API_KEY_TAG, isNameless, isProxied } from '../../identity/keys.ts'
import type { Order } from '../../schemas/order.ts'
import { isLate, isShared, nextKey, sameApiKey, tagOf, timingOf } from '../protocol/keys.ts'
import {
  classify,
  type History,
  judgeOutcome,
  OUTCOMES,
  type Outcome,
  type OutcomeKind,
  type Verdict,
} from '../protocol/outcome.ts'
import { claim, isAnother, isLater, isProven, type Proof, prove, settle } from '../protocol/transitions.ts'
import { type Job, ORDERS_PATH, type OrderContext, SENDING } from '../record/context.ts'
import type { FoundRecord } from '../record/journal.ts'
import { chargedOf, type JournalRecord, type Rejection } from '../record/record.ts'

/** What a call has claimed. */
export interface Claimed {
  readonly end: 'claimed'
  readonly found: FoundRecord
  /** The API key whose tag the record has, for the first attempt. */
  readonly credential: string | null
  /** A refusal under this key from before this call. If it is repeated, the order gets a new key. */
  readonly earlier: Rejection | undefined
  /** True if no request with this key can have been processed yet. */
  readonly unused: boolean
  /** True if an earlier call may have sent the order. */
  readonly continues: boolean
}

/** The call sent the order, or at least claimed it. */
export interface Sent {
  readonly end: 'sent'
  readonly charged: Charged
  /** Outcome of the last attempt, with the order in its response. */
  readonly outcome: Outcome | undefined
  readonly ending: Ending<Order>
  /** Number of attempts under all keys. */
  readonly attempts: number
  /** The record as it was stored last, by this call or by one that overtook it. */
  readonly record: JournalRecord
  /** True if the store has the proof of the charge. */
  readonly remembered: boolean
  /** True if the order existed before this call, undefined if nobody can know. */
  readonly replayed: boolean | undefined
}

export async function send(context: OrderContext, job: Job, claimed: Claimed): Promise<Sent> {
  const { journal, connection } = context
  const { deadline, callId, command } = job
  let { earlier } = claimed
  let attempts = 0
  // Recovery sends a request once.
  let retriesLeft = command === 'recover' ? 0 : job.settings.maxRetries
  let next: Pick<Claimed, 'found' | 'unused' | 'credential'> = claimed
  for (;;) {
    const tried = await attemptsUnder(context, job, next, attempts, retriesLeft)
    const { mine, verdict, outcome, ending, unused, taggedFor } = tried
    const { trail } = ending
    attempts += trail.attempts
    retriesLeft -= trail.counts.retries + 1
    const sent = { end: 'sent', outcome, ending, attempts, remembered: false, replayed: undefined } as const
    // Before the order may move on: whatever came after the proof, another key would buy again.
    if (verdict.shows === 'charge') {
      const orderId = outcome?.orderId ?? mine.record.order?.id
      const evidence = { orderId, order: outcome?.order, sent: mine.record, attempts: trail.attempts }
      const proven = await proveCreated(context, mine, { ...evidence, claim: callId }, deadline)
      const { remembered } = proven
      const replayed = isReplay(next.found.record, trail, claimed.continues)
      return { ...sent, charged: 'yes', record: proven.record, remembered, replayed }
    }
    const code = outcome?.code === undefined ? undefined : redact(outcome.code, trail.secrets)
    const heard = { kind: 'refused', ...defined({ status: outcome?.status, code }) } as const
    const hidden = trail.attempts > 0 && connection.mayResend
    const record = hidden ? { ...mine.record, maybeHidden: true as const } : mine.record
    const moves = movesOn(context, tried, heard, earlier)
    // The attempt under a new key is a retry. Without a retry left, the order stays refused.
    if (moves && retriesLeft >= 0 && deadline.over() === undefined) {
      const refused = { ...record, rejection: heard, attempts: record.attempts + trail.attempts }
      const key = nextKey(context, refused)
      const { now, until } = timingOf(context, job)
      const lease = { now, until, claim: callId, apiKeyTag: tagOf(context, key.key, taggedFor) }
      const written = await journal.write(mine, claim(refused, undefined, key, lease), deadline)
      if (written.result === 'written') {
        next = { found: written.found, unused: true, credential: taggedFor }
        earlier = undefined
        continue
      }
      // The failed write may still be applied later. Closing the record below prevents that.
    }
    const kind = moves ? 'refused' : verdict.shows
    const end = {
      rejection: kind === 'doubt' ? undefined : keptRefusal({ ...heard, kind }, earlier),
      ambiguous: verdict.ambiguous,
      // A caller who aborts a recovery does not abort the order, so a later recovery may repeat it.
      hold: ending.end !== 'aborted' ? verdict.hold : command === 'recover' ? undefined : 'aborted',
      attempts: trail.attempts,
      unused,
    } as const
    const written = await journal.writeOutcome(mine, settle(record, end), deadline)
    if (written.result === 'written') {
      const settled = written.found.record
      return { ...sent, charged: chargedOf(settled), record: settled }
    }
    // Another call may have settled the record while this call was sending.
    const newest = written.result === 'lost' ? await journal.newest(mine.id, deadline.grace()) : undefined
    const current = newest?.record
    const known = current === undefined || isAnother(current, record) ? record : current
    return { ...sent, charged: 'unknown', record: known }
  }
}

/** Sends the order under its current key until the outcome is known, or the call must end. */
async function attemptsUnder(
  context: OrderContext,
  job: Job,
  { found, unused: neverUsed, credential }: Pick<Claimed, 'found' | 'unused' | 'credential'>,
  attemptsBefore: number,
  maxRetries: number,
) {
  const { connection, journal } = context
  const { runtime } = connection
  const { settings, deadline, callId } = job
  const claimed = found.record
  /** The record as last written: an attempt may change its `apiKeyTag`. */
  let mine = found
  /** The API key whose tag the record has. */
  let taggedFor = credential
  // True while the store lacks the tag of the proxy's API key: a later process might repeat the order
  // under another one.
  let isUntold = false
  /** What the attempts before the last one have shown. */
  let before: History = { ambiguous: claimed.ambiguous, proven: claimed.state === 'created' }
  let verdict = judgeOutcome('not_sent', before)
  let outcome: Outcome | undefined
  let unused = neverUsed
  const headers: Record<string, string> = { ...settings.headers }

  const isLateNow = (): boolean => isLate(mine.record, timingOf(context, job))

  const beforeSend = async (apiKey: string | null): Promise<boolean> => {
    if (isLateNow()) return false
    const { record } = mine
    const isUnchanged = apiKey === taggedFor && apiKey !== null
    const tag = isUnchanged ? record.apiKeyTag : tagOf(context, record.key, apiKey, record.apiKeyTag)
    if (isProxied(tag) && context.idempotencyScope === 'apiKey') headers[IF_API_KEY_TAG] = tag
    if (tag === record.apiKeyTag && !isUntold) return true
    if ((verdict.ambiguous || verdict.proven) && !sameApiKey(context, record, apiKey)) return false
    // Claim again with the new tag, or another process would assume that the old API key was sent.
    const until = record.busyUntil ?? 0
    const lease = { now: runtime.now(), until, claim: callId, apiKeyTag: tag }
    const written = await journal.write(mine, claim(record, undefined, record, lease), deadline)
    if (written.result !== 'written') return false
    mine = written.found
    isUntold = false
    taggedFor = apiKey
    // Check again: if the machine slept during the write, the claim or the window may be over.
    return !isLateNow()
  }

  const judge = (result: AttemptResult, { secrets }: Trail): Judgement<Order> => {
    const { key, apiKeyTag } = mine.record
    // The proxy's first response names its API key. The tag is stored with the outcome.
    if (taggedFor === null && answerOf(result)?.headers.get(API_KEY_TAG) && !isProxied(apiKeyTag)) {
      mine = { ...mine, record: { ...mine.record, apiKeyTag: tagOf(context, key, null) } }
      isUntold = true
    }
    // The order of a response is stored, so redact API keys in it first.
    const isAnswer = result.kind === 'answer'
    const clean = isAnswer ? bare({ ...result, text: redact(result.text, secrets, LIKE_A_KEY) }) : result
    outcome = bare(classify(clean, claimed))
    unused &&= !mayHaveProcessed(outcome.kind) && !connection.mayResend
    before = verdict
    verdict = judgeOutcome(outcome.kind, before)
    if (outcome.order !== undefined) return { next: 'done', value: outcome.order }
    return verdict.next === 'stop' || job.command === 'recover'
      ? { next: 'stop' }
      : { next: 'retry', pace: verdict.next }
  }

  const ending = await perform<Order>(connection, {
    endpoint: SENDING[job.command],
    path: ORDERS_PATH,
    query: undefined,
    body: claimed.body,
    idempotencyKey: claimed.key,
    settings: { ...settings, headers, maxRetries },
    deadline,
    callId,
    attemptsBefore,
    maxBytes: MAX_ITEM_BYTES,
    credential,
    judge,
    beforeSend,
    isLate: isLateNow,
  })
  return { ending, mine, outcome, verdict, before, unused, taggedFor }
}

/** False if the attempt ended before the service could check the order and its key. */
export function mayHaveProcessed(kind: OutcomeKind): boolean {
  const { shows } = OUTCOMES[kind]
  return shows !== 'not_processed' && shows !== 'cancelled'
}

/** True if the order existed before, as far as is known; undefined if nobody can know. */
function isReplay(
  { origin, ambiguous, attempts }: JournalRecord,
  trail: Trail,
  continues: boolean,
): boolean | undefined {
  const told = answerOf(trail.last)?.headers.get('idempotent-replayed')
  // A retry may get the order of this call's own first attempt.
  const isOnly = trail.attempts === 1
  if (told === 'true' && isOnly) return true
  // The first response to a key that only this call can have sent is no replay.
  if (told === 'false' || (isOnly && origin === 'random' && !ambiguous && attempts === 0)) return false
  return continues || undefined
}

/** What the attempts under a key have shown. */
interface Shown {
  readonly outcome: Outcome | undefined
  readonly verdict: Verdict
  readonly before: History
  readonly mine: Pick<FoundRecord, 'record'>
}

/**
 * True if the service repeated a refusal, or reports a conflict although it refused the only payload
 * that this key was sent with. A service that stores refusals by key would repeat the refusal
 * forever, so the order continues under a new key.
 */
export function movesOn(
  context: OrderContext,
  { outcome, verdict, before, mine }: Shown,
  { status, code }: Rejection,
  earlier: Rejection | undefined,
): boolean {
  if (earlier?.kind !== 'refused' || mine.record.origin === 'caller') return false
  // Doubt is judged as it was before the conflict. Behind the earlier refusal, a hidden retry may have
  // bought the order.
  if (outcome?.kind === 'conflict')
    return !before.ambiguous && !isShared(context, mine.record) && !mine.record.maybeHidden
  return verdict.shows === 'refused' && status === earlier.status && code === earlier.code
}

/** After a refusal that says nothing of the order, an earlier refusal of its key still counts. */
export function keptRefusal(rejection: Rejection, earlier: Rejection | undefined): Rejection {
  return rejection.kind !== 'refused' && earlier?.kind === 'refused' ? earlier : rejection
}

export interface Proven {
  /** The record with the proof, as it is or would be stored. */
  readonly record: JournalRecord
  /** False if the store has no record of the proof. */
  readonly remembered: boolean
  /** True if the row has a later order without a reference or key. */
  readonly isDisplaced: boolean
}

const MAX_MERGES = 8

/**
 * Stores a proof of a charge over the newest record: a charge overrides any other outcome.
 *
 * @param signal ends the write, which otherwise goes on if the caller aborts the call
 */
export async function proveCreated(
  context: OrderContext,
  mine: FoundRecord,
  shown: Proof,
  deadline: Deadline,
  signal?: AbortSignal,
): Promise<Proven> {
  const { journal, connection } = context
  // Without an id of its own, a lost write could be taken for the one that was stored.
  const claim = shown.claim ?? connection.runtime.randomId()
  const proof = { ...shown, order: shown.order && rememberedOrder(context, shown.order) }
  const last = new Deadline(connection.runtime, Math.max(deadline.remaining(), 0) + GRACE, undefined)
  let newest = mine
  let isDisplaced = false
  for (let round = 0; round < MAX_MERGES; round++) {
    const { record } = newest
    if (isLater(record, mine.record, proof)) {
      isDisplaced = isNameless(record.slot)
      break
    }
    if (isProven(record, proof)) {
      // The row may have got another order, so this one would not be remembered.
      if (proof.orderId !== undefined && record.order?.id !== proof.orderId) break
      return { record, remembered: true, isDisplaced }
    }
    // The order belongs to the key and payload that this call has sent or compared it with.
    const content = prove(record, { ...proof, sent: proof.sent ?? mine.record }, claim)
    const written = await journal.writeOutcome(newest, content, deadline, signal)
    if (written.result === 'written') return { record: written.found.record, remembered: true, isDisplaced }
    const current = written.result === 'lost' ? await journal.newest(mine.id, last) : undefined
    if (current === undefined) break
    // If the record was forgotten or pruned since this call read it, write it again: a proven charge
    // must not get lost.
    newest = { ...current, record: current.record ?? record }
  }
  return { record: { ...mine.record, ...prove(mine.record, proof, claim) }, remembered: false, isDisplaced }
}

export function rememberedOrder({ remember }: OrderContext, order: Partial<Order>): Partial<Order> {
  const { id, status, amount } = order
  return remember === 'order' ? order : defined({ id, status, amount })
}
