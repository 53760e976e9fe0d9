/** The errors of a call that places an order: what happened, the wallet, and what to do next. */
import { bare } from '../../defined.ts'
import {
  type AnyCustomerOrderingError,
  type Charged,
  type CustomerOrderingError,
  DuplicateOrderError,
  type ErrorFacts,
  IdempotencyConflictError,
  InvalidRequestError,
  StoreError,
  UnresolvedOrderError,
} from '../../errors/classes.ts'
import { chargedSentence, conflictSentence, moneySentence } from '../../errors/messages.ts'
import { noTrail } from '../../http/call.ts'
import { type Deadline, Interruption } from '../../http/deadline.ts'
import { type CallContext, errorOf, unexpectedBody } from '../../http/failures.ts'
import { infoLater } from '../../http/request.ts'
import { differingFields, referenceIn, rowIdOf } from '../../identity/keys.ts'
import type { RefusalOf } from '../protocol/rules.ts'
import { type CreateJob, type Job, ORDERS_PATH, type OrderContext, SENDING } from '../record/context.ts'
import { slotOfInvalid } from '../record/intent.ts'
import { reasonOf } from '../record/journal.ts'
import { chargedOf, isPending, type JournalRecord, recordFacts } from '../record/record.ts'
import type { Unclaimed } from './drive.ts'
import type { Sent } from './send.ts'

type Unresolved = Exclude<RefusalOf<'create'>, 'payload' | 'key' | 'duplicate' | 'spent'>

const UNRESOLVED: Readonly<Record<Unresolved, string>> = {
  window:
    'has too little left of its safe-retry window (or the clock went back), so the service may have forgotten the key',
  api_key: 'used another API key, and the service may scope idempotency keys by it',
  unreadable: 'created it, but the response was never readable',
}

export function refusedError(
  job: CreateJob,
  because: RefusalOf<'create'>,
  record: JournalRecord | undefined,
): CustomerOrderingError {
  // A settled order in the row of a duplicate is the one before.
  const about = because === 'duplicate' && !(record && isPending(record)) ? undefined : record
  const charged = about === undefined ? 'unknown' : chargedOf(about)
  const facts = { ...namesOf(job, about), charged }
  const money = moneySentence(charged)
  switch (because) {
    case 'duplicate':
      return new DuplicateOrderError(
        `Another call is placing the same order without a reference or key. ${money} This call sent nothing. Set metadata.externalOrderId to tell orders apart, or allowDuplicate to place a second order.`,
        facts,
      )
    case 'key':
    case 'payload': {
      const isKey = because === 'key'
      const differs = differingFields(record?.fingerprint ?? {}, job.intent.fingerprint)
      const fields = isKey ? ['idempotencyKey'] : differs
      const forget =
        isKey && charged === 'no' ? ' To give the refused order another key, forget() it first.' : ''
      return new IdempotencyConflictError(
        `This reference or key belongs to an order that differs in ${fields.join(', ')}. This call sent nothing. ${conflictSentence(charged)}${forget}`,
        { ...facts, local: true, fields },
      )
    }
    case 'spent': {
      const message =
        'was used for this order before, and the service may not remember it: forget() the order, then use a new key'
      return new InvalidRequestError(`The idempotencyKey ${message}. This call sent nothing. ${money}`, {
        ...facts,
        issues: [{ path: 'options.idempotencyKey', message }],
      })
    }
    default:
      return new UnresolvedOrderError(
        `An earlier call for this order ${UNRESOLVED[because]}. This call placed no order. ${money} Run orders.recover(). If the order stays unresolved, settle it with orders.resolve().`,
        facts,
      )
  }
}

/** The call could not claim the order. */
export function unclaimedError(job: Job, { why, charged, record, key }: Unclaimed): AnyCustomerOrderingError {
  const context = contextOf(job, charged, record, key)
  const trail = noTrail(true)
  if ('error' in why) return errorOf({ end: 'credentials', error: why.error, trail }, context)
  if (why instanceof Interruption) return errorOf({ end: why.why, trail }, context)
  // recover() counts timeouts of the service, not those of the store.
  const over = job.command === 'recover' ? undefined : job.deadline.over()
  if (over !== undefined) return errorOf({ end: over.why, trail }, context)
  const what =
    charged === 'unknown' && why.result !== 'refused'
      ? 'It is unknown whether the order was stored'
      : 'The order could not be stored'
  return new StoreError(
    `${what}. This call sent nothing. ${chargedSentence(charged, false)} ${why.repair} and call again${changeOf(job)}.${reasonOf(why.cause)}`,
    { ...namesOf(job, record, key), charged, cause: why.cause },
  )
}

