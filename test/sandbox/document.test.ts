/**
 * Tests the API document sentence by sentence, in its own order. Every row holds in every preset,
 * because switches change only what the document leaves open.
 */
import {
  createSandbox,
  type SandboxPermission,
  type SandboxPreset,
  sandboxPresets,
} from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { type Answered, caller, manualClock } from './caller.ts'

function start(preset: SandboxPreset) {
  const clock = manualClock()
  const sandbox = createSandbox({ ...clock.options, preset })
  return {
    sandbox,
    api: caller(sandbox),
    organization: caller(sandbox, sandbox.organizationApiKey),
    as: (apiKey: string | null) => caller(sandbox, apiKey),
    /** New orders are readable within this time in every preset. */
    pass: () => clock.advance(5000),
  }
}
type World = ReturnType<typeof start>

/** Idempotency keys that every preset accepts. */
const keyOf = (number: number): string => `3f2b8c14-7a55-4e0f-9a51-${String(number).padStart(12, '0')}`
const [key, otherKey, thirdKey] = [keyOf(1), keyOf(2), keyOf(3)]

/** An order that costs 500 in every preset. */
const body = (changes: Record<string, unknown> = {}) => ({
  serviceId: 'svc_standard',
  target: '@ada',
  quantity: 2,
  metadata: { externalOrderId: 'shop-1' },
  ...changes,
})

function fields(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TypeError(`expected an object, got ${JSON.stringify(value)}`)
  return Object.fromEntries(Object.entries(value))
}

/** The rows of a list, whatever the name in its envelope. */
function rowsOf({ body }: Answered): readonly Record<string, unknown>[] {
  const rows: unknown = Array.isArray(body) ? body : Object.values(fields(body)).find(Array.isArray)
  if (!Array.isArray(rows)) throw new TypeError(`no list in ${JSON.stringify(body)}`)
  return rows.map(fields)
}

const ids = (answer: Answered): readonly unknown[] => rowsOf(answer).map(({ id }) => id)

const statusOf = async (answer: Promise<Answered>): Promise<number> => (await answer).status

/** The fields of an order. */
const created = async ({ api }: World): Promise<Record<string, unknown>> => {
  const { status, body: order } = await api.order(key, body())
  expect(status).toBe(201)
  return fields(order)
}

/** One call of each endpoint, with its permission. */
const endpoints: readonly (readonly [
  endpoint: string,
  permission: SandboxPermission,
  call: (api: ReturnType<typeof caller>) => Promise<Answered>,
])[] = [
  ['POST /v1/orders', 'orders:write', (api) => api.order(key, body())],
  ['GET /v1/orders', 'orders:read', (api) => api.get('/v1/orders')],
  ['GET /v1/orders/{orderId}', 'orders:read', (api) => api.get('/v1/orders/o1')],
  ['GET /v1/services', 'services:read', (api) => api.get('/v1/services')],
  ['GET /v1/services/{serviceId}', 'services:read', (api) => api.get('/v1/services/svc_standard')],
  ['GET /v1/balance', 'balance:read', (api) => api.get('/v1/balance')],
]

/** A world in which every endpoint returns something. */
const withOrder = (world: World): World => {
  world.sandbox.addOrder({ id: 'o1' })
  world.pass()
  return world
}

/** A customer without a wallet. */
const unmapped = ({ sandbox, as }: World): ReturnType<typeof caller> =>
  as(sandbox.addApiKey({ customer: sandbox.addCustomer({ type: 'personal', wallet: null }) }))

type Shows = (world: World) => Promise<void>

