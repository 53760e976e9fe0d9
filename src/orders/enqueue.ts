import type { CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import type { EnqueueOptions } from '../options.ts'
import type { CreateOrderRequest } from '../schemas/order.ts'
import { refuseArgument } from '../settings/arguments.ts'
import { withTrustedTimes } from './archive.ts'
import { askedContent } from './claim.ts'
import type { OrderContext } from './context.ts'
import { type Action, decideAction } from './decision.ts'
import { isAnonymous } from './identity.ts'
import { type Intent, readIntent, slotOfInvalid } from './intent.ts'
import { argumentError, moneyOf, PlaceOrderErrors } from './place-order-errors.ts'
import {
  isUnsent,
  type JournalRecord,
  type OrderRecord,
  publicRecord,
  type RecordContent,
  unusableError,
} from './record.ts'
import { apply } from './transitions.ts'

/** How long to wait after another writer was faster, milliseconds. */
const PAUSE = 50

/**
 * Writes an order down for `recover()` to send: an open record that no call has claimed. What is remembered already is
 * met as `create()` would meet it (docs/guide/concepts.md), only that nothing is sent.
 */
export async function enqueueOrder(
  context: OrderContext,
  request: CreateOrderRequest,
  { idempotencyKey, service, within }: EnqueueOptions,
  { timeout, totalTimeout }: CallSettings,
): Promise<OrderRecord> {
  const { journal, safeRetryWindow } = context
  const { runtime } = context.connection
  const deadline = new Deadline(runtime, totalTimeout, undefined)
  let intent: Intent
  try {
    if (within !== undefined && within === journal.store)
      refuseArgument(
        "is the client's own store, which writes outside of your transaction: pass store.within(connection), or leave it out",
        'within',
      )
    intent = readIntent(runtime.deriveId, request, { idempotencyKey, service })
    // Nobody could ask what became of it, and a second one would be another order.
    if (isAnonymous(intent.slot))
      refuseArgument('must be given, or options.idempotencyKey', 'metadata.externalOrderId')
  } catch (error) {
    throw await argumentError(context, error, slotOfInvalid(request, idempotencyKey), deadline)
  }
  const errors = new PlaceOrderErrors(intent, undefined)
  for (;;) {
    const loaded = await journal.load(intent.rowId, deadline, within)
    if (loaded instanceof Interruption)
      throw errors.notStored({ result: 'doubt', cause: undefined }, 'unknown', undefined, undefined)
    // Not over a call of this process, which writes its own ending.
    const isLive = context.live.get(intent.rowId) !== undefined
    const found = isLive ? loaded : await withTrustedTimes(context, loaded, deadline, within)
    const { record } = found
    let moved = false
    let taken: RecordContent | undefined
    if (record !== undefined) {
      if (record.slot !== intent.slot) throw unusableError('corrupt', record.key)
      // As recovery will see it, which sends one request, with an API key that is not known here.
      const now = runtime.now()
      const circumstances = { now, safeRetryWindow, totalTimeout: timeout, sameApiKey: true }
      const step = decideAction(record, intent, circumstances)
      if (step.action === 'conflict') throw errors.rememberedConflict(runtime.deriveId, record, step.over)
      if (step.action === 'unresolved' && record.state !== 'created')
        throw errors.unresolved(record, step.because)
      if (step.action === 'spent') throw errors.spent(record)
      if (step.action === 'continue' && record.hold !== undefined) throw errors.unresolved(record, 'held')
      // That call may yet close the record as not sent, so it cannot stand for an order that is promised to be placed. To
      // wait for its end would hold the caller's transaction.
      if (step.action === 'wait') throw errors.unresolved(record, 'busy')
      if (mayBeAsleep(step, record)) taken = apply(record, { type: 'taken_over', claim: runtime.randomId() })
      else if (step.action !== 'reopen') return publicRecord(record)
      else moved = step.key === 'given'
    }
    if (intent.misfit !== undefined && taken === undefined) throw errors.misfit(intent.misfit, record)
    // What was refused under this key: hearing it again leads to another one.
    const heard = moved ? undefined : record?.rejection
    const content = taken ?? askedContent(context, intent, record, { moved, heard })
    const written = await journal.write(found, content, deadline, within)
    if (written.result === 'written') return publicRecord(written.found.record)
    if (written.result !== 'lost') {
      let charged = written.result === 'doubt' ? 'unknown' : moneyOf(record)
      // What an earlier call gave up may still open the record. In the caller's transaction, a write against it would be
      // rolled back together with the rest.
      const fences = written.result === 'failed' && charged === 'no'
      if (fences && (within !== undefined || !(await journal.fence(found, deadline)))) charged = 'unknown'
      throw errors.notStored(written, charged, content.key, record)
    }
    await deadline.sleep(PAUSE)
  }
}

/** True if the call that left the order open may wake and close it. It can close nothing that was written since. */
export function mayBeAsleep({ action }: Action, record: JournalRecord): boolean {
  return action === 'continue' && !isUnsent(record)
}
