import {
  ConnectionError,
  InvalidRequestError,
  InvalidResponseError,
  responseInfo,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import { expect, it } from 'vitest'
import { API_KEY, clientOver, json, problem } from '../../support/client.ts'
import { Lab } from '../../support/lab.ts'

const refund: StandardSchemaV1<unknown, { readonly cents: number }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => {
      const { amount } = value as { amount?: unknown }
      return typeof amount === 'number'
        ? { value: { cents: amount } }
        : { issues: [{ message: 'no amount' }] }
    },
  },
}

it('client.request sends method, path, query and canonical JSON, with the headers of client and call', async () => {
  const { client, requests } = clientOver(() => json({ amount: 5 }, 201, { 'x-request-id': 'req_9' }), {
    defaultHeaders: { 'X-Team': 'shop', 'X-A': 'client' },
  })
  const result = await client.request(
    {
      method: 'POST',
      path: '/v1/orders/ord_1/refunds',
      query: { dry: true, n: 5, q: 'a b', none: undefined },
      body: { b: [1, { d: null, c: 'x' }], a: 1 },
      idempotencyKey: 'key-1',
    },
    { headers: { 'x-a': 'call' } },
  )
  expect(result).toEqual({ amount: 5 })
  expect(responseInfo(result)).toMatchObject({ status: 201, requestId: 'req_9', attempts: 1 })
  const [sent] = requests
  expect(sent?.url.href).toBe('https://api.example.com/v1/orders/ord_1/refunds?dry=true&n=5&q=a+b')
  expect(sent).toMatchObject({ method: 'POST', body: '{"a":1,"b":[1,{"c":"x","d":null}]}' })
  expect(Object.fromEntries(sent?.headers ?? [])).toMatchObject({
    'x-team': 'shop',
    'x-a': 'call',
    authorization: `Bearer ${API_KEY}`,
    'content-type': 'application/json',
    'idempotency-key': 'key-1',
  })
})

it("client.request returns the schema's output, or rejects with the schema's issues", async () => {
  const { client } = clientOver(({ url }) => (url.pathname === '/good' ? { amount: 5 } : {}))
  expect(await client.request({ method: 'GET', path: '/good', schema: refund })).toEqual({ cents: 5 })
  const bad = client.request({ method: 'GET', path: '/bad', schema: refund })
  await expect(bad).rejects.toThrow(InvalidResponseError)
  await expect(bad).rejects.toMatchObject({ charged: 'no', issues: [{ path: '', message: 'no amount' }] })
})

it('client.request returns undefined for a response without a body', async () => {
  const { client } = clientOver(() => new Response(null, { status: 204 }))
  expect(await client.request({ method: 'DELETE', path: '/v1/x' })).toBeUndefined()
  expect(await client.request({ method: 'HEAD', path: '/v1/x' })).toBeUndefined()
})

it('client.request keeps the path of the base URL and a trailing slash', async () => {
  const { client, requests } = clientOver(() => ({}), { baseUrl: 'https://api.example.com/base/' })
  for (const path of [
    ...['/', '/v1/x/', '/v1/%C3%BC', '/v1/a%20b', '/v1/a%2Fb', '/v1/..a', '/v1/a:b@c;d,e~f'],
    ...['/v1/a.b/.c.'],
  ]) {
    await client.request({ method: 'GET', path })
    expect(requests.at(-1)?.url.href).toBe(`https://api.example.com/base${path}`)
  }
})

it.each([
  ...['', 'v1/x', '//evil.example.com/x', '/\\evil.example.com', '/v1//x', '/v1/../x', '/v1/.'],
  ...['/..', '/v1/%2e%2e/x', '/v1/%2E./x', '/v1/%252e%252e/x', '/v1/a%2F..%2Fb', '/v1/a%2f%2fb'],
  ...['/v1/a%5c..%5cb', '/v1/..%09/x', '/v1/..%0a', '/v1/..%0A/x', '/v1/..%20', '/v1/..%20/x'],
  ...['/v1/..%00', '/v1/%00', '/v1/a%7f', '/v1/..%3fx', '/v1/..%23/x', '/v1/%2e%2e%2f%25zz'],
  ...['/%2Fevil.example.com', '/v1/x?a=1', '/v1/x#a', '/v1/a b', '/v1/a\nb', '/v1/ü', '/v1/%'],
  ...['/v1/%zz', 'https://evil.example.com/', 5, null, undefined],
])('client.request rejects the path %j before anything is sent', async (path) => {
  const { client, requests } = clientOver(() => ({}))
  const pending = client.request({ method: 'GET', path: path as string })
  await expect(pending).rejects.toThrow(InvalidRequestError)
  await expect(pending).rejects.toMatchObject({ issues: [{ path: 'path' }] })
  expect(requests).toHaveLength(0)
})