/** The statements of the document, by section, with the calls that show them. */
const sections: Readonly<Record<string, Readonly<Record<string, Shows>>>> = {
  'What the service does': {
    'an order is paid from the wallet of its customer, whose balance has amount and currency': async (
      world,
    ) => {
      await created(world)
      expect((await world.api.get('/v1/balance')).body).toEqual({ amount: 999_500, currency: 'EUR' })
      expect((await world.organization.get('/v1/balance')).body).toMatchObject({ amount: 1_000_000 })
    },
    'amounts are integers in minor units with an ISO currency code': async (world) => {
      const { body: balance } = await world.api.get('/v1/balance')
      const { body: service } = await world.api.get('/v1/services/svc_standard')
      for (const { amount, currency } of [fields(balance), fields(service)]) {
        expect(Number.isSafeInteger(amount)).toBe(true)
        expect(currency).toMatch(/^[A-Z]{3}$/)
      }
      expect(Number.isSafeInteger((await created(world))['amount'])).toBe(true)
    },
    'bodies are JSON': async ({ sandbox, api }) => {
      const answers = [
        await api.order(key, body()),
        await api.get('/v1/orders'),
        await api.get('/v1/services'),
        await api.get('/v1/orders/none'),
      ]
      for (const { headers } of answers)
        expect(headers.get('content-type')).toMatch(/^application\/(problem\+)?json$/)
      const plain = { headers: { 'content-type': 'text/plain' } }
      expect(await statusOf(api.order(otherKey, body(), plain))).toBe(400)
      expect(await statusOf(api.order(thirdKey, '{"serviceId":'))).toBe(400)
      sandbox.expectCharges(1)
    },
    'the retrieved status is the order’s status': async (world) => {
      const { id } = await created(world)
      world.pass()
      world.sandbox.setOrderStatus(String(id), 'completed')
      expect((await world.api.get(`/v1/orders/${id}`)).body).toMatchObject({ status: 'completed' })
      expect(rowsOf(await world.api.get('/v1/orders'))).toMatchObject([{ status: 'completed' }])
    },
    'a personal key spends the user’s wallet, an organization’s key the organization’s': async (world) => {
      const { sandbox, api, organization } = world
      sandbox.setBalance(sandbox.customerId, 600)
      expect(await statusOf(organization.order(key, body()))).toBe(201)
      const balances = async () => [
        (await api.get('/v1/balance')).body,
        (await organization.get('/v1/balance')).body,
      ]
      expect(await balances()).toMatchObject([{ amount: 600 }, { amount: 999_500 }])
      expect(await statusOf(api.order(otherKey, body()))).toBe(201)
      expect(await balances()).toMatchObject([{ amount: 100 }, { amount: 999_500 }])
    },
  },
  CreateOrderRequest: {
    'serviceId is the productId of a listed service': async ({ sandbox, api }) => {
      const listed = rowsOf(await api.get('/v1/services')).map(({ productId }) => productId)
      const sent = listed.filter((productId) => productId === 'svc_standard')
      expect(
        await api.statuses([key, body({ serviceId: sent[0] })], [otherKey, body({ serviceId: 7 })]),
      ).toEqual([201, 400])
      expect(sandbox.orders()).toMatchObject([{ serviceId: 'svc_standard' }])
    },
    'target is a free-form string': async ({ sandbox, api }) => {
      const target = 'any / text – 文'
      expect(await api.statuses([key, body({ target })], [otherKey, body({ target: 7 })])).toEqual([201, 400])
      expect(sandbox.orders()).toMatchObject([{ target }])
    },
    'quantity is an integer': async ({ api }) => {
      for (const [index, quantity] of ['2', 1.5, null, -1].entries())
        expect(await statusOf(api.order(keyOf(index), body({ quantity })))).toBe(400)
    },
    'quantity respects minimum, maximum and step': async ({ api }) => {
      const bulk = [99, 150, 100_100, 300].map(
        (quantity, index) => [keyOf(index), body({ serviceId: 'svc_bulk', quantity })] as const,
      )
      expect(await api.statuses(...bulk)).toEqual([422, 422, 422, 201])
    },
    'metadata is an object with externalOrderId, a string': async ({ sandbox, api }) => {
      const wrong = body({ metadata: 'shop-2' })
      const numbered = body({ metadata: { externalOrderId: 2 } })
      expect(await api.statuses([key, body()], [otherKey, wrong], [thirdKey, numbered])).toEqual([
        201, 400, 400,
      ])
      expect(sandbox.expectChargedOnce('shop-1').externalOrderId).toBe('shop-1')
    },
  },
  Order: {
    'has id, status and amount, in creation, retrieval and list': async (world) => {
      const order = await created(world)
      world.pass()
      const { body: retrieved } = await world.api.get(`/v1/orders/${order['id']}`)
      for (const shown of [order, fields(retrieved), ...rowsOf(await world.api.get('/v1/orders'))])
        expect(shown).toMatchObject({ id: order['id'], status: expect.any(String), amount: 500 })
    },
  },
  Service: {
    'has productId, price, currency and the three quantity rules': async ({ api }) => {
      const service = {
        productId: 'svc_bulk',
        amount: 3,
        currency: 'EUR',
        minQuantity: 100,
        maxQuantity: 100_000,
        stepQuantity: 100,
      }
      expect((await api.get('/v1/services/svc_bulk')).body).toMatchObject(service)
      const listed = rowsOf(await api.get('/v1/services')).filter(({ productId }) => productId === 'svc_bulk')
      expect(listed).toMatchObject([service])
    },
    'carries a stock state that can be read before ordering': async ({ sandbox, api }) => {
      const { field, inStock, outOfStock } = sandbox.behaviour.stockState
      expect((await api.get('/v1/services/svc_standard')).body).toMatchObject({ [field]: inStock })
      expect((await api.get('/v1/services/svc_sold_out')).body).toMatchObject({ [field]: outOfStock })
    },
  },
  'POST /v1/orders': {
    'needs the header Idempotency-Key': async ({ sandbox, api }) => {
      for (const wrong of [null, '', 'a b', 'k'.repeat(256)])
        expect(await statusOf(api.order(wrong, body()))).toBe(400)
      sandbox.expectCharges(0)
    },
    'the same key with the same payload does not charge again': async (world) => {
      const order = await created(world)
      const { status, body: again } = await world.api.order(key, body())
      expect(status).toBeLessThan(300)
      expect(again).toEqual(order)
      world.sandbox.expectCharges(1)
    },
    'the same key with another payload is an IDEMPOTENCY_CONFLICT': async (world) => {
      await created(world)
      const { status, body: refusal } = await world.api.order(key, body({ quantity: 3 }))
      expect(status).toBe(409)
      expect(JSON.stringify(refusal)).toContain('"IDEMPOTENCY_CONFLICT"')
      world.sandbox.expectCharges(1)
    },
    'while the first request is running, its key is IDEMPOTENCY_IN_PROGRESS': async ({ sandbox, api }) => {
      const [first, second] = await Promise.all([api.order(key, body()), api.order(key, body())])
      expect(first.status).toBe(201)
      expect(second.status).toBe(409)
      expect(JSON.stringify(second.body)).toContain('"IDEMPOTENCY_IN_PROGRESS"')
      sandbox.expectCharges(1)
    },
  },
  'GET /v1/orders': {
    'lists the orders of the customer or of the organization': async (world) => {
      const { sandbox, api, organization, pass } = world
      const mine = [sandbox.addOrder(), sandbox.addOrder()].map(({ id }) => id)
      const theirs = sandbox.addOrder({ customer: sandbox.organizationId }).id
      pass()
      expect(ids(await api.get('/v1/orders')).toSorted()).toEqual(mine.toSorted())
      expect(ids(await organization.get('/v1/orders'))).toEqual([theirs])
    },
    'gives limit items at most': async ({ sandbox, api, pass }) => {
      for (let i = 0; i < 12; i++) sandbox.addOrder()
      pass()
      expect(rowsOf(await api.get('/v1/orders?limit=5'))).toHaveLength(5)
    },
    'offset counts from zero': async ({ sandbox, api, pass }) => {
      for (let i = 0; i < 3; i++) sandbox.addOrder()
      pass()
      // If the order is random, only the number of rows is known.
      expect(rowsOf(await api.get('/v1/orders?offset=0'))).toHaveLength(3)
      expect(rowsOf(await api.get('/v1/orders?offset=2'))).toHaveLength(1)
      expect(rowsOf(await api.get('/v1/orders?offset=3'))).toHaveLength(0)
    },
    'sourceSystem narrows the list to orders of that integration': async ({ sandbox, api, pass }) => {
      const { id } = sandbox.addOrder({ sourceSystem: 'web' })
      sandbox.addOrder({ sourceSystem: 'app' })
      sandbox.addOrder()
      pass()
      expect(ids(await api.get('/v1/orders?sourceSystem=web'))).toEqual([id])
      expect(ids(await api.get('/v1/orders?sourceSystem=none'))).toEqual([])
    },
  },
  'GET /v1/orders/{orderId}': {
    'returns only an order of the caller': async ({ sandbox, api, organization, pass }) => {
      const { id } = sandbox.addOrder()
      pass()
      expect(await statusOf(api.get(`/v1/orders/${id}`))).toBe(200)
      expect(await statusOf(organization.get(`/v1/orders/${id}`))).toBe(404)
    },
  },
  'GET /v1/services': {
    'lists published products only': async ({ sandbox, api }) => {
      const products = rowsOf(await api.get('/v1/services')).map(({ productId }) => productId)
      const published = sandbox.services().filter((service) => service.published)
      expect(products.toSorted()).toEqual(published.map(({ productId }) => productId).toSorted())
      expect(products).not.toContain('svc_draft')
    },
    'has limit and offset as the order list has': async ({ api }) => {
      const all = rowsOf(await api.get('/v1/services')).length
      expect(rowsOf(await api.get('/v1/services?limit=2'))).toHaveLength(2)
      expect(rowsOf(await api.get(`/v1/services?offset=${all - 1}`))).toHaveLength(1)
    },
  },
  'GET /v1/services/{serviceId}': {
    'shows the current price': async ({ sandbox, api }) => {
      sandbox.addService({ productId: 'svc_standard', amount: 275 })
      expect((await api.get('/v1/services/svc_standard')).body).toMatchObject({ amount: 275 })
    },
  },
  Authentication: {
    'the scheme is Bearer': async ({ sandbox, as }) => {
      const send = (authorization: string) =>
        statusOf(as(null).send('/v1/balance', { headers: { authorization } }))
      expect(await send(`Bearer ${sandbox.apiKey}`)).toBe(200)
      expect(await send(`Basic ${sandbox.apiKey}`)).toBe(401)
      expect(await send(sandbox.apiKey)).toBe(401)
    },
  },
  Errors: {
    '400: invalid body of a creation': async ({ sandbox, api }) => {
      expect(await statusOf(api.order(key, []))).toBe(400)
      sandbox.expectCharges(0)
    },
    '402: payment required': async ({ sandbox, api }) => {
      sandbox.setBalance(sandbox.customerId, 499)
      expect(await statusOf(api.order(key, body()))).toBe(402)
      expect((await api.get('/v1/balance')).body).toMatchObject({ amount: 499 })
      sandbox.expectCharges(0)
    },
    '404: service or customer mapping of a creation not found': async (world) => {
      expect(await statusOf(world.api.order(key, body({ serviceId: 'svc_none' })))).toBe(404)
      expect(await statusOf(unmapped(world).order(key, body()))).toBe(404)
      world.sandbox.expectCharges(0)
    },
    '404: order, service or customer wallet mapping not found': async (world) => {
      for (const path of ['/v1/orders/none', '/v1/services/none'])
        expect(await statusOf(world.api.get(path))).toBe(404)
      expect(await statusOf(unmapped(world).get('/v1/balance'))).toBe(404)
    },
    '422: order cannot be accepted': async ({ sandbox, api }) => {
      expect(await statusOf(api.order(key, body({ serviceId: 'svc_sold_out', quantity: 1 })))).toBe(422)
      sandbox.expectCharges(0)
    },
    'the lists have no 404': async (world) => {
      const stranger = unmapped(world)
      expect(rowsOf(await stranger.get('/v1/orders'))).toEqual([])
      expect(await statusOf(stranger.get('/v1/services'))).toBe(200)
      expect(rowsOf(await world.api.get('/v1/orders?offset=1000'))).toEqual([])
      expect(rowsOf(await world.api.get('/v1/services?offset=1000'))).toEqual([])
    },
  },
  Limits: {
    'limit is 50 when omitted, or less where the service caps it': async ({ sandbox, api, pass }) => {
      for (let i = 0; i < 60; i++) {
        sandbox.addOrder()
        sandbox.addService({ productId: `svc_${i}`, amount: 1 })
      }
      pass()
      const most = Math.min(50, sandbox.behaviour.maxLimit ?? 50)
      expect(rowsOf(await api.get('/v1/orders'))).toHaveLength(most)
      expect(rowsOf(await api.get('/v1/services'))).toHaveLength(most)
    },
  },
  Versioning: {
    'all paths carry the prefix /v1, and there are no others': async ({ api }) => {
      const below = ['', '/', '/order', '/orders/', '/orders/a/b', '/services/%ff'].map((end) => `/v1${end}`)
      for (const path of ['/orders', '/services', '/balance', '/v2/balance', '/', ...below])
        expect(await statusOf(api.get(path))).toBe(404)
    },
  },
}

