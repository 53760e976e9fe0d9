/** Real OpenTelemetry, exporting to memory: what a collector would be sent of orders that go well, badly and twice. */
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace'
import {
  CustomerOrderingClient,
  MemoryStore,
  type OrderStore,
  type RecoverOptions,
} from 'customer-ordering-sdk'
import { createSandbox, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { startTelemetry } from './setup.ts'
import { telemetryHooks, traceHeaders } from './telemetry.ts'

const spans = new InMemorySpanExporter()
const numbers = new InMemoryMetricExporter(AggregationTemporality.DELTA)
const reader = new PeriodicExportingMetricReader({ exporter: numbers, exportIntervalMillis: 3_600_000 })
/** Hands on what ended, and remembers what did not. */
const toMemory = new SimpleSpanProcessor({ exporter: spans })
const unended = new Set<string>()
const telemetry = startTelemetry({
  serviceName: 'shop',
  spanProcessor: {
    onStart: (span) => void unended.add(span.spanContext().spanId),
    onEnd: (span) => {
      unended.delete(span.spanContext().spanId)
      toMemory.onEnd(span)
    },
    forceFlush: () => toMemory.forceFlush(),
    shutdown: () => toMemory.shutdown(),
  },
  reader,
})
const tracer = trace.getTracer('shop')

afterEach(() => {
  spans.reset()
  assert.deepEqual([...unended], [], 'every span that began has ended')
})

const order = (externalOrderId: string) => ({
  serviceId: 'svc_standard',
  target: '@ada-lovelace',
  quantity: 1,
  metadata: { externalOrderId },
})

function clientOf(sandbox: Sandbox, store: OrderStore = new MemoryStore()): CustomerOrderingClient {
  const { baseUrl, apiKey, fetch } = sandbox
  const hooks = telemetryHooks(baseUrl)
  return new CustomerOrderingClient({
    baseUrl,
    apiKey,
    fetch,
    account: 'shop-eu',
    store,
    hooks,
    maxRetries: 1,
  })
}

/** Runs the call under a span of the shop's own, as a server's instrumentation would open it. */
async function handle<T>(call: () => Promise<T>, name = 'PUT /orders'): Promise<T> {
  return await tracer.startActiveSpan(name, async (span) => {
    try {
      return await call()
    } finally {
      span.end()
    }
  })
}

/** Settles what is open, under a span as a program would open it around the loop. */
async function recoverAll(client: CustomerOrderingClient, options: RecoverOptions = {}): Promise<void> {
  await handle(async () => {
    for await (const _outcome of client.orders.recover({ takeOver: true, ...options }));
  }, 'recovery')
}

/** What was exported: the only span of that name with its children. */
function tree(name: string): { readonly span: ReadableSpan; readonly children: readonly ReadableSpan[] } {
  const [span, ...others] = spans.getFinishedSpans().filter((candidate) => candidate.name === name)
  if (span === undefined) throw new Error(`there is no span ${name}`)
  assert.deepEqual(others, [])
  const { spanId, traceId } = span.spanContext()
  const children = spans
    .getFinishedSpans()
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === spanId)
  for (const child of children) assert.equal(child.spanContext().traceId, traceId)
  return { span, children }
}

test('a call is a span below that of the shop, with a span for each request and an event for each retry', async () => {
  const sandbox = createSandbox()
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  const client = clientOf(sandbox)
  const { id } = await handle(() => client.orders.create(order('cart-1')))

  const shop = tree('PUT /orders')
  const call = tree('orders.create')
  assert.deepEqual(shop.children, [call.span])
  const { idempotencyKey } = sandbox.expectChargedOnce('cart-1')
  assert.deepEqual(call.span.attributes, {
    'ordering.operation': 'orders.create',
    'ordering.attempts': 2,
    'ordering.charged': 'yes',
    'ordering.external_order_id': 'cart-1',
    'ordering.idempotency_key': idempotencyKey,
    'ordering.order_id': id,
    'ordering.remembered': true,
  })
  assert.deepEqual(
    call.span.events.map(({ name, attributes }) => [name, attributes]),
    [['retry', { 'ordering.attempt': 1, 'ordering.reason': 'now', 'ordering.delay_ms': 0 }]],
  )
  assert.equal(call.span.status.code, SpanStatusCode.UNSET)

  const request = {
    'server.address': 'sandbox.customer-ordering.test',
    'server.port': 443,
    'http.request.method': 'POST',
    'url.full': 'https://sandbox.customer-ordering.test/v1/orders',
    'ordering.operation': 'orders.create',
    'ordering.idempotency_key': idempotencyKey,
  }
  const [lost, answered] = call.children
  assert.deepEqual(lost?.attributes, { ...request, 'error.type': 'ECONNRESET' })
  assert.equal(lost?.status.code, SpanStatusCode.ERROR)
  const requestId = answered?.attributes['ordering.service_request_id']
  assert.equal(typeof requestId, 'string')
  assert.deepEqual(answered?.attributes, {
    ...request,
    'http.request.resend_count': 1,
    'http.response.status_code': 201,
    'ordering.service_request_id': requestId,
  })
  assert.equal(answered?.status.code, SpanStatusCode.UNSET)
  assert.deepEqual(
    call.children.map(({ name, kind }) => [name, kind]),
    [
      ['POST', SpanKind.CLIENT],
      ['POST', SpanKind.CLIENT],
    ],
  )
})

