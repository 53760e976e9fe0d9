/** Settles the orders that earlier calls have left without a known outcome. */
import type { RecoverOptions } from '../../call-options.ts'
import { defined } from '../../defined.ts'
import { type AnyCustomerOrderingError, isCustomerOrderingError } from '../../errors/classes.ts'
import type { CallSettings } from '../../http/call.ts'
import { Deadline, GRACE } from '../../http/deadline.ts'
import { abortedError, errorOf } from '../../http/failures.ts'
import { isNameless } from '../../identity/keys.ts'
import { callSettings } from '../../settings/arguments.ts'
import { mayAttempt, timingOf } from '../protocol/keys.ts'
import { unknownStep } from '../protocol/rules.ts'
import { type Job, type OrderContext, type OrdersContext, orderEvent, SENDING } from '../record/context.ts'
import { chargedOf, isPending, publicRecord, recordFacts, unusableIn } from '../record/record.ts'
import { drive, type Ruled } from '../sending/drive.ts'
import { orderCall, unclaimedError } from '../sending/order-errors.ts'
import type { Sent } from '../sending/send.ts'
import { concurrently } from './concurrently.ts'
import { fitOrder } from './create.ts'
import { type Lookup, lookUp, lookUpById, storeTime } from './look-up.ts'
import { failureOf, outcomeOf, type RecoveryOutcome, unusableOutcome } from './recovery-outcome.ts'

/** After this many failures in a row that would meet every order, no more are sent. */
const MAX_FAILURES = 3
const COMMON_FAILURES = ['connection', 'timeout', 'rate_limit', 'authentication']

/**
 * Recovery may run in several processes and be killed at any point: every step is a conditional
 * write of one record, and a request with an unknown outcome is repeated only under its key.
 */
export async function* recover<Output>(
  context: OrdersContext<Output>,
  { concurrency = 8, takeOver = false, ...call }: Partial<RecoverOptions>,
): AsyncGenerator<RecoveryOutcome<Output>, void, undefined> {
  const { lifetime, connection, defaults } = context
  const settings = callSettings(defaults, call)
  const { runtime } = connection
  const { ids, unusable } = await pendingRecords(context, settings)
  for (const outcome of unusable) yield await report(context, outcome, settings)
  const lookups: Lookup[] = []
  let failures = 0
  const controller = new AbortController()
  const { signal } = controller
  const recoverRow = async (rowId: string): Promise<RecoveryOutcome<Output> | undefined> => {
    lifetime.check('unknown')
    const callId = runtime.randomId()
    const own = { command: 'recover', intent: undefined, unlisted: undefined } as const
    const deadline = new Deadline(runtime, settings.totalTimeout, signal)
    const times = { startedAt: runtime.now(), deadline }
    const job: Job = { ...own, ...times, rowId, settings: { ...settings, signal }, callId, takeOver }
    let step: RecoveryOutcome | Lookup | undefined
    try {
      step = failures < MAX_FAILURES ? await recoverOne(context, job) : await untouched(context, rowId)
    } catch (error) {
      const known = isCustomerOrderingError(error) && error.code !== 'aborted' ? error : undefined
      const unusable = unusableIn(error)
      step = unusable
        ? unusableOutcome(unusable)
        : await untouched(context, rowId, known, storeTime(context, signal.aborted ? GRACE : undefined))
      // What other code threw ends the run unchanged, once the hooks have been told.
      if (step !== undefined && known === undefined)
        await report(context, step, settings, callId, deadline.elapsed())
      // The record cannot be read, so the store would probably fail for the other records, too.
      if (step === undefined || known === undefined) throw error
    }
    if (step === undefined) return undefined
    if ('found' in step) {
      lookups.push(step)
      return undefined
    }
    const { error, order } = step
    if (COMMON_FAILURES.includes(error?.code ?? '')) failures++
    else if (failures < MAX_FAILURES && (order ?? error?.status) !== undefined) failures = 0
    return await report(context, step, settings, callId, deadline.elapsed())
  }
  const outcomes = concurrently(ids, {
    concurrency,
    work: (rowId: string) => lifetime.use(() => recoverRow(rowId)),
    signal: settings.signal,
    aborted: () => aborted(settings.signal),
    stop: () => controller.abort(settings.signal?.reason),
  })
  for await (const outcome of outcomes) if (outcome !== undefined) yield outcome
  for await (const looked of lookUp(context, lookups, failures < MAX_FAILURES, settings)) {
    if (settings.signal?.aborted === true) throw aborted(settings.signal)
    yield await report(context, looked, settings)
  }
  context.journal.pruneHourly('recover')
}

/**
 * Returns the ids by turns: of the record whose safe-retry window ends next, and of the one that no
 * call has written for longest. So urgent orders whose requests always fail do not keep a run, which
 * ends after a few failures, from all others.
 */
