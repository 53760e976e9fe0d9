import { bare } from '../defined.ts'
import {
  type Charged,
  type CustomerOrderingError,
  DuplicateOrderError,
  type ErrorFacts,
  IdempotencyConflictError,
  InvalidRequestError,
  type Issue,
  StoreError,
  UnresolvedOrderError,
} from '../errors.ts'
import { noTrail } from '../http/call.ts'
import { type Deadline, Interruption } from '../http/deadline.ts'
import {
  type CallContext,
  chargedSentence,
  conflictSentence,
  errorOf,
  unexpectedBody,
} from '../http/failures.ts'
import { factsOf } from '../http/info.ts'
import {
  CREATE_ORDER,
  chargedOf,
  ORDERS_PATH,
  type OrderContext,
  type RecordFacts,
  recordFacts,
} from './context.ts'
import { type Derive, differingFields, fieldTags, rowIdOf } from './identity.ts'
import type { Intent } from './intent.ts'
import type { Unwritten } from './journal.ts'
import type { JournalRecord } from './record.ts'
import { unusableError } from './row.ts'
import { reasonOf } from './rows.ts'
import type { StepOf } from './rules.ts'
import type { Sent } from './send-order.ts'

/** Why `create()` and `enqueue()` reject an order. */
type OrderRefusal = Extract<StepOf['create' | 'enqueue'], { readonly step: 'refuse' }>['because']

/** Why a record cannot be continued. */
type Because = Exclude<OrderRefusal, 'payload' | 'key' | 'duplicate' | 'spent' | 'corrupt' | 'misfit'>

/** Makes the errors of one `create()`: what happened, the wallet, and what to do next. */
export class PlaceOrderErrors {
  readonly #intent: Intent
  readonly #signal: AbortSignal | undefined

  constructor(intent: Intent, signal: AbortSignal | undefined) {
    this.#intent = intent
    this.#signal = signal
  }

