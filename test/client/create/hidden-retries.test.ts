import type { FaultListChange } from 'customer-ordering-sdk/sandbox'
import { describe, expect } from 'vitest'
import { it, keysOf } from '../../support/history.ts'
import { failure, Lab, order } from '../../support/lab.ts'

const MINUTE = 60_000
type Service = ConstructorParameters<typeof Lab>[0]

/** Sends a request again if its response is lost, as fetch-retry and a service worker may. */
const retrying =
  ({ sandbox }: Lab): typeof fetch =>
  async (input, init) => {
    const request = new Request(input, init)
    return await sandbox.fetch(request.clone()).catch(() => sandbox.fetch(request))
  }

/** Some time ago, only the response to the second request arrived: a refusal, after the order was charged. */
async function refusedAfterCharge(status: number, service?: Service, age = 25 * MINUTE): Promise<Lab> {
  const lab = new Lab({ ...service, behaviour: { ...service?.behaviour, keyLifetime: 20 * MINUTE } })
  lab.fault({ type: 'commitThenDrop' })
  lab.fault({ type: 'status', status, code: 'REFUSED' })
  const { orders } = lab.client({ fetch: retrying(lab), maxRetries: 0 })
  expect(await failure(orders.create(REQUEST))).toMatchObject({ status })
  lab.charged()
  lab.runtime.jump(age)
  return lab
}

const REQUEST = order('r1')

describe.each([401, 402, 429])('a fetch that hides a charge behind a %i', (status) => {
  it('the order is looked up, also by a client with another fetch, once its key may be forgotten', async () => {
    for (const repeats of [true, false]) {
      const lab = await refusedAfterCharge(status)
      const placed = await lab.client(repeats ? { fetch: retrying(lab) } : {}).orders.create(REQUEST)
      expect(placed.id).toBe(lab.charged())
    }
  })

  it('the charged order is not returned for another payload', async () => {
    const lab = await refusedAfterCharge(status)
    const changed = order('r1', { quantity: 30 })
    const error = await failure(lab.client({ fetch: retrying(lab) }).orders.create(changed))
    expect(error).toMatchObject({ code: 'idempotency_conflict', charged: 'yes', fields: ['quantity'] })
    lab.charged()
  })

  it('another refusal does not restart the window of the key', async () => {
    const lab = await refusedAfterCharge(status, {}, 15 * MINUTE)
    lab.fault({ type: 'status', status, code: 'REFUSED' })
    const client = lab.client({ maxRetries: 0 })
    await failure(client.orders.create(REQUEST))
    lab.runtime.jump(15 * MINUTE)
    const placed = await client.orders.create(REQUEST)
    expect(placed.id).toBe(lab.charged())
  })
})

it('a key that may have bought behind a refusal is kept if it belongs to another payload', async () => {
  for (const repeats of [true, false]) {
    const lab = await refusedAfterCharge(422, {}, 0)
    const changed = { ...REQUEST, metadata: { ...REQUEST.metadata, note: 'again' } }
    const client = lab.shared(repeats ? { fetch: retrying(lab) } : {})
    const conflict = { code: 'idempotency_conflict', charged: 'unknown' }
    expect(await failure(client.orders.create(changed))).toMatchObject(conflict)
    lab.charged()
  }
})

it('a call with such a fetch that sends nothing leaves no doubt', async (lab) => {
  const controller = new AbortController()
  const abort = (name: string) => void (name === 'insert' && controller.abort())
  const { orders } = lab.elsewhere({ fetch: retrying(lab) }, abort)
  await failure(orders.create(REQUEST, { signal: controller.signal }))
  lab.fault({ type: 'status', status: 402, code: 'REFUSED' })
  await failure(lab.client({ maxRetries: 0 }).orders.create(REQUEST))
  lab.runtime.jump(25 * MINUTE)
  await lab.orders.create(REQUEST)
  expect(lab.sandbox.requests.map(({ method }) => method)).toEqual(['POST', 'POST'])
})

