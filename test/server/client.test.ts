import { createServer } from 'node:https'
import {
  type ClientOptions,
  CustomerOrderingClient,
  MemoryStore,
  type Order,
  responseInfo,
} from 'customer-ordering-sdk'
import { createSandbox, type FaultAction, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, onTestFinished, test } from 'vitest'
import { kyTransport } from '../../src/http/ky-transport.ts'
import { platformRuntime, type Runtime } from '../../src/runtime.ts'
import { type SandboxServer, serveSandbox } from '../../src/sandbox/http/server.ts'
import { all } from '../support/all.ts'
import { AUTHORITY, KEY } from '../support/certificates.ts'
import { listening } from '../support/raw-http.ts'
import { transportUnderTest } from '../support/transport-under-test.ts'

/** The longest wait that passes at once here: polls and backoffs, but no time limit of an attempt, a call or a store. */
const PASSES = 5000

/**
 * Real sockets know no other time than the real one, so waits between attempts pass at once, and the time of an attempt
 * runs out when the test says so: as soon as the server has fallen silent.
 */
function impatient(): Runtime & { readonly timeOut: () => void } {
  const attempts = new Set<() => void>()
  return {
    ...platformRuntime,
    random: () => 0,
    setTimer(callback, milliseconds) {
      if (milliseconds <= PASSES) {
        const timer = setImmediate(callback)
        return () => clearImmediate(timer)
      }
      if (milliseconds === 30_000) attempts.add(callback)
      return () => attempts.delete(callback)
    },
    timeOut() {
      for (const end of attempts) end()
    },
  }
}

interface Served {
  readonly sandbox: Sandbox
  readonly server: SandboxServer
  connect(options?: ClientOptions): CustomerOrderingClient
}

async function served(): Promise<Served> {
  const sandbox = createSandbox()
  const runtime = impatient()
  const server = await serveSandbox(sandbox, {
    onRequest: ({ delivery }) => {
      if (delivery === 'stall' || delivery === 'stallBody') runtime.timeOut()
    },
  })
  onTestFinished(() => server.close())
  const connect = (options: ClientOptions = {}): CustomerOrderingClient =>
    new CustomerOrderingClient(
      {
        baseUrl: server.url,
        apiKey: sandbox.apiKey,
        account: 'shop',
        transport: transportUnderTest(),
        ...options,
      },
      runtime,
    )
  return { sandbox, server, connect }
}

const request = (externalOrderId: string) => ({
  serviceId: 'svc_standard',
  target: '@someone',
  quantity: 2,
  metadata: { externalOrderId, note: 'ünï 注文' },
})

