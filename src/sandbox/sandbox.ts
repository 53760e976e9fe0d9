import { createFetch, messageOf, type SandboxFetch } from './http/fetch.ts'
import {
  defaultBehaviour,
  type SandboxBehaviour,
  type SandboxPreset,
  withBehaviour,
} from './service/behaviour.ts'
import { defaultCatalogue, serviceRow } from './service/catalogue.ts'
import { checkFaultRule } from './service/fault-rules.ts'
import { createFaultScript } from './service/fault-script.ts'
import type { SandboxFaults } from './service/faults.ts'
import { createHandler } from './service/handler.ts'
import { forgetKeys } from './service/idempotency.ts'
import { createAssertions, type SandboxAssertions } from './service/ledger.ts'
import {
  type NewApiKey,
  type NewCustomer,
  type NewOrder,
  type NewService,
  newApiKeyShape,
  newCustomerShape,
  optionsShape,
  type SandboxOptions,
} from './service/options.ts'
import { createRandom } from './service/random.ts'
import type { SandboxMessage, SandboxReply, SandboxRequest } from './service/reply.ts'
import { assertShape } from './service/shape.ts'
import { sleepWithTimers } from './service/sleep.ts'
import {
  allPermissions,
  apiKeyShape,
  assertState,
  customerShape,
  orderShape,
  readState,
  type SandboxApiKey,
  type SandboxCharge,
  type SandboxCustomer,
  type SandboxKeyEntry,
  type SandboxOrder,
  type SandboxService,
  type SandboxState,
  stateOf,
  tablesOf,
} from './service/state.ts'
import type { World } from './service/world.ts'

/** An in-memory Customer Ordering API, made by {@link createSandbox}. */
export interface Sandbox extends SandboxAssertions {
  /** Base URL of the service that {@link fetch} reaches. */
  readonly baseUrl: string
  /** A personal API key with every permission and a funded wallet. */
  readonly apiKey: string
  /** An organization's API key with every permission and a funded wallet. */
  readonly organizationApiKey: string
  /** Id of the personal customer. */
  readonly customerId: string
  /** Id of the organization. */
  readonly organizationId: string

  /** Drop-in `fetch` that reaches this sandbox and nothing else. */
  readonly fetch: SandboxFetch
  /** Handles a request and returns how to respond, for an adapter of your own. */
  handle(request: Request | SandboxMessage): Promise<SandboxReply>

  /** The current values of all behaviour switches. */
  readonly behaviour: SandboxBehaviour
  /** Changes individual behaviour switches, or all switches that a preset sets. */
  configure(changes: SandboxPreset | Partial<SandboxBehaviour>): void
  /** The fault rules. */
  readonly faults: SandboxFaults
  /** The requests that the sandbox received, oldest first. */
  readonly requests: readonly SandboxRequest[]
  /** Every charge of an order, oldest first. */
  readonly ledger: readonly SandboxCharge[]

  /** All customers with their wallets. */
  customers(): readonly SandboxCustomer[]
  /** All API keys with their secrets, revoked keys included. */
  apiKeys(): readonly SandboxApiKey[]
  /** The idempotency table, oldest row first. */
  keys(): readonly SandboxKeyEntry[]
  /** All orders, oldest first. */
  orders(): readonly SandboxOrder[]
  /** The catalogue, unpublished services included. */
  services(): readonly SandboxService[]
  /**
   * Returns a customer in its current state.
   *
   * @throws {TypeError} if there is no such customer
   */
  customer(customer: string | { readonly id: string }): SandboxCustomer
  /** Adds a customer and returns it. */
  addCustomer(customer?: NewCustomer): SandboxCustomer
  /** Adds an API key and returns its secret, for the Authorization header. */
  addApiKey(apiKey: NewApiKey): string
  /** Revokes the API key with this secret. Requests with that key then get 401. */
  revokeApiKey(apiKey: string): void
  /** Adds a service, or replaces the service with the same `productId`. */
  addService(service: NewService): SandboxService
  /** Adds an order without a charge, for an order that was not placed through the API. */
  addOrder(order?: NewOrder): SandboxOrder
  /** Removes an order. Its charge stays in the ledger. */
  removeOrder(orderId: string): void
  /** Sets the status of an order. That order then ignores the switch `statuses`. */
  setOrderStatus(orderId: string, status: string): void
  /** Adds money to a wallet, in minor currency units. A negative amount removes money. */
  topUp(customer: string | { readonly id: string }, amount: number): void
  /** Sets the balance of a wallet, in minor currency units. */
  setBalance(customer: string | { readonly id: string }, amount: number): void
  /** Forgets all idempotency keys, except the keys of requests in progress. */
  forgetKeys(): void

