import { type CustomerOrderingError, StoreError, UnresolvedOrderError } from '../errors.ts'
import type { CallSettings } from '../http/call.ts'
import type { Deadline } from '../http/deadline.ts'
import { nextKey } from './claim.ts'
import { type Facts, isFromFuture, PLAIN_FACTS } from './conditions.ts'
import { moneySentence, type OrderContext } from './context.ts'
import { contradiction, echoOf } from './evidence.ts'
import type { FoundRecord } from './journal.ts'
import { readOrder } from './look-up.ts'
import { type JournalRecord, type OrderRecord, publicRecord } from './record.ts'
import { markCreated } from './recovery-outcome.ts'
import { deadlineOf, facts, invalid, lookFor, nameField, type OrderName } from './remembered.ts'
import { decide, known, unknownStep } from './rules.ts'
import { apply } from './transitions.ts'

/** What a person found out: the order exists under this id, or it is given up. */
export type Resolution = { readonly as: 'created'; readonly orderId: string } | { readonly as: 'abandoned' }

const RESOLVE = 'orders.resolve'

/** Closes an open record by a person's decision. */
export async function resolve(
  context: OrderContext,
  name: OrderName,
  resolution: Resolution,
  settings: CallSettings,
): Promise<OrderRecord> {
  const { runtime } = context.connection
  const deadline = deadlineOf(context, settings)
  const decidedAt = runtime.now()
  const found = await lookFor(context, name, { operation: RESOLVE, settings, deadline })
  const facts = factsOf(context, found, settings)
  if (resolution.as === 'created') {
    const { orderId } = resolution
    const step = decide('resolve', found ?? {}, { ...facts, orderId })
    switch (step.step) {
      case 'refuse':
        throw refused(step.because, name, found?.record)
      case 'verify':
        return await resolveCreated(context, known(found), orderId, settings, deadline)
      default:
        return unknownStep(step)
    }
  }
  const step = decide('abandon', found ?? {}, { ...facts, decidedAt })
  switch (step.step) {
    case 'refuse':
      throw refused(step.because, name, found?.record)
    case 'tell':
      return publicRecord(known(found).record)
    case 'close':
      return await abandon(context, known(found), deadline)
    default:
      return unknownStep(step)
  }
}

async function abandon(context: OrderContext, found: FoundRecord, deadline: Deadline): Promise<OrderRecord> {
  const { runtime } = context.connection
  const { record } = found
  // A key that is the order's very name cannot change; any other moves on for good, so that the next call buys anew. Under
  // a key that stays, a later refusal still proves nothing.
  const claim = runtime.randomId()
  const named = record.slot.startsWith('key:')
  const marked =
    named && isFromFuture(record, runtime.now())
      ? apply(record, { type: 'distrusted', busy: false, claim })
      : record
  const key = named ? undefined : nextKey(context, record)
  const content = apply(marked, { type: 'abandoned', key, claim })
  const written = await context.journal.write(found, content, deadline)
  if (written.result !== 'written') throw notStored(record)
  return publicRecord(written.found.record)
}

/** What the rules are to know of the order that a person speaks of. */
function factsOf(
  { connection, live, safeRetryWindow }: OrderContext,
  found: FoundRecord | undefined,
  { totalTimeout }: CallSettings,
): Facts {
  const isLive = found !== undefined && live.get(found.id) !== undefined
  return { ...PLAIN_FACTS, now: connection.runtime.now(), safeRetryWindow, totalTimeout, isLive }
}

type Refused = 'unknown' | 'busy' | 'created' | 'other_order' | 'changed' | 'unsettled'

function refused(
  because: Refused,
  name: OrderName,
  record: JournalRecord | undefined,
): CustomerOrderingError {
  const field = nameField(name)
  switch (because) {
    case 'unknown':
      return invalid(field, 'names no remembered order')
    case 'busy': {
      const { charged = 'unknown', ...names } = record === undefined ? {} : facts(record)
      return new UnresolvedOrderError(
        `A call that has not ended works on this order. ${moneySentence(charged)} Resolve it after that call has ended.`,
        { ...names, charged },
      )
    }
    case 'created':
      return invalid(field, 'names an order that was created; it cannot be abandoned', record)
    case 'other_order':
      return invalid('orderId', 'differs from the id of the order that is remembered', record)
    case 'changed':
      return notStored(record)
    case 'unsettled':
      return invalid(
        field,
        'names an order that is not settled; recover or resolve it before it is forgotten',
        record,
      )
  }
}

/** Forgets a closed record: whoever orders under its name again buys again. */
export async function forget(
  context: OrderContext,
  name: OrderName,
  settings: CallSettings,
): Promise<boolean> {
  const deadline = deadlineOf(context, settings)
  const found = await lookFor(context, name, { operation: 'orders.forget', settings, deadline })
  const step = decide('forget', found ?? {}, factsOf(context, found, settings))
  switch (step.step) {
    case 'refuse':
      throw refused(step.because, name, found?.record)
    case 'nothing':
      return false
    case 'empty':
      return await context.journal.forget(known(found), deadline)
    default:
      return unknownStep(step)
  }
}

async function resolveCreated(
  context: OrderContext,
  found: FoundRecord,
  orderId: string,
  settings: CallSettings,
  deadline: Deadline,
): Promise<OrderRecord> {
  const { record } = found
  const left = { ...settings, totalTimeout: deadline.remaining() }
  const { value: order } = await readOrder(context, RESOLVE, orderId, 'in_doubt', left)
  const { deriveId } = context.connection.runtime
  const field = contradiction(deriveId, record, echoOf(order), 'list')
  if (field !== undefined) throw invalid('orderId', `names an order with another ${field}`, record)
  const outcome = await markCreated(context, found, { id: order.id, order }, deadline)
  if (outcome.record.state !== 'created') throw notStored(record)
  return outcome.record
}

function notStored(record: JournalRecord | undefined): StoreError {
  const { charged = 'unknown', ...names } = record === undefined ? {} : facts(record)
  return new StoreError(
    `The decision was not stored: the record has changed since, or the store refused the write. ${moneySentence(charged)} Look at the record again, then decide.`,
    { charged, ...names },
  )
}
