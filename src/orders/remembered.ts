import { defined } from '../defined.ts'
import {
  type Charged,
  type CustomerOrderingError,
  type ErrorFacts,
  InvalidRequestError,
  RequestAbortedError,
  StoreError,
  TimeoutError,
  UnresolvedOrderError,
} from '../errors.ts'
import type { CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import type { OrderStore } from '../stores/store.ts'
import { type Facts, PLAIN_FACTS } from './conditions.ts'
import { chargedOf, moneySentence, type OrderContext } from './context.ts'
import { isFromFuture } from './decision.ts'
import { contradiction, echoOf } from './evidence.ts'
import { checkIdempotencyKey, rowIdOf } from './identity.ts'
import type { FoundRecord } from './journal.ts'
import { nextKey } from './keys.ts'
import { readOrder } from './look-up.ts'
import {
  isPending,
  type JournalRecord,
  type OrderRecord,
  publicRecord,
  type Unusable,
  unusableError,
} from './record.ts'
import { markCreated } from './recovery-outcome.ts'
import { decide, known, unknownStep } from './rules.ts'
import { apply } from './transitions.ts'

/** Names one remembered order: by the caller's reference or by its Idempotency-Key. */
export type OrderName = { readonly externalOrderId: string } | { readonly idempotencyKey: string }

/** Which records to look at: one by name, or all that were written since a time (milliseconds since 1970). */
export type RememberedQuery = OrderName | { readonly since: number }

/** What a person found out: the order exists under this id, or it is given up. */
export type Resolution = { readonly as: 'created'; readonly orderId: string } | { readonly as: 'abandoned' }

const RESOLVE = 'orders.resolve'

/**
 * Records of this scope; looks, never sends.
 * @param settings whose total time is that of a look for one name
 */
export async function* remembered(
  context: OrderContext,
  query: RememberedQuery,
  settings: CallSettings,
): AsyncGenerator<OrderRecord, void, undefined> {
  if ('since' in query) {
    if (!Number.isFinite(query.since)) throw invalid('since', 'must be a time in milliseconds since 1970')
    yield* views(context, { since: query.since })
    return
  }
  const deadline = deadlineOf(context, settings)
  const found = await lookFor(context, query, { operation: 'orders.remembered', settings, deadline })
  if (found !== undefined) yield publicRecord(found.record)
}

/** Records whose ending, or whose order, is not known. */
export async function* unresolved(context: OrderContext): AsyncGenerator<OrderRecord, void, undefined> {
  yield* views(context, { open: true })
}

/** All readable records first; then the error for those that are not, because an end would hide them. */
async function* views(
  context: OrderContext,
  which: { readonly open: true } | { readonly since: number },
): AsyncGenerator<OrderRecord, void, undefined> {
  let unusable: Unusable | undefined
  for await (const record of records(context, which)) {
    if (typeof record === 'string') unusable = record
    else if (!('open' in which) || isPending(record)) yield publicRecord(record)
  }
  if (unusable !== undefined) throw unusableError(unusable)
}

/** Each record once, although a store may repeat rows that change while they are listed; or why it is unreadable. */
export async function* records(
  context: OrderContext,
  which: { readonly open: true } | { readonly since: number },
): AsyncGenerator<JournalRecord | Unusable, void, undefined> {
  const seen = new Set<string>()
  for await (const row of context.journal.rows(which)) {
    if (seen.has(row.id)) continue
    seen.add(row.id)
    const record = await context.journal.decode(row)
    if (record !== 'forgotten') yield record
  }
}

/** Time between two removals of old records, milliseconds. */
const PRUNE_INTERVAL = 60 * 60 * 1000

// By store and not by client: clients that share a store need not each clear it up.
const pruned = new WeakMap<OrderStore, Map<string, number>>()

/** Removes closed records that are older than the client keeps them, at most once an hour; nobody waits for it. */
export function pruneClosed({ connection, journal, retention }: OrderContext): void {
  const { runtime, reporter } = connection
  const { store, scope } = journal
  const times = pruned.get(store) ?? new Map<string, number>()
  pruned.set(store, times)
  const last = times.get(scope)
  if (last !== undefined && runtime.monotonic() - last < PRUNE_INTERVAL) return
  times.set(scope, runtime.monotonic())
  journal.prune(retention).catch(({ code }: StoreError) => {
    reporter.log('warn', 'old records were not removed; tried again in an hour', { code })
  })
}

/** Closes an open record by a person's decision. */
export async function resolve(
  context: OrderContext,
  name: OrderName,
  resolution: Resolution,
  settings: CallSettings,
): Promise<OrderRecord> {
  const { runtime } = context.connection
  const deadline = deadlineOf(context, settings)
  const decidedAt = runtime.now()
  const found = await lookFor(context, name, { operation: RESOLVE, settings, deadline })
  const facts = factsOf(context, found, settings)
  if (resolution.as === 'created') {
    const { orderId } = resolution
    const step = decide('resolve', found ?? {}, { ...facts, orderId })
    switch (step.step) {
      case 'refuse':
        throw refused(step.because, name, found?.record)
      case 'verify':
        return await resolveCreated(context, known(found), orderId, settings, deadline)
      default:
        return unknownStep(step)
    }
  }
  const step = decide('abandon', found ?? {}, { ...facts, decidedAt })
  switch (step.step) {
    case 'refuse':
      throw refused(step.because, name, found?.record)
    case 'tell':
      return publicRecord(known(found).record)
    case 'close':
      return await abandon(context, known(found), deadline)
    default:
      return unknownStep(step)
  }
}

async function abandon(context: OrderContext, found: FoundRecord, deadline: Deadline): Promise<OrderRecord> {
  const { runtime } = context.connection
  const { record } = found
  // A key that is the order's very name cannot change; any other moves on for good, so that the next call buys anew. Under
  // a key that stays, a later refusal still proves nothing.
  const claim = runtime.randomId()
  const named = record.slot.startsWith('key:')
  const marked =
    named && isFromFuture(record, runtime.now())
      ? apply(record, { type: 'distrusted', busy: false, claim })
      : record
  const key = named ? undefined : nextKey(context, record)
  const content = apply(marked, { type: 'abandoned', key, claim })
  const written = await context.journal.write(found, content, deadline)
  if (written.result !== 'written') throw notStored(record)
  return publicRecord(written.found.record)
}

/** What the rules are to know of the order that a person speaks of. */
function factsOf(
  { connection, live, safeRetryWindow }: OrderContext,
  found: FoundRecord | undefined,
  { totalTimeout }: CallSettings,
): Facts {
  const isLive = found !== undefined && live.get(found.id) !== undefined
  return { ...PLAIN_FACTS, now: connection.runtime.now(), safeRetryWindow, totalTimeout, isLive }
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
      return invalid(field, 'names no remembered order')
    case 'busy': {
      const { charged = 'unknown', ...names } = record === undefined ? {} : facts(record)
      return new UnresolvedOrderError(
        `A call that has not ended works on this order. ${moneySentence(charged)} Resolve it after that call has ended.`,
        { ...names, charged },
      )
    }
    case 'created':
      return invalid(field, 'names an order that was created; it cannot be abandoned', record)
    case 'other_order':
      return invalid('orderId', 'differs from the id of the order that is remembered', record)
    case 'changed':
      return notStored(record)
    case 'unsettled':
      return invalid(
        field,
        'names an order that is not settled; recover or resolve it before it is forgotten',
        record,
      )
  }
}

