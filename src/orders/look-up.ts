import { defined } from '../defined.ts'
import { type AnyCustomerOrderingError, UnresolvedOrderError } from '../errors/classes.ts'
import type { CallSettings } from '../http/call.ts'
import { segment } from '../http/path.ts'
import { READ_ITEM, type Reply, read } from '../http/request.ts'
import { type Checked, checkNow, wrong } from '../schemas/check.ts'
import { type Order, orderSchema } from '../schemas/order.ts'
import { withId } from '../schemas/parse.ts'
import type { OrderStore } from '../stores/store.ts'
import { ORDERS_PATH, type OrderContext, recordFacts } from './context.ts'
import {
  type Asked,
  contradiction,
  type EchoedField,
  echoOf,
  judgeListed,
  type ListedOrder,
  sourceSystemOf,
} from './evidence.ts'
import type { FoundRecord } from './journal.ts'
import { markCreated } from './newest.ts'
import { type JournalRecord, publicRecord } from './record.ts'
import { type AttentionReason, failureOf, type RecoveryOutcome } from './recovery-outcome.ts'
import { scanOrders } from './scan-orders.ts'

/** A record whose request is not safe to send. */
export interface Lookup {
  readonly found: FoundRecord
  readonly reason: AttentionReason
}

const TRANSIENT: ReadonlySet<string> = new Set(['connection', 'timeout', 'server', 'rate_limit'])
const TRANSIENT_STATUSES: ReadonlySet<number | undefined> = new Set([408, 425])
const MAX_PAGES = 200
/** One read can miss rows that move during the read, so the list is read twice. */
const SWEEPS = 2

/** @param asked known facts that the order must not contradict */
export async function readOrder(
  context: OrderContext,
  operation: string,
  orderId: string,
  money: 'in_doubt' | 'charged',
  settings: CallSettings,
  asked?: Asked,
): Promise<Reply<Order>> {
  return await read(context.connection, {
    ...READ_ITEM,
    endpoint: { operation, method: 'GET', permission: 'orders:read', missing: 'order' },
    path: `${ORDERS_PATH}/${segment('orderId', orderId)}`,
    settings,
    money,
    parse: withId('id', orderId, (body) => readable(context, body, asked)),
  })
}

function readable({ connection }: OrderContext, body: unknown, asked: Asked | undefined): Checked<Order> {
  const checked = checkNow(orderSchema, body)
  if (!('value' in checked) || asked === undefined) return checked
  const field = contradiction(connection.runtime.deriveId, asked, echoOf(checked.value))
  return field === undefined ? checked : wrong('is not what was sent', field)
}

/**
 * If the order's id is unknown, returns a {@link Lookup}, so that one read of the list serves all
 * records.
 */
export async function lookUpAlone(
  context: OrderContext,
  operation: string,
  found: FoundRecord,
  reason: AttentionReason,
  settings: CallSettings,
): Promise<RecoveryOutcome | Lookup> {
  const { record } = found
  const orderId = record.state === 'created' ? record.order?.id : undefined
  return orderId === undefined
    ? { found, reason }
    : await lookUpById(context, operation, found, orderId, settings)
}

export async function lookUpById(
  context: OrderContext,
  operation: string,
  found: FoundRecord,
  orderId: string,
  settings: CallSettings,
): Promise<RecoveryOutcome> {
  try {
    const once = { ...settings, maxRetries: 0 }
    const { value: order } = await readOrder(context, operation, orderId, 'charged', once, found.record)
    return await markCreated(context, found, { id: order.id, order })
  } catch (error) {
    const record = publicRecord(found.record)
    return { outcome: 'created', record, reason: 'unreadable', error: failureOf(error) }
  }
}

/**
 * A listed order proves a charge if it fits the record. A missing order alone proves nothing: the
 * list may lag.
 */
