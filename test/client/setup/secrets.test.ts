import { inspect } from 'node:util'
import {
  type ApiError,
  type ClientOptions,
  ConfigurationError,
  CustomerOrderingClient,
  CustomerOrderingError,
  MemoryStore,
  responseInfo,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { all, errorOf } from '../../support/calls.ts'
import { sample } from '../../support/effort.ts'
import { leaks as leaksOf } from '../../support/leaks.ts'
import { rawServer } from '../../support/raw-server.ts'
import { fakeRuntime } from '../../support/runtime.ts'
import { writesNoted } from '../../support/stores.ts'

/** An API key that every encoding changes, and that resembles nothing else. */
const CANARY = 'sk_live+"CANARY\\/4eC39HqLyjWDarjtT1zdp7dc=='

/** Reports each place where the key leaks, and its form. */
const leaks = (values: Readonly<Record<string, unknown>>): string[] => leaksOf(CANARY, values)

/** A client that collects all its outputs. */
function observed(fetch: ((request: Request) => Promise<unknown>) | undefined, options: ClientOptions = {}) {
  const runtime = fetch === undefined ? undefined : fakeRuntime({ auto: true })
  const events: unknown[] = []
  const lines: unknown[] = []
  const consoles = (['log', 'info', 'warn', 'error', 'debug'] as const).map((name) =>
    vi.spyOn(console, name).mockImplementation((...args) => void lines.push(args)),
  )
  const tell = (event: unknown): void => void events.push(event)
  const log = (...line: unknown[]): void => void lines.push(line)
  const written: unknown[] = []
  const memory = new MemoryStore()
  const store = writesNoted(memory, (row) => written.push(row))
  const client = new CustomerOrderingClient(
    {
      baseUrl: 'https://api.example.com',
      apiKey: CANARY,
      account: 'shop',
      store,
      maxRetries: 1,
      hooks: { onRequest: tell, onResponse: tell, onRetry: tell, onSettled: tell },
      logger: { debug: log, info: log, warn: log, error: log },
      logLevel: 'debug',
      ...(fetch === undefined
        ? {}
        : { fetch: (input, init) => fetch(new Request(input, init)) as Promise<Response> }),
      ...options,
    },
    runtime ?? {},
  )
  const everything = async (): Promise<Record<string, unknown>> => {
    const rows = await all(client.orders.remembered({ since: 0 }))
    expect(events.length + lines.length).toBeGreaterThan(0)
    const parts = { 'parts of the client': { ...client }, consoles: consoles.length }
    return { client, ...parts, events, lines, store: memory, rows, written }
  }
  /** The call must fail with this error, and reveal the key nowhere. */
  const failsWithout = async (call: Promise<unknown>, like: object = {}): Promise<void> => {
    const error = await errorOf(call)
    expect(error).toBeInstanceOf(CustomerOrderingError)
    expect(error).toMatchObject(like)
    const { serverMessage } = error as ApiError
    expect(leaks({ error, serverMessage, ...(await everything()) })).toEqual([])
  }
  return { client, everything, failsWithout, runtime }
}
afterEach(() => {
  vi.restoreAllMocks()
})

type Client = CustomerOrderingClient
const request = { serviceId: 'svc_1', target: '@x', quantity: 1, metadata: { externalOrderId: 'ref-1' } }
const calls: [string, (client: Client) => Promise<unknown>][] = [
  ['orders.create', (client) => client.orders.create(request)],
  ['orders.create without a reference', (client) => client.orders.create({ ...request, metadata: {} })],
  ['orders.retrieve', (client) => client.orders.retrieve('ord_1')],
  ['orders.list', (client) => client.orders.list().toArray({ max: 5 })],
  ['services.retrieve', (client) => client.services.retrieve('svc_1')],
  ['balance.retrieve', (client) => client.balance.retrieve()],
  ['request', (client) => client.request({ method: 'POST', path: '/v1/refunds', body: {}, schema: picky })],
]

/** A schema whose issues quote the invalid value, as those of some libraries do. */
const picky: StandardSchemaV1 = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => ({
      issues: [{ message: `was ${JSON.stringify(value)}`, path: Object.values(Object(value)) as string[] }],
    }),
  },
}