/** Forgets a closed record: whoever orders under its name again buys again. */
export async function forget(
  context: OrderContext,
  name: OrderName,
  settings: CallSettings,
): Promise<boolean> {
  const deadline = deadlineOf(context, settings)
  const found = await lookFor(context, name, { operation: 'orders.forget', settings, deadline })
  const step = decide('forget', found ?? {}, factsOf(context, found, settings))
  switch (step.step) {
    case 'refuse':
      throw refused(step.because, name, found?.record)
    case 'nothing':
      return false
    case 'empty':
      return await context.journal.forget(known(found), deadline)
    default:
      return unknownStep(step)
  }
}

async function resolveCreated(
  context: OrderContext,
  found: FoundRecord,
  orderId: string,
  settings: CallSettings,
  deadline: Deadline,
): Promise<OrderRecord> {
  const { record } = found
  const left = { ...settings, totalTimeout: deadline.remaining() }
  const { value: order } = await readOrder(context, RESOLVE, orderId, 'in_doubt', left)
  const { deriveId } = context.connection.runtime
  const field = contradiction(deriveId, record, echoOf(order), 'list')
  if (field !== undefined) throw invalid('orderId', `names an order with another ${field}`, record)
  const outcome = await markCreated(context, found, { id: order.id, order }, deadline)
  if (outcome.record.state !== 'created') throw notStored(record)
  return outcome.record
}

