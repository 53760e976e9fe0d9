import {
  type CustomerOrderingError,
  moneySentence,
  StoreError,
  UnresolvedOrderError,
} from '../errors/classes.ts'
import type { CallSettings } from '../http/call.ts'
import { nextKey } from './claim.ts'
import { type Facts, isFromFuture } from './conditions.ts'
import { type OrderContext, recordFacts } from './context.ts'
import { known, plainFacts, run, type Task, type Turn } from './engine.ts'
import { contradiction, echoOf } from './evidence.ts'
import type { FoundRecord } from './journal.ts'
import { readOrder } from './look-up.ts'
import { markCreated } from './newest.ts'
import { type JournalRecord, type OrderRecord, publicRecord } from './record.ts'
import {
  deadlineOf,
  invalid,
  isTaken,
  lookFor,
  type NamedLook,
  nameField,
  type OrderName,
} from './remembered.ts'
import { type Command, unknownStep } from './rules.ts'
import { apply } from './transitions.ts'

/** A person's decision: the order exists under this id, or the order is abandoned. */
export type Resolution = { readonly as: 'created'; readonly orderId: string } | { readonly as: 'abandoned' }

export async function resolve(
  context: OrderContext,
  name: OrderName,
  resolution: Resolution,
  settings: CallSettings,
): Promise<OrderRecord> {
  const look = { operation: 'orders.resolve', settings, deadline: deadlineOf(context, settings), attempts: 0 }
  if (resolution.as === 'created') {
    const { orderId } = resolution
    return await run<'resolve', OrderRecord>(context, {
      ...taskOf(context, name, look, { orderId }),
      command: 'resolve',
      perform: async (step, found) => {
        switch (step.step) {
          case 'refuse':
            throw refused(step.because, name, found.record)
          case 'verify':
            return { end: await verified(context, known(found), orderId, name, look) }
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
  found: FoundRecord,
  orderId: string,
  name: OrderName,
  look: NamedLook,
): Promise<OrderRecord> {
  const { operation, settings, deadline } = look
  const { record } = found
  const left = { ...settings, totalTimeout: deadline.remaining() }
  const { value: order, info } = await readOrder(context, operation, orderId, 'in_doubt', left)
  const { attempts } = info()
  const { deriveId } = context.connection.runtime
  const field = contradiction(deriveId, record, echoOf(order), 'list')
  if (field !== undefined)
    throw invalid('orderId', `names an order with a different ${field}`, record, attempts)
  // The returned order may have too few fields to tell two orders apart. With the id of another
  // record's order, this record would look settled, and nobody would search for its charge.
  if (await isTaken(context, orderId, record, name, { ...look, attempts }))
    throw invalid(
      'orderId',
      'names an order that is remembered under another reference or key; check the id',
      record,
      attempts,
    )
  const outcome = await markCreated(context, found, { id: order.id, order }, deadline)
  if (outcome.record.state !== 'created') throw notStored(record)
  return outcome.record
}

function notStored(record: JournalRecord | undefined): StoreError {
  const known = recordFacts(record)
  return new StoreError(
    `The decision was not confirmed: the store failed, or another call changed the record. ${moneySentence(known.charged)} Read the record again, then decide.`,
    known,
  )
}