/** Places where a server may echo the Authorization header. */
const echoes: [string, (authorization: string) => Response][] = []
const echo = (name: string, respond: (authorization: string) => Response): void =>
  void echoes.push([name, respond])
for (const status of [200, 201, 202, 400, 401, 402, 403, 404, 409, 418, 422, 429, 500, 503]) {
  const spellings: [string, (text: string) => string][] = [
    ['as it is', (text) => text],
    ['without its scheme', (text) => text.replace('Bearer ', '')],
    ['in base64', (text) => btoa(text)],
    ['in base64 for URLs', (text) => Buffer.from(text).toString('base64url')],
    ['percent-encoded', encodeURIComponent],
    ['in hexadecimal', (text) => Buffer.from(text).toString('hex')],
    ['in big hexadecimal', (text) => Buffer.from(text).toString('hex').toUpperCase()],
    ['as JSON in JSON', (text) => JSON.stringify(text).slice(1, -1)],
    ['as JSON with escaped slashes', (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/')],
  ]
  for (const [how, spell] of spellings) {
    echo(`${status} with the key ${how} everywhere`, (authorization) => {
      const text = spell(authorization)
      const code = text.replace('Bearer ', 'Bearer:')
      const body = {
        code,
        message: `The key ${text} is wrong.`,
        error: { code, reason: code, detail: text },
        errors: [{ code, message: text }],
        type: `https://errors.example.com/${code}`,
        title: text,
        status: text,
        amount: text,
        [text]: text,
      }
      return Response.json(body, { status, headers: headersWith(text) })
    })
  }
  echo(`${status} with a message that ends amid the key where it is truncated`, (authorization) =>
    Response.json({ message: `${'x'.repeat(470)}${authorization}` }, { status }),
  )
  echo(
    `${status} with the key in HTML`,
    (authorization) =>
      new Response(`<h1>${status}</h1><pre>${authorization}</pre>`, {
        status,
        headers: { 'content-type': 'text/html' },
      }),
  )
}
for (const status of [301, 302, 307]) {
  echo(`redirect ${status} to a place that names the key`, (authorization) => {
    const location = `https://elsewhere.example/?key=${encodeURIComponent(authorization)}`
    return new Response(authorization, { status, headers: { ...headersWith(authorization), location } })
  })
}
echo('a list of rows with the key', (authorization) =>
  Response.json([{ id: authorization, [authorization]: 1 }]),
)
echo('lists named by the key', (authorization) =>
  Response.json({ [authorization]: [], [`${authorization}2`]: [1] }),
)
echo('a body that ends amid the key', (authorization) => {
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(`{"code":"${authorization.slice(0, -3)}`))
      controller.error(new Error(`lost amid ${authorization}`))
    },
  })
  return new Response(stream, { status: 201 })
})

function headersWith(text: string): Record<string, string> {
  return {
    'x-request-id': text.replaceAll(' ', ''),
    'request-id': text,
    'x-echo': text,
    'retry-after': text,
    'idempotent-replayed': text,
    'set-cookie': `key=${text}`,
    'www-authenticate': `Bearer realm="${text}"`,
  }
}

describe.each(calls)('%s does not leak the API key', (_name, call) => {
  test.each(sample(echoes, 23))('no leak if a server responds %s', async (_what, respond) => {
    const { client, failsWithout } = observed(async ({ headers }) =>
      respond(headers.get('authorization') ?? ''),
    )
    await failsWithout(call(client))
  })

  const failed = (fields: object): Error => Object.assign(new Error('x'), fields)
  const thrown: [string, (text: string) => unknown][] = [
    ['an error with the key in its text', (text) => new TypeError(`${text} is an invalid header value`)],
    ['an error with the key as cause', (text) => new TypeError('fetch failed', { cause: new Error(text) })],
    ['an error with the request on it', (text) => failed({ request: { headers: { authorization: text } } })],
    ['an error named by the key', (text) => failed({ name: text, code: text, syscall: text })],
    [
      'an error named by the bare key',
      (text) => failed({ name: text.slice(7), code: text.slice(7), syscall: text.slice(7) }),
    ],
    ['many errors with the key', (text) => new AggregateError([new Error(text)], text)],
    ['the key itself', (text) => text],
    [
      'the request itself',
      (text) => new Request('https://api.example.com', { headers: { authorization: text } }),
    ],
  ]
  test.each(thrown)('no leak if fetch throws %s', async (_what, make) => {
    const { client, failsWithout } = observed(({ headers }) =>
      Promise.reject(make(headers.get('authorization') ?? '')),
    )
    await failsWithout(call(client), { code: 'connection' })
  })

  test('no leak if no response comes', async () => {
    const { client, failsWithout } = observed(() => new Promise(() => {}))
    await failsWithout(call(client), { code: 'timeout' })
  })

  test('no leak if the connection is reset', async () => {
    const server = await rawServer((socket) => socket.resetAndDestroy())
    const { client, failsWithout } = observed(undefined, { baseUrl: server.url })
    await failsWithout(call(client), { code: 'connection' })
    expect(server.requests[0]?.headers).toContainEqual(['authorization', `Bearer ${CANARY}`])
  })

  test('no leak if no server listens', async () => {
    const { client, failsWithout } = observed(undefined, { baseUrl: 'http://127.0.0.1:1', maxRetries: 0 })
    await failsWithout(call(client), { code: 'connection' })
  })
})

