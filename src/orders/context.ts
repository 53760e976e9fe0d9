import type { Charged } from '../errors.ts'
import type { Connection, Endpoint } from '../http/call.ts'
import type { ListEnvelope } from '../schemas/list.ts'
import type { Order } from '../schemas/order.ts'
import { apiKeyTag, derivedKey, isProxied, proxiedTag } from './identity.ts'
import type { Journal } from './journal.ts'
import type { LiveCalls } from './live.ts'
import { isUnsent, type JournalRecord, type KeyOrigin, type OrderRecord } from './record.ts'

/** What the order methods share: the journal, the connection, and the options that decide about keys. */
export interface OrderContext {
  readonly connection: Connection
  readonly journal: Journal
  /** Calls of this process that are placing orders. */
  readonly live: LiveCalls<PlacedOrder>
  /** Labels that keys are derived from. */
  readonly server: string
  readonly account: string | undefined
  /** Milliseconds from the first send during which a key may be sent again. */
  readonly safeRetryWindow: number
  /** Whose keys the service remembers: one API key's, or all of a customer's. */
  readonly idempotencyScope: 'apiKey' | 'customer'
  /** How much of a created order is remembered. */
  readonly remember: 'order' | 'id'
  /** Finds the rows of a list answer, where the caller says how. */
  readonly listEnvelope: ((body: unknown) => ListEnvelope) | undefined
  /** How long closed records are kept, milliseconds. */
  readonly retention: { readonly created: number; readonly rejected: number }
}

/** What a call that placed an order tells its twins. */
export interface PlacedOrder {
  readonly order: Order
  readonly key: string | undefined
}

/** `POST /v1/orders`. */
export const CREATE_ORDER: Endpoint = {
  operation: 'orders.create',
  method: 'POST',
  permission: 'orders:write',
  missing: 'service_or_customer',
}

/** Path of the orders. */
export const ORDERS_PATH = '/v1/orders'

/** A key for a generation of an intent: derived where everything it is derived from is known, else random. */
export function makeKey(
  context: OrderContext,
  externalOrderId: string | undefined,
  generation: number,
): { readonly key: string; readonly keyOrigin: KeyOrigin } {
  const { runtime } = context.connection
  const { server, account } = context
  if (externalOrderId === undefined || account === undefined)
    return { key: runtime.randomId(), keyOrigin: 'random' }
  return {
    key: derivedKey(runtime.deriveId, { server, account, externalOrderId, generation }),
    keyOrigin: 'derived',
  }
}

/**
 * Tag of the API key that sends a record's key.
 * @param stored the tag that the record has. A page that was opened again knows it before the proxy has responded, and
 * sends it along: the proxy then refuses to send the order with any other API key.
 */
export function tagOf(context: OrderContext, key: string, credential: string | null, stored = ''): string {
  const { credentials, runtime } = context.connection
  if (credential !== null) return apiKeyTag(runtime.deriveId, key, credential)
  const { proxyTag } = credentials
  if (proxyTag !== undefined) return proxiedTag(runtime.deriveId, key, proxyTag)
  return isProxied(stored) ? stored : apiKeyTag(runtime.deriveId, key, null)
}

/** True if the record's key may be sent again with this API key. */
export function sameApiKey(context: OrderContext, record: JournalRecord, credential: string | null): boolean {
  return (
    context.idempotencyScope === 'customer' ||
    record.apiKeyTag === tagOf(context, record.key, credential, record.apiKeyTag) ||
    isUnsent(record)
  )
}

/** What a record says about the wallet. A key that belongs to an unseen payload says nothing, even when closed. */
export function chargedOf(record: Pick<OrderRecord, 'state' | 'rejection'>): Charged {
  if (record.state === 'created') return 'yes'
  return record.state === 'open' || record.rejection?.kind === 'conflict' ? 'unknown' : 'no'
}

export function moneySentence(charged: Charged): string {
  return `The wallet ${{ no: 'was not', yes: 'was', unknown: 'may have been' }[charged]} charged.`
}

/** As much of a created order as is to be remembered. */
export function rememberedOrder(context: OrderContext, order: Order): Partial<Order> {
  return context.remember === 'order' ? order : { id: order.id, status: order.status, amount: order.amount }
}
