/** What the commands print of a record or an order. */
import { formatAmount, isCurrencyCode, type Money } from '../money.ts'
import { echoOf } from '../orders/protocol/outcome.ts'
import type { OrderRecord } from '../orders/record/record.ts'
import type { JsonObject } from '../schemas/check.ts'
import type { Order } from '../schemas/order.ts'
import { type Cells, type Line, time } from './print.ts'

/** What `show` takes: the reference, or the option with the key of an order without a reference. */
export function nameOf({ externalOrderId, key, slot }: OrderRecord): string {
  return externalOrderId ?? (key === '' ? `unreadable ${slot}` : `--key ${key}`)
}

export function orderLine(order: Order): Line {
  const { id: orderId, status, amount, serviceId, quantity, target }: JsonObject = { ...order }
  const { externalOrderId } = echoOf(order)
  const cells = { orderId, status, amount, externalOrderId, serviceId, quantity, target }
  return { value: order, cells: textsOf(cells) }
}

/** The same on all machines: their locales would print spaces that {@link visible} escapes. */
export function moneyOf(money: Money): string {
  const { amount, currency } = money
  return isCurrencyCode(currency)
    ? formatAmount(money, 'en').replaceAll('\u00a0', ' ')
    : `${amount} ${currency}`
}

function textsOf(values: Readonly<Record<string, unknown>>): Cells {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : String(value ?? ''),
    ]),
  )
}

export function stateOf({ state, ambiguous, firstSentAt, busyUntil }: OrderRecord): string {
  if (state === 'created') return 'created: charged'
  if (state === 'rejected') return 'closed without an order'
  if (busyUntil !== undefined && busyUntil > Date.now()) return 'open: a call is placing it'
  if (firstSentAt === undefined) return 'open: not sent'
  return ambiguous ? 'open: may have been charged' : 'open: outcome unknown'
}

/** A reason that is not listed here is printed as the record has it. */
const REASONS: Readonly<Record<string, string>> = {
  refused: 'the service refused the order',
  not_processed: 'the service did not process the order',
  conflict: 'the service used the key for another order',
  cancelled: 'the call ended before anything was sent',
  abandoned: 'a person abandoned the order',
  'held: aborted': 'the caller aborted the call, so recover does not repeat it',
  'held: refused': 'the service refused it after an attempt that may have been charged',
  'held: conflict': 'the service used the key for another order, which may have been charged',
}

function reasonOf({ rejection, hold }: OrderRecord): string | undefined {
  const name = hold === undefined ? rejection?.kind : `held: ${hold}`
  if (name === undefined) return undefined
  const facts = [rejection?.status, rejection?.code].filter((fact) => fact !== undefined).join(' ')
  return `${REASONS[name] ?? name}${facts && ` (${facts})`}`
}

export function cellsOf(record: OrderRecord): Cells {
  const { order } = record
  const { serviceId, target, quantity }: JsonObject = { ...order, ...record.request }
  return textsOf({
    externalOrderId: record.externalOrderId,
    // A person abandoned the key that was sent: the record has the key of the next call.
    [record.rejection?.kind === 'abandoned' ? 'key of next call' : 'Idempotency-Key']: record.key,
    state: stateOf(record),
    reason: reasonOf(record),
    serviceId,
    target,
    quantity,
    orderId: order?.id,
    status: order?.status,
    amount: order?.amount,
    attempts: record.attempts,
    'first sent': time(record.firstSentAt),
    recorded: time(record.createdAt),
    'busy until': time(record.busyUntil),
  })
}