test.each([
  ['whole', { id: 'ord_1', status: 'pending', amount: 1 }],
  ['flawed', { id: 'ord_1', status: 'pending', amount: 'much' }],
  ['named by the key', { status: 'pending', amount: 1 }],
  ['named by the key and flawed', { status: 'pending' }],
])('no leak if the order in the response is %s and echoes the request', async (_what, order) => {
  const { client, everything } = observed(async ({ headers }) => {
    const authorization = headers.get('authorization') ?? ''
    const echoed = { authorization, headers: [{ authorization: btoa(authorization) }] }
    return Response.json({ id: authorization, ...order, echoed }, { status: 201 })
  })
  const told = await client.orders.create(request).catch((error: unknown) => error)
  const again = await client.orders.create(request).catch((error: unknown) => error)
  expect(inspect([told, again])).toMatch(/ord_1|\[redacted\]/)
  expect(leaks({ told, again, ...(await everything()) })).toEqual([])
})

describe.each([
  ['as it is', (text: string) => text],
  ['in base64', btoa],
  ['in base64 for URLs', (text: string) => Buffer.from(text).toString('base64url')],
  ['percent-encoded', encodeURIComponent],
])('a service whose every response contains the API key %s', (_how, spell) => {
  const CALL = { ...request, metadata: {} }
  const named = (externalOrderId: string) => ({ ...CALL, metadata: { externalOrderId } })

  /** A service that echoes the request in each order. The responses to some orders are lost. */
  function echoing() {
    const orders: { readonly id: string }[] = []
    return observed(async (input) => {
      const text = spell(input.headers.get('authorization') ?? '')
      const { pathname, searchParams } = new URL(input.url)
      const answer = (body: unknown, status = 200) =>
        Response.json(body, { status, headers: headersWith(text) })
      if (input.method === 'POST') {
        const { metadata } = JSON.parse(await input.text())
        const fields = { id: `ord_${orders.length}`, status: 'pending', amount: 1, metadata }
        const order = { ...fields, note: text, echoed: { [text]: [text] } }
        orders.push(order)
        if (metadata?.externalOrderId?.startsWith('lost-')) throw new TypeError(text)
        return answer(order, 201)
      }
      if (pathname !== '/v1/orders') return answer(orders.find(({ id }) => pathname.endsWith(`/${id}`)))
      const offset = Number(searchParams.get('offset'))
      return answer(orders.slice(offset, offset + Number(searchParams.get('limit') ?? 50)))
    })
  }

  test('no leak through placed, settled or remembered orders', async () => {
    const { client, everything, runtime } = echoing()
    const { orders } = client
    const create = await orders.create(named('r1'))
    const again = await orders.create(named('r1'))
    const createMany = await all(orders.createMany([named('r2'), named('lost-3'), named('lost-4')]))
    expect(createMany.filter((result) => 'order' in result)).toHaveLength(1)
    const unresolved = await all(orders.unresolved())
    expect(unresolved).toHaveLength(2)
    const resolve = await orders.resolve({ externalOrderId: 'lost-3' }, { as: 'created', orderId: 'ord_2' })
    expect(resolve).toMatchObject({ state: 'created' })
    // The lost order is too old to be sent again, and is looked up in the list.
    runtime?.jump(60 * 60_000)
    const recover = await all(orders.recover())
    expect(recover.map(({ outcome, order }) => [outcome, order?.amount])).toEqual([['created', 1]])
    const remembered = await all(orders.remembered({ since: 0 }))
    expect(remembered).toHaveLength(4)
    const info = responseInfo(create)
    const headers = JSON.stringify([...(info?.headers ?? [])])
    expect(headers).toContain('[redacted]')
    const values = { create, info, headers, again, createMany, unresolved, resolve, recover, remembered }
    expect(inspect(values, { depth: 9 })).toContain('[redacted]')
    expect(leaks({ ...values, ...(await everything()) })).toEqual([])
  })

  test('reads return the key as the service sent it, but it is neither remembered nor printed', async () => {
    const { client, everything } = echoing()
    await client.orders.create(named('r1'))
    const read: Readonly<Record<string, unknown>> = {
      list: await client.orders.list().toArray({ max: 1 }),
      retrieve: await client.orders.retrieve('ord_0'),
      waitFor: await client.orders.waitFor('ord_0', { until: () => true }),
      request: await client.request({ method: 'GET', path: '/v1/orders' }),
      reconcile: await all(client.orders.reconcile()),
    }
    for (const [name, value] of Object.entries(read)) expect(leaks({ [name]: value }), name).not.toEqual([])
    const headers = [...(responseInfo(read['retrieve'])?.headers ?? [])]
    expect(headers.length).toBeGreaterThan(0)
    expect(leaks({ headers, ...(await everything()) })).toEqual([])
  })
})