describe('the look-up of create() for an order that was refused', () => {
  const FROM_SHOP = { ...REQUEST, metadata: { externalOrderId: 'r1', sourceSystem: 'shop' } }

  /** The order was refused, and its key may be forgotten. */
  async function refused(): Promise<Lab> {
    const lab = new Lab()
    lab.fault({ type: 'status', status: 402, code: 'REFUSED' })
    await failure(lab.client({ fetch: retrying(lab) }).orders.create(FROM_SHOP))
    lab.runtime.jump(25 * MINUTE)
    return lab
  }

  it("another source system's order with the same reference is not returned", async () => {
    const lab = await refused()
    lab.sandbox.addOrder({ ...REQUEST, metadata: { externalOrderId: 'r1', sourceSystem: 'erp' } })
    const error = await failure(lab.client({ fetch: retrying(lab) }).orders.create(FROM_SHOP))
    expect(error).toMatchObject({ code: 'unresolved_order', externalOrderId: 'r1', charged: 'unknown' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected' })
    await lab.orders.forget({ externalOrderId: 'r1' })
    await lab.client({ fetch: retrying(lab) }).orders.create(FROM_SHOP)
  })

  it('a refusal that another call hears meanwhile does not permit another key', async () => {
    const lab = await refused()
    lab.fault({ type: 'status', status: 402, code: 'REFUSED' }, 'always', 'createOrder')
    let other: Promise<unknown> | undefined
    const slow: typeof fetch = async (...request) => {
      // More than the clocks of two machines may differ.
      if (other === undefined) lab.runtime.jump(MINUTE)
      other ??= failure(lab.elsewhere({ fetch: retrying(lab) }).orders.create(FROM_SHOP))
      await other
      return await retrying(lab)(...request)
    }
    await failure(lab.client({ fetch: slow }).orders.create(FROM_SHOP))
    expect(keysOf(lab)).toEqual([0, 1, 1])
  })

  it('a list that was read before another call sent the order does not permit another key', async () => {
    const lab = await refused()
    lab.sandbox.addOrder({ metadata: { externalOrderId: 'other' } })
    let reads = 0
    const sleepy: typeof fetch = async (...request) => {
      const response = await retrying(lab)(...request)
      if (lab.sandbox.requests.at(-1)?.method !== 'GET' || ++reads !== 4) return response
      // The second read has ended. Another process buys, and this machine sleeps.
      lab.fault({ type: 'commitThenDrop' }, 1, 'createOrder')
      lab.fault({ type: 'status', status: 402, code: 'REFUSED' }, 1, 'createOrder')
      const other = lab.elsewhere({ fetch: retrying(lab), maxRetries: 0 })
      expect(await failure(other.orders.create(FROM_SHOP))).toMatchObject({ charged: 'no' })
      lab.runtime.jump(25 * MINUTE)
      return response
    }
    const placed = await lab.client({ fetch: sleepy }).orders.create(FROM_SHOP)
    expect(placed.id).toBe(lab.charged())
  })

  it('an order is not looked up again inside the window of the key that the look-up permitted', async () => {
    const lab = await refused()
    const { orders } = lab.client({ fetch: retrying(lab), maxRetries: 0 })
    lab.fault({ type: 'status', status: 402, code: 'REFUSED' }, 1, 'createOrder')
    await failure(orders.create(FROM_SHOP))
    const reads = lab.sandbox.requests.filter(({ method }) => method === 'GET').length
    expect(reads).toBeGreaterThan(1)
    lab.runtime.jump(MINUTE)
    await orders.create(FROM_SHOP)
    expect(lab.sandbox.requests.filter(({ method }) => method === 'GET')).toHaveLength(reads)
  })

  it('an error of the look-up names the order', async () => {
    const lab = await refused()
    lab.fault({ type: 'status', status: 403 }, 'always', 'listOrders')
    const error = await failure(lab.client({ fetch: retrying(lab) }).orders.create(FROM_SHOP))
    const names = { externalOrderId: 'r1', idempotencyKey: lab.posts[0]?.key }
    expect(error).toMatchObject({ code: 'permission_denied', charged: 'unknown', ...names })
  })

  it('a list without references does not permit a new key', async () => {
    const lab = await refusedAfterCharge(402, { preset: 'minimal-answers' })
    const error = await failure(lab.client({ fetch: retrying(lab) }).orders.create(REQUEST))
    expect(error).toMatchObject({ code: 'unresolved_order', charged: 'unknown' })
    lab.charged()
  })

  it.each<[string, FaultListChange]>([
    ['numbers for ids', (rows) => rows.map((row, id) => ({ ...row, id }))],
    ['a row with a number for its id', (rows) => rows.map((row, id) => (id === 0 ? { ...row, id } : row))],
  ])('a list with %s does not permit a new key', async (_lab, _what, change) => {
    const lab = await refusedAfterCharge(402)
    lab.sandbox.addOrder({ metadata: { externalOrderId: 'old' } })
    lab.fault({ type: 'mutateList', change }, 'always', 'listOrders')
    const error = await failure(lab.client({ fetch: retrying(lab) }).orders.create(REQUEST))
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'unknown' })
    lab.charged()
  })

  it('a doubtful order in the list does not hide the order, which is returned whole', async () => {
    const lab = await refusedAfterCharge(402, { behaviour: { ordering: 'newest' } })
    lab.sandbox.addOrder({ quantity: 9, metadata: { externalOrderId: 'r1' } })
    const client = lab.client({ fetch: retrying(lab), remember: 'id' })
    const id = lab.sandbox.ledger[0]?.orderId
    expect(await client.orders.create(REQUEST)).toMatchObject({ id, metadata: REQUEST.metadata })
  })

  it('a list that is too long is not read again at once', async () => {
    const lab = await refusedAfterCharge(402)
    const listed = (id: string) => ({ id, metadata: { externalOrderId: id } })
    const rows = Array.from({ length: 30_000 }, (_, row) => listed(`o${row}`))
    lab.fault({ type: 'mutateList', change: () => rows }, 'always', 'listOrders')
    const { orders } = lab.client({ fetch: retrying(lab), totalTimeout: 60 * MINUTE })
    for (let call = 0; call < 2; call++)
      expect(await failure(orders.create(REQUEST))).toMatchObject({ code: 'unresolved_order' })
    expect(lab.sandbox.requests.filter(({ method }) => method === 'GET')).toHaveLength(200)
  })

  it.each([
    ['the first read of the list misses it', 1],
    ['it is pushed on by as many new orders as two pages have', 6],
  ])('an order is found although %s', async (_lab, _what, at) => {
    const lab = await refusedAfterCharge(402, { behaviour: { ordering: 'newest' } })
    for (let old = 0; old < 400; old++) lab.sandbox.addOrder({ metadata: { externalOrderId: `old${old}` } })
    let page = 0
    const change: FaultListChange = (rows) => {
      if (++page !== at) return rows
      if (at === 1) return []
      for (let more = 0; more < 90; more++) lab.sandbox.addOrder({ metadata: { externalOrderId: `${more}` } })
      return rows
    }
    lab.fault({ type: 'mutateList', change }, 'always', 'listOrders')
    const placed = await lab.client({ fetch: retrying(lab) }).orders.create(REQUEST)
    expect(placed.id).toBe(lab.charged())
  })

  it.each<[string, string, (offset: number) => object]>([
    ['shows none of them', 'announces more', () => ({ items: [], total: 1, hasMore: true })],
    [
      'limits the offset',
      'the service repeats its rows',
      (offset) => ({ items: [{ id: offset < 40 ? `o${offset}` : 'last' }], total: 99, hasMore: true }),
    ],
  ])(
    'a list that announces more orders does not permit a new key: it %s',
    async (_lab, _what, problem, bodyAt) => {
      const lab = await refusedAfterCharge(402)
      const change = ({ url }: Request): Response =>
        Response.json(bodyAt(Number(new URL(url).searchParams.get('offset'))))
      const limited: typeof fetch = async (input, init) => {
        const request = new Request(input, init)
        return request.method === 'GET' ? change(request) : await lab.sandbox.fetch(request)
      }
      const { orders } = lab.client({ fetch: limited })
      const error = await failure(orders.create(REQUEST))
      expect(error).toMatchObject({ code: 'invalid_response', charged: 'unknown' })
      expect(error.message).toContain(problem)
      lab.charged()
    },
  )

  it.each(['300', '0, 12'])('a list from a cache does not permit a new key: Age %s', async (_lab, age) => {
    const lab = await refused()
    const cached: typeof fetch = async (...request) => {
      const response = await retrying(lab)(...request)
      return new Response(response.body, { status: response.status, headers: { age } })
    }
    const error = await failure(lab.client({ fetch: cached }).orders.create(FROM_SHOP))
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'unknown', status: 200 })
    expect(lab.posts).toHaveLength(1)
  })

  it('an API key in the listed order is neither stored nor returned', async () => {
    const lab = await refused()
    const { apiKey } = lab.sandbox
    lab.sandbox.addOrder(FROM_SHOP)
    const change = (rows: readonly object[]) => rows.map((row) => ({ ...row, createdBy: `Bearer ${apiKey}` }))
    lab.fault({ type: 'mutateList', change }, 'always', 'listOrders')
    const found = await lab.client({ fetch: retrying(lab) }).orders.create(FROM_SHOP)
    expect(JSON.stringify([found, await lab.record('ref:r1')])).not.toContain(apiKey)
    expect(found).toHaveProperty('createdBy')
  })
})
