import { defined } from '../defined.ts'
import { type AnyCustomerOrderingError, StoreError } from '../errors/classes.ts'
import { askCredential, type CallSettings, noTrail } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { errorOf } from '../http/failures.ts'
import { repeatedContent, sameApiKey } from './claim.ts'
import type { Facts } from './conditions.ts'
import { chargedOf, type OrderContext, orderEvent, recordFacts } from './context.ts'
import { known, plainFacts, run, type Turn, withTrustedTimes } from './engine.ts'
import { requestOf } from './evidence.ts'
import { isGenuine } from './intent.ts'
import type { Found, FoundRecord } from './journal.ts'
import { type Lookup, lookUp, lookUpAlone } from './look-up.ts'
import { newestRecord } from './newest.ts'
import { orderCall } from './place-order-errors.ts'
import { concurrently } from './pool.ts'
import { isPending, type JournalRecord, publicRecord } from './record.ts'
import {
  type Finish,
  failureOf,
  finished,
  type RecoveryOutcome,
  repeatedOutcome,
  settledOutcome,
  unreadableRecord,
} from './recovery-outcome.ts'
import { unusableError } from './row.ts'
import { decide, type StepOf, unknownStep } from './rules.ts'
import type { Sent } from './send-order.ts'

export interface RecoverSettings<Output> {
  readonly settings: CallSettings
  readonly concurrency: number
  /** True to claim records even if a call of another process may still be placing their orders. */
  readonly takeOver: boolean
  readonly finish: Finish<Output>
  /** Throws once the client is closed. */
  readonly checkOpen: () => void
}

interface RecoverOneSettings extends RecoverSettings<unknown> {
  readonly callId: string
}

const OPERATION = 'orders.recover'
/** After this many transport failures in a row, the service is presumed unreachable. */
const MAX_FAILURES = 3

/**
 * Recovery may run in several processes and be killed at any point: every step is a conditional
 * write of one record, and a request with an unknown outcome is repeated only under its key.
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
    signal: AbortSignal,
  ): Promise<RecoveryOutcome<Output> | Lookup | undefined> => {
    checkOpen()
    if (settings.signal?.aborted === true) throw failure('aborted', undefined, settings)
    const callId = runtime.randomId()
    let step: RecoveryOutcome | Lookup | undefined
    try {
      step =
        failures < MAX_FAILURES
          ? await recoverOne(context, id, { ...options, settings: { ...settings, signal }, callId })
          : await leaveOpen(context, id)
    } catch (error) {
      step = await leaveOpen(context, id, failureOf(error))
      // The record cannot be read, so the store would probably fail for the other records, too.
      if (step === undefined) throw error
    }
    if (step === undefined || 'found' in step) return step
    const { error, order } = step
    if (error?.code === 'connection' || error?.code === 'timeout') failures++
    else if (failures < MAX_FAILURES && (order ?? error?.status) !== undefined) failures = 0
    return await report(step, callId)
  }
  for await (const step of concurrently(ids, options.concurrency, settings.signal, settle)) {
    if (step === undefined) continue
    if ('found' in step) lookups.push(step)
    else yield step
  }
  const conditions = { reachable: failures < MAX_FAILURES, checkOpen }
  for await (const looked of lookUp(context, OPERATION, lookups, settings, conditions))
    yield await report(looked)
  context.journal.pruneHourly(context.retention, context.connection.reporter)
}

/** Sorts the ids by the end of the safe-retry window, the most urgent record first. */
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
      // Records past their window come last: a late lookup loses nothing.
      times.set(row.id, end >= now ? end : Number.MAX_SAFE_INTEGER)
    }
  }
  const ids = [...times].sort(([, a], [, b]) => a - b).map(([id]) => id)
  return { ids, unusable }
}

/** A {@link Lookup} if the request must not be repeated; undefined if nothing needs settling. */
type Settled = RecoveryOutcome | Lookup | undefined

