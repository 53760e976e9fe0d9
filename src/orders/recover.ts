import { defined } from '../defined.ts'
import { type AnyCustomerOrderingError, isCustomerOrderingError, StoreError } from '../errors.ts'
import { askCredential, type CallSettings, noTrail } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { errorOf } from '../http/failures.ts'
import { claimedContent, heardUnder, repeatedContent, sameApiKey } from './claim.ts'
import { type Facts, PLAIN_FACTS } from './conditions.ts'
import { CREATE_ORDER, chargedOf, ORDERS_PATH, type OrderContext } from './context.ts'
import { requestOf } from './evidence.ts'
import { isGenuine } from './intent.ts'
import type { Found, FoundRecord } from './journal.ts'
import { type Lookup, lookUp, lookUpById } from './look-up.ts'
import { withTrustedTimes } from './newest.ts'
import { OUTCOMES } from './outcome.ts'
import { isPending, isUnsent, type JournalRecord, publicRecord } from './record.ts'
import {
  createdOutcome,
  type Finish,
  finished,
  newestRecord,
  type RecoveryOutcome,
  settledOutcome,
  unreadableRecord,
} from './recovery-outcome.ts'
import { pruneClosed } from './remembered.ts'
import { unusableError } from './row.ts'
import { decide, known, type StepOf, unknownStep } from './rules.ts'
import { sendOrder } from './send-order.ts'

export type {
  AttentionReason,
  RecordInNeed,
  RecoveredOrder,
  RecoveredRecord,
  RecoveryOutcome,
  RecoverySummary,
  UnreadableOrder,
} from './recovery-outcome.ts'

/** How to recover. */
export interface RecoverSettings<Output> {
  readonly settings: CallSettings
  /** `all` repeats the request also past the window, after an abort and after a refusal that proved nothing. */
  readonly replay: 'safe' | 'all'
  /** True to claim records that a live call elsewhere may still hold. */
  readonly takeOver: boolean
  readonly finish: Finish<Output>
  /** True once the service's whole list is known not to have the order, so that it may be sent for the first time. */
  readonly notListed?: boolean
  /** Throws once the client is closed, which must not wait for a whole walk. */
  readonly checkOpen: () => void
}

interface RecoverOneSettings extends RecoverSettings<unknown> {
  /** Same for the requests that the record needs and for what is told of it. */
  readonly callId: string
}

const OPERATION = 'orders.recover'
/** Transport failures in a row that end the walk: the service cannot be reached, and the rest stays open. */
const MAX_FAILURES = 3

/**
 * Settles every record that a call left behind, asking the service once for each. Safe in many processes at once and
 * safe to kill anywhere: every step is a conditional write of one record, and a repeated request carries its old key.
 */
export async function* recover<Output>(
  context: OrderContext,
  options: RecoverSettings<Output>,
): AsyncGenerator<RecoveryOutcome<Output>, void, undefined> {
  const { settings, checkOpen } = options
  const { runtime } = context.connection
  const report = async (
    outcome: RecoveryOutcome,
    callId: string = runtime.randomId(),
  ): Promise<RecoveryOutcome<Output>> => {
    const told = await finished(outcome, options.finish)
    reportOutcome(context, callId, told, outcome.order?.id)
    return told
  }
  const { ids, unusable } = await pendingRecords(context, options)
  for (const outcome of unusable) yield await report(outcome)
  const lookups: Lookup[] = []
  let failures = 0
  const settle = async (
    id: string,
    notListed: boolean,
  ): Promise<RecoveryOutcome<Output> | Lookup | undefined> => {
    checkOpen()
    if (settings.signal?.aborted === true) throw failure('aborted', undefined, settings)
    const callId = runtime.randomId()
    let step: RecoveryOutcome | Lookup | undefined
    try {
      step =
        failures < MAX_FAILURES
          ? await recoverOne(context, id, { ...options, notListed, callId })
          : await leaveOpen(context, id)
    } catch (error) {
      // One record's trouble is its own outcome; the walk goes on.
      if (!isCustomerOrderingError(error) || error.code === 'aborted') throw error
      step = await leaveOpen(context, id, error)
      // Not even readable: the store itself is in trouble, and every further record would be.
      if (step === undefined) throw error
    }
    if (step === undefined || 'found' in step) return step
    const { error, order } = step
    if (error?.code === 'connection' || error?.code === 'timeout') failures++
    else if (failures < MAX_FAILURES && (order ?? error?.status) !== undefined) failures = 0
    return await report(step, callId)
  }
  for (const id of ids) {
    const step = await settle(id, false)
    if (step === undefined) continue
    if ('found' in step) lookups.push(step)
    else yield step
  }
  const conditions = { reachable: failures < MAX_FAILURES, checkOpen }
  for await (const looked of lookUp(context, OPERATION, lookups, settings, conditions)) {
    if (looked.outcome !== 'not_listed') {
      yield await report(looked)
      continue
    }
    const step = await settle(looked.found.id, true)
    if (step === undefined) continue
    // Not sent for another reason: the list has been read, and does not have it.
    if ('found' in step) {
      const { found, reason } = step
      yield await report({ outcome: 'needs_attention', record: publicRecord(found.record), reason })
    } else yield step
  }
  pruneClosed(context)
}