  /** Returns the whole state of the service as plain JSON data. */
  dump(): SandboxState
  /**
   * Replaces the whole state of the service.
   *
   * Requests in progress lose their connection, as if the service restarted.
   *
   * @throws {TypeError} if the state is invalid
   */
  load(state: SandboxState): void
  /** Resets state, switches, fault rules and the request log to their initial values. */
  reset(): void
}

/**
 * Makes a sandbox.
 *
 * By default, it has a personal customer and an organization, each with a funded wallet, and a
 * small catalogue.
 *
 * @throws {TypeError} for an unknown or invalid option
 * @example
 * const sandbox = createSandbox()
 * const client = new CustomerOrderingClient({ ...sandbox }) // its baseUrl, apiKey and fetch
 */
export function createSandbox(options: SandboxOptions = {}): Sandbox {
  assertShape<SandboxOptions>(options, optionsShape, 'options of createSandbox')
  const seed = options.seed ?? 1
  const currency = options.currency ?? 'EUR'
  const baseUrl = new URL(options.baseUrl ?? 'https://sandbox.customer-ordering.test')
  const now = options.now ?? Date.now
  const startBehaviour = withBehaviour(
    withBehaviour(defaultBehaviour, options.preset ?? 'default'),
    options.behaviour ?? {},
  )
  // Use separate random sequences: adding a fault rule must not change the ids of orders.
  const ids = createRandom(seed)
  const lists = createRandom(seed ^ 0x5f3759df)
  const faultDraws = createRandom(seed ^ 0x2545f491)

  const apiKey = options.apiKey ?? ids.id('personal')
  const organizationApiKey = options.organizationApiKey ?? ids.id('organization')
  if (apiKey === organizationApiKey)
    throw new TypeError('options of createSandbox: apiKey and organizationApiKey must differ')
  const wallet = { amount: options.balance ?? 1_000_000, currency }
  const keyRowOf = (id: string, secret: string, customerId: string): SandboxApiKey => ({
    id,
    secret,
    customerId,
    permissions: allPermissions,
    sourceSystem: null,
    revoked: false,
  })
  const initial: SandboxState = {
    version: 1,
    random: { ids: ids.position(), lists: lists.position(), faults: faultDraws.position() },
    customers: [
      { id: 'cus_personal', type: 'personal', wallet },
      { id: 'cus_organization', type: 'organization', wallet },
    ],
    apiKeys: [
      keyRowOf('key_personal', apiKey, 'cus_personal'),
      keyRowOf('key_organization', organizationApiKey, 'cus_organization'),
    ],
    services: (options.services ?? defaultCatalogue).map((service) => serviceRow(service, currency)),
    orders: [],
    keys: [],
    ledger: [],
  }
  // Rejects options with invalid values, such as a currency in lower case.
  assertState(initial)
  const world: World = {
    tables: tablesOf(initial),
    behaviour: startBehaviour,
    now,
    sleep: options.sleep ?? sleepWithTimers,
    ids,
    lists,
    requestIds: createRandom(seed ^ 0x1b873593),
  }
  const faults = createFaultScript(faultDraws, checkFaultRule)
  for (const rule of options.faults ?? []) faults.add(rule)
  const { plan: _, ...shownFaults } = faults
  const requests: SandboxRequest[] = []
  const answer = createHandler(world, faults, { requests, keep: options.keepRequests ?? Infinity }, baseUrl)

  const customerOf = (customer: string | { readonly id: string }): SandboxCustomer => {
    const id = typeof customer === 'string' ? customer : customer?.id
    const row = world.tables.customers.get(id)
    if (row === undefined) throw noSuch('customer', id, 'customers()')
    return row
  }
  const orderOf = (orderId: string): SandboxOrder => {
    const row = world.tables.orders.get(orderId)
    if (row === undefined) throw noSuch('order', orderId, 'orders()')
    return row
  }
  const setBalance = (customer: string | { readonly id: string }, amount: number): void => {
    const row = customerOf(customer)
    const changed = { ...row, wallet: { amount, currency: row.wallet?.currency ?? currency } }
    assertShape<SandboxCustomer>(changed, customerShape, 'customer')
    world.tables.customers.set(row.id, changed)
  }
  const load = (state: SandboxState): void => {
    const { random, ...rows } = readState(state)
    world.tables = tablesOf(rows)
    ids.restore(random.ids)
    lists.restore(random.lists)
    faultDraws.restore(random.faults)
    show()
  }
  const secretOf = (id: string): string | undefined =>
    [...world.tables.apiKeys.values()].find((row) => row.id === id)?.secret
  /**
   * Copies what changes over time into the sandbox. A getter in an object literal would keep the
   * sandbox's clock, and everything that the clock references, in memory until the next full
   * garbage collection (measured with Node 24).
   */
  const show = (): void => {
    sandbox.apiKey = secretOf('key_personal') ?? apiKey
    sandbox.organizationApiKey = secretOf('key_organization') ?? organizationApiKey
    sandbox.behaviour = world.behaviour
    sandbox.ledger = world.tables.ledger
  }

  const sandbox: { -readonly [Name in keyof Sandbox]: Sandbox[Name] } = {
    baseUrl: baseUrl.href.replace(/\/+$/, ''),
    apiKey,
    organizationApiKey,
    customerId: 'cus_personal',
    organizationId: 'cus_organization',
    fetch: createFetch(answer, baseUrl),
    handle: async (request) => answer('text' in request ? await messageOf(request) : request),
    behaviour: startBehaviour,
    configure(changes) {
      world.behaviour = withBehaviour(world.behaviour, changes)
      show()
    },
    faults: shownFaults,
    requests,
    ledger: world.tables.ledger,
    ...createAssertions({ ledger: () => world.tables.ledger, customerOf }),
    customers: () => [...world.tables.customers.values()],
    apiKeys: () => [...world.tables.apiKeys.values()],
    keys: () => [...world.tables.keys.values()],
    orders: () => [...world.tables.orders.values()],
    services: () => [...world.tables.services.values()],
    customer: customerOf,
    addCustomer(customer = {}) {
      assertShape<NewCustomer>(customer, newCustomerShape, 'customer')
      const row: SandboxCustomer = {
        id: customer.id ?? ids.id('cus'),
        type: customer.type ?? 'personal',
        wallet: customer.wallet === undefined ? { amount: 0, currency } : customer.wallet,
      }
      assertShape<SandboxCustomer>(row, customerShape, 'customer')
      world.tables.customers.set(row.id, row)
      return row
    },
    addApiKey(given) {
      assertShape<NewApiKey>(given, newApiKeyShape, 'apiKey')
      const { customer, permissions, sourceSystem, secret } = given
      const owner = customerOf(customer)
      const row: SandboxApiKey = {
        ...keyRowOf(ids.id('key'), secret ?? ids.id(owner.type), owner.id),
        ...(permissions !== undefined && { permissions }),
        ...(sourceSystem !== undefined && { sourceSystem }),
      }
      assertShape<SandboxApiKey>(row, apiKeyShape, 'apiKey')
      world.tables.apiKeys.set(row.secret, row)
      return row.secret
    },
    revokeApiKey(secret) {
      const row = world.tables.apiKeys.get(secret)
      if (row === undefined) throw new TypeError('there is no API key with this secret; apiKeys() lists all')
      world.tables.apiKeys.set(secret, { ...row, revoked: true })
    },
    addService(service) {
      const row = serviceRow(service, currency)
      world.tables.services.set(row.productId, row)
      return row
    },
    addOrder({ customer = 'cus_personal', ...order } = {}) {
      const row: SandboxOrder = {
        id: ids.id('ord'),
        customerId: customerOf(customer).id,
        serviceId: 'svc_standard',
        target: '@someone',
        quantity: 1,
        amount: 250,
        currency,
        metadata: null,
        sourceSystem: null,
        status: null,
        createdAt: now(),
        ...order,
      }
      assertShape<SandboxOrder>(row, orderShape, 'order')
      world.tables.orders.set(row.id, row)
      return row
    },
    removeOrder(orderId) {
      world.tables.orders.delete(orderOf(orderId).id)
    },
    setOrderStatus(orderId, status) {
      world.tables.orders.set(orderId, { ...orderOf(orderId), status })
    },
    topUp: (customer, amount) => setBalance(customer, (customerOf(customer).wallet?.amount ?? 0) + amount),
    setBalance,
    forgetKeys: () => forgetKeys(world.tables),
    dump() {
      const random = { ids: ids.position(), lists: lists.position(), faults: faultDraws.position() }
      return stateOf(world.tables, random, now())
    },
    load,
    reset() {
      world.behaviour = startBehaviour
      load(initial)
      faults.clear()
      for (const rule of options.faults ?? []) faults.add(rule)
      requests.length = 0
      world.requestIds.restore(seed ^ 0x1b873593)
    },
  }
  // A copy has only what a client takes: `new CustomerOrderingClient({ ...sandbox })`. The
  // descriptor inherits nothing from a polluted `Object.prototype`.
  const hidden = Object.assign(Object.create(null), { enumerable: false })
  for (const name of Object.keys(sandbox))
    if (!COPIED.includes(name)) Object.defineProperty(sandbox, name, hidden)
  return sandbox
}

const COPIED: readonly string[] = ['baseUrl', 'apiKey', 'fetch']

function noSuch(what: string, id: string, list: string): TypeError {
  return new TypeError(`there is no ${what} ${JSON.stringify(id)}; ${list} lists all`)
}
