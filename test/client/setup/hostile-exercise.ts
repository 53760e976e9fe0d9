import type { ClientOptions, OrderStore } from 'customer-ordering-sdk'
import { POLLUTION } from './hostile-prototypes.ts'

type Sdk = typeof import('customer-ordering-sdk')

/** Finds the place where a value has an own property that came from `Object.prototype`. */
function leaksOf(value: unknown, path: string, seen: Set<unknown> = new Set()): string[] {
  if (value === POLLUTION) return [path]
  if (typeof value !== 'object' || value === null || seen.has(value)) return []
  seen.add(value)
  return Object.getOwnPropertyNames(value).flatMap((name) =>
    leaksOf(Object.getOwnPropertyDescriptor(value, name)?.value, `${path}.${name}`, seen),
  )
}

/**
 * Uses the client in every way with the platform's own `fetch`, and throws at the first unexpected
 * result. References that begin with `lost-` are charged, and their first response is lost.
 */
export async function exercise(
  sdk: Sdk,
  openStore: () => OrderStore,
  // `repeats`: true if the platform may resend a lost POST on its own.
  {
    baseUrl,
    apiKey,
    repeats = false,
  }: { readonly baseUrl: string; readonly apiKey: string; readonly repeats?: boolean },
): Promise<void> {
  const { CustomerOrderingClient, formatAmount, checkQuantity, isCustomerOrderingError, responseInfo } = sdk
  const run = crypto.randomUUID()
  const seen: unknown[] = []
  const see = <T>(value: T): T => {
    seen.push(value)
    return value
  }
  const expect = (truth: boolean, what: string): void => {
    if (!truth) throw new Error(what)
  }
  const errorOf = (call: Promise<unknown>): Promise<unknown> =>
    call.then(() => new Error('the call succeeded')).catch((error: unknown) => error)
  const options: ClientOptions = {
    baseUrl,
    apiKey: () => apiKey,
    hooks: { onRequest: see, onResponse: see, onRetry: see, onSettled: see },
    logger: { debug: (...line) => see(line), info: see, warn: see, error: see },
    logLevel: 'debug',
  }
  const order = (reference: string) => ({
    serviceId: 'svc_standard',
    target: '@ada',
    quantity: 1,
    metadata: { externalOrderId: `${reference}-${run}` },
  })

  const nameless = new CustomerOrderingClient(options)
  const { metadata: _metadata, ...anonymous } = order('')
  for (const request of [order('a'), anonymous]) {
    const placed = see(await nameless.orders.create(request))
    const key = see(responseInfo(placed))?.idempotencyKey ?? ''
    expect(/^[\da-f]{8}-[\da-f]{4}-4/.test(key), `the key ${key} is not random, though there is no account`)
    expect(responseInfo(placed)?.attempts === 1, 'an order took more than one request')
  }

  const store = openStore()
  const client = new CustomerOrderingClient({ ...options, account: `shop-${run}`, store })
  const services = await client.services.list({ limit: 2 }, { prefetch: 1 }).toArray({ max: 100 })
  const service = see(await client.services.retrieve('svc_standard'))
  expect(see(services).length > 2, 'the services are wrong')
  expect(formatAmount(service, 'en') === '€2.50', 'the amount is formatted wrongly')
  expect(checkQuantity(service, 1).ok, 'the quantity is refused')
  const before = see(await client.balance.retrieve())
  const lost = see(await client.orders.create(order('lost')))
  const attempts = responseInfo(lost)?.attempts
  expect(attempts === 2 || (repeats && attempts === 1), 'the answer was not lost')
  const again = see(await client.orders.create(order('lost')))
  expect(again.id === lost.id && responseInfo(again)?.replayed === true, 'the order was not remembered')
  const after = await client.balance.retrieve()
  expect(before.amount - after.amount === lost.amount, 'the wallet was not charged once')
  expect(see(await client.orders.retrieve(lost.id)).id === lost.id, 'the order cannot be read')
  see(await client.orders.waitFor(lost.id, { until: ({ id }) => id === lost.id }))
  see(await client.request({ method: 'GET', path: '/v1/balance' }))

  for await (const outcome of client.orders.recover()) see(outcome)
  for await (const result of client.orders.createMany([order('b'), order('c')]))
    expect('order' in see(result), 'a row failed')
  const records = []
  for await (const record of client.orders.remembered({ since: 0 })) records.push(see(record))
  expect(records.length === 3, `${records.length} records instead of 3`)
  await client.orders.forget({ externalOrderId: `b-${run}` })
  const named = []
  for await (const record of client.orders.remembered({ externalOrderId: `c-${run}` }))
    named.push(see(record))
  expect(named.length === 1, `${named.length} records of one reference`)
  for await (const difference of client.orders.reconcile()) see(difference)

  const none = { ...order('none'), serviceId: 'none' }
  const unknown = see(await errorOf(client.orders.create(none)))
  expect(unknown instanceof sdk.NotFoundError, `not NotFoundError but ${String(unknown)}`)
  expect(isCustomerOrderingError(unknown) && unknown.charged === 'no', 'a refusal that charged')
  expect(!Object.hasOwn(Object(unknown), 'retryAfter'), 'a fact that nobody told')
  const wrong = see(await errorOf(client.orders.create({ ...order('d'), quantity: 'many' as never })))
  expect(wrong instanceof sdk.InvalidRequestError && wrong.issues.length === 1, `not one issue: ${wrong}`)
  const controller = new AbortController()
  controller.abort(new Error('no longer wanted'))
  const aborted = see(await errorOf(client.balance.retrieve({ signal: controller.signal })))
  expect(aborted instanceof sdk.RequestAbortedError, `not aborted but ${String(aborted)}`)
  const stranger = client.withOptions({ apiKey: () => 'sk_nobody', maxRetries: 0 })
  const refused = see(await errorOf(stranger.balance.retrieve()))
  expect(refused instanceof sdk.AuthenticationError, `not AuthenticationError but ${String(refused)}`)
  for (const error of [unknown, wrong, aborted, refused])
    see(isCustomerOrderingError(error) && [error.toJSON(), error.supportReference, JSON.stringify(error)])
  await client.close()
  await nameless.close()

  const leaks = leaksOf(seen, 'seen')
  expect(leaks.length === 0, `came from Object.prototype: ${leaks.join(', ')}`)
}