async function pendingRecords(
  context: OrderContext,
  { signal }: CallSettings,
): Promise<{ ids: string[]; unusable: RecoveryOutcome[] }> {
  const now = context.connection.runtime.now()
  const pending: { readonly id: string; readonly end: number; readonly written: number }[] = []
  const unusable: RecoveryOutcome[] = []
  for await (const { row, record } of context.journal.records('open')) {
    context.lifetime.check('unknown')
    if (signal?.aborted === true) throw aborted(signal)
    if (typeof record === 'object') {
      const end = (record.firstSentAt ?? record.createdAt) + context.safeRetryWindow
      // Records past their window come last: a late lookup loses nothing.
      const late = end < now ? Number.MAX_SAFE_INTEGER : 0
      pending.push({ id: row.id, end: end + late, written: record.updatedAt + late })
      continue
    }
    unusable.push(unusableOutcome({ row, why: record }))
  }
  const untried = [...pending].sort((a, b) => a.written - b.written)
  const urgent = pending.sort((a, b) => a.end - b.end)
  const ids = new Set(urgent.flatMap(({ id }, at) => [id, untried[at]?.id ?? id]))
  return { ids: [...ids], unusable }
}

/** A {@link Lookup} if the request must not be repeated; undefined if nothing needs settling. */
export async function recoverOne(
  context: OrderContext,
  job: Job,
): Promise<RecoveryOutcome | Lookup | undefined> {
  const driven = await drive(context, job)
  switch (driven.end) {
    case 'ruled':
      return await ruledOutcome(context, job, driven)
    case 'unclaimed': {
      const error = unclaimedError(job, driven)
      // Without time or an API key, the other orders cannot be sent, either.
      if (driven.record === undefined || !('result' in driven.why)) throw error
      return { outcome: 'still_open', record: publicRecord(driven.record), error }
    }
    case 'sent': {
      const { outcome, record } = driven
      // If nothing was sent because the key's window ended after the claim, the rules look the order up.
      const isUnsent = outcome === undefined || outcome.kind === 'not_sent'
      const isStale = isPending(record) && !mayAttempt(record.firstSentAt, timingOf(context, job))
      return isUnsent && isStale ? await recoverOne(context, job) : sentOutcome(driven, job)
    }
  }
}

async function ruledOutcome(
  context: OrderContext,
  { settings }: Job,
  { step, found }: Ruled,
): Promise<RecoveryOutcome | Lookup | undefined> {
  // A call that is placing the order may have no record yet, or one that cannot be read in time.
  const isUnread = found?.record === undefined && step.step === 'in_progress'
  if (isUnread || step.step === 'nothing') return undefined
  if (found?.record === undefined) throw new TypeError(`unreachable: ${step.step} without a record`)
  const { record } = found
  switch (step.step) {
    case 'tell':
      return outcomeOf(record)
    case 'in_progress':
      return { outcome: 'in_progress', record: publicRecord(record) }
    case 'read':
      return await lookUpById(context, found, settings)
    case 'look_up':
      return { found, reason: step.because === 'held' ? (record.hold ?? 'aborted') : step.because }
    case 'refuse':
      throw new TypeError(`unreachable: refused as ${step.because} in recover()`)
    default:
      return unknownStep(step)
  }
}

function sentOutcome(sent: Sent, { settings }: Job): RecoveryOutcome {
  const { ending, outcome, record } = sent
  if (ending.end === 'steered') throw ending.error
  const about = orderCall('recover', recordFacts(record), settings.signal)
  const error = ending.end === 'done' ? undefined : errorOf(ending, about)
  return outcomeOf(record, { order: outcome?.order, error, kind: outcome?.kind })
}

/** What is known of an order that this run does not work on, or could not settle. */
async function untouched(
  context: OrderContext,
  id: string,
  error?: AnyCustomerOrderingError,
  time: Deadline = storeTime(context),
): Promise<RecoveryOutcome | undefined> {
  const record = (await context.journal.newest(id, time))?.record
  if (record === undefined || !isPending(record)) return record && outcomeOf(record)
  // The row of a nameless order may have got another order since the error.
  const isOwn = !isNameless(record.slot) || (error?.idempotencyKey ?? record.key) === record.key
  // Also if the order is known to exist: an error of the store or the connection does not say so.
  return { outcome: 'still_open', record: publicRecord(record), ...(isOwn && defined({ error })) }
}

/** Tells hooks of an outcome, with the order as the caller's own schema reads it. */
async function report<Output>(
  context: OrdersContext<Output>,
  outcome: RecoveryOutcome,
  settings: CallSettings,
  callId: string = context.connection.runtime.randomId(),
  durationMs: number = 0,
): Promise<RecoveryOutcome<Output>> {
  const { record } = outcome
  const { externalOrderId, attempts } = record
  const orderId = outcome.order?.id ?? record.order?.id
  const names = defined({ idempotencyKey: record.key || undefined, externalOrderId, orderId })
  let told: RecoveryOutcome<Output>
  if (outcome.order === undefined) told = outcome
  else
    try {
      const known = { ...names, orderId: outcome.order.id }
      const order = await fitOrder(context, outcome.order, SENDING.recover.operation, settings, () => known)
      told = { outcome: 'created', record, order }
    } catch (error) {
      told = { outcome: 'created', record, reason: 'unreadable', error: failureOf(error) }
    }
  context.connection.reporter.settled({
    ...orderEvent({ command: 'recover', callId }),
    ok: told.order !== undefined || told.outcome === 'rejected',
    attempts,
    durationMs,
    recovery: told.outcome,
    charged: told.outcome === 'created' ? 'yes' : chargedOf(record),
    ...names,
    ...defined({ code: told.error?.code }),
  })
  return told
}

function aborted(signal: AbortSignal | undefined): AnyCustomerOrderingError {
  return abortedError(orderCall('recover', { charged: 'unknown' }, signal))
}