/** Names of the pending records, those whose safe-retry window ends next first, and the rows nobody can read. */
async function pendingRecords(
  context: OrderContext,
  { settings, checkOpen }: RecoverSettings<unknown>,
): Promise<{ ids: string[]; unusable: RecoveryOutcome[] }> {
  const now = context.connection.runtime.now()
  const times = new Map<string, number>()
  const unusable: RecoveryOutcome[] = []
  for await (const row of context.journal.rows({ open: true })) {
    checkOpen()
    if (settings.signal?.aborted === true) throw failure('aborted', undefined, settings)
    const record = await context.journal.decode(row)
    if (record === 'forgotten') continue
    if (record === 'unanswered')
      unusable.push({
        outcome: 'still_open',
        record: unreadableRecord(row),
        error: unusableError(record),
      })
    else if (typeof record === 'string')
      unusable.push({ outcome: 'needs_attention', record: unreadableRecord(row), reason: record })
    else {
      const end = (record.firstSentAt ?? record.createdAt) + context.safeRetryWindow
      // Those that were never sent have no window that could end, so they come after those that have one, oldest first.
      if (isUnsent(record)) times.set(row.id, now + context.safeRetryWindow + record.createdAt)
      // Those past their window can wait: nothing is lost by asking for them last.
      else times.set(row.id, end >= now ? end : Number.MAX_SAFE_INTEGER)
    }
  }
  const ids = [...times].sort(([, a], [, b]) => a - b).map(([id]) => id)
  return { ids, unusable }
}

/** Settles one record; a {@link Lookup} where its request must not be repeated. */
export async function recoverOne(
  context: OrderContext,
  id: string,
  options: RecoverOneSettings,
): Promise<RecoveryOutcome | Lookup | undefined> {
  const { journal, live, connection } = context
  const { settings } = options
  const deadline = new Deadline(connection.runtime, settings.totalTimeout, settings.signal)
  const loaded = await journal.load(id, deadline)
  if (loaded instanceof Interruption) throw failure(loaded.why, undefined, settings)
  const here = (facts: Partial<Facts>): Facts => ({
    ...PLAIN_FACTS,
    now: connection.runtime.now(),
    safeRetryWindow: context.safeRetryWindow,
    // One request only, so only one attempt's time is subtracted from the window.
    totalTimeout: settings.timeout,
    isLive: live.get(id) !== undefined,
    outwaited: options.takeOver,
    isNotListed: options.notListed === true,
    replaysAll: options.replay === 'all',
    ...facts,
  })
  // No API key is needed for what is settled, or somebody else's.
  const early = decide('recover', loaded, here({}))
  if (early.step !== 'send' && early.step !== 'look_up') return leftAlone(early, loaded)
  const found = await withTrustedTimes(context, known(loaded), deadline)
  const { record } = found

  const credential = await askCredential(connection.credentials, deadline)
  if (credential instanceof Interruption) throw failure(credential.why, record, settings)
  if (credential !== null && typeof credential === 'object')
    throw failure('credentials', record, settings, credential.error)
  const { deriveId } = connection.runtime
  const step = decide(
    'recover',
    found,
    here({
      // Decided before; a mark on the times of a claim ends none.
      outwaited: true,
      sameApiKey: sameApiKey(context, record, credential),
      isGenuine: () => isGenuine(deriveId, context, id, record),
    }),
  )
  if (step.step === 'look_up') {
    const { because: reason } = step
    const orderId = record.state === 'created' ? record.order?.id : undefined
    return orderId === undefined
      ? { found, reason, unsent: reason === 'past_window' && isUnsent(record) }
      : await lookUpById(context, OPERATION, found, orderId, settings)
  }
  if (step.step !== 'send') return leftAlone(step, found)
  const leave = live.enter(id, {
    fingerprint: record.fingerprint,
    idempotencyKey: record.key,
    request: requestOf(record),
  })
  try {
    return await replay(context, found, options, deadline, credential)
  } finally {
    leave(undefined)
  }
}

/** The outcome of a record that is settled, or that a call is at work on; nothing where there is none. */
function leftAlone(
  step: Exclude<StepOf['recover'], { readonly step: 'send' | 'look_up' }>,
  found: Found,
): RecoveryOutcome | undefined {
  switch (step.step) {
    case 'nothing':
      return undefined
    case 'tell':
      return settledOutcome(known(found).record)
    case 'leave':
      return { outcome: 'in_progress', record: publicRecord(known(found).record) }
    default:
      return unknownStep(step)
  }
}