export async function recoverOne(
  context: OrderContext,
  id: string,
  options: RecoverOneSettings,
): Promise<Settled> {
  const { journal, live, connection } = context
  const { runtime } = connection
  const { settings } = options
  const deadline = new Deadline(runtime, settings.totalTimeout, settings.signal)
  let credential: string | null | undefined
  let leave: (result: undefined) => void = () => {}
  // Reuse the facts of a decision made without an API key: with newer facts, the rules might send
  // the order without an API key.
  let decided: Facts | undefined
  const factsOf = ({ record }: Found): Facts => ({
    // Recovery sends one request, so the window must have time left for one attempt only.
    ...plainFacts(context, { totalTimeout: settings.timeout }),
    isLive: live.get(id) !== undefined,
    // Once there is a credential, an earlier read has found no valid claim of another call.
    // `withTrustedTimes` must not make an expired claim valid again.
    outwaited: options.takeOver || credential !== undefined,
    ...(credential !== undefined &&
      record !== undefined && {
        sameApiKey: sameApiKey(context, record, credential),
        isGenuine: () => isGenuine(runtime.deriveId, context, id, record),
      }),
  })
  const look = async (): Promise<Found> => {
    const loaded = await journal.load(id, deadline)
    if (loaded instanceof Interruption) throw failure(loaded.why, undefined, settings)
    // Most decisions need no API key: do not fetch one for them.
    decided = factsOf(loaded)
    const { step } = decide('recover', loaded, decided)
    if (step !== 'send' && step !== 'look_up') return loaded
    decided = undefined
    const found = await withTrustedTimes(context, loaded, deadline)
    const asked = await askCredential(connection.credentials, deadline)
    if (asked instanceof Interruption) throw failure(asked.why, found.record, settings)
    if (asked !== null && typeof asked === 'object')
      throw failure('credentials', found.record, settings, asked.error)
    credential = asked
    return found
  }
  const perform = async (step: StepOf['recover'], found: Found): Promise<Turn<Settled>> => {
    switch (step.step) {
      case 'nothing':
        return { end: undefined }
      case 'tell':
        return { end: settledOutcome(known(found).record) }
      case 'leave':
        return { end: { outcome: 'in_progress', record: publicRecord(known(found).record) } }
      case 'look_up':
        return { end: await lookUpAlone(context, OPERATION, known(found), step.because, settings) }
      case 'send': {
        const { record } = known(found)
        const { fingerprint, key: idempotencyKey } = record
        leave = live.enter(id, { fingerprint, idempotencyKey, request: requestOf(record) })
        return repeating(context, known(found), options, credential ?? null)
      }
      default:
        return unknownStep(step)
    }
  }
  try {
    const facts = (found: Found): Facts => decided ?? factsOf(found)
    return await run(context, { command: 'recover', deadline, look, facts, perform })
  } finally {
    leave(undefined)
  }
}

function repeating(
  context: OrderContext,
  over: FoundRecord,
  { settings, callId }: RecoverOneSettings,
  credential: string | null,
): Turn<RecoveryOutcome> {
  const { record } = over
  const view = publicRecord(record)
  const send = repeatedContent(record)
  return {
    over,
    send,
    how: {
      settings: { ...settings, maxRetries: 0 },
      callId,
      credential,
      operation: OPERATION,
      once: true,
      earlier: undefined,
    },
    sent: (sent, claimed) => sentOutcome(context, sent, claimed, settings),
    lost: () => ({ end: { outcome: 'in_progress', record: view } }),
    unwritten: ({ cause, repair = 'Repair the store,' }) => {
      const error = new StoreError(
        `Recovery could not confirm its claim, so it did not send this order. An earlier call may have charged the wallet. ${repair} then run recovery again.`,
        { ...recordFacts(record), cause },
      )
      return { end: { outcome: 'still_open', record: view, error } }
    },
  }
}

async function sentOutcome(
  context: OrderContext,
  { order, ending, outcome, charged, record }: Sent,
  claimed: FoundRecord,
  { signal }: CallSettings,
): Promise<RecoveryOutcome> {
  const stored = (await newestRecord(context, claimed)) ?? record
  // A response proves the charge even if the proof could not be stored.
  const newest: JournalRecord = charged === 'yes' ? { ...stored, state: 'created' } : stored
  const about = orderCall(OPERATION, recordFacts(newest), signal)
  const error =
    ending.end === 'done' ? undefined : errorOf(ending, { ...about, now: context.connection.runtime.now() })
  return repeatedOutcome(newest, order, outcome?.kind, error)
}

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
    ...orderEvent(callId, OPERATION),
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

function failure(
  end: 'credentials' | 'aborted' | 'deadline',
  record: JournalRecord | undefined,
  { signal }: CallSettings,
  error?: unknown,
): AnyCustomerOrderingError {
  return errorOf({ end, error, trail: noTrail(true) }, orderCall(OPERATION, recordFacts(record), signal))
}
