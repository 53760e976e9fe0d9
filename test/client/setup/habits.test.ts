import {
  type ClientOptions,
  type CreateOrderRequest,
  CustomerOrderingClient,
  type ListParams,
} from 'customer-ordering-sdk'
import { expect } from 'vitest'
import { it } from '../../support/history.ts'
import { failure, order } from '../../support/lab.ts'

/** Names that Stripe, OpenAI, Octokit and Notion use, and what the error advises. */
const client: Readonly<Record<string, string>> = {
  apiKey: 'token auth authToken accessToken bearerToken secretKey key',
  baseUrl: 'host hostname endpoint url baseURL base_url',
  maxRetries: 'maxNetworkRetries max_retries retries retry numRetries maxAttempts',
  timeout: 'timeoutMs timeout_ms',
  defaultHeaders: 'headers userAgent',
  'use fetch or transport': 'httpAgent httpsAgent agent proxy dispatcher fetchOptions httpClient',
  'none is needed': 'apiVersion notionVersion version',
  'the API key implies it': 'stripeAccount organization organizationId project',
  'see client.request()': 'defaultQuery',
  'only create() takes it': 'idempotencyKey',
}
const create: typeof client = {
  idempotencyKey: 'idempotency_key key idempotencykey',
  maxRetries: 'maxNetworkRetries max_retries retries',
  headers: 'header',
  'use fetch or transport': 'httpAgent fetchOptions fetch',
  'the API key implies it': 'stripeAccount',
  'none is needed': 'apiVersion',
  'see client.request()': 'query params',
  'use client.withOptions()': 'apiKey store account hooks',
}
const retrieve: typeof client = { 'only create() takes it': 'idempotencyKey idempotency_key' }
const list: typeof client = {
  limit: 'per_page perPage page_size pageSize count',
  'iterate, or use offset':
    'page cursor starting_after startingAfter ending_before start_cursor pageToken after before skip',
}

const pairs = (table: typeof client): [name: string, advice: string][] =>
  Object.entries(table).flatMap(([ours, theirs]) =>
    theirs
      .split(' ')
      .map((name): [string, string] => [name, ours.includes(' ') ? ours : `did you mean ${ours}?`]),
  )

it.each(pairs(client))('the client option %s is answered with the name of ours: %s', (lab, name, advice) => {
  const options: ClientOptions = { ...{ [name]: 'x' } }
  expect(() => lab.client(options)).toThrow(`option ${name} is not known (${advice})`)
})

it.each(
  Object.entries({ create, retrieve }).flatMap(([method, table]) =>
    pairs(table).map(([name, advice]) => [method, name, advice] as const),
  ),
)('orders.%s answers the option %s with the name of ours: %s', async (lab, method, name, advice) => {
  const options = { [name]: 'x' }
  const error = await failure(
    method === 'create' ? lab.create(order('r1'), options) : lab.orders.retrieve('o', options),
  )
  expect(error).toMatchObject({ code: 'invalid_request', issues: [{ path: name }] })
  expect(error).toHaveProperty('message', `${name} is not known (${advice}). Nothing was sent.`)
})

it.each(pairs(list))('a list answers the parameter %s with the name of ours: %s', (lab, name, advice) => {
  const params: ListParams = { ...{ [name]: 2 } }
  expect(() => lab.orders.list(params)).toThrow(`${name} is not known (${advice})`)
})

it.each(['productId', 'product_id'])(
  'an order with the field %s in place of serviceId is refused before anything is sent',
  async (lab, name) => {
    const { serviceId, ...others } = order('r1')
    const request = { ...others, ...{ [name]: serviceId } } as CreateOrderRequest
    const issues = [{ path: name, message: 'must be named serviceId' }]
    expect(await failure(lab.create(request))).toMatchObject({ charged: 'no', issues })
    expect(lab.posts).toEqual([])
  },
)

it('a name of another SDK whose value is undefined counts as absent', async ({ orders }) => {
  const absent: object = { signal: undefined, timeout: undefined, page: undefined }
  await orders.list(absent)
  await orders.reconcile(absent)
  const misspelt: object = { limt: undefined }
  expect(() => orders.list(misspelt)).toThrow('limt is not known')
})

it('metadata, and an order that has a serviceId, may have any of these names', async (lab) => {
  const metadata = { externalOrderId: 'r2', productId: 'p', amount: 5, page: 1, token: 't' }
  await lab.create({ ...order('r2', { metadata }), ...{ productId: 'p', productIds: ['p'] } })
  lab.charged('r2')
})

it('a key in place of the options is answered with the name of the option', () => {
  // @ts-expect-error the options are an object
  expect(() => new CustomerOrderingClient('key')).toThrow(
    'Client options must be an object such as { apiKey }.',
  )
})

it.each([
  ['list', 'autoPagingToArray', 'use toArray({ max })'],
  ['list', 'autoPagingEach', 'use for await'],
  ['list', 'withResponse', 'pass the awaited result to responseInfo()'],
  ['recover', 'asResponse', 'pass the awaited result to responseInfo()'],
] as const)('orders.%s().%s() throws an error that names ours', ({ orders }, method, name, advice) => {
  const call: { readonly [Name in typeof name]?: (options: object) => unknown } = Object(orders[method]())
  expect(() => call[name]?.({ limit: 10 })).toThrow(`There is no ${name}(): ${advice}. Nothing was sent.`)
})

it.each(['get', 'search', 'del', 'delete', 'cancel', 'update'] as const)(
  '%s() of orders, services and balance throws an error that names ours',
  (lab, name) => {
    const { orders, services, balance } = lab.client()
    const advice = name === 'get' ? 'use retrieve()' : 'the API has no such endpoint'
    for (const resource of [orders, services, balance]) {
      const typed: { readonly [Name in typeof name]?: (id: string) => unknown } = Object(resource)
      expect(() => typed[name]?.('id')).toThrow(`There is no ${name}(): ${advice}. Nothing was sent.`)
    }
  },
)

it('none of these methods is shown when a client or a list is printed', ({ orders }) => {
  for (const shown of [orders, orders.list()])
    expect(Object.getOwnPropertyNames(shown).join()).not.toMatch(/autoPaging|search/)
})
