import { type CreateOrderRequest, CustomerOrderingClient } from 'customer-ordering-sdk'
import { expect } from 'vitest'
import { it } from '../../support/history.ts'
import { failure, order } from '../../support/lab.ts'

/** Names that Stripe, OpenAI, Octokit and Notion use, and the name of ours in the error; '' if none is needed. */
const client: Readonly<Record<string, string>> = {
  apiKey: 'token auth authToken accessToken bearerToken secretKey key',
  baseUrl: 'host hostname endpoint url baseURL base_url',
  maxRetries: 'maxNetworkRetries max_retries retries retry numRetries maxAttempts',
  timeout: 'timeoutMs timeout_ms',
  defaultHeaders: 'headers userAgent',
  'fetch or transport': 'httpAgent httpsAgent agent proxy dispatcher fetchOptions httpClient',
  '': 'apiVersion notionVersion version stripeAccount organization organizationId project',
  'client.request()': 'defaultQuery',
  'create()': 'idempotencyKey',
}
const create: typeof client = {
  idempotencyKey: 'idempotency_key key idempotencykey',
  maxRetries: 'maxNetworkRetries max_retries retries',
  headers: 'header',
  'fetch or transport': 'httpAgent fetchOptions fetch',
  '': 'stripeAccount apiVersion',
  'client.request()': 'query params',
  'client.withOptions()': 'apiKey store account hooks',
}
const retrieve: typeof client = { 'create()': 'idempotencyKey idempotency_key' }
const list: typeof client = {
  limit: 'per_page perPage page_size pageSize count',
  offset: 'page cursor starting_after startingAfter ending_before start_cursor pageToken after before skip',
}

const pairs = (table: typeof client): [name: string, ours: string][] =>
  Object.entries(table).flatMap(([ours, theirs]) =>
    theirs.split(' ').map((name): [string, string] => [name, ours]),
  )
const methods = Object.entries({ create, retrieve, list }).flatMap(([method, table]) =>
  pairs(table).map(([name, ours]) => [method, name, ours] as const),
)

it.each(pairs(client))('the option %s is answered with the name of ours: %s', async (lab, name, ours) => {
  const error = await failure((async () => lab.client({ ...{ [name]: 'x' } }))())
  expect(error).toMatchObject({ code: 'configuration', message: expect.stringContaining(` ${name} `) })
  expect(error.message).toContain(ours)
})

it.each(methods)('orders.%s answers %s with the name of ours: %s', async (lab, method, name, ours) => {
  const names: object = { [name]: 'x' }
  const read = async () => (method === 'list' ? lab.orders.list(names) : lab.orders.retrieve('o', names))
  const error = await failure(method === 'create' ? lab.create(order('r1'), names) : read())
  expect(error).toMatchObject({ code: 'invalid_request', issues: [{ path: name }] })
  expect(error.message).toContain(ours)
  expect(lab.sandbox.requests).toEqual([])
})

it.each(['productId', 'product_id'])('an order with %s for serviceId is not sent', async (lab, name) => {
  const { serviceId, ...others } = order('r1')
  const request = { ...others, ...{ [name]: serviceId } } as CreateOrderRequest
  const issues = [{ path: name, message: expect.stringContaining('serviceId') }]
  expect(await failure(lab.create(request))).toMatchObject({ charged: 'no', issues })
  expect(lab.posts).toEqual([])
})

it('a name of another SDK whose value is undefined counts as absent', async ({ orders }) => {
  const absent: object = { signal: undefined, timeout: undefined, page: undefined }
  await orders.list(absent)
  await orders.reconcile(absent)
  const misspelt: object = { limt: undefined }
  expect(() => orders.list(misspelt)).toThrow('limt')
})

it('metadata, and an order that has a serviceId, may have any of these names', async (lab) => {
  const metadata = { externalOrderId: 'r2', productId: 'p', amount: 5, page: 1, token: 't' }
  await lab.create({ ...order('r2', { metadata }), ...{ productId: 'p', productIds: ['p'] } })
  lab.charged('r2')
})

it('a key in place of the options is answered with the name of the option', () => {
  // @ts-expect-error the options are an object
  expect(() => new CustomerOrderingClient('key')).toThrow('{ apiKey }')
})

it('orders.recover().asResponse() throws an error that names ours', ({ orders }) => {
  const call: { readonly asResponse?: (options: object) => unknown } = Object(orders.recover())
  expect(() => call.asResponse?.({ limit: 10 })).toThrow('responseInfo()')
})

it.each(['get', 'search', 'del', 'delete', 'cancel', 'update'] as const)(
  '%s() of orders, services and balance throws an error that names ours',
  (lab, name) => {
    const { orders, services, balance } = lab.client()
    const ours = name === 'get' ? 'retrieve()' : `${name}()`
    for (const resource of [orders, services, balance]) {
      const typed: { readonly [Name in typeof name]?: (id: string) => unknown } = Object(resource)
      expect(() => typed[name]?.('id')).toThrow(ours)
    }
  },
)

it('none of these methods is shown when a client or a list is printed', ({ orders }) => {
  for (const shown of [orders, orders.list()])
    expect(Object.getOwnPropertyNames(shown).join()).not.toMatch(/autoPaging|search/)
})
