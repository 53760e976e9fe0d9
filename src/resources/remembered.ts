import { defined } from '../defined.ts'
import { type Charged, InvalidRequestError, StoreError, UnresolvedOrderError } from '../errors.ts'
import type { CallSettings } from '../http/call.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import { segment } from '../http/path.ts'
import { MAX_ITEM_BYTES, read } from '../http/read.ts'
import { isBusy } from '../idempotency/decision.ts'
import { checkIdempotencyKey, rowIdOf } from '../idempotency/identity.ts'
import type { FoundRecord } from '../idempotency/journal.ts'
import { isPending, type JournalRecord, type OrderRecord, publicRecord } from '../idempotency/record.ts'
import { check } from '../schemas/check.ts'
import { orderSchema } from '../schemas/order.ts'
import { chargedOf, makeKey, ORDERS_PATH, type OrderContext } from './order-context.ts'
import { markCreated } from './recover.ts'

/** Names one remembered order: by the caller's reference or by its Idempotency-Key. */
export type OrderName = { readonly externalOrderId: string } | { readonly idempotencyKey: string }

/** Which records to look at: one by name, or all that were written since a time (milliseconds since 1970). */
export type RememberedQuery = OrderName | { readonly since: number }

/** What a person found out: the order exists under this id, or it is given up. */
export type Resolution = { readonly as: 'created'; readonly orderId: string } | { readonly as: 'abandoned' }

/** Records of this scope; looks, never sends. */
export async function* remembered(
  context: OrderContext,
  query: RememberedQuery,
): AsyncGenerator<OrderRecord, void, undefined> {
  if ('since' in query) {
    if (!Number.isFinite(query.since)) throw invalid('since', 'must be a time in milliseconds since 1970')
    for await (const row of context.journal.rows({ since: query.since })) {
      const { record } = await context.journal.open(row)
      if (record !== undefined) yield publicRecord(record)
    }
    return
  }
  const found = await findRecord(context, query)
  if (found !== undefined) yield publicRecord(found.record)
}

/** Records whose ending, or whose order, is not known. */
export async function* unresolved(context: OrderContext): AsyncGenerator<OrderRecord, void, undefined> {
  const seen = new Set<string>()
  for await (const row of context.journal.rows({ open: true })) {
    if (seen.has(row.id)) continue
    seen.add(row.id)
    const { record } = await context.journal.open(row)
    if (record !== undefined && isPending(record)) yield publicRecord(record)
  }
}

/** Closes an open record by a person's decision. */
export async function resolve(
  context: OrderContext,
  name: OrderName,
  resolution: Resolution,
  settings: CallSettings,
): Promise<OrderRecord> {
  const found = await findRecord(context, name)
  if (found === undefined) throw invalid(nameField(name), 'names no remembered order')
  const { record } = found
  const { runtime } = context.connection
  if (context.live.get(found.id) !== undefined || isBusy(record, runtime.now())) {
    throw new UnresolvedOrderError(
      'A live call is working on this order; resolve it after that call has ended.',
      {
        ...facts(record),
        charged: chargedOf(record),
      },
    )
  }
  if (resolution.as === 'created') return await resolveCreated(context, found, resolution.orderId, settings)
  if (record.state === 'created')
    throw invalid(nameField(name), 'names an order that was created; it cannot be abandoned')
  if (record.state === 'rejected' && record.rejection?.kind !== 'conflict') return publicRecord(record)
  const { body: _body, busyUntil: _busyUntil, hold: _hold, ...rest } = record
  const generation = record.generation + 1
  // A key that is the order's very name cannot change; any other moves on, so that the next call buys anew.
  const next = record.slot.startsWith('key:') ? {} : makeKey(context, record.externalOrderId, generation)
  const written = await context.journal.write(
    found,
    {
      ...rest,
      ...next,
      generation,
      state: 'rejected',
      ambiguous: false,
      refused: false,
      foreign: false,
      rejection: { kind: 'abandoned' },
      claim: runtime.randomId(),
    },
    new Deadline(runtime, settings.totalTimeout, settings.signal),
  )
  if (written.result !== 'written') throw notStored(record)
  return publicRecord(written.found.record)
}

/** Forgets a closed record: whoever orders under its name again buys again. */
export async function forget(context: OrderContext, name: OrderName): Promise<boolean> {
  const found = await findRecord(context, name)
  if (found === undefined) return false
  if (isPending(found.record) || context.live.get(found.id) !== undefined) {
    throw invalid(
      nameField(name),
      'names an order that is not settled; recover or resolve it before it is forgotten',
    )
  }
  return await context.journal.forget(found)
}

async function resolveCreated(
  context: OrderContext,
  found: FoundRecord,
  orderId: string,
  settings: CallSettings,
): Promise<OrderRecord> {
  const { record } = found
  if (record.state === 'created' && record.order?.id !== undefined && record.order.id !== orderId) {
    throw invalid('orderId', 'differs from the id of the order that is remembered')
  }
  const { value: order } = await read(context.connection, {
    endpoint: { operation: 'orders.resolve', method: 'GET', permission: 'orders:read', missing: 'order' },
    path: `${ORDERS_PATH}/${segment('orderId', orderId)}`,
    settings,
    maxBytes: MAX_ITEM_BYTES,
    repeatable: true,
    money: 'none',
    parse: (body) => check(orderSchema, body),
  })
  const metadata = order['metadata']
  const echoed =
    typeof metadata === 'object' && metadata !== null && 'externalOrderId' in metadata
      ? metadata.externalOrderId
      : undefined
  if (echoed !== undefined && record.externalOrderId !== undefined && echoed !== record.externalOrderId) {
    throw invalid('orderId', 'names an order with another externalOrderId')
  }
  const outcome = await markCreated(context, found, { id: order.id, order })
  if (outcome.record.state !== 'created') throw notStored(record)
  return outcome.record
}

/** The record of that name. A key may also belong to an order with a reference, or to an anonymous one. */
async function findRecord(context: OrderContext, name: OrderName): Promise<FoundRecord | undefined> {
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
  const found = await journal.load(id, new Deadline(runtime, 10_000, undefined))
  if (found instanceof Interruption) throw notStored(undefined)
  if (found.row !== undefined && found.record !== undefined)
    return { id, row: found.row, record: found.record }
  if (field === 'externalOrderId') return undefined
  // Open records are few and what is usually looked for, so they are searched before all others.
  for (const which of [{ open: true } as const, { since: 0 }]) {
    for await (const row of journal.rows(which)) {
      const record = await journal.decode(row)
      if (typeof record === 'object' && record.key === value) return { id: row.id, row, record }
    }
  }
  return undefined
}

function nameField(name: OrderName): 'externalOrderId' | 'idempotencyKey' {
  return 'externalOrderId' in name ? 'externalOrderId' : 'idempotencyKey'
}

function facts(record: JournalRecord): {
  readonly idempotencyKey: string
  readonly externalOrderId?: string
} {
  return { idempotencyKey: record.key, ...defined({ externalOrderId: record.externalOrderId }) }
}

function notStored(record: JournalRecord | undefined): StoreError {
  const charged: Charged = record === undefined ? 'unknown' : chargedOf(record)
  return new StoreError(
    'The record changed meanwhile or the store did not take the change; look at it again.',
    {
      charged,
      ...(record === undefined ? {} : facts(record)),
    },
  )
}

function invalid(path: string, message: string): InvalidRequestError {
  return new InvalidRequestError(`${path} ${message}.`, { issues: [{ path, message }] })
}