it.each<[object | null | undefined, string]>([
  [undefined, 'method'],
  [null, ''],
  [{ path: '/x' }, 'method'],
  [{ path: '/x', method: 'get' }, 'method'],
  [{ path: '/x', method: 'TRACE' }, 'method'],
  [{ path: '/x', method: 'GET', body: {} }, 'body'],
  [{ path: '/x', method: 'HEAD', body: null }, 'body'],
  [{ path: '/x', method: 'POST', body: { a: 1n } }, 'body.a'],
  [{ path: '/x', method: 'POST', body: Number.NaN }, 'body'],
  [{ path: '/x', method: 'GET', query: 'a=1' }, 'query'],
  [{ path: '/x', method: 'GET', query: null }, 'query'],
  [{ path: '/x', method: 'GET', query: new URLSearchParams('a=1') }, 'query'],
  [{ path: '/x', method: 'GET', query: { a: {} } }, 'query.a'],
  [{ path: '/x', method: 'GET', query: { a: Number.NaN } }, 'query.a'],
  [{ path: '/x', method: 'GET', schema: {} }, 'schema'],
  [{ path: '/x', method: 'GET', idempotencyKey: 'a b' }, 'idempotencyKey'],
  [{ path: '/x', method: 'GET', headers: {} }, 'headers'],
])('client.request rejects %o, naming %s', async (request, path) => {
  const { client, requests } = clientOver(() => ({}))
  const pending = client.request(request as never)
  await expect(pending).rejects.toThrow(InvalidRequestError)
  await expect(pending).rejects.toMatchObject({ issues: [{ path }] })
  expect(requests).toHaveLength(0)
})

it('client.request reads its arguments before the first await', async () => {
  const { client, requests } = clientOver(() => ({}), { apiKey: async () => API_KEY })
  const request = { method: 'POST' as const, path: '/v1/x', body: { a: 1 } }
  const pending = client.request(request)
  request.body.a = 2
  request.path = '/v1/y'
  await pending
  expect(requests[0]).toMatchObject({ body: '{"a":1}' })
  expect(requests[0]?.url.pathname).toBe('/v1/x')
})

it.each([
  ['GET', false, 2],
  ['HEAD', false, 2],
  ['PUT', false, 2],
  ['DELETE', false, 2],
  ['POST', false, 1],
  ['PATCH', false, 1],
  ['POST', true, 2],
  ['PATCH', true, 2],
] as const)(
  'client.request repeats a failed %s (with a key: %s) %i times in all',
  async (method, withKey, attempts) => {
    const { client, requests } = clientOver(() => problem(503), { maxRetries: 1 })
    const charged = method === 'GET' || method === 'HEAD' ? 'no' : 'unknown'
    const request = { method, path: '/v1/x', ...(withKey ? { idempotencyKey: 'key-1' } : {}) }
    await expect(client.request(request)).rejects.toMatchObject({
      attempts,
      charged,
      ...(withKey ? { idempotencyKey: 'key-1' } : {}),
    })
    expect(requests).toHaveLength(attempts)
  },
)

it('client.request does not repeat a POST whose connection was lost, and reports an unknown outcome', async () => {
  const { client, requests } = clientOver(() => {
    throw new TypeError('fetch failed')
  })
  const pending = client.request({ method: 'POST', path: '/v1/x', body: {} })
  await expect(pending).rejects.toThrow(ConnectionError)
  await expect(pending).rejects.toMatchObject({ charged: 'unknown', attempts: 1 })
  expect(requests).toHaveLength(1)
})

it('client.request repeats a POST if the response asks for a later retry', async () => {
  const { client, requests } = clientOver((_request, count) => (count === 1 ? problem(429) : {}))
  expect(await client.request({ method: 'POST', path: '/v1/x', body: {} })).toEqual({})
  expect(requests).toHaveLength(2)
})

it('client.request reaches the endpoints of a sandbox', async () => {
  const lab = new Lab()
  const client = lab.client()
  expect(await client.request({ method: 'GET', path: '/v1/balance', schema: refund })).toEqual({
    cents: 1_000_000,
  })
  await expect(client.request({ method: 'GET', path: '/v1/nothing' })).rejects.toMatchObject({
    code: 'not_found',
  })
})
