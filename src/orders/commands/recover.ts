/** Settles the orders that earlier calls have left without a known outcome. */
import { defined } from '../../defined.ts'
import { type AnyCustomerOrderingError, StoreError } from '../../errors/classes.ts'
import { type CallSettings, noTrail } from '../../http/call.ts'
import { Deadline, Interruption } from '../../http/deadline.ts'
import { errorOf } from '../../http/failures.ts'
import { mayAttempt, timingOf } from '../protocol/keys.ts'
import { unknownStep } from '../protocol/rules.ts'
import { type Job, type OrderContext, type OrdersContext, orderEvent } from '../record/context.ts'
import { reasonOf } from '../record/journal.ts'
import {
  chargedOf,
  isPending,
  type JournalRecord,
  publicRecord,
  recordFacts,
  unusableError,
} from '../record/record.ts'
import { pruneHourly } from '../record/retention.ts'
import { drive, type Ruled, type Unclaimed } from '../sending/drive.ts'
import { orderCall } from '../sending/order-errors.ts'
import type { Sent } from '../sending/send.ts'
import { concurrently } from './concurrently.ts'
import { fitOrder } from './create.ts'
import { type Lookup, lookUp, lookUpById, MAX_PAGES } from './look-up.ts'
import { failureOf, HELD, outcomeOf, type RecoveryOutcome, unreadableRecord } from './recovery-outcome.ts'

export interface RecoverSettings {
  readonly settings: CallSettings
  readonly concurrency: number
  /** True to claim records even if a call of another process may still be placing their orders. */
  readonly takeOver: boolean
}

const OPERATION = 'orders.recover'
/** After this many transport failures in a row, the service is presumed unreachable. */
const MAX_FAILURES = 3
/** Milliseconds for one more read of a record after its recovery has failed. */
const READ_TIMEOUT = 5000

/**
 * Recovery may run in several processes and be killed at any point: every step is a conditional
 * write of one record, and a request with an unknown outcome is repeated only under its key.
 */
export async function* recover<Output>(
  context: OrdersContext<Output>,
  options: RecoverSettings,
): AsyncGenerator<RecoveryOutcome<Output>, void, undefined> {
  const { settings } = options
  const { lifetime, connection } = context
  const { runtime } = connection
  const checkOpen = (): void => lifetime.check('unknown')
  const { ids, unusable } = await pendingRecords(context, settings)
  for (const outcome of unusable) yield await report(context, outcome, settings)
  const lookups: Lookup[] = []
  let failures = 0
  const controller = new AbortController()
  const own = { ...options, settings: { ...settings, signal: controller.signal } }
  const settle = async (id: string): Promise<RecoveryOutcome<Output> | Lookup | 'settled'> => {
    checkOpen()
    const callId = runtime.randomId()
    let step: RecoveryOutcome | Lookup | undefined
    try {
      step =
        failures < MAX_FAILURES
          ? await recoverOne(context, jobOf(context, id, callId, own))
          : await leaveOpen(context, id)
    } catch (error) {
      step = await leaveOpen(context, id, failureOf(error))
      // The record cannot be read, so the store would probably fail for the other records, too.
      if (step === undefined) throw error
    }
    if (step === undefined) return 'settled'
    if ('found' in step) return step
    const { error, order } = step
    if (error?.code === 'connection' || error?.code === 'timeout') failures++
    else if (failures < MAX_FAILURES && (order ?? error?.status) !== undefined) failures = 0
    return await report(context, step, settings, callId)
  }
  const steps = concurrently(ids, {
    concurrency: options.concurrency,
    work: (id: string) => lifetime.use(() => settle(id)),
    signal: settings.signal,
    aborted: () => interrupted('aborted', undefined, settings.signal),
    stop: () => controller.abort(settings.signal?.reason),
  })
  for await (const step of steps) {
    if (step === 'settled') continue
    if ('found' in step) lookups.push(step)
    else yield step
  }
  // Does not read the list of a service that was just found to be unreachable.
  const sweeps = failures < MAX_FAILURES ? 2 : 0
  const how = { operation: OPERATION, settings, charged: 'unknown', maxPages: MAX_PAGES } as const
  for await (const looked of lookUp(context, lookups, { ...how, sweeps, checkOpen }))
    yield await report(context, looked, settings)
  pruneHourly('recover', context)
}

/** Sorts the ids by the end of the safe-retry window, the most urgent record first. */
async function pendingRecords(
  context: OrderContext,
  { signal }: CallSettings,
): Promise<{ ids: string[]; unusable: RecoveryOutcome[] }> {
  const now = context.connection.runtime.now()
  const times = new Map<string, number>()
  const unusable: RecoveryOutcome[] = []
  for await (const row of context.journal.rows({ open: true })) {
    context.lifetime.check('unknown')
    if (signal?.aborted === true) throw interrupted('aborted', undefined, signal)
    const record = await context.journal.decode(row)
    if (record === 'forgotten') continue
    if (typeof record === 'object') {
      const end = (record.firstSentAt ?? record.createdAt) + context.safeRetryWindow
      // Records past their window come last: a late lookup loses nothing.
      times.set(row.id, end >= now ? end : Number.MAX_SAFE_INTEGER)
      continue
    }
    const view = unreadableRecord(row)
    unusable.push(
      record === 'unanswered'
        ? { outcome: 'still_open', record: view, error: unusableError(record) }
        : { outcome: 'needs_attention', record: view, reason: record },
    )
  }
  const ids = [...times].sort(([, a], [, b]) => a - b).map(([id]) => id)
  return { ids, unusable }
}

