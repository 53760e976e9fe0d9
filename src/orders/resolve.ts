import {
  type CustomerOrderingError,
  moneySentence,
  StoreError,
  UnresolvedOrderError,
} from '../errors/classes.ts'
import type { CallSettings } from '../http/call.ts'
import type { Deadline } from '../http/deadline.ts'
import type { Order } from '../schemas/order.ts'
import { makeKey, nextKey } from './claim.ts'
import { type Facts, isFromFuture } from './conditions.ts'
import { type OrderContext, recordFacts } from './context.ts'
import { known, plainFacts, run, type Task, type Turn } from './engine.ts'
import { differences, type EchoedField, echoOf } from './evidence.ts'
import { slotOf } from './identity.ts'
import type { Found, FoundRecord } from './journal.ts'
import { readOrder } from './look-up.ts'
import { markCreated, rememberedOrder } from './newest.ts'
import { type JournalRecord, type OrderRecord, publicRecord, type RecordContent } from './record.ts'
import { deadlineOf, invalid, lookFor, type NamedLook, nameField, type OrderName } from './remembered.ts'
import { type Command, unknownStep } from './rules.ts'
import { apply } from './transitions.ts'

/** A person's decision: the order exists under this id, or the order is abandoned. */
export type Resolution =
  | {
      readonly as: 'created'
      readonly orderId: string
      /** The fields in which the order may differ from the request: those that an error has named. */
      readonly despite?: readonly EchoedField[] | undefined
    }
  | { readonly as: 'abandoned' }

export async function resolve(
  context: OrderContext,
  name: OrderName,
  resolution: Resolution,
  settings: CallSettings,
): Promise<OrderRecord> {
  const look = { operation: 'orders.resolve', settings, deadline: deadlineOf(context, settings), attempts: 0 }
  if (resolution.as === 'created') {
    const { orderId, despite = [] } = resolution
    return await run<'resolve', OrderRecord>(context, {
      ...taskOf(context, name, look, { orderId }),
      command: 'resolve',
      perform: async (step, found) => {
        switch (step.step) {
          case 'refuse':
            throw refused(step.because, name, found.record)
          case 'verify': {
            // A key alone does not identify an order at the service.
            if (found.record === undefined && !('externalOrderId' in name))
              throw refused('unknown', name, undefined)
            return { end: await verified(context, found, { orderId, despite }, name, look) }
          }
          default:
            return unknownStep(step)
        }
      },
    })
  }
  return await run<'abandon', OrderRecord>(context, {
    ...taskOf(context, name, look, { decidedAt: context.connection.runtime.now() }),
    command: 'abandon',
    perform: (step, found) => {
      switch (step.step) {
        case 'refuse':
          throw refused(step.because, name, found.record)
        case 'tell':
          return { end: publicRecord(known(found).record) }
        case 'close':
          return abandoning(context, known(found))
        default:
          return unknownStep(step)
      }
    },
  })
}

export async function forget(
  context: OrderContext,
  name: OrderName,
  settings: CallSettings,
): Promise<boolean> {
  const look = { operation: 'orders.forget', settings, deadline: deadlineOf(context, settings), attempts: 0 }
  return await run<'forget', boolean>(context, {
    ...taskOf(context, name, look, {}),
    command: 'forget',
    perform: async (step, found) => {
      switch (step.step) {
        case 'refuse':
          throw refused(step.because, name, found.record)
        case 'nothing':
          return { end: false }
        case 'empty':
          return { end: await context.journal.forget(known(found), look.deadline) }
        default:
          return unknownStep(step)
      }
    },
  })
}

function taskOf(
  context: OrderContext,
  name: OrderName,
  look: NamedLook,
  further: Partial<Facts>,
): Pick<Task<Command, unknown>, 'deadline' | 'look' | 'facts'> {
  return {
    deadline: look.deadline,
    look: () => lookFor(context, name, look),
    facts: ({ id }) => {
      const isLive = context.live.get(id) !== undefined
      return { ...plainFacts(context, look.settings), isLive, ...further }
    },
  }
}

