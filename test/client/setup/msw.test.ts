import { CustomerOrderingClient, responseInfo } from 'customer-ordering-sdk'
import { HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

/**
 * The client in an application's own tests: msw mocks each endpoint directly from the API document,
 * without the sandbox.
 */
const BASE = 'https://api.example.com'
const server = setupServer()
beforeAll(() => server.listen({ onUnhandledFrame: 'error' }))
afterEach(() => server.resetHandlers())
afterAll(() => server.close())

let client: CustomerOrderingClient
beforeEach(() => {
  // No backoff, because msw works in real time.
  const options = { baseUrl: BASE, apiKey: 'test-key', account: 'shop' }
  client = new CustomerOrderingClient(options, { random: () => 0 })
})

const order = { id: 'ord_1', status: 'pending', amount: 500 }
const newOrder = {
  serviceId: 'svc_1',
  target: '@someone',
  quantity: 2,
  metadata: { externalOrderId: 'ref-1' },
}

/** The requests that the mocked server received. */
const seen: { method: string; url: string; headers: Record<string, string>; body: string }[] = []
const capture = async (request: Request): Promise<void> => {
  const { method, url, headers } = request
  seen.push({ method, url, headers: Object.fromEntries(headers), body: await request.clone().text() })
}
beforeEach(() => {
  seen.length = 0
})

describe('POST /v1/orders', () => {
  test('POST /v1/orders creates an order', async () => {
    server.use(
      http.post(`${BASE}/v1/orders`, async ({ request }) => {
        await capture(request)
        return HttpResponse.json(order, { status: 201, headers: { 'x-request-id': 'req_1' } })
      }),
    )
    const created = await client.orders.create(newOrder)
    expect(created).toEqual(order)
    expect(seen).toHaveLength(1)
    expect(seen[0]).toMatchObject({
      method: 'POST',
      headers: {
        authorization: 'Bearer test-key',
        accept: 'application/json',
        'content-type': 'application/json',
        'idempotency-key': expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
    })
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual(newOrder)
    expect(responseInfo(created)).toMatchObject({
      status: 201,
      requestId: 'req_1',
      attempts: 1,
      idempotencyKey: seen[0]?.headers['idempotency-key'],
      supportReference: { orderId: 'ord_1', externalOrderId: 'ref-1' },
    })
  })

  test('POST /v1/orders is repeated with the same key and body after a network failure, which proves nothing', async () => {
    let failures = 2
    server.use(
      http.post(`${BASE}/v1/orders`, async ({ request }) => {
        await capture(request)
        return failures-- > 0 ? HttpResponse.error() : HttpResponse.json(order, { status: 201 })
      }),
    )
    await expect(client.orders.create(newOrder)).resolves.toEqual(order)
    expect(seen).toHaveLength(3)
    expect(new Set(seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    expect(new Set(seen.map(({ body }) => body)).size).toBe(1)
  })
})