function jobOf(
  { connection }: OrderContext,
  rowId: string,
  callId: string,
  { settings, takeOver }: RecoverSettings,
): Job {
  const deadline = new Deadline(connection.runtime, settings.totalTimeout, settings.signal)
  const own = { command: 'recover', operation: OPERATION, intent: undefined, isNotListed: false } as const
  return { ...own, rowId, settings, deadline, callId, takeOver }
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
    case 'unclaimed':
      return unclaimedOutcome(driven, job)
    case 'sent':
      return isOvertakenByWindow(context, job, driven)
        ? await recoverOne(context, job)
        : sentOutcome(driven, job)
  }
}

/**
 * True if nothing was sent because the window of the key ended after the claim. The rules then look
 * the order up.
 */
function isOvertakenByWindow(context: OrderContext, job: Job, { outcome, record }: Sent): boolean {
  const isUnsent = outcome === undefined || outcome.kind === 'not_sent'
  return isUnsent && isPending(record) && !mayAttempt(record.firstSentAt, timingOf(context, job))
}

async function ruledOutcome(
  context: OrderContext,
  { settings }: Job,
  { step, found }: Ruled,
): Promise<RecoveryOutcome | Lookup | undefined> {
  if (step.step === 'nothing') return undefined
  if (found.record === undefined) throw new TypeError(`unreachable: ${step.step} without a record`)
  const { record } = found
  switch (step.step) {
    case 'tell':
      return outcomeOf(record)
    case 'in_progress':
      return { outcome: 'in_progress', record: publicRecord(record) }
    case 'read':
      return await lookUpById(context, OPERATION, found, settings)
    case 'look_up': {
      const { because } = step
      return { found, reason: because === 'held' ? HELD[record.hold ?? 'aborted'] : because }
    }
    case 'refuse':
      throw new TypeError(`unreachable: refused as ${step.because} in recover()`)
    default:
      return unknownStep(step)
  }
}

function unclaimedOutcome({ why, record }: Unclaimed, { settings }: Job): RecoveryOutcome {
  if (why instanceof Interruption) throw interrupted(why.why, record, settings.signal)
  if ('error' in why) throw interrupted('credentials', record, settings.signal, why.error)
  const error = new StoreError(
    `Recovery could not claim this order, so it sent nothing. An earlier call may have charged the wallet. ${why.repair} and run recovery again.${reasonOf(why.cause)}`,
    { ...recordFacts(record), cause: why.cause },
  )
  if (record === undefined) throw error
  return { outcome: 'still_open', record: publicRecord(record), error }
}

function sentOutcome(sent: Sent, { settings }: Job): RecoveryOutcome {
  const { ending, outcome, record } = sent
  if (ending.end === 'steered') throw ending.error
  const about = orderCall(OPERATION, recordFacts(record), settings.signal)
  const error = ending.end === 'done' ? undefined : errorOf(ending, about)
  return outcomeOf(record, { order: outcome?.order, error, kind: outcome?.kind })
}

async function leaveOpen(
  context: OrderContext,
  id: string,
  error?: AnyCustomerOrderingError,
): Promise<RecoveryOutcome | undefined> {
  const time = new Deadline(context.connection.runtime, READ_TIMEOUT, undefined)
  const record = (await context.journal.newest(id, time))?.record
  if (record === undefined) return undefined
  if (!isPending(record)) return outcomeOf(record)
  return { outcome: 'still_open', record: publicRecord(record), ...defined({ error }) }
}

/** Tells hooks of an outcome, with the order as the caller's own schema reads it. */
async function report<Output>(
  context: OrdersContext<Output>,
  outcome: RecoveryOutcome,
  settings: CallSettings,
  callId: string = context.connection.runtime.randomId(),
): Promise<RecoveryOutcome<Output>> {
  const { record } = outcome
  const { key: idempotencyKey, externalOrderId, attempts } = record
  const orderId = outcome.order?.id ?? record.order?.id
  const names = defined({ idempotencyKey, externalOrderId, orderId })
  let told: RecoveryOutcome<Output>
  if (outcome.order === undefined) told = outcome
  else
    try {
      const known = { ...names, orderId: outcome.order.id }
      const order = await fitOrder(context, outcome.order, OPERATION, settings, known)
      told = { outcome: 'created', record, order }
    } catch (error) {
      told = { outcome: 'created', record, reason: 'unreadable', error: failureOf(error) }
    }
  context.connection.reporter.settled({
    ...orderEvent(callId, OPERATION),
    ok: told.order !== undefined || told.outcome === 'rejected',
    attempts,
    durationMs: 0,
    recovery: told.outcome,
    charged: told.outcome === 'created' ? 'yes' : chargedOf(record),
    ...names,
    ...defined({ code: told.error?.code }),
  })
  return told
}

function interrupted(
  end: 'credentials' | 'aborted' | 'deadline',
  record: JournalRecord | undefined,
  signal: AbortSignal | undefined,
  error?: unknown,
): AnyCustomerOrderingError {
  return errorOf({ end, error, trail: noTrail(true) }, orderCall(OPERATION, recordFacts(record), signal))
}