function abandoning(context: OrderContext, over: FoundRecord): Turn<OrderRecord> {
  const { runtime } = context.connection
  const { record } = over
  // The next call buys again, so it needs another key. A key that is also the order's name cannot
  // change. If the clock went back, the age of such a key is unknown.
  const claim = runtime.randomId()
  const named = record.slot.startsWith('key:')
  const marked =
    named && isFromFuture(record, runtime.now())
      ? apply(record, { type: 'distrusted', busy: false, claim })
      : record
  const key = named ? undefined : nextKey(context, record)
  const unwritten = (): never => {
    throw notStored(record)
  }
  return {
    over,
    write: apply(marked, { type: 'abandoned', key, claim }),
    written: (found) => publicRecord(found.record),
    lost: unwritten,
    unwritten,
  }
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
      return invalid(field, 'does not name a remembered order')
    case 'busy': {
      const known = recordFacts(record)
      return new UnresolvedOrderError(
        `A call for this order may still be running. ${moneySentence(known.charged)} Resolve the order after that call has ended.`,
        known,
      )
    }
    case 'created':
      return invalid(field, 'cannot be abandoned: the order was created and charged', record)
    case 'other_order':
      return invalid('orderId', 'differs from the id of the remembered order', record)
    case 'changed':
      return notStored(record)
    case 'unsettled':
      return invalid(field, 'names an unsettled order; recover or resolve it before you forget it', record)
  }
}

/** Stores the order only after the service has returned it: the person may have mistyped the id. */
async function verified(
  context: OrderContext,
  found: Found,
  { orderId, despite }: { readonly orderId: string; readonly despite: readonly EchoedField[] },
  name: OrderName,
  { operation, settings, deadline }: NamedLook,
): Promise<OrderRecord> {
  const { record } = found
  const left = { ...settings, totalTimeout: deadline.remaining() }
  const { value: order, info } = await readOrder(context, operation, orderId, 'in_doubt', left)
  const { deriveId } = context.connection.runtime
  const asked = record ?? { ...('externalOrderId' in name ? name : {}), key: '', fields: {} }
  const differs = differences(deriveId, asked, echoOf(order)).filter((field) => !despite.includes(field))
  if (differs.length > 0)
    throw invalid(
      'orderId',
      `names an order with a different ${differs.join(', ')}; if it is this order, add despite: [${differs.map((field) => `'${field}'`).join(', ')}]`,
      record,
      info().attempts,
    )
  if (record === undefined && 'externalOrderId' in name)
    return await adopted(context, found, name.externalOrderId, order, deadline)
  const outcome = await markCreated(context, known(found), { id: order.id, order }, deadline)
  if (outcome.record.state !== 'created') throw notStored(record)
  return outcome.record
}

/**
 * Remembers an order that this store did not place, for example an order of an earlier integration.
 * The record has no payload, so every payload with the reference is this order.
 */
async function adopted(
  context: OrderContext,
  found: Found,
  externalOrderId: string,
  order: Order,
  deadline: Deadline,
): Promise<OrderRecord> {
  const content: RecordContent = {
    slot: slotOf({ externalOrderId, fingerprint: '' }),
    ...makeKey(context, externalOrderId, 0),
    generation: 0,
    state: 'created',
    ambiguous: false,
    externalOrderId,
    order: rememberedOrder(context, order),
    attempts: 0,
    fingerprint: '',
    fields: {},
    apiKeyTag: '',
    claim: context.connection.runtime.randomId(),
    readable: true,
    refused: false,
    foreign: false,
  }
  const written = await context.journal.write(found, content, deadline)
  if (written.result !== 'written') throw notStored(undefined)
  return publicRecord(written.found.record)
}

function notStored(record: JournalRecord | undefined): StoreError {
  const known = recordFacts(record)
  return new StoreError(
    `The decision was not confirmed: the store failed, or another call changed the record. ${moneySentence(known.charged)} Read the record again, then decide.`,
    known,
  )
}