const rows = Object.entries(sections).flatMap(([section, subjects]) =>
  Object.entries(subjects).map(([subject, shows]) => [section, subject, shows] as const),
)

const presets = Object.keys(sandboxPresets) as SandboxPreset[]

describe.each(presets)('the API document, preset %s', (preset) => {
  test.each(rows)('%s: %s', async (_section, _subject, shows) => await shows(start(preset)))

  test.each(endpoints)('%s needs an API key: 401', async (_endpoint, _permission, call) => {
    const { sandbox, as } = withOrder(start(preset))
    expect(await statusOf(call(as(null)))).toBe(401)
    expect(await statusOf(call(as('unknown')))).toBe(401)
    sandbox.revokeApiKey(sandbox.organizationApiKey)
    expect(await statusOf(call(as(sandbox.organizationApiKey)))).toBe(401)
    sandbox.expectCharges(0)
  })

  test.each(endpoints)('%s needs the permission %s: 403', async (_endpoint, permission, call) => {
    const { sandbox, as } = withOrder(start(preset))
    const customer = sandbox.customerId
    const others = endpoints.map(([, needed]) => needed).filter((name) => name !== permission)
    expect(await statusOf(call(as(sandbox.addApiKey({ customer, permissions: others }))))).toBe(403)
    sandbox.expectCharges(0)
    const { status } = await call(as(sandbox.addApiKey({ customer, permissions: [permission] })))
    expect(status).toBe(permission === 'orders:write' ? 201 : 200)
  })
})