/** A look of a method, which takes no longer than the method may. */
interface NamedLook {
  readonly operation: string
  readonly settings: CallSettings
  readonly deadline: Deadline
}

/** The record of that name. */
async function lookFor(
  context: OrderContext,
  name: OrderName,
  look: NamedLook,
): Promise<FoundRecord | undefined> {
  const found = await look.deadline.race(findRecord(context, name, look.deadline))
  if (found instanceof Interruption) throw interrupted(found, name, look)
  return found
}

/** The record of that name. A key may also belong to an order with a reference, or to an anonymous one. */
async function findRecord(
  context: OrderContext,
  name: OrderName,
  deadline: Deadline,
): Promise<FoundRecord | Interruption | undefined> {
  const { journal, connection } = context
  const { runtime } = connection
  const field = nameField(name)
  const value: unknown = 'externalOrderId' in name ? name.externalOrderId : name.idempotencyKey
  if (typeof value !== 'string' || value.trim() === '')
    throw invalid(field, 'must be a text that is not empty')
  if (field === 'idempotencyKey') {
    const bad = checkIdempotencyKey(value)
    if (bad !== undefined) throw invalid(field, bad)
  }
  const id = rowIdOf(runtime.deriveId, `${field === 'externalOrderId' ? 'ref' : 'key'}:${value}`)
  const found = await journal.load(id, deadline)
  if (found instanceof Interruption) return found
  if (found.row !== undefined && found.record !== undefined)
    return { id, row: found.row, record: found.record }
  if (field === 'externalOrderId') return undefined
  // Open records are few and what is usually looked for, so they are searched before all others.
  for (const which of [{ open: true } as const, { since: 0 }]) {
    for await (const row of journal.rows(which)) {
      // Nobody waits for the rest of the rows any more.
      const over = deadline.over()
      if (over !== undefined) return over
      const record = await journal.decode(row)
      if (record === 'unanswered') throw unusableError(record)
      if (typeof record === 'object' && record.key === value) return { id: row.id, row, record }
    }
  }
  return undefined
}

function nameField(name: OrderName): 'externalOrderId' | 'idempotencyKey' {
  return 'externalOrderId' in name ? 'externalOrderId' : 'idempotencyKey'
}

function facts(record: JournalRecord): ErrorFacts & { readonly charged: Charged } {
  return {
    idempotencyKey: record.key,
    charged: chargedOf(record),
    ...defined({ externalOrderId: record.externalOrderId }),
  }
}

function notStored(record: JournalRecord | undefined): StoreError {
  const { charged = 'unknown', ...names } = record === undefined ? {} : facts(record)
  return new StoreError(
    `The decision was not stored: the record has changed since, or the store refused the write. ${moneySentence(charged)} Look at the record again, then decide.`,
    { charged, ...names },
  )
}

function deadlineOf({ connection }: OrderContext, { totalTimeout, signal }: CallSettings): Deadline {
  return new Deadline(connection.runtime, totalTimeout, signal)
}

/** The call was ended while it looked the record up: nothing was asked of the service, and nothing was changed. */
function interrupted(
  { why }: Interruption,
  name: OrderName,
  { operation, settings }: NamedLook,
): CustomerOrderingError {
  const facts = { charged: 'unknown', attempts: 0, ...name } as const
  const did = 'nothing was sent, nothing was changed, and whether the order was charged is not known'
  return why === 'aborted'
    ? new RequestAbortedError(
        `${operation}() was ended by the caller's signal while it read the store: ${did}. Call again if it is still wanted.`,
        {
          ...facts,
          cause: settings.signal?.reason,
        },
      )
    : new TimeoutError(
        `${operation}() could not read the store within the total time of the call (totalTimeout): ${did}. Repair the store or allow more time, then call again.`,
        { ...facts, deadline: 'total' },
      )
}

/** @param record what is remembered of the order, whose money a wrong argument says nothing about */
function invalid(path: string, message: string, record?: JournalRecord): InvalidRequestError {
  const known = record === undefined ? {} : facts(record)
  return new InvalidRequestError(`${path} ${message}.`, { issues: [{ path, message }], ...known })
}