  /** The reference or key belongs to another order. `fields` names the differences. */
  conflict(fields: readonly string[], record: JournalRecord | undefined): CustomerOrderingError {
    const charged = record === undefined ? 'unknown' : chargedOf(record)
    return new IdempotencyConflictError(
      `This reference or key belongs to an order that differs in ${fields.join(', ') || 'its payload'}. This call sent nothing. ${conflictSentence(charged)}`,
      { ...this.#facts(record), charged, local: true, fields },
    )
  }

  /**
   * A {@link conflict} with a remembered order. If the body of that order was dropped, tags show
   * which fields differ.
   */
  rememberedConflict(derive: Derive, record: JournalRecord, over: 'payload' | 'key'): CustomerOrderingError {
    const own = (): Record<string, string> => fieldTags(derive, record.key, this.#intent.request)
    const known = Object.keys(record.fields).length > 0
    const differing = over === 'key' ? ['idempotencyKey'] : known ? differingFields(record.fields, own()) : []
    return this.conflict(differing, record)
  }

  refused(derive: Derive, because: OrderRefusal, record: JournalRecord | undefined): CustomerOrderingError {
    if (because === 'misfit' && this.#intent.misfit !== undefined)
      // A created anonymous order is not this call's order.
      return this.misfit(this.#intent.misfit, record?.state === 'created' ? undefined : record)
    if (record === undefined || because === 'misfit')
      throw new TypeError(`unreachable: nothing is refused as ${because}`)
    switch (because) {
      case 'payload':
      case 'key':
        return this.rememberedConflict(derive, record, because)
      case 'duplicate':
        return this.duplicate(record)
      case 'spent':
        return this.spent(record)
      case 'corrupt':
        return unusableError('corrupt', record.key)
      default:
        return this.unresolved(record, because)
    }
  }

  duplicate(record: JournalRecord | undefined): CustomerOrderingError {
    return new DuplicateOrderError(
      'Another call is placing the same order without a reference or key, and may charge the wallet. This call sent nothing. Set metadata.externalOrderId to tell orders apart, or allowDuplicate to place a second order.',
      { ...this.#facts(record), charged: 'unknown' },
    )
  }

  unresolved(record: JournalRecord, because: Because): CustomerOrderingError {
    const why = {
      window:
        'is past the safe-retry window (or the clock went back), so the service may have forgotten its key',
      age: 'is so old that this call may be for another order',
      api_key: 'used another API key, and the service may scope idempotency keys by API key',
      unreadable: 'created it, but the response was never readable',
      held: 'was aborted, or refused after an ambiguous attempt, so recovery does not repeat it',
      busy: 'is still running',
      replaced: 'was settled or abandoned, and a later identical order replaced its record',
    }[because]
    const charged = chargedOf(record)
    const next =
      because === 'busy'
        ? 'call again after that call has ended'
        : because === 'replaced'
          ? 'find the order with orders.reconcile()'
          : 'run orders.recover(), then settle what is left with orders.resolve()'
    return new UnresolvedOrderError(
      `An earlier call for this order ${why}. This call sent nothing. The wallet ${charged === 'yes' ? 'was' : 'may have been'} charged: ${next}.`,
      { ...this.#facts(record), charged },
    )
  }

  /** The order would be sent as a new order, but does not fit `options.service`. */
  misfit({ path, message }: Issue, record: JournalRecord | undefined): CustomerOrderingError {
    return invalidOver(`${path === 'quantity' ? '' : `${path} `}${message}`, [{ path, message }], {
      ...this.#facts(record),
      charged: moneyOf(record),
    })
  }

  /**
   * The service may forget the caller's key before an ambiguous attempt could be repeated with that
   * key.
   */
  spent(record: JournalRecord): CustomerOrderingError {
    const message = 'was used for this order before, and the service may be about to forget it; use a new key'
    const charged = chargedOf(record)
    return new InvalidRequestError(
      `The idempotencyKey ${message}. This call sent nothing. ${chargedSentence(charged)}`,
      { ...this.#facts(record), charged, issues: [{ path: 'options.idempotencyKey', message }] },
    )
  }

  /**
   * The claim was not stored, or may not have been stored.
   * @param charged what is proven about the wallet
   * @param key the key that would have been sent
   * @param record the record of the same intent
   */
  notStored(
    { result, cause, repair = 'Repair the store' }: Unwritten,
    charged: Charged,
    key: string | undefined,
    record: JournalRecord | undefined,
  ): CustomerOrderingError {
    const known = this.#facts(record)
    const what =
      charged === 'unknown' && result !== 'refused'
        ? 'It is unknown whether the order was stored'
        : 'The order could not be stored'
    return new StoreError(
      `${what}. This call sent nothing. ${chargedSentence(charged)} ${repair} and call again.${reasonOf(cause)}`,
      { ...known, charged, idempotencyKey: key ?? known.idempotencyKey, cause },
    )
  }

  /** The call ended before it sent anything. */
  interrupted({ why }: Interruption, charged: Charged, key: string | undefined): CustomerOrderingError {
    return errorOf({ end: why, trail: noTrail(true) }, this.#context(charged, key))
  }

  noCredential(error: unknown, charged: Charged, key: string | undefined): CustomerOrderingError {
    return errorOf({ end: 'credentials', error, trail: noTrail(true) }, this.#context(charged, key))
  }

  /** The order was sent, but cannot be returned. `charged` is the value that the store proves. */
  sent(sent: Sent, charged: Charged, now: number): CustomerOrderingError {
    const { ending, outcome, orderId, record, attempts } = sent
    // A success response arrived, so the order is reported as unreadable, however the last attempt
    // ended.
    const unreadable = sent.charged === 'yes' || outcome?.issues !== undefined
    if (unreadable && ending.end !== 'aborted') {
      const { status, requestId } = bare(factsOf(ending.trail))
      return unexpectedBody(
        { ...this.#context(charged, record.key), orderId },
        { attempts, status: sent.charged === 'yes' ? 201 : status, requestId, issues: outcome?.issues ?? [] },
        'Call again to read it',
        charged === 'yes' ? true : undefined,
      )
    }
    if (ending.end === 'done') throw new TypeError('unreachable: a finished call has its order')
    const trail = { ...ending.trail, attempts }
    return errorOf({ ...ending, trail }, { ...this.#context(charged, record.key), orderId, now })
  }

  #facts(record: JournalRecord | undefined): ErrorFacts {
    return {
      idempotencyKey: record?.key ?? this.#intent.idempotencyKey,
      externalOrderId: this.#intent.externalOrderId,
      orderId: record?.order?.id,
    }
  }

  #context(charged: Charged, key: string | undefined): CallContext {
    const { idempotencyKey, externalOrderId } = this.#intent
    const known = { charged, idempotencyKey: key ?? idempotencyKey, externalOrderId, orderId: undefined }
    return orderCall(CREATE_ORDER.operation, known, this.#signal)
  }
}

/** The context for the errors of a call that places an order. */
export function orderCall(
  operation: string,
  known: RecordFacts,
  signal: AbortSignal | undefined,
): CallContext {
  const endpoint = { ...CREATE_ORDER, operation }
  return { endpoint, path: ORDERS_PATH, ...known, now: 0, reason: signal?.reason }
}

/** What the record proves about the wallet before the call has sent anything. */
export function moneyOf(record: JournalRecord | undefined): Charged {
  return record === undefined ? 'no' : chargedOf(record)
}

/**
 * The error for invalid arguments, with `charged` from the record of the order that they name. An
 * order that an earlier call bought must not be reported as `'no'`.
 */
export async function argumentError(
  { journal, connection }: OrderContext,
  error: unknown,
  slot: string | undefined,
  deadline: Deadline,
): Promise<unknown> {
  if (!(error instanceof InvalidRequestError)) return error
  if (slot === undefined || /[\ud800-\udfff]/u.test(slot)) return error
  const rowId = rowIdOf(connection.runtime.deriveId, slot)
  const found = await journal.load(rowId, deadline).catch((cause: unknown) => ({ cause }))
  if ('record' in found && found.record !== undefined)
    return invalidOver(error.message, error.issues, recordFacts(found.record))
  // The record may belong to an earlier call that was charged.
  if ('cause' in found) return invalidOver(error.message, error.issues, { charged: 'unknown', ...found })
  return found instanceof Interruption
    ? invalidOver(error.message, error.issues, { charged: 'unknown' })
    : error
}

function invalidOver(what: string, issues: readonly Issue[], facts: ErrorFacts): InvalidRequestError {
  const { charged = 'no' } = facts
  const sent = what.endsWith(' Nothing was sent.') ? what : `${what.replace(/\.?$/, '.')} Nothing was sent.`
  const money = charged === 'no' ? '' : ` Earlier calls for this order: ${chargedSentence(charged)}`
  return new InvalidRequestError(sent + money, { ...facts, issues })
}
