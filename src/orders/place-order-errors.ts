import { bare } from '../defined.ts'
import {
  type Charged,
  type CustomerOrderingError,
  DuplicateOrderError,
  type ErrorFacts,
  IdempotencyConflictError,
  InvalidRequestError,
  type Issue,
  moneySentence,
  StoreError,
  UnresolvedOrderError,
} from '../errors/classes.ts'
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

type OrderRefusal = Extract<StepOf['create'], { readonly step: 'refuse' }>['because']

type Because = Exclude<OrderRefusal, 'payload' | 'key' | 'duplicate' | 'expired' | 'corrupt'>

export class PlaceOrderErrors {
  readonly #intent: Intent
  readonly #signal: AbortSignal | undefined
  /** See {@link CallContext.change}. */
  readonly #change: string

  /** @param duplicateKey set for `allowDuplicate`: the same call again would place another order */
  constructor(intent: Intent, signal: AbortSignal | undefined, duplicateKey: string | undefined) {
    const duplicate = duplicateKey !== undefined
    this.#intent = duplicate ? { ...intent, idempotencyKey: duplicateKey } : intent
    this.#signal = signal
    this.#change = duplicate ? " with this error's idempotencyKey in place of allowDuplicate" : ''
  }

  conflict(fields: readonly string[], record: JournalRecord | undefined): CustomerOrderingError {
    const charged = record === undefined ? 'unknown' : chargedOf(record)
    return new IdempotencyConflictError(
      `This reference or key belongs to an order that differs in ${fields.join(', ') || 'its payload'}. This call sent nothing. ${conflictSentence(charged)}`,
      { ...this.#facts(record), charged, local: true, fields },
    )
  }

  rememberedConflict(derive: Derive, record: JournalRecord, over: 'payload' | 'key'): CustomerOrderingError {
    const own = (): Record<string, string> => fieldTags(derive, record.key, this.#intent.request)
    const known = Object.keys(record.fields).length > 0
    const differing = over === 'key' ? ['idempotencyKey'] : known ? differingFields(record.fields, own()) : []
    return this.conflict(differing, record)
  }

  refused(derive: Derive, because: OrderRefusal, record: JournalRecord | undefined): CustomerOrderingError {
    if (record === undefined) throw new TypeError(`unreachable: refused as ${because} without a record`)
    switch (because) {
      case 'payload':
      case 'key':
        return this.rememberedConflict(derive, record, because)
      case 'duplicate':
        return this.duplicate(record)
      case 'expired':
        return this.expired(record)
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
        'is past its safe-retry window (or the clock went back), so the service may have forgotten the key',
      age: 'is so old that this call may be for another order',
      api_key: 'used another API key, and the service may scope idempotency keys by API key',
      unreadable: 'created it, but the response was never readable',
      replaced: 'left a record that a later, identical order has overwritten',
    }[because]
    const charged = chargedOf(record)
    const next =
      because === 'replaced'
        ? 'look for the earlier order among the `only_remote` results of orders.reconcile()'
        : 'run orders.recover(). If the order stays unresolved, settle it with orders.resolve()'
    return new UnresolvedOrderError(
      `An earlier call for this order ${why}. This call placed no order. The wallet ${charged === 'yes' ? 'was' : 'may have been'} charged: ${next}.`,
      { ...this.#facts(record), charged },
    )
  }

  expired(record: JournalRecord): CustomerOrderingError {
    const message =
      'is past its safe-retry window, so the service may have forgotten it; forget() the order, then use a new key'
    const charged = chargedOf(record)
    return new InvalidRequestError(
      `The idempotencyKey ${message}. This call sent nothing. ${moneySentence(charged)}`,
      { ...this.#facts(record), charged, issues: [{ path: 'options.idempotencyKey', message }] },
    )
  }

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
      `${what}. This call sent nothing. ${chargedSentence(charged, '')} ${repair} and call again${this.#change}.${reasonOf(cause)}`,
      { ...known, charged, idempotencyKey: key ?? known.idempotencyKey, cause },
    )
  }

  /** Adds the order's names to an error of the store, which knows only row ids. */
  named(error: unknown): unknown {
    if (!(error instanceof StoreError) || error.externalOrderId !== undefined) return error
    const { message, charged, attempts, applied, cause } = error
    const { externalOrderId, idempotencyKey: given } = this.#facts(undefined)
    const { idempotencyKey = given } = error
    return new StoreError(message, { charged, attempts, applied, cause, idempotencyKey, externalOrderId })
  }

  interrupted({ why }: Interruption, charged: Charged, key: string | undefined): CustomerOrderingError {
    return errorOf({ end: why, trail: noTrail(true) }, this.#context(charged, key))
  }

  noCredential(error: unknown, charged: Charged, key: string | undefined): CustomerOrderingError {
    return errorOf({ end: 'credentials', error, trail: noTrail(true) }, this.#context(charged, key))
  }

  sent(sent: Sent, charged: Charged, now: number): CustomerOrderingError {
    const { ending, outcome, orderId, record, attempts } = sent
    // After a 2xx response, report an unreadable order, even if a later attempt got an error.
    const unreadable = sent.charged === 'yes' || outcome?.issues !== undefined
    if (unreadable && ending.end !== 'aborted') {
      const { status, requestId } = bare(factsOf(ending.trail))
      return unexpectedBody(
        { ...this.#context(charged, record.key), orderId },
        { attempts, status: sent.charged === 'yes' ? 201 : status, requestId, issues: outcome?.issues ?? [] },
        `Call again${this.#change} to read the order`,
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
    return { ...orderCall(CREATE_ORDER.operation, known, this.#signal), change: this.#change }
  }
}

export function orderCall(
  operation: string,
  known: RecordFacts,
  signal: AbortSignal | undefined,
): CallContext {
  const endpoint = { ...CREATE_ORDER, operation }
  return { endpoint, path: ORDERS_PATH, ...known, now: 0, reason: signal?.reason, change: '' }
}

/** `'no'` without a record: no earlier call sent the order. */
export function moneyOf(record: JournalRecord | undefined): Charged {
  return record === undefined ? 'no' : chargedOf(record)
}

/**
 * Sets `charged` from the record: the error must not report `'no'` for an order that an earlier
 * call bought.
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
  const did = charged === 'yes' ? 'charged' : 'may have charged'
  const money =
    charged === 'no'
      ? ''
      : ` An earlier call for this order ${did} the wallet. Do not order again under another reference or key.`
  return new InvalidRequestError(sent + money, { ...facts, issues })
}
