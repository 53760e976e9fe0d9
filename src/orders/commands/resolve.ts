/** What a person does with a record: confirm its order, abandon it, or forget it. */
import type { ConfirmedOrder, OrderName, Resolution } from '../../call-options.ts'
import {
  type CustomerOrderingError,
  type ErrorFacts,
  InvalidRequestError,
  StoreError,
  UnresolvedOrderError,
} from '../../errors/classes.ts'
import { moneySentence } from '../../errors/messages.ts'
import type { CallSettings } from '../../http/call.ts'
import type { Order } from '../../schemas/order.ts'
import { isFromFuture, nextKey, timingOf } from '../protocol/keys.ts'
import { differencesFound, echoOf } from '../protocol/outcome.ts'
import { type Facts, PLAIN_FACTS, type RefusalOf, ruleFor } from '../protocol/rules.ts'
import { abandon, distrust } from '../protocol/transitions.ts'
import type { OrderContext } from '../record/context.ts'
import {
  type JournalRecord,
  type OrderRecord,
  publicRecord,
  type RecordContent,
  recordFacts,
} from '../record/record.ts'
import { proveCreated, rememberedOrder } from '../sending/send.ts'
import { readOrder } from './look-up.ts'
import { EVERYWHERE, findNamed, type Named, slotNamed } from './remembered.ts'

const OPERATION = 'orders.resolve'

export async function resolve(
  context: OrderContext,
  name: OrderName,
  resolution: Resolution,
  settings: CallSettings,
): Promise<OrderRecord> {
  const decidedAt = context.connection.runtime.now()
  const found = await findNamed(context, OPERATION, name, settings)
  const { record } = found
  const isConfirmed = resolution.as === 'created'
  const orderId = isConfirmed ? resolution.orderId : undefined
  const facts = factsOf(context, found, settings, { decidedAt, orderId })
  const step = ruleFor(isConfirmed ? 'confirm' : 'abandon', record, facts)
  if (step.step === 'refuse') throw refused(step.because, name, record)
  if (isConfirmed) return await confirmed(context, name, resolution, found, settings)
  if (record === undefined) throw refused('unknown', name, record)
  return step.step === 'tell' ? publicRecord(record) : await abandoned(context, found, record)
}

/** Stores the order only after the service has returned it: the person may have mistyped the id. */
async function confirmed(
  context: OrderContext,
  name: OrderName,
  { orderId, despite = [] }: ConfirmedOrder,
  found: Named,
  settings: CallSettings,
): Promise<OrderRecord> {
  const { record, deadline } = found
  // A key names only an order that this store has sent.
  if (record === undefined && !('externalOrderId' in name)) throw refused('unknown', name, record)
  const left = { ...settings, totalTimeout: Math.max(1, deadline.remaining()) }
  const { value: order, info } = await readOrder(context, OPERATION, orderId, 'unknown', left)
  const asked = record ?? { slot: slotNamed(name), fingerprint: {}, ...name }
  const differs = differencesFound(asked, { ...echoOf(order), id: order.id })
  const doubted = differs.filter((field) => !despite.includes(field))
  if (doubted.length > 0) {
    const fields = doubted.map((field) => `'${field}'`).join(', ')
    throw invalid(
      'orderId',
      `names an order that differs in ${doubted.join(', ')}. If it is yours all the same, pass despite: [${fields}]`,
      { ...(record && recordFacts(record)), attempts: info().attempts },
    )
  }
  if (found.record === undefined) return await adopted(context, found, name, order)
  const proven = await proveCreated(context, found, { orderId, order }, deadline, deadline.signal)
  if (!proven.remembered && !proven.isDisplaced)
    throw notStored({ ...recordFacts(record), orderId, charged: 'yes' })
  return publicRecord(proven.record)
}

/** Remembers an order of an earlier integration. Its payload is unknown, so every payload fits. */
async function adopted(
  context: OrderContext,
  found: Named,
  name: OrderName,
  order: Order,
): Promise<OrderRecord> {
  const content: RecordContent = {
    slot: slotNamed(name),
    key: '',
    origin: 'random',
    generation: 0,
    state: 'created',
    ambiguous: false,
    attempts: 0,
    fingerprint: {},
    apiKeyTag: '',
    claim: context.connection.runtime.randomId(),
    order: rememberedOrder(context, order),
    ...('externalOrderId' in name ? { externalOrderId: name.externalOrderId } : {}),
  }
  const written = await context.journal.writeOutcome(found, content, found.deadline)
  if (written.result !== 'written') throw notStored({ ...name, orderId: order.id, charged: 'yes' })
  return publicRecord(written.found.record)
}

async function abandoned(context: OrderContext, found: Named, record: JournalRecord): Promise<OrderRecord> {
  const { runtime } = context.connection
  const claim = runtime.randomId()
  const now = runtime.now()
  // If the clock went back, the age of a key that cannot change is unknown.
  const base = isFromFuture(record, now) ? distrust(record, now, claim) : record
  const content = abandon(base, record.slot.startsWith('key:') ? undefined : nextKey(context, record), claim)
  const written = await context.journal.write(found, content, found.deadline)
  if (written.result !== 'written') throw notStored(recordFacts(record))
  return publicRecord(written.found.record)
}

export async function forget(context: OrderContext, name: OrderName): Promise<boolean> {
  const found = await findNamed(context, 'orders.forget', name, context.defaults, EVERYWHERE)
  const step = ruleFor('forget', found.record, factsOf(context, found, context.defaults))
  if (step.step === 'refuse') throw refused(step.because, name, found.record)
  if (step.step !== 'empty' || found.record === undefined) return false
  return await context.journal.empty(found, found.deadline)
}

function factsOf(
  context: OrderContext,
  { id, deadline }: Named,
  settings: CallSettings,
  further: Partial<Facts> = {},
): Facts {
  const isLive = context.journal.shared.live.has(id)
  return { ...PLAIN_FACTS, ...timingOf(context, { settings, deadline }), isLive, ...further }
}

function refused(
  because: RefusalOf<'confirm' | 'abandon' | 'forget'>,
  name: OrderName,
  record: JournalRecord | undefined,
): CustomerOrderingError {
  const field = 'externalOrderId' in name ? 'externalOrderId' : 'idempotencyKey'
  const known = recordFacts(record)
  switch (because) {
    case 'unknown': {
      // The order of a key may be remembered under its reference.
      const charged = field === 'idempotencyKey' ? 'unknown' : 'no'
      return invalid(field, 'does not name a remembered order', { charged, ...name })
    }
    case 'busy':
      return new UnresolvedOrderError(
        `A call for this order may still be running, under any clock that is wrong by up to five minutes. ${moneySentence(known.charged)} Resolve the order once that call must have ended.`,
        known,
      )
    case 'created':
      return invalid(field, 'cannot be abandoned: the order was created and charged', known)
    case 'other_order':
      return invalid('orderId', 'differs from the id of the remembered order', known)
    case 'changed':
      return notStored(known)
    case 'unsettled':
      return invalid(field, 'names an unsettled order; recover or resolve it before you forget it', known)
  }
}

function notStored(known: ReturnType<typeof recordFacts>): StoreError {
  return new StoreError(
    `The decision was not confirmed: the store failed, or another call changed the record. ${moneySentence(known.charged)} Read the record again, then decide again.`,
    known,
  )
}

function invalid(path: string, message: string, known: ErrorFacts): InvalidRequestError {
  const issues = [{ path, message }]
  return new InvalidRequestError(`${path} ${message}. Nothing was changed.`, { ...known, issues })
}
