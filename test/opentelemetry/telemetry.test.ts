import { propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { ConfigurationError, type RecoverOptions } from 'customer-ordering-sdk'
import { type TelemetryOptions, telemetryHooks, traceHeaders } from 'customer-ordering-sdk/opentelemetry'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { failure, Lab, order } from '../support/lab.ts'
import { Collected } from './collected.ts'

const collected = new Collected()
const tracer = trace.getTracer('shop')
afterEach(() => collected.reset())

/** A lab whose client reports to OpenTelemetry. */
function shop() {
  const lab = new Lab()
  const { sandbox } = lab
  return {
    lab,
    sandbox,
    client: lab.client({ hooks: telemetryHooks({ baseUrl: sandbox.baseUrl }), maxRetries: 1 }),
  }
}

/** Runs the call under a span of the shop, as a server's instrumentation would start it. */
async function handle<T>(call: () => Promise<T>): Promise<T> {
  return await tracer.startActiveSpan('PUT /orders', async (span) => {
    try {
      return await call()
    } finally {
      span.end()
    }
  })
}

it("spans of a call have the shop's span as parent, one child for each request, and events for retries", async () => {
  const { lab, sandbox, client } = shop()
  lab.fault({ type: 'commitThenDrop' })
  const { id } = await handle(() => client.orders.create(order('cart-1')))

  const call = collected.tree('orders.create')
  expect(collected.tree('PUT /orders').children).toEqual([call.span])
  const { idempotencyKey } = sandbox.expectChargedOnce('cart-1')
  expect(call.span.attributes).toEqual({
    'ordering.operation': 'orders.create',
    'ordering.attempts': 2,
    'ordering.charged': 'yes',
    'ordering.external_order_id': 'cart-1',
    'ordering.idempotency_key': idempotencyKey,
    'ordering.order_id': id,
    'ordering.remembered': true,
  })
  expect(call.span.events.map(({ name, attributes }) => [name, attributes])).toEqual([
    ['retry', { 'ordering.attempt': 1, 'ordering.reason': 'now', 'ordering.delay_ms': 0 }],
  ])
  expect(call.span.status.code).toBe(SpanStatusCode.UNSET)

  const request = {
    'server.address': 'sandbox.customer-ordering.test',
    'server.port': 443,
    'http.request.method': 'POST',
    'url.full': 'https://sandbox.customer-ordering.test/v1/orders',
    'url.template': '/v1/orders',
    'ordering.operation': 'orders.create',
    'ordering.idempotency_key': idempotencyKey,
  }
  const [lost, placed] = call.children
  expect(lost?.attributes).toEqual({ ...request, 'error.type': 'ECONNRESET' })
  expect(lost?.status.code).toBe(SpanStatusCode.ERROR)
  expect(placed?.attributes).toEqual({
    ...request,
    'http.request.resend_count': 1,
    'http.response.status_code': 201,
    'ordering.service_request_id': expect.any(String),
  })
  expect(placed?.status.code).toBe(SpanStatusCode.UNSET)
  const named = call.children.map(({ name, kind }) => [name, kind])
  expect(named).toEqual(Array(2).fill(['POST /v1/orders', SpanKind.CLIENT]))
})

it('spans of requests are named by path templates, whatever the ids', async () => {
  const { client } = shop()
  const { id } = await client.orders.create(order('cart'))
  await client.orders.retrieve(id)
  await client.orders.list()
  await client.services.list()
  await client.services.retrieve('50% off').catch(() => {})
  await client.balance.retrieve()
  await client.request({ method: 'GET', path: '/v1/refunds/ref_1' }).catch(() => {})
  const requests = collected.spans.filter(({ kind }) => kind === SpanKind.CLIENT)
  expect(requests.map(({ name, attributes }) => [name, attributes['url.template']])).toEqual([
    ['POST /v1/orders', '/v1/orders'],
    ['GET /v1/orders/{orderId}', '/v1/orders/{orderId}'],
    ['GET /v1/orders', '/v1/orders'],
    ['GET /v1/services', '/v1/services'],
    ['GET /v1/services/{serviceId}', '/v1/services/{serviceId}'],
    ['GET /v1/balance', '/v1/balance'],
    ['GET', undefined],
  ])
})

it('spans name the called address, even with a path and a port', async () => {
  const baseUrl = 'https://proxy.test:8443/shop/'
  const called: string[] = []
  const hooks = telemetryHooks({ baseUrl: new URL(baseUrl) })
  const fetch: typeof globalThis.fetch = async (input, init) => {
    called.push(new Request(input, init).url)
    return Response.json({ amount: 1, currency: 'EUR' })
  }
  const client = new Lab().client({ baseUrl, fetch, hooks })
  await client.balance.retrieve()
  const { name, attributes } = collected.tree('balance.retrieve').children[0] ?? {}
  expect(name).toBe('GET /shop/v1/balance')
  expect(called).toEqual([attributes?.['url.full']])
  expect([attributes?.['server.address'], attributes?.['server.port']]).toEqual(['proxy.test', 8443])
})

it('the span of an order in doubt is an error that states it, and its recovery is one trace', async () => {
  const { lab, sandbox, client } = shop()
  lab.fault({ type: 'commitThenDrop' }, 2)
  await failure(client.orders.create(order('cart-2')))
  const failed = collected.tree('orders.create').span
  expect(failed.status).toEqual({ code: SpanStatusCode.ERROR, message: 'connection' })
  expect(failed.attributes).toMatchObject({ 'ordering.charged': 'unknown', 'error.type': 'connection' })
  collected.reset()

  await client.orders.recover({ takeOver: true })
  const { span, children } = collected.tree('orders.recover')
  expect(children.map(({ name }) => name)).toEqual(['POST /v1/orders'])
  expect(span.attributes).toMatchObject({ 'ordering.recovery': 'created', 'ordering.charged': 'yes' })
  const { idempotencyKey } = sandbox.expectChargedOnce('cart-2')
  for (const { attributes } of [span, ...children])
    expect(attributes['ordering.idempotency_key']).toBe(idempotencyKey)
})

it('spans end when calls are aborted, time out or find the client closed', async () => {
  const { sandbox, client } = shop()
  let stalled = () => {}
  const when = () => stalled() === undefined
  sandbox.faults.add({ match: { when }, times: 'always', action: { type: 'stall', commit: true } })

  const aborted = new AbortController()
  stalled = () => aborted.abort()
  const aborting = client.orders.create(order('cart-abort'), { signal: aborted.signal })
  await expect(aborting).rejects.toMatchObject({ code: 'aborted' })
  expect(collected.tree('orders.create').span.attributes['error.type']).toBe('aborted')

  stalled = () => {}
  await expect(client.balance.retrieve({ totalTimeout: 20 })).rejects.toMatchObject({ code: 'timeout' })

  const stopped = new AbortController()
  stalled = () => stopped.abort()
  const options: RecoverOptions = { takeOver: true, signal: stopped.signal }
  await client.orders.recover(options).catch(() => {})
  expect(collected.tree('orders.recover').children).toHaveLength(1)

  let closed: Promise<void> | undefined
  stalled = () => {
    closed = client.close()
  }
  const closing = client.orders.create(order('cart-close'), { totalTimeout: 50 })
  await expect(closing).rejects.toMatchObject({ charged: 'unknown' })
  await closed
  await client.balance.retrieve().catch(() => {})
})

it('a remembered order has one span without requests', async () => {
  const { client } = shop()
  await client.orders.create(order('cart-3'))
  collected.reset()
  await handle(() => client.orders.create(order('cart-3')))
  const { span, children } = collected.tree('orders.create')
  expect(children).toEqual([])
  expect(span.attributes['ordering.attempts']).toBe(0)
  expect(collected.tree('PUT /orders').children).toEqual([span])
})

it('spans of concurrent calls have their own parents', async () => {
  const { client } = shop()
  await Promise.all(
    ['cart-4', 'cart-5'].map((reference) => handle(() => client.orders.create(order(reference)))),
  )
  const of = (name: string) => collected.spans.filter((span) => span.name === name)
  const parents = of('orders.create').map(({ parentSpanContext }) => parentSpanContext?.spanId)
  const shops = of('PUT /orders').map((span) => span.spanContext().spanId)
  expect(parents.toSorted()).toEqual(shops.toSorted())
})

it('traceHeaders() sends the span to the service', async () => {
  const { lab, sandbox, client } = shop()
  lab.fault({ type: 'commitThenDrop' })
  await handle(() => client.orders.create(order('cart-6'), { headers: traceHeaders() }))
  const { traceId, spanId } = collected.tree('PUT /orders').span.spanContext()
  expect(sandbox.requests.map(({ headers }) => headers['traceparent'])).toEqual(
    Array(2).fill(`00-${traceId}-${spanId}-01`),
  )
})

it('traceHeaders() omits a header that a visitor made invalid', () => {
  const inject = vi.spyOn(propagation, 'inject').mockImplementation((_context, headers) => {
    Object.assign(Object(headers), { traceparent: '00-1', tracestate: '', baggage: 'a=b;c=é' })
  })
  onTestFinished(() => inject.mockRestore())
  expect(traceHeaders()).toEqual({ traceparent: '00-1' })
})

it('spans contain no API key, no target and no amount', async () => {
  const { sandbox, client } = shop()
  await client.orders.create({ ...order('cart-7'), target: '@ada-lovelace' })
  await client.balance.retrieve()
  sandbox.revokeApiKey(sandbox.apiKey)
  await client.balance.retrieve().catch(() => {})
  const exported = collected.spans.map(({ name, attributes, events, status }) =>
    JSON.stringify({ name, attributes, events, status }),
  )
  expect(exported).toHaveLength(6)
  for (const secret of [sandbox.apiKey, 'Bearer', 'ada-lovelace', '250'])
    expect(exported.join()).not.toContain(secret)
})

it('metrics of requests, retries and outcomes have few labels', async () => {
  await collected.numbers('')
  const { lab, client } = shop()
  lab.fault({ type: 'drop' })
  for (const reference of ['cart-8', 'cart-9']) await client.orders.create(order(reference))
  await client.services.retrieve('svc_none').catch(() => {})
  expect(await collected.numbers('ordering.calls')).toEqual([
    [{ 'ordering.operation': 'orders.create', 'ordering.charged': 'yes', 'ordering.remembered': true }, 2],
    [{ 'ordering.operation': 'services.retrieve', 'error.type': 'not_found' }, 1],
  ])

  lab.fault({ type: 'drop' })
  await client.orders.create(order('cart-10'))
  expect(await collected.numbers('ordering.retries')).toEqual([
    [{ 'ordering.operation': 'orders.create', 'ordering.reason': 'now' }, 1],
  ])

  await client.services.retrieve('svc_none').catch(() => {})
  expect(await collected.numbers('http.client.request.duration')).toMatchObject([
    [
      {
        'server.address': 'sandbox.customer-ordering.test',
        'server.port': 443,
        'http.request.method': 'GET',
        'url.template': '/v1/services/{serviceId}',
        'http.response.status_code': 404,
        'error.type': '404',
      },
      { count: 1 },
    ],
  ])
})

it('metrics of a recovery report the outcome of the orders', async () => {
  const { lab, client } = shop()
  lab.fault({ type: 'drop' }, 2)
  await client.orders.create(order('lost')).catch(() => {})
  await collected.numbers('')
  await client.orders.recover()
  expect(await collected.numbers('ordering.calls')).toMatchObject([
    [{ 'ordering.operation': 'orders.recover', 'ordering.recovery': 'created' }, 1],
  ])
})

describe('telemetryHooks', () => {
  const baseUrl = 'https://a.b'
  it.each<[string, object]>([
    ['baseUrl', {}],
    ['baseUrl', { baseUrl: 'shop' }],
    ['tracerProvider', { baseUrl, tracerProvider: tracer }],
    ['meterProvider', { baseUrl, meterProvider: {} }],
    ['baseURL', { baseURL: baseUrl }],
  ])('telemetryHooks rejects the option %s of %o', (name, options) => {
    const make = () => telemetryHooks(options as TelemetryOptions)
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(`option ${name} `)
  })

  it('telemetryHooks accepts providers other than the global ones', async () => {
    const lab = new Lab()
    const started: string[] = []
    const tracerProvider = {
      getTracer: () => ({
        ...tracer,
        startSpan: (name: string) => {
          started.push(name)
          return tracer.startSpan('elsewhere')
        },
        startActiveSpan: tracer.startActiveSpan.bind(tracer),
      }),
    }
    const hooks = telemetryHooks({ baseUrl: lab.sandbox.baseUrl, tracerProvider })
    await lab.client({ hooks }).balance.retrieve()
    expect(started).toEqual(['balance.retrieve', 'GET /v1/balance'])
  })
})
