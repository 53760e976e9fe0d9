import {
  ConnectionError,
  InvalidRequestError,
  InvalidResponseError,
  type RawRequest,
  responseInfo,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import { expect } from 'vitest'
import { it } from '../../support/history.ts'
import { failure, type Lab } from '../../support/lab.ts'

const BALANCE = { method: 'GET', path: '/v1/balance' } as const
const POST = { method: 'POST', path: '/v1/x', body: {} } as const
const cents: StandardSchemaV1<unknown, { readonly cents: number }> = {
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
/** Every request is answered with 200 and this body. */
const answers = (lab: Lab, body = '{}'): unknown =>
  lab.fault({ type: 'bytes', body, commit: false }, 'always')

it('client.request sends method, path, query and canonical JSON, with the headers of client and call', async (lab) => {
  answers(lab, '{"amount":5}')
  const client = lab.client({ defaultHeaders: { 'X-Team': 'shop', 'X-A': 'client' } })
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
  expect(responseInfo(result)).toMatchObject({ status: 200, requestId: expect.any(String), attempts: 1 })
  const headers = { 'x-team': 'shop', 'x-a': 'call', 'content-type': 'application/json' }
  expect(lab.sandbox.requests).toMatchObject([
    {
      method: 'POST',
      path: '/v1/orders/ord_1/refunds?dry=true&n=5&q=a+b',
      body: '{"a":1,"b":[1,{"c":"x","d":null}]}',
      headers: { ...headers, 'idempotency-key': 'key-1' },
      apiKeyId: expect.any(String),
    },
  ])
})

it("client.request returns the schema's output, or rejects with the schema's issues", async (lab) => {
  const client = lab.client()
  expect(await client.request({ ...BALANCE, schema: cents })).toEqual({ cents: 1_000_000 })
  answers(lab)
  const error = await failure(client.request({ ...BALANCE, schema: cents }))
  expect(error).toBeInstanceOf(InvalidResponseError)
  expect(error).toMatchObject({ charged: 'no', issues: [{ path: '', message: 'no amount' }] })
})

it('client.request returns undefined for a response without a body', async (lab) => {
  const client = lab.client({ fetch: async () => new Response(null, { status: 204 }) })
  expect(await client.request({ method: 'DELETE', path: '/v1/x' })).toBeUndefined()
  expect(await client.request({ method: 'HEAD', path: '/v1/x' })).toBeUndefined()
})

it('client.request keeps the path of the base URL and a trailing slash', async (lab) => {
  const urls: string[] = []
  const fetch = async (input: RequestInfo | URL): Promise<Response> => {
    urls.push(new Request(input).url)
    return Response.json({})
  }
  const client = lab.client({ baseUrl: 'https://api.example.com/base/', fetch })
  for (const path of [
    ...['/', '/v1/x/', '/v1/%C3%BC', '/v1/a%20b', '/v1/a%2Fb', '/v1/..a', '/v1/a:b@c;d,e~f'],
    ...['/v1/a.b/.c.'],
  ]) {
    await client.request({ method: 'GET', path })
    expect(urls.pop()).toBe(`https://api.example.com/base${path}`)
  }
})

const PATHS: readonly unknown[] = [
  ...['', 'v1/x', '//evil.example.com/x', '/\\evil.example.com', '/v1//x', '/v1/../x', '/v1/.'],
  ...['/..', '/v1/%2e%2e/x', '/v1/%2E./x', '/v1/%252e%252e/x', '/v1/a%2F..%2Fb', '/v1/a%2f%2fb'],
  ...['/v1/a%5c..%5cb', '/v1/..%09/x', '/v1/..%0a', '/v1/..%0A/x', '/v1/..%20', '/v1/..%20/x'],
  ...['/v1/..%00', '/v1/%00', '/v1/a%7f', '/v1/..%3fx', '/v1/..%23/x', '/v1/%2e%2e%2f%25zz'],
  ...['/%2Fevil.example.com', '/v1/x?a=1', '/v1/x#a', '/v1/a b', '/v1/a\nb', '/v1/ü', '/v1/%'],
  ...['/v1/%zz', 'https://evil.example.com/', 5, null, undefined],
]
const GET = { method: 'GET', path: '/x' } as const
it.each<[path: string, request: object | null | undefined]>([
  ...PATHS.map((path): [string, object] => ['path', { method: 'GET', path }]),
  ['method', undefined],
  ['', null],
  ['method', { path: '/x' }],
  ['method', { ...GET, method: 'get' }],
  ['method', { ...GET, method: 'TRACE' }],
  ['body', { ...GET, body: {} }],
  ['body', { ...GET, method: 'HEAD', body: null }],
  ['body.a', { ...POST, body: { a: 1n } }],
  ['body', { ...POST, body: Number.NaN }],
  ['query', { ...GET, query: 'a=1' }],
  ['query', { ...GET, query: null }],
  ['query', { ...GET, query: new URLSearchParams('a=1') }],
  ['query.a', { ...GET, query: { a: {} } }],
  ['query.a', { ...GET, query: { a: Number.NaN } }],
  ['schema', { ...GET, schema: {} }],
  ['idempotencyKey', { ...GET, idempotencyKey: 'a b' }],
  ['headers', { ...GET, headers: {} }],
])('client.request names the wrong %s of %o, and sends nothing', async (lab, path, request) => {
  const error = await failure(lab.client().request(request as RawRequest))
  expect(error).toBeInstanceOf(InvalidRequestError)
  expect(error).toMatchObject({ issues: [{ path }] })
  expect(lab.sandbox.requests).toHaveLength(0)
})

it('client.request reads its arguments before the first await', async (lab) => {
  const request = { method: 'POST' as const, path: '/v1/x', body: { a: 1 } }
  answers(lab)
  const pending = lab.client({ apiKey: async () => lab.sandbox.apiKey }).request(request)
  request.body.a = 2
  request.path = '/v1/y'
  await pending
  expect(lab.sandbox.requests).toMatchObject([{ body: '{"a":1}', path: '/v1/x' }])
})

it.each([
  ['GET', {}, 2],
  ['HEAD', {}, 2],
  ['PUT', {}, 2],
  ['DELETE', {}, 2],
  ['POST', {}, 1],
  ['PATCH', {}, 1],
  ['POST', { idempotencyKey: 'key-1' }, 2],
  ['PATCH', { idempotencyKey: 'key-1' }, 2],
] as const)('client.request tries a failed %s with %j %i times', async (lab, method, key, attempts) => {
  lab.fault({ type: 'status', status: 503 }, 'always')
  const charged = method === 'GET' || method === 'HEAD' ? 'no' : 'unknown'
  const error = await failure(lab.client({ maxRetries: 1 }).request({ method, path: '/v1/x', ...key }))
  expect(error).toMatchObject({ attempts, charged, ...key })
  expect(lab.sandbox.requests).toHaveLength(attempts)
})

it('client.request does not repeat a POST whose connection was lost, and reports an unknown outcome', async (lab) => {
  lab.fault({ type: 'drop' })
  const error = await failure(lab.client().request(POST))
  expect(error).toBeInstanceOf(ConnectionError)
  expect(error).toMatchObject({ charged: 'unknown', attempts: 1 })
  expect(lab.sandbox.requests).toHaveLength(1)
})

it('client.request repeats a POST if the response asks for a later retry', async (lab) => {
  lab.fault({ type: 'status', status: 429 })
  answers(lab)
  expect(await lab.client().request(POST)).toEqual({})
  expect(lab.sandbox.requests).toHaveLength(2)
})