test('an order in doubt is an error that says so, and its recovery is a span of its own', async () => {
  const sandbox = createSandbox()
  sandbox.faults.add({ match: { operation: 'createOrder' }, times: 2, action: { type: 'commitThenDrop' } })
  const store = new MemoryStore()
  await handle(() => clientOf(sandbox, store).orders.create(order('cart-2'))).catch(() => {})
  const failed = tree('orders.create').span
  assert.deepEqual(failed.status, { code: SpanStatusCode.ERROR, message: 'connection' })
  assert.equal(failed.attributes['ordering.charged'], 'unknown')
  assert.equal(failed.attributes['error.type'], 'connection')
  spans.reset()

  await recoverAll(clientOf(sandbox, store))
  const { children } = tree('recovery')
  const [request, recovered] = children
  assert.deepEqual(
    children.map(({ name }) => name),
    ['POST', 'orders.recover'],
  )
  assert.equal(recovered?.attributes['ordering.recovery'], 'created')
  assert.equal(recovered?.attributes['ordering.charged'], 'yes')
  const { idempotencyKey } = sandbox.expectChargedOnce('cart-2')
  for (const span of [request, recovered])
    assert.equal(span?.attributes['ordering.idempotency_key'], idempotencyKey)
})

test('spans of a recovery end when the order moves to its next key', async () => {
  const sandbox = createSandbox()
  const refuse = { type: 'status', status: 402, code: 'PAYMENT_REQUIRED' } as const
  sandbox.faults.add({ match: { operation: 'createOrder' }, times: 2, action: refuse })
  const client = clientOf(sandbox)
  await client.orders.create(order('cart-key')).catch(() => {})
  await client.orders.enqueue(order('cart-key'))
  spans.reset()
  await recoverAll(client)
  const [refused, bought, recovered] = tree('recovery').children
  assert.deepEqual(
    [refused, bought].map((span) => span?.attributes['http.response.status_code']),
    [402, 201],
  )
  const keys = [refused, bought, recovered].map((span) => span?.attributes['ordering.idempotency_key'])
  assert.notEqual(keys[0], keys[1])
  assert.equal(keys[1], keys[2])
  sandbox.expectChargedOnce('cart-key')
})

test('spans end when calls are aborted, run out of time or find the client closed', async () => {
  const sandbox = createSandbox()
  const store = new MemoryStore()
  const client = clientOf(sandbox, store)
  let stalled = () => {}
  sandbox.faults.add({
    match: { when: () => stalled() === undefined },
    times: 'always',
    action: { type: 'stall', commit: true },
  })

  const aborted = new AbortController()
  stalled = () => aborted.abort()
  const { signal } = aborted
  await assert.rejects(client.orders.create(order('cart-abort'), { signal }), { code: 'aborted' })
  assert.equal(tree('orders.create').span.attributes['error.type'], 'aborted')

  stalled = () => {}
  await assert.rejects(client.balance.retrieve({ totalTimeout: 20 }), { code: 'timeout' })

  const recovery = new AbortController()
  stalled = () => recovery.abort()
  await recoverAll(client, { signal: recovery.signal, replay: 'all' }).catch(() => {})
  assert.equal(tree('recovery').children[0]?.name, 'POST')

  let closed: Promise<void> | undefined
  stalled = () => {
    closed = client.close()
  }
  await assert.rejects(client.orders.create(order('cart-close'), { totalTimeout: 50 }), {
    charged: 'unknown',
  })
  await closed
  await client.balance.retrieve().catch(() => {})
})

test('spans of a recovery end when the store fails in the middle of it', async () => {
  const sandbox = createSandbox()
  sandbox.faults.add({ match: { operation: 'createOrder' }, times: 2, action: { type: 'commitThenDrop' } })
  const store = new MemoryStore()
  await clientOf(sandbox, store)
    .orders.create(order('cart-store'))
    .catch(() => {})
  spans.reset()
  let sent = 0
  sandbox.faults.add({ match: { when: () => ++sent > 0 }, times: 'always', action: { type: 'drop' } })
  const failing: OrderStore = {
    durability: 'memory',
    get: (...given) => (sent > 0 ? Promise.reject(new Error('gone')) : store.get(...given)),
    insert: (...given) => store.insert(...given),
    update: (...given) => (sent > 0 ? Promise.reject(new Error('gone')) : store.update(...given)),
    listOpen: (...given) => store.listOpen(...given),
    list: (...given) => store.list(...given),
    prune: (...given) => store.prune(...given),
    close: () => store.close(),
  }
  await recoverAll(clientOf(sandbox, failing)).catch(() => {})
  assert.equal(sent, 1)
  assert.equal(tree('recovery').children[0]?.attributes['error.type'], 'ECONNRESET')
})

