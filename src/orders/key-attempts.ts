/** The attempts to send an order under one key. */
import { bare } from '../defined.ts'
import { API_KEY_TAG, IF_API_KEY_TAG } from '../http/api-key-tag.ts'
import { type AttemptResult, answerOf } from '../http/attempt.ts'
import { type CallSettings, type Ending, type Judgement, perform } from '../http/call.ts'
import type { Deadline } from '../http/deadline.ts'
import { LIKE_A_KEY, redact } from '../http/redact.ts'
import { MAX_ITEM_BYTES } from '../http/request.ts'
import type { Order } from '../schemas/order.ts'
import { sameApiKey, tagOf } from './claim.ts'
import { CLOCK_SKEW } from './conditions.ts'
import { CREATE_ORDER, ORDERS_PATH, type OrderContext } from './context.ts'
import { contradiction, echoOf } from './evidence.ts'
import { isProxied } from './identity.ts'
import type { FoundRecord } from './journal.ts'
import {
  classify,
  type History,
  judgeOutcome,
  OUTCOMES,
  type Outcome,
  type OutcomeKind,
  type Verdict,
} from './outcome.ts'
import type { JournalRecord, Rejection } from './record.ts'
import { apply } from './transitions.ts'

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
  /**
   * True if the service has processed no request with the key: its window begins with this call.
   */
  readonly unused: boolean
}

/** The attempts under one key, and what they have shown. */
export class KeyAttempts {
  readonly #context: OrderContext
  readonly #options: SendOptions
  /** The record when this key was claimed. */
  readonly claimed: JournalRecord
  /** The record as last written: an attempt may change its `apiKeyTag`. */
  mine: FoundRecord
  history: History
  verdict: Verdict | undefined
  outcome: Outcome | undefined
  /** True if the service has processed no request with the key. */
  unused: boolean
  /** The API key whose tag the record contains. */
  #claimedFor: string | null
  /**
   * True while the store lacks the tag of the proxy's API key. Without the tag, a later process
   * might repeat the order under another API key.
   */
  #unwritten = false
  readonly #headers: Record<string, string>

  constructor(
    context: OrderContext,
    options: SendOptions,
    mine: FoundRecord,
    claimedFor: string | null,
    unused: boolean,
  ) {
    const { record } = mine
    this.#context = context
    this.#options = options
    this.claimed = record
    this.mine = mine
    this.history = { ambiguous: record.ambiguous, proven: record.state === 'created' }
    this.unused = unused
    this.#claimedFor = claimedFor
    this.#headers = { ...options.settings.headers }
  }

  run(
    attemptsBefore: number,
    maxRetries: number,
    credential: string | null | undefined,
  ): Promise<Ending<Order>> {
    const { operation, settings, deadline, callId } = this.#options
    return perform<Order>(this.#context.connection, {
      endpoint: { ...CREATE_ORDER, operation },
      path: ORDERS_PATH,
      query: undefined,
      body: this.claimed.body,
      idempotencyKey: this.claimed.key,
      settings: { ...settings, headers: this.#headers, maxRetries },
      deadline,
      callId,
      attemptsBefore,
      maxBytes: MAX_ITEM_BYTES,
      credential,
      judge: (result, { secrets }) => this.#judge(result, secrets),
      beforeSend: (apiKey) => this.#permit(apiKey),
      isLate: () => this.#isLate(),
    })
  }

  #judge(result: AttemptResult, secrets: ReadonlySet<string>): Judgement<Order> {
    const { deriveId } = this.#context.connection.runtime
    const { key, apiKeyTag } = this.mine.record
    // The proxy's first response names its API key. The tag is stored with the outcome.
    if (this.#claimedFor === null && answerOf(result)?.headers.get(API_KEY_TAG) && !isProxied(apiKeyTag)) {
      this.mine = {
        ...this.mine,
        record: { ...this.mine.record, apiKeyTag: tagOf(this.#context, key, null) },
      }
      this.#unwritten = true
    }
    // The order of a 2xx response is stored, so redact API keys in it first.
    const success = result.kind === 'answer' && result.status < 300
    const outcome = classify(
      success ? bare({ ...result, text: redact(result.text, secrets, LIKE_A_KEY) }) : result,
      (order) => contradiction(deriveId, this.claimed, echoOf(order)),
    )
    this.outcome = outcome
    this.unused &&= !mayHaveProcessed(outcome.kind)
    this.verdict = judgeOutcome(outcome.kind, this.history)
    this.history = this.verdict.history
    if (outcome.order !== undefined) return { next: 'done', value: outcome.order }
    const pace = this.verdict.next
    return pace === 'stop' || this.#options.once ? { next: 'stop' } : { next: 'retry', pace }
  }

  async #permit(apiKey: string | null): Promise<boolean> {
    if (this.#isLate()) return false
    const { key, apiKeyTag } = this.mine.record
    const unchanged = apiKey === this.#claimedFor && apiKey !== null
    const tag = unchanged ? apiKeyTag : tagOf(this.#context, key, apiKey, apiKeyTag)
    if (isProxied(tag) && this.#context.idempotencyScope === 'apiKey') this.#headers[IF_API_KEY_TAG] = tag
    if (tag === apiKeyTag && !this.#unwritten) return true
    if (tag !== apiKeyTag && !mayBeSentUnder(this.#context, this.mine.record, this.history, apiKey))
      return false
    // Store the tag of a new API key before the request is sent, or another process would assume
    // that the old API key sent the order.
    const content = apply(this.mine.record, { type: 'tagged', apiKeyTag: tag })
    const written = await this.#context.journal.write(this.mine, content, this.#options.deadline)
    if (written.result !== 'written') return false
    this.mine = written.found
    this.#unwritten = false
    this.#claimedFor = apiKey
    // Check again: if the machine slept during the write, the claim or the window may be over.
    return !this.#isLate()
  }

  #isLate(): boolean {
    const { connection, safeRetryWindow } = this.#context
    const { firstSentAt = 0 } = this.claimed
    return isTooLate(this.mine.record, firstSentAt + safeRetryWindow, connection.runtime.now())
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

function mayHaveProcessed(kind: OutcomeKind): boolean {
  const { rejection } = OUTCOMES[kind].clean
  return rejection !== 'not_processed' && rejection !== 'cancelled'
}