describe('over real sockets, an order is placed once in spite of', () => {
  const faults: [what: string, action: FaultAction][] = [
    ['a reset before the commit', { type: 'drop' }],
    ['a reset after the commit', { type: 'commitThenDrop' }],
    ['a server that dies halfway', { type: 'crash' }],
    ['half a body', { type: 'cutBody' }],
    ['half a body that ends as if it were whole', { type: 'cutBody', cleanly: true }],
    ['no byte of the body', { type: 'cutBody', after: 0 }],
    ['no answer', { type: 'stall' }],
    ['no answer after the commit', { type: 'stall', commit: true }],
    ['a body that stalls', { type: 'stallBody' }],
    ['an earlier request that is still running', { type: 'inProgress' }],
    ['an earlier request that is still running and bought', { type: 'inProgress', commit: true }],
    ['a success that is something else', { type: 'bytes', body: '<html>' }],
    ['a success without a body', { type: 'bytes', body: '' }],
    ['a gzip bomb', { type: 'hugeBody', bytes: 1024 ** 3, gzip: true }],
    ['status 500 after the commit', { type: 'status', status: 500, commit: true }],
    ['status 502 of a proxy', { type: 'status', status: 502, html: true }],
    ['status 503 with Retry-After', { type: 'retryAfter', value: '1', status: 503 }],
    ['status 429 with Retry-After', { type: 'retryAfter', value: '1' }],
  ]

  test.each(faults)('%s', async (_what, action) => {
    const { sandbox, connect } = await served()
    sandbox.faults.add({ match: { operation: 'createOrder' }, action })
    const order = await connect().orders.create(request('ref-1'))
    expect(sandbox.expectChargedOnce('ref-1').orderId).toBe(order.id)
    expect(sandbox.requests).toHaveLength(2)
    expect(new Set(sandbox.requests.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    expect(new Set(sandbox.requests.map(({ body }) => body)).size).toBe(1)
    expect(responseInfo(order)).toMatchObject({ attempts: 2, status: 201, requestId: expect.any(String) })
  })

  test.each(faults)('%s, after connections were used before', async (_what, action) => {
    const { sandbox, connect } = await served()
    const client = connect()
    for (let count = 0; count < 3; count++) await client.balance.retrieve()
    sandbox.faults.add({ match: { operation: 'createOrder' }, action })
    const order = await client.orders.create(request('ref-1'))
    expect(sandbox.expectChargedOnce('ref-1').orderId).toBe(order.id)
  })

  test('many faults at once, with many orders at once', async () => {
    const { sandbox, connect } = await served()
    const actions: FaultAction[] = [
      { type: 'drop' },
      { type: 'commitThenDrop' },
      { type: 'status', status: 500, commit: true },
      { type: 'inProgress' },
    ]
    for (const action of actions) {
      sandbox.faults.add({ match: { operation: 'createOrder' }, probability: 0.1, times: 'always', action })
    }
    const client = connect({ maxRetries: 30 })
    const references = Array.from({ length: 100 }, (_, index) => `ref-${index}`)
    const orders: Order[] = await Promise.all(
      references.map((reference) => client.orders.create(request(reference))),
    )
    for (const [index, reference] of references.entries()) {
      expect(sandbox.expectChargedOnce(reference).orderId).toBe(orders[index]?.id)
    }
    sandbox.expectCharges(100)
    expect(sandbox.requests.length).toBeGreaterThan(100)
  })
})

test('over real sockets, everything can be read', async () => {
  const { sandbox, connect } = await served()
  const client = connect()
  const order = await client.orders.create(request('ref-1'))
  await expect(client.orders.retrieve(order.id)).resolves.toEqual(order)
  await expect(client.orders.list().toArray({ max: 9 })).resolves.toEqual([order])
  const services = await client.services.list({ limit: 2 }).toArray({ max: 100 })
  expect(services.map(({ productId }) => productId)).toEqual(
    sandbox.services().flatMap(({ productId, published }) => (published ? [productId] : [])),
  )
  await expect(client.services.retrieve('svc_standard')).resolves.toMatchObject({ productId: 'svc_standard' })
  const { wallet } = sandbox.customer(sandbox.customerId)
  await expect(client.balance.retrieve()).resolves.toEqual(wallet)
})

describe('an order that surely was not sent', () => {
  test('because nobody listens was not charged, and is placed with the same key later', async () => {
    const { sandbox, server, connect } = await served()
    const store = new MemoryStore()
    const reachable = connect({ store, server: 'service' })
    const gone = await serveSandbox(createSandbox())
    await gone.close()
    const unreachable = connect({ store, server: 'service', baseUrl: gone.url })
    await expect(unreachable.orders.create(request('ref-1'))).rejects.toMatchObject({
      code: 'connection',
      charged: 'no',
      attempts: 5,
      message: expect.stringContaining('could not connect, so nothing was sent (ECONNREFUSED connect)'),
    })
    const [record] = await all(reachable.orders.remembered({ externalOrderId: 'ref-1' }))
    expect(record).toMatchObject({ state: 'rejected', ambiguous: false })
    await reachable.orders.create(request('ref-1'))
    expect(sandbox.requests.map(({ idempotencyKey }) => idempotencyKey)).toEqual([record?.key])
    expect(server.url).not.toBe(gone.url)
  })

  test('because the server cannot be trusted was not charged, and is not tried again', async () => {
    const server = createServer({ key: KEY, cert: AUTHORITY }, (_request, response) => response.end('{}'))
    const port = await listening(server)
    onTestFinished(() => void server.close())
    const { connect } = await served()
    const client = connect({ baseUrl: `https://127.0.0.1:${port}` })
    await expect(client.orders.create(request('ref-1'))).rejects.toMatchObject({
      code: 'connection',
      charged: 'no',
      attempts: 1,
      message: expect.stringContaining("did not trust the server's certificate"),
    })
  })

  test('is not believed of a fetch that the caller brought', async () => {
    const { connect } = await served()
    const gone = await serveSandbox(createSandbox())
    await gone.close()
    const transport = kyTransport((...args) => fetch(...args))
    const client = connect({ baseUrl: gone.url, transport, maxRetries: 0 })
    await expect(client.orders.create(request('ref-1'))).rejects.toMatchObject({
      code: 'connection',
      charged: 'unknown',
    })
  })
})

test('an order whose server went away amid it is found when the server is back', async () => {
  const { sandbox, server, connect } = await served()
  sandbox.faults.add({ times: 'always', action: { type: 'commitThenDrop' } })
  const client = connect({ maxRetries: 1 })
  await expect(client.orders.create(request('ref-1'))).rejects.toMatchObject({
    charged: 'unknown',
    attempts: 2,
  })
  sandbox.faults.clear()
  const outcomes = await all(client.orders.recover())
  expect(outcomes).toMatchObject([{ outcome: 'created', order: { id: sandbox.ledger[0]?.orderId } }])
  sandbox.expectChargedOnce('ref-1')
  expect(server.port).toBeGreaterThan(0)
})
