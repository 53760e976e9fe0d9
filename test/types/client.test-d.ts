import {
  type Balance,
  type BalanceOf,
  type ClientOptions,
  type CreateManyFailure,
  type CreateManyResult,
  type CreateManySummary,
  type CreateOptions,
  CustomerOrderingClient,
  type Lazy,
  type ListOptions,
  type ListParams,
  MemoryStore,
  type Order,
  type OrderOf,
  type OrderRecord,
  type OrderStore,
  type Page,
  type Pages,
  type Reconciled,
  type RecordInNeed,
  type RecoveryOutcome,
  type RecoverySummary,
  type RequestOptions,
  type Schemas,
  type Service,
  type ServiceOf,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import { expectTypeOf, it } from 'vitest'
import * as z from 'zod/mini'

const orderSchema = z.looseObject({ id: z.string(), status: z.enum(['queued', 'done']) })
type MyOrder = z.output<typeof orderSchema>
const plain = new CustomerOrderingClient({ baseUrl: 'https://api.example.com', apiKey: 'k' })
const mine = new CustomerOrderingClient({
  baseUrl: 'https://api.example.com',
  apiKey: 'k',
  schemas: { order: orderSchema },
})
const request = { serviceId: 's', target: 't', quantity: 1 }

it('a client without schemas returns the documented types', () => {
  expectTypeOf(plain).toEqualTypeOf<CustomerOrderingClient>()
  expectTypeOf(plain.orders.create).returns.toEqualTypeOf<Promise<Order>>()
  expectTypeOf(plain.orders.retrieve).returns.toEqualTypeOf<Promise<Order>>()
  expectTypeOf(plain.orders.list).returns.toEqualTypeOf<Pages<Order>>()
  expectTypeOf(plain.orders.waitFor('o', { until: ({ status }) => status === 'x' })).toEqualTypeOf<
    Promise<Order>
  >()
  expectTypeOf(plain.services.list).returns.toEqualTypeOf<Pages<Service>>()
  expectTypeOf(plain.services.retrieve).returns.toEqualTypeOf<Promise<Service>>()
  expectTypeOf(plain.balance.retrieve).returns.toEqualTypeOf<Promise<Balance>>()
  expectTypeOf(plain.orders.remembered({ since: 0 })).toEqualTypeOf<Lazy<OrderRecord, OrderRecord[]>>()
  expectTypeOf(plain.orders.unresolved()).toEqualTypeOf<Lazy<OrderRecord, OrderRecord[]>>()
  expectTypeOf(plain.orders.recover()).toEqualTypeOf<Lazy<RecoveryOutcome, RecoverySummary>>()
  expectTypeOf(plain.close()).toEqualTypeOf<Promise<void>>()
})

it('a client without schemas has lists and runs that are iterated or awaited', () => {
  const list = plain.orders.list()
  expectTypeOf(list).toExtend<AsyncIterable<Order>>()
  expectTypeOf(list).toExtend<Promise<Page<Order>>>()
  expectTypeOf<Awaited<typeof list>>().toEqualTypeOf<Page<Order>>()
  expectTypeOf<Awaited<typeof list>>().toExtend<AsyncIterable<Order>>()
  expectTypeOf<Page<Order>['nextPage']>().returns.toEqualTypeOf<Promise<Page<Order> | undefined>>()
  const all = Promise.all([plain.orders.list(), plain.services.list()])
  expectTypeOf(all).toEqualTypeOf<Promise<[Page<Order>, Page<Service>]>>()
  const handler = async () => plain.orders.list()
  expectTypeOf(handler).returns.toEqualTypeOf<Promise<Page<Order>>>()
  const recovery = plain.orders.recover()
  expectTypeOf<Awaited<typeof recovery>>().toEqualTypeOf<RecoverySummary>()
  expectTypeOf<RecoverySummary['created']>().toEqualTypeOf<number>()
  expectTypeOf<RecoverySummary['needsAttention']>().toEqualTypeOf<readonly RecordInNeed[]>()
  const run = plain.orders.createMany([request])
  expectTypeOf(run).toEqualTypeOf<Lazy<CreateManyResult, CreateManySummary>>()
  expectTypeOf<Awaited<typeof run>['failures'][number]>().toEqualTypeOf<CreateManyFailure>()
  expectTypeOf(plain.orders.reconcile()).toEqualTypeOf<Lazy<Reconciled, Reconciled[]>>()
  expectTypeOf(list.pages()).toEqualTypeOf<AsyncIterable<Page<Order>>>()
  expectTypeOf(list.toArray({ max: 5 })).toEqualTypeOf<Promise<Order[]>>()
  expectTypeOf(list.catch(() => 'none')).toEqualTypeOf<Promise<Page<Order> | string>>()
  expectTypeOf(run.finally(() => {})).toEqualTypeOf<Promise<CreateManySummary>>()
  // @ts-expect-error the cap is required
  list.toArray()
})

it('a client may be created from the environment, and closed by await using', () => {
  expectTypeOf(CustomerOrderingClient).toBeConstructibleWith()
  expectTypeOf<CustomerOrderingClient>().toExtend<AsyncDisposable>()
})

it('a client with schemas returns their outputs, and the documented types for the rest', () => {
  expectTypeOf(mine.orders.create(request)).toEqualTypeOf<Promise<MyOrder>>()
  expectTypeOf(mine.orders.retrieve('o')).toEqualTypeOf<Promise<MyOrder>>()
  expectTypeOf(mine.orders.list()).toEqualTypeOf<Pages<MyOrder>>()
  expectTypeOf<Awaited<ReturnType<typeof mine.orders.list>>>().toEqualTypeOf<Page<MyOrder>>()
  expectTypeOf(mine.services.retrieve('s')).toEqualTypeOf<Promise<Service>>()
  expectTypeOf(mine.balance.retrieve()).toEqualTypeOf<Promise<Balance>>()
})

it('a client with schemas passes their outputs to until', () => {
  const waiting = mine.orders.waitFor('o', {
    until: (order) => {
      expectTypeOf(order).toEqualTypeOf<MyOrder>()
      return order.status === 'done'
    },
  })
  expectTypeOf(waiting).toEqualTypeOf<Promise<MyOrder>>()
  // @ts-expect-error the schema has no such status
  mine.orders.waitFor('o', { until: ({ status }) => status === 'dne' })
})

it("a client's types follow schemas that transform", () => {
  const schema: StandardSchemaV1<unknown, { readonly euros: number }> = {
    '~standard': { version: 1, vendor: 'test', validate: () => ({ value: { euros: 1 } }) },
  }
  const client = new CustomerOrderingClient({ schemas: { balance: schema, service: schema } })
  expectTypeOf(client.balance.retrieve()).resolves.toEqualTypeOf<{ readonly euros: number }>()
  expectTypeOf(client.services.list()).toEqualTypeOf<Pages<{ readonly euros: number }>>()
  expectTypeOf(client.orders.retrieve('o')).resolves.toEqualTypeOf<Order>()
})

it("a client's type depends on its schemas", () => {
  expectTypeOf<OrderOf<{ order: typeof orderSchema }>>().toEqualTypeOf<MyOrder>()
  expectTypeOf<OrderOf<{ service: typeof orderSchema }>>().toEqualTypeOf<Order>()
  expectTypeOf<ServiceOf<{ service: typeof orderSchema }>>().toEqualTypeOf<MyOrder>()
  expectTypeOf<BalanceOf<Schemas>>().toEqualTypeOf<Balance>()
})

it('derived clients keep the schemas unless they get others', () => {
  expectTypeOf(mine.withOptions({ timeout: 5 }).orders.retrieve('o')).toEqualTypeOf<Promise<MyOrder>>()
  const changed = mine.withOptions({ schemas: { service: orderSchema } })
  expectTypeOf(changed.services.retrieve('s')).toEqualTypeOf<Promise<MyOrder>>()
  expectTypeOf(changed.orders.retrieve('o')).toEqualTypeOf<Promise<Order>>()
})

it('a client rejects a value that is not a schema', () => {
  // @ts-expect-error no Standard Schema
  expectTypeOf(new CustomerOrderingClient({ schemas: { order: { parse: () => ({}) } } })).toBeObject()
  // @ts-expect-error no such schema
  expectTypeOf(new CustomerOrderingClient({ schemas: { orders: orderSchema } })).toBeObject()
})

it("client.request returns unknown, or its schema's output", () => {
  const raw = plain.request({ method: 'GET', path: '/v1/x' })
  expectTypeOf(raw).toEqualTypeOf<Promise<unknown>>()
  const schema = z.object({ a: z.number() })
  const typed = plain.request({ method: 'POST', path: '/v1/x', body: {}, schema })
  expectTypeOf(typed).toEqualTypeOf<Promise<{ a: number }>>()
  // @ts-expect-error a type without a schema is a wish
  plain.request<{ a: number }>({ method: 'GET', path: '/v1/x' }).catch(() => {})
  // @ts-expect-error no such method
  plain.request({ method: 'TRACE', path: '/v1/x' }).catch(() => {})
})

it('options reject unknown names and wrong types', () => {
  const key = { apiKey: 'k' }
  const wrong: ClientOptions[] = [
    // @ts-expect-error misspelled
    { ...key, acount: 'shop' },
    // @ts-expect-error no number
    { ...key, timeout: '5s' },
    // @ts-expect-error no such scope
    { ...key, idempotencyScope: 'user' },
    // @ts-expect-error no header value
    { ...key, defaultHeaders: { a: 5 } },
    // Valid: an environment variable may be undefined, which means the default.
    { ...key, account: undefined },
    // @ts-expect-error no store
    { ...key, store: new Map() },
    // @ts-expect-error no such level
    { ...key, logLevel: 'trace' },
    // @ts-expect-error a key is a text
    { apiKey: () => 5 },
  ]
  expectTypeOf(wrong).toBeArray()
})

it('options accept valid values', () => {
  expectTypeOf<{
    apiKey: null
    store: MemoryStore
    logger: Console
    fetch: typeof fetch
  }>().toExtend<ClientOptions>()
  expectTypeOf<{ apiKey: () => Promise<string> }>().toExtend<ClientOptions>()
  expectTypeOf(new MemoryStore()).toExtend<OrderStore>()
})

it('options of calls are the last argument', () => {
  expectTypeOf(plain.orders.create).parameter(1).toEqualTypeOf<CreateOptions | undefined>()
  expectTypeOf(plain.orders.retrieve).parameter(1).toEqualTypeOf<RequestOptions | undefined>()
  expectTypeOf(plain.services.list).parameters.toEqualTypeOf<
    [params?: ListParams | undefined, options?: ListOptions | undefined]
  >()
  expectTypeOf(plain.balance.retrieve).parameters.toEqualTypeOf<[options?: RequestOptions | undefined]>()
  // @ts-expect-error a signal is no parameter of the list
  plain.services.list({ signal: AbortSignal.timeout(5) })
  // @ts-expect-error services have no source system
  plain.services.list({ sourceSystem: 'shop' })
})

it("outcomes of recover() have the caller's order type, and are distinguished by outcome and reason", () => {
  expectTypeOf(mine.orders.recover()).toEqualTypeOf<Lazy<RecoveryOutcome<MyOrder>, RecoverySummary>>()
  const told = (outcome: RecoveryOutcome<MyOrder>): unknown => {
    if (outcome.outcome === 'created') {
      if (outcome.reason === undefined) expectTypeOf(outcome.order).toEqualTypeOf<MyOrder>()
      return outcome.order
    }
    expectTypeOf(outcome.order).toEqualTypeOf<undefined>()
    if (outcome.outcome === 'needs_attention') expectTypeOf(outcome.reason).toBeString()
    return outcome.reason
  }
  expectTypeOf(told).toBeFunction()
})