/** Claims the record and sends its request once. */
async function replay(
  context: OrderContext,
  found: FoundRecord,
  options: RecoverOneSettings,
  deadline: Deadline,
  credential: string | null,
): Promise<RecoveryOutcome> {
  const { journal, connection } = context
  const { runtime } = connection
  const { settings } = options
  const { record } = found
  const repeated = repeatedContent(context, record, settings.timeout)
  const earlier = heardUnder(record, repeated)
  const claimed = await journal.write(
    found,
    claimedContent(context, repeated, deadline.remaining(), credential),
    deadline,
  )
  // Somebody else has it now; that is their outcome to report.
  if (claimed.result === 'lost') return { outcome: 'in_progress', record: publicRecord(record) }
  if (claimed.result !== 'written') {
    const error = new StoreError('The store did not confirm that recovery may go on with this order.', {
      charged: chargedOf(record),
      idempotencyKey: record.key,
      ...defined({ externalOrderId: record.externalOrderId, cause: claimed.cause }),
    })
    return { outcome: 'still_open', record: publicRecord(record), error }
  }
  const sent = await sendOrder(context, claimed.found, {
    // One request for each key: a refusal that is heard again moves a queued order to its next one.
    settings: { ...settings, maxRetries: earlier === undefined ? 0 : 1 },
    deadline,
    callId: options.callId,
    credential,
    operation: OPERATION,
    once: true,
    queued: isUnsent(record),
    earlier,
    unused: repeated.firstSentAt === undefined,
    ...(options.replay === 'all' ? { sendUntil: Number.POSITIVE_INFINITY } : {}),
  })
  const { order, ending, outcome } = sent
  const newest = (await newestRecord(context, claimed.found)) ?? sent.record
  const proven = sent.charged === 'yes'
  const error =
    ending.end === 'done'
      ? undefined
      : // An answer that proves the charge does so where it could not be stored as well.
        errorOf(ending, errorContext(newest, proven ? 'yes' : chargedOf(newest), settings, runtime.now()))
  const why = defined({ error })
  if (proven || newest.state === 'created') {
    const settled = settledOutcome({ ...newest, state: 'created' })
    if (order !== undefined) return createdOutcome(settled.record, order)
    return settled.reason === 'unreadable' ? { ...settled, ...why } : settled
  }
  const view = publicRecord(newest)
  if (isPending(newest) && newest.state === 'rejected')
    return { outcome: 'needs_attention', record: view, reason: 'conflict', ...why }
  if (newest.state === 'rejected') return { outcome: 'rejected', record: view, ...why }
  if (outcome?.kind === 'in_progress') return { outcome: 'in_progress', record: view, ...why }
  if (outcome !== undefined && OUTCOMES[outcome.kind].hold === 'refused')
    return { outcome: 'needs_attention', record: view, reason: 'refused_after_doubt', ...why }
  return { outcome: 'still_open', record: view, ...why }
}

/** What can be said of a record without asking the service; undefined if it cannot be read. */
async function leaveOpen(
  context: OrderContext,
  id: string,
  error?: AnyCustomerOrderingError,
): Promise<RecoveryOutcome | undefined> {
  const record = await newestRecord(context, { id })
  if (record === undefined) return undefined
  if (!isPending(record)) return settledOutcome(record)
  return { outcome: 'still_open', record: publicRecord(record), ...defined({ error }) }
}

function reportOutcome(
  context: OrderContext,
  callId: string,
  { outcome, record, error, order }: RecoveryOutcome<unknown>,
  orderId: string | undefined,
): void {
  context.connection.reporter.settled({
    callId,
    operation: OPERATION,
    method: CREATE_ORDER.method,
    path: ORDERS_PATH,
    ok: order !== undefined || outcome === 'rejected',
    attempts: record.attempts,
    durationMs: 0,
    recovery: outcome,
    charged: outcome === 'created' ? 'yes' : chargedOf(record),
    ...defined({
      idempotencyKey: record.key,
      externalOrderId: record.externalOrderId,
      orderId: orderId ?? record.order?.id,
      code: error?.code,
    }),
  })
}

function errorContext(
  record: JournalRecord | undefined,
  charged: 'no' | 'yes' | 'unknown',
  settings: CallSettings,
  now: number,
) {
  return {
    endpoint: { ...CREATE_ORDER, operation: OPERATION },
    path: ORDERS_PATH,
    charged,
    idempotencyKey: record?.key,
    externalOrderId: record?.externalOrderId,
    orderId: record?.order?.id,
    now,
    reason: settings.signal?.reason,
  }
}

function failure(
  end: 'credentials' | 'aborted' | 'deadline',
  record: JournalRecord | undefined,
  settings: CallSettings,
  error?: unknown,
): AnyCustomerOrderingError {
  return errorOf(
    { end, error, trail: noTrail(true) },
    errorContext(record, record === undefined ? 'unknown' : chargedOf(record), settings, 0),
  )
}
