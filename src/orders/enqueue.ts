import type { EnqueueOptions } from '../call-options.ts'
import type { CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import type { CreateOrderRequest } from '../schemas/order.ts'
import { refuseArgument } from '../settings/arguments.ts'
import { askedContent } from './claim.ts'
import type { OrderContext } from './context.ts'
import { known, plainFacts, run, type Turn, withTrustedTimes } from './engine.ts'
import { isAnonymous } from './identity.ts'
import { type Intent, readIntent, slotOfInvalid } from './intent.ts'
import type { Found } from './journal.ts'
import { argumentError, moneyOf, PlaceOrderErrors } from './place-order-errors.ts'
import { type OrderRecord, publicRecord, type RecordContent } from './record.ts'
import { unusableError } from './row.ts'
import { unknownStep } from './rules.ts'
import { apply } from './transitions.ts'

/** Milliseconds to wait after another writer was faster. */
const PAUSE = 50

/** Stores an open record that no call has claimed, for `recover()` to send. */
export async function enqueueOrder(
  context: OrderContext,
  request: CreateOrderRequest,
  { idempotencyKey, service, within }: EnqueueOptions,
  { timeout, totalTimeout }: CallSettings,
): Promise<OrderRecord> {
  const { journal } = context
  const { runtime } = context.connection
  const deadline = new Deadline(runtime, totalTimeout, undefined)
  let intent: Intent
  try {
    if (within !== undefined && within === journal.store)
      refuseArgument(
        "is the client's store, which is outside your transaction: pass store.within(connection) or omit it",
        'within',
      )
    intent = readIntent(runtime.deriveId, request, { idempotencyKey, service })
    // Without a reference or key, the outcome could not be found later, and a second call would
    // place another order.
    if (isAnonymous(intent.slot))
      refuseArgument('is missing: set it, or options.idempotencyKey', 'metadata.externalOrderId')
  } catch (error) {
    throw await argumentError(context, error, slotOfInvalid(request, idempotencyKey), deadline, within)
  }
  const errors = new PlaceOrderErrors(intent, undefined, undefined)
  const stored = run<'enqueue', OrderRecord>(context, {
    command: 'enqueue',
    deadline,
    store: within,
    look: async () => {
      const loaded = await journal.load(intent.rowId, deadline, within)
      if (loaded instanceof Interruption)
        throw errors.notStored({ result: 'doubt', cause: undefined }, 'unknown', undefined, undefined)
      // Do not write a record while a call of this process is working on it: that call would lose
      // its claim.
      const isLive = context.live.get(intent.rowId) !== undefined
      const found = isLive ? loaded : await withTrustedTimes(context, loaded, deadline, within)
      const { record } = found
      if (record !== undefined && record.slot !== intent.slot) throw unusableError('corrupt', record.key)
      return found
    },
    // Recovery makes one attempt, so only the time of one attempt must fit the key's window.
    facts: () => ({ ...plainFacts(context, { totalTimeout: timeout }), wanted: intent }),
    perform: (step, found) => {
      const { record } = found
      switch (step.step) {
        case 'tell':
          return { end: publicRecord(known(found).record) }
        case 'refuse':
          throw errors.refused(runtime.deriveId, step.because, record)
        case 'take_over':
          return write(found, apply(known(found).record, { type: 'taken_over', claim: runtime.randomId() }))
        case 'write': {
          const moved = step.as === 'given'
          const heard = moved ? undefined : record?.rejection
          return write(found, askedContent(context, intent, record, { moved, heard }))
        }
        default:
          return unknownStep(step)
      }
    },
  })
  return await stored.catch((error: unknown) => {
    throw errors.named(error)
  })

  function write(over: Found, content: RecordContent): Turn<OrderRecord> {
    return {
      over,
      write: content,
      written: ({ record }) => publicRecord(record),
      lost: () => ({ again: PAUSE }),
      unwritten: async (written) => {
        const { record } = over
        let charged = written.result === 'doubt' ? 'unknown' : moneyOf(record)
        // Report `'no'` only after `fence()`: an earlier call's late write could still open the
        // record. A fence inside the caller's transaction proves nothing: a rollback undoes it.
        const fences = written.result === 'failed' && charged === 'no'
        if (fences && (within !== undefined || !(await journal.fence(over, deadline)))) charged = 'unknown'
        const told = within === undefined ? written : { repair: 'Roll back the transaction', ...written }
        throw errors.notStored(told, charged, content.key, record)
      },
    }
  }
}