/** Every property of the global object and of the built-in prototypes, for comparison. */
export function globalsNow(): Map<string, PropertyDescriptor> {
  const found = new Map<string, PropertyDescriptor>()
  const note = (path: string, object: object): void => {
    for (const name of Reflect.ownKeys(object)) {
      const descriptor = Object.getOwnPropertyDescriptor(object, name)
      if (descriptor !== undefined) found.set(`${path}.${String(name)}`, descriptor)
    }
  }
  note('globalThis', globalThis)
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    const value: unknown = Object.getOwnPropertyDescriptor(globalThis, name)?.value
    if (typeof value !== 'function') continue
    note(name, value)
    if (typeof value.prototype === 'object' && value.prototype !== null)
      note(`${name}.prototype`, value.prototype)
  }
  return found
}

/** zod keeps its settings here, so that all its copies share them. This package sets none. */
const ZOD = /^globalThis\.__zod_global(Config|Registry)$/

/** Names of changed properties. */
export function changesSince(before: ReadonlyMap<string, PropertyDescriptor>): string[] {
  const now = globalsNow()
  const same = (name: string): boolean => {
    const [old, current] = [before.get(name), now.get(name)]
    return (
      // Some platforms create a new list with each read.
      (Object.is(old?.value, current?.value) ||
        (Array.isArray(old?.value) && Array.isArray(current?.value))) &&
      old?.get === current?.get &&
      old?.set === current?.set &&
      old?.enumerable === current?.enumerable &&
      old?.writable === current?.writable &&
      old?.configurable === current?.configurable &&
      before.has(name) === now.has(name)
    )
  }
  return [...new Set([...before.keys(), ...now.keys()])].filter((name) => !same(name) && !ZOD.test(name))
}
