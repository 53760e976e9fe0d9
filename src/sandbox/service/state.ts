import type { JsonObject } from './json.ts'
import {
  anything,
  assertShape,
  dictionaryOf,
  either,
  flag,
  listOf,
  number,
  oneOf,
  orNull,
  record,
  type Shape,
  text,
} from './shape.ts'

/** A permission of an API key (API document, "Authentication"). */
export type SandboxPermission = 'orders:write' | 'orders:read' | 'services:read' | 'balance:read'

export const allPermissions: readonly SandboxPermission[] = [
  'orders:write',
  'orders:read',
  'services:read',
  'balance:read',
]

/** The money in a wallet. */
export interface SandboxWallet {
  /** Amount in minor currency units, a safe integer. */
  readonly amount: number
  /** ISO 4217 currency code. */
  readonly currency: string
}

/** A user or an organization that owns a wallet and orders. */
export interface SandboxCustomer {
  /** Identifier of the customer. */
  readonly id: string
  /** A user or an organization. */
  readonly type: 'personal' | 'organization'
  /** Null if the customer has no wallet: reading the balance and ordering then return 404. */
  readonly wallet: SandboxWallet | null
}

/** An API key of a customer. */
export interface SandboxApiKey {
  /** Label of the key in logs. */
  readonly id: string
  /** The key itself, as sent in the Authorization header. */
  readonly secret: string
  /** The customer that the key acts for. */
  readonly customerId: string
  /** What the key may do. */
  readonly permissions: readonly SandboxPermission[]
  /** The integration that uses the key. Used only if `sourceSystemFrom` is `'apiKey'`. */
  readonly sourceSystem: string | null
  /** Whether the key was revoked. Requests with a revoked key get 401. */
  readonly revoked: boolean
}

/** A product of the catalogue. */
export interface SandboxService {
  /** Identifier of the service. */
  readonly productId: string
  /** Price in minor currency units. */
  readonly amount: number
  /** ISO 4217 currency code. */
  readonly currency: string
  /** Smallest orderable quantity. */
  readonly minQuantity: number
  /** Largest orderable quantity. */
  readonly maxQuantity: number
  /** Step between valid quantities. The switch `stepFrom` defines where the steps start. */
  readonly stepQuantity: number
  /** Units left, or null for an unlimited number. */
  readonly stock: number | null
  /** Unpublished services cannot be listed, retrieved or ordered. */
  readonly published: boolean
}

/**
 * An order as the sandbox stores it. The switch `orderFields` determines which fields callers see.
 */
export interface SandboxOrder {
  /** Identifier of the order. */
  readonly id: string
  /** The customer who owns the order. */
  readonly customerId: string
  /** The ordered service. */
  readonly serviceId: string
  /** What the order is applied to. */
  readonly target: string
  /** Ordered quantity. */
  readonly quantity: number
  /** Amount charged, in minor currency units. */
  readonly amount: number
  /** ISO 4217 currency code. */
  readonly currency: string
  /** Metadata of the request, or null. */
  readonly metadata: JsonObject | null
  /** The integration that placed the order, or null. */
  readonly sourceSystem: string | null
  /** A fixed status, or null if the switch `statuses` determines the status. */
  readonly status: string | null
  /** Time of the creation, in milliseconds since the epoch. */
  readonly createdAt: number
}

/** What the service remembers under the key of a finished request. */
export type SandboxKeyAnswer =
  | { readonly kind: 'order'; readonly orderId: string; readonly body: JsonObject }
  | { readonly kind: 'refusal'; readonly status: number; readonly code: string; readonly message: string }
  | { readonly kind: 'fault'; readonly status: number; readonly contentType: string; readonly body: string }
  /**
   * The request was refused, and its key may be used again.
   *
   * Only the payload and the time are remembered.
   */
  | { readonly kind: 'free' }

/** One row of the idempotency table. */
export interface SandboxKeyEntry {
  /** Scope of the key: an API key's id or a customer's id. */
  readonly scope: string
  /** The Idempotency-Key. */
  readonly key: string
  /** The request's body, unparsed. */
  readonly payload: string
  /** Start of the lifetime of the key, in milliseconds since the epoch. */
  readonly startedAt: number
  /**
   * When the request died without a response, in milliseconds since the epoch. Null if it did not.
   */
  readonly orphanedAt: number | null
  /** The remembered response. Null while the request is running, and after it died. */
  readonly answer: SandboxKeyAnswer | null
}

/** One debit of a wallet. */
export interface SandboxCharge {
  /** The order that was paid. */
  readonly orderId: string
  /** Amount in minor currency units. */
  readonly amount: number
  /** ISO 4217 currency code. */
  readonly currency: string
  /** The customer whose wallet was debited. */
  readonly customerId: string
  /** Idempotency-Key of the request. */
  readonly idempotencyKey: string
  /** The caller's own reference, if there is one. */
  readonly externalOrderId?: string
  /** The request's body, unparsed. */
  readonly body: string
  /** Time of the charge, in milliseconds since the epoch. */
  readonly at: number
}

/**
 * The state of the service as plain JSON, without fault rules, switches and the request log.
 */