/** The order was sent, and this call has no order to return. */
export function sentError(job: CreateJob, sent: Sent, charged: Charged): CustomerOrderingError {
  const { ending, outcome, record, attempts } = sent
  const context = contextOf(job, charged, record)
  // After a 2xx response, report an unreadable order, even if a later attempt got an error.
  const unreadable = sent.charged === 'yes' || outcome?.issues !== undefined
  if (unreadable && ending.end !== 'aborted') {
    const last = bare(infoLater(ending.trail, 0)())
    const status = sent.charged === 'yes' ? 201 : last.status
    // A later attempt may have got another response than the one that proves the charge.
    const requestId = status === last.status ? last.requestId : undefined
    return unexpectedBody(
      context,
      { attempts, status, requestId, issues: outcome?.issues ?? [] },
      `Call again${changeOf(job)} to read the order`,
      charged === 'yes' ? true : undefined,
    )
  }
  if (ending.end === 'done') throw new TypeError('unreachable: a finished call has its order')
  const end = ending.end === 'steered' ? 'stopped' : ending.end
  return errorOf({ ...ending, end, trail: { ...ending.trail, attempts } }, context)
}

/** Adds the order's names to an error of the store, which knows only row ids. */
export function named(job: CreateJob, error: unknown): unknown {
  if (!(error instanceof StoreError) || error.externalOrderId !== undefined) return error
  const { message, charged, attempts, applied, cause } = error
  const { externalOrderId, idempotencyKey: given } = namesOf(job)
  const { idempotencyKey = given } = error
  return new StoreError(message, { charged, attempts, applied, cause, idempotencyKey, externalOrderId })
}

function namesOf({ intent }: Job, record?: JournalRecord, key: string = record?.key ?? ''): ErrorFacts {
  return {
    idempotencyKey: key === '' ? (intent?.idempotencyKey ?? intent?.duplicateKey) : key,
    externalOrderId: intent?.externalOrderId ?? record?.externalOrderId,
    orderId: record?.order?.id,
  }
}

/** For `allowDuplicate`, the same call again would place another order. */
function changeOf({ intent }: Job): string {
  return intent?.duplicateKey === undefined
    ? ''
    : " with this error's idempotencyKey in place of allowDuplicate"
}

function contextOf(job: Job, charged: Charged, record?: JournalRecord, key?: string): CallContext {
  const names = { ...namesOf(job, record, key), charged }
  return { ...orderCall(job.command, names, job.settings.signal), change: changeOf(job) }
}

export function orderCall(
  command: Job['command'],
  { charged, idempotencyKey, externalOrderId, orderId }: ErrorFacts,
  signal: AbortSignal | undefined,
): CallContext {
  const names = { charged, idempotencyKey, externalOrderId, orderId, reason: signal?.reason }
  return { endpoint: SENDING[command], path: ORDERS_PATH, ...names, change: '' }
}

/**
 * Sets `charged` from the record: the error must not report `'no'` for an order that an earlier
 * call bought.
 */
export async function argumentError(
  { journal, connection }: OrderContext,
  error: unknown,
  request: unknown,
  idempotencyKey: unknown,
  deadline: Deadline,
): Promise<unknown> {
  if (!(error instanceof InvalidRequestError)) return error
  const slot = slotOfInvalid(request, idempotencyKey)
  if (slot === undefined || /[\ud800-\udfff]/u.test(slot)) return error
  const rowId = rowIdOf(connection.runtime.deriveId, slot)
  const found = await journal.load(rowId, deadline).catch((cause: unknown) => ({ cause }))
  const record = 'id' in found ? found.record : undefined
  const known = recordFacts(record)
  // A record that could not be read, or that another call is about to write, may be of a charged order.
  const isUnsure = !('id' in found) || journal.shared.live.has(rowId)
  const charged = isUnsure && known.charged !== 'yes' ? 'unknown' : known.charged
  const facts = { ...known, ...('cause' in found && found), charged, externalOrderId: referenceIn(slot) }
  const { message, issues } = error
  const sent = message.replace(/\.?( Nothing was sent\.)?$/, '. Nothing was sent.')
  const money =
    charged === 'no' ? '' : ` An earlier call may have placed this order. ${chargedSentence(charged, false)}`
  return new InvalidRequestError(sent + money, { ...facts, issues })
}
