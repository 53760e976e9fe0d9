import { defined } from '../defined.ts'
import { type CustomerOrderingError, isCustomerOrderingError } from '../errors.ts'
import { askCredential, type CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { segment } from '../http/path.ts'
import { errorOf, MAX_ITEM_BYTES, read } from '../http/read.ts'
import { inWindow, isBusy } from '../idempotency/decision.ts'
import type { FoundRecord } from '../idempotency/journal.ts'
import { isPending, type JournalRecord, type OrderRecord, publicRecord } from '../idempotency/record.ts'
import type { StoredRow } from '../idempotency/store.ts'
import { check } from '../schemas/check.ts'
import { type Order, orderSchema } from '../schemas/order.ts'
import {
  CREATE_ORDER,
  chargedOf,
  ORDERS_PATH,
  type OrderContext,
  rememberedOrder,
  sameApiKey,
  tagOf,
} from './order-context.ts'
import { type ListedOrder, scanOrders } from './scan-orders.ts'
import { sendOrder } from './send-order.ts'

/** Why a record needs a person. */
export type AttentionReason =
  /** Older than the safe-retry window, or the clock went back; the service may have forgotten the key. */
  | 'past_window'
  /** The caller's signal ended the call, so repeating it is not recovery's to decide. */
  | 'aborted'
  /** Refused after an attempt whose ending is not known; the refusal may exist because that attempt was charged. */
  | 'refused_after_doubt'
  /** Sent with another API key; the service may keep keys apart by API key. */
  | 'api_key_changed'
  /** The order exists, but nothing readable came back, and its id is not known. */
  | 'unreadable'
  /** The stored record is damaged. */
  | 'corrupt'
  /** The stored record was written by a newer version of this package. */
  | 'newer_version'

/** What became of one record. */
export interface RecoveryOutcome {
  /**
   * `created`: an order exists; `rejected`: closed without one by its own call; `in_progress`: a live call or the
   * service is at work on it; `still_open`: the service could not be asked, try again later; `needs_attention`: nothing
   * safe is left to do without a person, see `reason`.
   */
  readonly outcome: 'created' | 'rejected' | 'in_progress' | 'still_open' | 'needs_attention'
  readonly record: OrderRecord
  readonly order?: Order
  /** What the service or the connection answered, where that is why the record is still open. */
  readonly error?: CustomerOrderingError
  readonly reason?: AttentionReason
}

/** How to recover. */
export interface RecoverSettings {
  readonly settings: CallSettings
  /** `all` repeats the request also past the window, after an abort and after a refusal that proved nothing. */
  readonly replay: 'safe' | 'all'
  /** True to claim records that a live call elsewhere may still hold. */
  readonly takeOver: boolean
}

const OPERATION = 'orders.recover'
/** Transport failures in a row that end the walk: the service cannot be reached, and the rest stays open. */
const MAX_FAILURES = 3
const MAX_LOOKUP_PAGES = 200

/** A record to be looked up, because repeating its request is not safe. */
interface Lookup {
  readonly found: FoundRecord
  readonly reason: AttentionReason
}

/**
 * Settles every record that a call left behind, asking the service once for each. Safe in many processes at once and
 * safe to kill anywhere: every step is a conditional write of one record, and a repeated request carries its old key.
 */
export async function* recover(
  context: OrderContext,
  options: RecoverSettings,
): AsyncGenerator<RecoveryOutcome, void, undefined> {
  const report = (outcome: RecoveryOutcome): RecoveryOutcome => {
    reportOutcome(context, outcome)
    return outcome
  }
  const { ids, unusable } = await pendingIds(context, options.settings)
  for (const outcome of unusable) yield report(outcome)
  const lookups: Lookup[] = []
  let failures = 0
  for (const id of ids) {
    if (options.settings.signal?.aborted === true) throw failure('aborted', undefined, options.settings)
    let step: RecoveryOutcome | Lookup | undefined
    try {
      step = failures >= MAX_FAILURES ? await leaveOpen(context, id) : await recoverOne(context, id, options)
    } catch (error) {
      // One record's trouble is its own outcome; the walk goes on.
      if (!isCustomerOrderingError(error)) throw error
      if (error.code === 'aborted') throw error
      step = await leaveOpen(context, id, error).catch(() => undefined)
      if (step === undefined) throw error
    }
    if (step === undefined) continue
    if ('found' in step) {
      lookups.push(step)
      continue
    }
    const code = step.error?.code
    const failed = step.outcome === 'still_open' && (code === 'connection' || code === 'timeout')
    failures = failed ? failures + 1 : failures >= MAX_FAILURES ? failures : 0
    yield report(step)
  }
  if (lookups.length > 0) {
    for await (const outcome of lookUp(context, lookups, options.settings, failures < MAX_FAILURES))
      yield report(outcome)
  }
}

/** Names of the pending records, those whose safe-retry window ends next first, and the rows nobody can read. */
async function pendingIds(
  context: OrderContext,
  settings: CallSettings,
): Promise<{ ids: string[]; unusable: RecoveryOutcome[] }> {
  const now = context.connection.runtime.now()
  const times = new Map<string, number>()
  const unusable: RecoveryOutcome[] = []
  for await (const row of context.journal.rows({ open: true })) {
    if (settings.signal?.aborted === true) throw failure('aborted', undefined, settings)
    const record = await context.journal.decode(row)
    if (record === 'forgotten') continue
    if (typeof record === 'string')
      unusable.push({ outcome: 'needs_attention', record: unreadableRecord(row), reason: record })
    else {
      const end = (record.firstSentAt ?? record.createdAt) + context.safeRetryWindow
      // Those past their window can wait: nothing is lost by asking for them last.
      times.set(row.id, end >= now ? end : Number.MAX_SAFE_INTEGER)
    }
  }
  const ids = [...times].sort(([, a], [, b]) => a - b).map(([id]) => id)
  return { ids, unusable }
}

/** What can be said of a row whose record cannot be read. */
function unreadableRecord(row: StoredRow): OrderRecord {
  const { version, createdAt, state } = row
  return {
    slot: `row:${row.id}`,
    key: '',
    generation: 0,
    state,
    ambiguous: true,
    attempts: 0,
    createdAt,
    version,
  }
}

async function recoverOne(
  context: OrderContext,
  id: string,
  options: RecoverSettings,
): Promise<RecoveryOutcome | Lookup | undefined> {
  const { journal, live, connection } = context
  const { runtime } = connection
  const { settings } = options
  const deadline = new Deadline(runtime, settings.totalTimeout, settings.signal)
  const found = await journal.load(id, deadline)
  if (found instanceof Interruption) throw interrupted(found, undefined, settings)
  const { row, record } = found
  if (row === undefined || record === undefined) return undefined
  if (!isPending(record)) return settledOutcome(record)
  const busy = isBusy(record, runtime.now()) && !options.takeOver
  if (live.get(id) !== undefined || busy) return { outcome: 'in_progress', record: publicRecord(record) }

  const credential = await askCredential(connection.credentials, deadline)
  if (credential instanceof Interruption) throw interrupted(credential, record, settings)
  if (credential !== null && typeof credential === 'object') {
    const error = failure('credentials', record, settings, credential.error)
    return { outcome: 'still_open', record: publicRecord(record), error }
  }
  const reason = whyNotReplay(context, record, options, credential)
  if (reason !== undefined) {
    if (record.state === 'created' && record.order?.id !== undefined)
      return await readById(context, { id, row, record }, record.order.id, settings)
    return { found: { id, row, record }, reason }
  }

  const leave = live.enter(id, { fingerprint: record.fingerprint, idempotencyKey: record.key, request: {} })
  try {
    const claimed = await journal.write(
      { id, row, record },
      {
        ...record,
        ambiguous: true,
        claim: runtime.randomId(),
        busyUntil: runtime.now() + deadline.remaining(),
        apiKeyTag: tagOf(context, record.key, credential),
      },
      deadline,
    )
    // Somebody else has it now; that is their outcome to report.
    if (claimed.result === 'lost') return { outcome: 'in_progress', record: publicRecord(record) }
    if (claimed.result !== 'written') return { outcome: 'still_open', record: publicRecord(record) }
    const sent = await sendOrder(context, claimed.found, {
      settings: { ...settings, maxRetries: 0 },
      deadline,
      callId: runtime.randomId(),
      credential,
      once: true,
      ...(options.replay === 'all' ? { sendUntil: Number.POSITIVE_INFINITY } : {}),
    })
    const after = await journal.load(id, new Deadline(runtime, 1000, undefined))
    const newest =
      after instanceof Interruption ? claimed.found.record : (after.record ?? claimed.found.record)
    const error =
      sent.ending.end === 'done'
        ? undefined
        : errorOf(sent.ending, errorContext(newest, chargedOf(newest), settings, runtime.now()))
    if (sent.charged === 'yes' || newest.state === 'created') {
      const settled = settledOutcome(
        newest.state === 'created'
          ? newest
          : { ...newest, state: 'created', ...defined({ order: sent.order }) },
      )
      return {
        ...settled,
        ...defined({ order: sent.order ?? settled.order }),
        ...(sent.order === undefined ? defined({ error }) : {}),
      }
    }
    if (newest.state === 'rejected') return { ...settledOutcome(newest), ...defined({ error }) }
    const view = publicRecord(newest)
    if (sent.outcome?.kind === 'in_progress')
      return { outcome: 'in_progress', record: view, ...defined({ error }) }
    if (newest.hold === 'refused')
      return {
        outcome: 'needs_attention',
        record: view,
        reason: 'refused_after_doubt',
        ...defined({ error }),
      }
    return { outcome: 'still_open', record: view, ...defined({ error }) }
  } finally {
    leave(undefined)
  }
}

/** Why the request must not be repeated, or nothing if it may. */
function whyNotReplay(
  context: OrderContext,
  record: JournalRecord,
  { replay, settings }: RecoverSettings,
  credential: string | null,
): AttentionReason | undefined {
  if (record.body === undefined) return 'unreadable'
  // Never overridden: under another API key the same key may be a new order.
  if (!sameApiKey(context, record, credential)) return 'api_key_changed'
  if (replay === 'all') return undefined
  if (record.hold === 'aborted') return 'aborted'
  if (record.hold === 'refused') return 'refused_after_doubt'
  const { safeRetryWindow, connection } = context
  // One request only, so only one attempt's time is subtracted.
  const circumstances = {
    now: connection.runtime.now(),
    safeRetryWindow,
    totalTimeout: settings.timeout,
    sameApiKey: true,
  }
  return inWindow(record, circumstances) ? undefined : 'past_window'
}

/** The outcome of a record that is settled. */
function settledOutcome(record: JournalRecord): RecoveryOutcome {
  const view = publicRecord(record)
  if (record.state === 'rejected') return { outcome: 'rejected', record: view }
  const checked = check(orderSchema, record.order)
  const order = checked instanceof Promise || !('value' in checked) ? undefined : checked.value
  return { outcome: 'created', record: view, ...defined({ order }) }
}

async function leaveOpen(
  context: OrderContext,
  id: string,
  error?: CustomerOrderingError,
): Promise<RecoveryOutcome | undefined> {
  const found = await context.journal.load(id, new Deadline(context.connection.runtime, 5000, undefined))
  if (found instanceof Interruption || found.record === undefined) return undefined
  return { outcome: 'still_open', record: publicRecord(found.record), ...defined({ error }) }
}

/** Reads an order that is known to exist by its id. */
async function readById(
  context: OrderContext,
  found: FoundRecord,
  orderId: string,
  settings: CallSettings,
): Promise<RecoveryOutcome> {
  try {
    const { value } = await read(context.connection, {
      endpoint: { operation: OPERATION, method: 'GET', permission: 'orders:read', missing: 'order' },
      path: `${ORDERS_PATH}/${segment('orderId', orderId)}`,
      settings: { ...settings, maxRetries: 0 },
      maxBytes: MAX_ITEM_BYTES,
      repeatable: true,
      money: 'charged',
      parse: (body) => check(orderSchema, body),
    })
    return await markCreated(context, found, { id: value.id, order: value })
  } catch (error) {
    if (!isCustomerOrderingError(error) || error.code === 'aborted') throw error
    return { outcome: 'created', record: publicRecord(found.record), reason: 'unreadable', error }
  }
}

/** Looks records up in the order list by their reference: found is proof, not found is none. */
async function* lookUp(
  context: OrderContext,
  lookups: readonly Lookup[],
  settings: CallSettings,
  reachable: boolean,
): AsyncGenerator<RecoveryOutcome, void, undefined> {
  const wanted = new Map<string, Lookup>()
  for (const lookup of lookups) {
    const { externalOrderId } = lookup.found.record
    if (externalOrderId !== undefined) wanted.set(externalOrderId, lookup)
  }
  let error: CustomerOrderingError | undefined
  try {
    // A second sweep, because rows move while the list is read; more would prove no more.
    for (let sweep = 0; sweep < 2 && wanted.size > 0 && reachable; sweep++) {
      for await (const listed of scanOrders(context, {
        operation: OPERATION,
        settings,
        maxPages: MAX_LOOKUP_PAGES,
      })) {
        const lookup = listed.externalOrderId === undefined ? undefined : wanted.get(listed.externalOrderId)
        if (lookup === undefined || listed.externalOrderId === undefined) continue
        wanted.delete(listed.externalOrderId)
        yield await markCreated(context, lookup.found, listed)
        if (wanted.size === 0) break
      }
    }
  } catch (caught) {
    if (!isCustomerOrderingError(caught) || caught.code === 'aborted') throw caught
    error = caught
  }
  for (const lookup of lookups) {
    const { externalOrderId } = lookup.found.record
    const settled = externalOrderId !== undefined && !wanted.has(externalOrderId)
    if (!settled)
      yield {
        outcome: 'needs_attention',
        record: publicRecord(lookup.found.record),
        reason: lookup.reason,
        ...defined({ error }),
      }
  }
}

/** Stores that an order exists and reports it. */
export async function markCreated(
  context: OrderContext,
  found: FoundRecord,
  listed: ListedOrder,
): Promise<RecoveryOutcome> {
  const { runtime } = context.connection
  const { order, id: orderId } = listed
  await context.journal.prove(
    found,
    (newest) => {
      if (newest.state === 'created' && newest.readable) return undefined
      const { body, busyUntil: _busyUntil, hold: _hold, rejection: _rejection, ...rest } = newest
      return {
        ...rest,
        claim: runtime.randomId(),
        state: 'created',
        ambiguous: false,
        readable: order !== undefined,
        order: order === undefined ? { id: orderId } : rememberedOrder(context, order),
        ...(order === undefined ? defined({ body }) : {}),
      }
    },
    new Deadline(runtime, 5000, undefined),
  )
  const after = await context.journal
    .load(found.id, new Deadline(runtime, 5000, undefined))
    .catch(() => undefined)
  const record = after === undefined || after instanceof Interruption ? undefined : after.record
  return { outcome: 'created', record: publicRecord(record ?? found.record), ...defined({ order }) }
}

function reportOutcome(context: OrderContext, { outcome, record, error, order }: RecoveryOutcome): void {
  context.connection.reporter.settled({
    callId: context.connection.runtime.randomId(),
    operation: OPERATION,
    method: CREATE_ORDER.method,
    path: ORDERS_PATH,
    ok: outcome === 'created' || outcome === 'rejected',
    attempts: record.attempts,
    durationMs: 0,
    recovery: outcome,
    charged: chargedOf(record),
    ...defined({
      idempotencyKey: record.key,
      externalOrderId: record.externalOrderId,
      orderId: order?.id ?? record.order?.id,
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
): CustomerOrderingError {
  const trail = { attempts: 0, retries: 0, cutByDeadline: true, secrets: new Set<string>() }
  return errorOf(
    { end, error, trail },
    errorContext(record, record === undefined ? 'unknown' : chargedOf(record), settings, 0),
  )
}

function interrupted(
  interruption: Interruption,
  record: JournalRecord | undefined,
  settings: CallSettings,
): CustomerOrderingError {
  return failure(interruption.why, record, settings)
}