export interface SandboxState {
  /** Version of this format. */
  readonly version: 1
  /** Positions of the seeded random sequences. */
  readonly random: { readonly ids: number; readonly lists: number; readonly faults: number }
  /** Customers with their wallets. */
  readonly customers: readonly SandboxCustomer[]
  /** API keys, including revoked keys. */
  readonly apiKeys: readonly SandboxApiKey[]
  /** The catalogue. */
  readonly services: readonly SandboxService[]
  /** Orders, oldest first. */
  readonly orders: readonly SandboxOrder[]
  /** The idempotency table, oldest row first. */
  readonly keys: readonly SandboxKeyEntry[]
  /** Charges, oldest first. */
  readonly ledger: readonly SandboxCharge[]
}

export interface Tables {
  readonly customers: Map<string, SandboxCustomer>
  /** Indexed by secret. */
  readonly apiKeys: Map<string, SandboxApiKey>
  readonly services: Map<string, SandboxService>
  readonly orders: Map<string, SandboxOrder>
  /** Indexed by {@link keyRow}. */
  readonly keys: Map<string, SandboxKeyEntry>
  readonly ledger: SandboxCharge[]
}

/** The result is unique, because a scope has no spaces. */
export function keyRow(scope: string, key: string): string {
  return `${scope} ${key}`
}

export function tablesOf(state: Omit<SandboxState, 'version' | 'random'>): Tables {
  return {
    customers: new Map(state.customers.map((row) => [row.id, row])),
    apiKeys: new Map(state.apiKeys.map((row) => [row.secret, row])),
    services: new Map(state.services.map((row) => [row.productId, row])),
    orders: new Map(state.orders.map((row) => [row.id, row])),
    keys: new Map(state.keys.map((row) => [keyRow(row.scope, row.key), row])),
    ledger: [...state.ledger],
  }
}

export function stateOf(tables: Tables, random: SandboxState['random'], now: number): SandboxState {
  // A request in progress cannot finish in the copy, so the copy marks it as a request that died.
  const keys = [...tables.keys.values()].map((row) =>
    row.answer === null && row.orphanedAt === null ? { ...row, orphanedAt: now } : row,
  )
  return structuredClone({
    version: 1,
    random,
    customers: [...tables.customers.values()],
    apiKeys: [...tables.apiKeys.values()],
    services: [...tables.services.values()],
    orders: [...tables.orders.values()],
    keys,
    ledger: tables.ledger,
  })
}

const amount = number({ min: 0 })
const quantity = number({ min: 0, fraction: true })
const moment = number({ fraction: true })
const currency = text(/^[A-Z]{3}$/, 'a currency code such as "EUR"')
const identifier = text(/^[\x21-\x7e]+$/, 'visible ASCII characters without spaces')

export const customerShape: Shape = record({
  id: identifier,
  type: oneOf('personal', 'organization'),
  wallet: orNull(record({ amount, currency })),
})
export const apiKeyShape: Shape = record({
  id: identifier,
  secret: identifier,
  customerId: identifier,
  permissions: listOf(oneOf(...allPermissions)),
  sourceSystem: orNull(text()),
  revoked: flag,
})
export const serviceShape: Shape = record({
  productId: identifier,
  amount,
  currency,
  minQuantity: quantity,
  maxQuantity: quantity,
  stepQuantity: number({ min: Number.MIN_VALUE, fraction: true }),
  stock: orNull(quantity),
  published: flag,
})
export const orderShape: Shape = record({
  id: identifier,
  customerId: identifier,
  serviceId: identifier,
  target: text(),
  quantity,
  amount,
  currency,
  metadata: orNull(dictionaryOf(anything)),
  sourceSystem: orNull(text()),
  status: orNull(text()),
  createdAt: moment,
})
const answers: readonly Shape[] = [
  record({ kind: oneOf('order'), orderId: identifier, body: dictionaryOf(anything) }),
  record({ kind: oneOf('refusal'), status: number(), code: text(), message: text() }),
  record({ kind: oneOf('fault'), status: number(), contentType: text(), body: text() }),
  record({ kind: oneOf('free') }),
]
const stateShape = record({
  version: oneOf(1),
  random: record({ ids: number(), lists: number(), faults: number() }),
  customers: listOf(customerShape),
  apiKeys: listOf(apiKeyShape),
  services: listOf(serviceShape),
  orders: listOf(orderShape),
  keys: listOf(
    record({
      scope: identifier,
      key: text(),
      payload: text(),
      startedAt: moment,
      orphanedAt: orNull(moment),
      answer: orNull(either('a remembered response', ...answers)),
    }),
  ),
  ledger: listOf(
    record(
      {
        orderId: identifier,
        amount,
        currency,
        customerId: identifier,
        idempotencyKey: text(),
        body: text(),
        at: moment,
      },
      { externalOrderId: text() },
    ),
  ),
})

export function assertState(value: unknown): asserts value is SandboxState {
  assertShape<SandboxState>(value, stateShape, 'state')
  const customers = new Set(value.customers.map((customer) => customer.id))
  for (const [index, apiKey] of value.apiKeys.entries())
    if (!customers.has(apiKey.customerId))
      throw new TypeError(
        `state.apiKeys[${index}].customerId: there is no customer ` +
          `${JSON.stringify(apiKey.customerId)} in state.customers`,
      )
}

export function readState(value: unknown): SandboxState {
  assertState(value)
  return structuredClone(value)
}