export async function* lookUp(
  context: OrderContext,
  operation: string,
  lookups: readonly Lookup[],
  settings: CallSettings,
  { reachable, checkOpen }: { readonly reachable: boolean; readonly checkOpen: () => void },
): AsyncGenerator<RecoveryOutcome, void, undefined> {
  const { deriveId } = context.connection.runtime
  const cuts = new Cuts(context)
  const sourceSystem = sharedSourceSystem(lookups)
  const wanted = new Map<string, Lookup>()
  for (const lookup of lookups) {
    const { externalOrderId } = lookup.found.record
    if (externalOrderId !== undefined && !cuts.has(lookup)) wanted.set(externalOrderId, lookup)
  }
  const doubts = new Map<string, Doubt>()
  let looked = reachable
  let error: AnyCustomerOrderingError | undefined
  let cut = false
  const onCut = (): void => {
    cut = true
  }
  const scan = { operation, settings, money: 'in_doubt', maxPages: MAX_PAGES, checkOpen, onCut } as const
  try {
    for (let sweep = 0; sweep < SWEEPS && wanted.size > 0 && looked && !cut; sweep++) {
      for await (const listed of scanOrders(context, { ...scan, sourceSystem })) {
        const reference = listed.externalOrderId ?? ''
        const lookup = wanted.get(reference)
        if (lookup === undefined) continue
        const { record } = lookup.found
        if (isOfAnotherSystem(sourceSystemOf(record), listed)) continue
        const { is, differs } = judgeListed(deriveId, record, listed)
        if (is === 'doubtful') doubts.set(reference, { orderId: listed.id, differs })
        if (is !== 'ours') continue
        wanted.delete(reference)
        yield await markCreated(context, lookup.found, listed)
        if (wanted.size === 0) break
      }
    }
  } catch (caught) {
    error = failureOf(caught)
    // Stop here if the read failed because the client was closed.
    checkOpen()
    looked = !TRANSIENT.has(error.code) && !TRANSIENT_STATUSES.has(error.status)
  }
  if (cut) cuts.add(wanted.values())
  for (const lookup of lookups) {
    const { found, reason } = lookup
    const { externalOrderId } = found.record
    const record = publicRecord(found.record)
    const doubt = doubts.get(externalOrderId ?? '')
    if (externalOrderId === undefined) yield { outcome: 'needs_attention', record, reason }
    else if (cuts.has(lookup))
      yield { outcome: 'needs_attention', record, reason, error: cutError(found.record) }
    else if (wanted.get(externalOrderId) !== lookup) continue
    else if (doubt !== undefined)
      yield {
        outcome: 'needs_attention',
        record,
        reason: 'doubtful',
        error: doubtError(found.record, doubt),
      }
    else if (!looked) yield { outcome: 'still_open', record, ...defined({ error }) }
    else yield { outcome: 'needs_attention', record, reason, ...defined({ error }) }
  }
}

/** An order in the list with the record's reference, and other fields. */
interface Doubt {
  readonly orderId: string
  readonly differs: readonly EchoedField[]
}

/** Narrows the walk over the list, if all orders were sent for the same source system. */
function sharedSourceSystem(lookups: readonly Lookup[]): string | undefined {
  const systems = new Set(lookups.map(({ found }) => sourceSystemOf(found.record)))
  return systems.size === 1 ? [...systems][0] : undefined
}

function isOfAnotherSystem(own: string | undefined, { sourceSystem }: ListedOrder): boolean {
  return own !== undefined && sourceSystem !== undefined && own !== sourceSystem
}

const CUT_PAUSE = 15 * 60 * 1000

// Kept in memory, because writing a record could make a concurrent call's write fail.
const cutTimes = new WeakMap<OrderStore, Map<string, number>>()

/** Records whose last lookup stopped at `MAX_PAGES`. They are not looked up again for a while. */
class Cuts {
  readonly #context: OrderContext
  readonly #times: Map<string, number>

  constructor(context: OrderContext) {
    this.#context = context
    const { store } = context.journal
    this.#times = cutTimes.get(store) ?? new Map<string, number>()
    cutTimes.set(store, this.#times)
    const now = context.connection.runtime.monotonic()
    for (const [name, time] of this.#times) if (now - time >= CUT_PAUSE) this.#times.delete(name)
  }

  has(lookup: Lookup): boolean {
    return this.#times.has(this.#nameOf(lookup))
  }

  add(lookups: Iterable<Lookup>): void {
    const { runtime, reporter } = this.#context.connection
    let orders = 0
    for (const lookup of lookups) {
      this.#times.set(this.#nameOf(lookup), runtime.monotonic())
      orders++
    }
    const fields = { pages: MAX_PAGES, orders, pauseMs: CUT_PAUSE }
    reporter.log(
      'warn',
      'the lookup reached its page limit; the rest of the order list was not searched',
      fields,
    )
  }

  #nameOf({ found }: Lookup): string {
    return `${this.#context.journal.scope} ${found.id}`
  }
}

function cutError(record: JournalRecord): UnresolvedOrderError {
  return new UnresolvedOrderError(
    `The lookup stopped after ${MAX_PAGES} pages of GET ${ORDERS_PATH} without finding the order, which may be on a later page. The wallet may have been charged: find the order at the service, then settle it with orders.resolve().`,
    { ...recordFacts(record), charged: 'unknown' },
  )
}

function doubtError(record: JournalRecord, { orderId, differs }: Doubt): UnresolvedOrderError {
  const fields = differs.map((field) => `'${field}'`).join(', ')
  return new UnresolvedOrderError(
    `The service lists the order ${orderId} with this reference and another ${differs.join(', ')}. It may be an order of another integration, so it was not taken for this one. The wallet may have been charged: if it is this order, settle it with orders.resolve(name, { as: 'created', orderId, despite: [${fields}] }).`,
    { ...recordFacts(record), orderId, charged: 'unknown' },
  )
}