test('a base URL with a path, a port and a slash at its end gives the address that was asked', async () => {
  const sandbox = createSandbox()
  const baseUrl = 'https://proxy.test:8443/shop/'
  const asked: string[] = []
  const client = new CustomerOrderingClient({
    baseUrl,
    apiKey: sandbox.apiKey,
    fetch: async (input, init) => {
      const request = new Request(input, init)
      asked.push(request.url)
      return await sandbox.fetch(
        new Request(request.url.replace('https://proxy.test:8443/shop', sandbox.baseUrl), request),
      )
    },
    hooks: telemetryHooks(baseUrl),
  })
  await client.balance.retrieve()
  const { attributes } = tree('GET').span
  assert.deepEqual(asked, ['https://proxy.test:8443/shop/v1/balance'])
  assert.deepEqual([attributes['url.full'], attributes['server.port']], [asked[0], 8443])
})

test('an order that is remembered is a span without requests', async () => {
  const sandbox = createSandbox()
  const client = clientOf(sandbox)
  await client.orders.create(order('cart-3'))
  spans.reset()
  await handle(() => client.orders.create(order('cart-3')))
  const { span, children } = tree('orders.create')
  assert.deepEqual(children, [])
  assert.equal(span.attributes['ordering.attempts'], 0)
  assert.deepEqual(tree('PUT /orders').children, [span])
})

test('calls at the same time each have their own parent', async () => {
  const sandbox = createSandbox()
  const client = clientOf(sandbox)
  await Promise.all(
    ['cart-4', 'cart-5'].map((reference) => handle(() => client.orders.create(order(reference)))),
  )
  const calls = spans.getFinishedSpans().filter(({ name }) => name === 'orders.create')
  const parents = calls.map(({ parentSpanContext }) => parentSpanContext?.spanId)
  const shops = spans.getFinishedSpans().filter(({ name }) => name === 'PUT /orders')
  assert.deepEqual(new Set(parents), new Set(shops.map((span) => span.spanContext().spanId)))
  assert.equal(new Set(parents).size, 2)
})

test('the service is told which span it works for', async () => {
  const sandbox = createSandbox()
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  const client = clientOf(sandbox)
  await handle(() => client.orders.create(order('cart-6'), { headers: traceHeaders() }))
  const { traceId, spanId } = tree('PUT /orders').span.spanContext()
  assert.deepEqual(
    sandbox.requests.map(({ headers }) => headers['traceparent']),
    Array(2).fill(`00-${traceId}-${spanId}-01`),
  )
})

test('no span holds an API key, a target or an amount', async () => {
  const sandbox = createSandbox()
  const client = clientOf(sandbox)
  await client.orders.create(order('cart-7'))
  await client.balance.retrieve()
  sandbox.revokeApiKey(sandbox.apiKey)
  await client.balance.retrieve().catch(() => {})
  const exported = spans
    .getFinishedSpans()
    .map(({ name, attributes, events, status }) => JSON.stringify({ name, attributes, events, status }))
  assert.equal(exported.length, 6)
  for (const text of exported)
    for (const secret of [sandbox.apiKey, 'Bearer', 'ada-lovelace', '250'])
      assert.ok(!text.includes(secret), text)
})

test('requests and endings are counted with few labels', async () => {
  await reader.forceFlush()
  numbers.reset()
  const sandbox = createSandbox()
  const client = clientOf(sandbox)
  for (const reference of ['cart-8', 'cart-9']) await client.orders.create(order(reference))
  await client.services.retrieve('svc_none').catch(() => {})
  await reader.forceFlush()

  const metrics = numbers
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
  const points = (name: string) =>
    metrics.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []
  assert.deepEqual(
    points('ordering.calls').map(({ attributes, value }) => [attributes, value]),
    [
      [{ 'ordering.operation': 'orders.create', 'ordering.charged': 'yes' }, 2],
      [{ 'ordering.operation': 'services.retrieve', 'error.type': 'not_found' }, 1],
    ],
  )
  assert.deepEqual(
    points('http.client.request.duration').map(({ attributes }) => attributes['http.response.status_code']),
    [201, 404],
  )
  await telemetry.shutdown()
})