/** A client with these options is rejected, and the error does not quote the key. */
function isRejected(options: object): void {
  let error: unknown
  try {
    new CustomerOrderingClient({ baseUrl: 'https://api.example.com', ...options })
  } catch (caught) {
    error = caught
  }
  expect(error, inspect(options)).toBeInstanceOf(ConfigurationError)
  expect(leaks({ error })).toEqual([])
}

describe('an API key that no header can contain never reaches the platform', () => {
  const bad: [string, string][] = [
    ['a line break within', `${CANARY}\r\nx-evil: 1`],
    ['two line breaks at its end', `${CANARY}\n\n`],
    ['a line break at its beginning', `\n${CANARY}`],
    ['a carriage return', `${CANARY}\r`],
    ['a space', `${CANARY} `],
    ['a NUL', `${CANARY}\0`],
    ['letters beyond ASCII', `${CANARY}ключ`],
    ['too many letters', CANARY.repeat(200)],
  ]

  test.each(bad)('an API key with %s is rejected, as a literal or from the environment', (_what, apiKey) => {
    vi.stubEnv('CUSTOMER_ORDERING_API_KEY', apiKey.replaceAll('\0', ' '))
    const fetch = vi.fn<typeof globalThis.fetch>()
    for (const options of [{ apiKey }, {}]) isRejected({ fetch, ...options })
    vi.unstubAllEnvs()
    expect(fetch).not.toHaveBeenCalled()
  })

  test.each(bad)('an API key with %s is rejected if a function returns it', async (_what, apiKey) => {
    const fetch = vi.fn<typeof globalThis.fetch>()
    for (const source of [() => apiKey, async () => apiKey]) {
      const { client, failsWithout } = observed(fetch, { apiKey: source })
      for (const [, call] of calls) await failsWithout(call(client), { code: 'configuration', attempts: 0 })
    }
    expect(fetch).not.toHaveBeenCalled()
  })
})

test('rejected options are not quoted in errors', () => {
  const wrong: object[] = [
    { baseUrl: `https://user:${CANARY}@api.example.com` },
    { baseUrl: `https://api.example.com?key=${CANARY}` },
    { baseUrl: CANARY },
    { defaultHeaders: { authorization: `Bearer ${CANARY}` } },
    { defaultHeaders: { 'x-key': `${CANARY}\n` } },
    { account: { secret: CANARY } },
    { timeout: CANARY },
    { apiKey: { key: CANARY } },
    { logLevel: CANARY },
  ]
  for (const options of wrong) isRejected({ apiKey: CANARY, ...options })
})
