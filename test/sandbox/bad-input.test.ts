import { connect } from 'node:net'
import { createSandbox, type SandboxBehaviour } from 'customer-ordering-sdk/sandbox'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { effort } from '../support/effort.ts'
import { type Answered, caller, scene, validBody } from './caller.ts'
import { serving } from './serving.ts'

type ErrorShape = SandboxBehaviour['errorShape']

/** An error in each shape. */
const errorIn: {
  readonly [Shape in ErrorShape]: (code: string, message: unknown, status: number) => unknown
} = {
  bare: (code, message) => ({ code, message }),
  nested: (code, message) => ({ error: { code, message } }),
  errors: (code, message) => ({ errors: [{ code, message }] }),
  flat: (code, message) => ({ error: code, message }),
  problem: (code, detail, status) => ({ type: 'about:blank', title: code, status, detail, code }),
}
const shapes = Object.entries(errorIn)

// An option that is misspelt or ignored would test nothing.
test.each<[string, ...object[]]>([
  ['createSandbox: unknown field "prot"; known: baseUrl, seed', { prot: 4010 }],
  ['createSandbox.seed: expected an integer from 0', ...['x', -1, 1.5, Number.NaN].map((seed) => ({ seed }))],
  [
    'createSandbox.keepRequests: expected an integer from 1, or Infinity',
    ...['x', Number.NaN, -1, 0].map((keepRequests) => ({ keepRequests })),
  ],
  ['createSandbox.now: expected a function', { now: 5 }],
  ['createSandbox.sleep: expected a function', { sleep: 5 }],
  ['createSandbox.baseUrl: expected an absolute', { baseUrl: 'nope' }, { baseUrl: 'http://[' }],
  ['createSandbox.services: expected an array, got {}', { services: {} }],
  ['createSandbox.faults: expected an array, got {}', { faults: {} }],
  ['createSandbox: apiKey and organizationApiKey must differ', { apiKey: 'k', organizationApiKey: 'k' }],
  ['serveSandbox: unknown field "prot"; known: port, host', { prot: 4010 }],
  ['serveSandbox.port: expected an integer from 0 up to 65535', { port: 'abc' }, { port: 65_536 }],
])('wrong options are rejected with "options of %s"', async (message, ...given) => {
  const act = async (options: object): Promise<unknown> =>
    message.startsWith('serve') ? serveSandbox(createSandbox(), options) : createSandbox(options)
  for (const options of given) await expect(act(options)).rejects.toThrow(`options of ${message}`)
})

test('serveSandbox rejects a missing sandbox', async () => {
  const serving = Reflect.apply(serveSandbox, undefined, [])
  await expect(serving).rejects.toThrow('serveSandbox: expected a sandbox that createSandbox() returned')
})

test.each(shapes)('a wrong request gets its status and code in the shape %s', async (errorShape, shaped) => {
  const { sandbox, api } = scene({ behaviour: { errorShape: errorShape as ErrorShape } })
  const reader = sandbox.addApiKey({ customer: sandbox.customerId, permissions: ['orders:read'] })
  const unmapped = sandbox.addApiKey({ customer: sandbox.addCustomer({ wallet: null }) })
  sandbox.addService({ productId: 'dollars', amount: 1, currency: 'USD' })
  sandbox.addService({ productId: 'vast', amount: Number.MAX_SAFE_INTEGER })
  await api.order('used')
  sandbox.faults.add({ match: { idempotencyKey: 'running' }, action: { type: 'inProgress' } })

  const large = { ...validBody, metadata: { externalOrderId: 'x'.repeat(1024 * 1024) } }
  const order = (key: string | null, changes: object) => api.order(key, { ...validBody, ...changes })
  const cases: readonly [string, () => Promise<Answered>, status: number, code: string][] = [
    ['no JSON', () => api.order('k', '{'), 400, 'INVALID_REQUEST'],
    ['wrong type', () => order('k', { quantity: '2' }), 400, 'INVALID_REQUEST'],
    ['no Idempotency-Key', () => order(null, {}), 400, 'INVALID_REQUEST'],
    ['no API key', () => caller(sandbox, null).order('k'), 401, 'UNAUTHORIZED'],
    ['wallet too small', () => order('k', { serviceId: 'svc_premium' }), 402, 'PAYMENT_REQUIRED'],
    ['no permission', () => caller(sandbox, reader).order('k'), 403, 'FORBIDDEN'],
    ['no such service', () => order('k', { serviceId: 'svc_none' }), 404, 'SERVICE_NOT_FOUND'],
    ['no wallet', () => caller(sandbox, unmapped).order('k'), 404, 'CUSTOMER_MAPPING_NOT_FOUND'],
    ['no such order', () => api.get('/v1/orders/none'), 404, 'ORDER_NOT_FOUND'],
    ['no such path', () => api.get('/v3/orders'), 404, 'NOT_FOUND'],
    ['no such method', () => api.send('/v1/orders', { method: 'DELETE' }), 405, 'METHOD_NOT_ALLOWED'],
    ['another payload', () => order('used', { quantity: 3 }), 409, 'IDEMPOTENCY_CONFLICT'],
    ['in progress', () => order('running', {}), 409, 'IDEMPOTENCY_IN_PROGRESS'],
    ['too large', () => api.order('k', large), 413, 'PAYLOAD_TOO_LARGE'],
    ['below the minimum', () => order('k', { serviceId: 'svc_bulk' }), 422, 'QUANTITY_OUT_OF_RANGE'],
    ['above the maximum', () => order('k', { quantity: 1001 }), 422, 'QUANTITY_OUT_OF_RANGE'],
    ['beside the step', () => order('k', { serviceId: 'svc_bulk', quantity: 150 }), 422, 'QUANTITY_STEP'],
    [
      'on a step from zero',
      () => order('k', { serviceId: 'svc_offset', quantity: 10 }),
      422,
      'QUANTITY_STEP',
    ],
    ['another currency', () => order('k', { serviceId: 'dollars' }), 422, 'CURRENCY_MISMATCH'],
    ['an unsafe amount', () => order('k', { serviceId: 'vast' }), 422, 'AMOUNT_TOO_LARGE'],
    ['out of stock', () => order('k', { serviceId: 'svc_sold_out' }), 422, 'OUT_OF_STOCK'],
  ]
  for (const [name, send, status, code] of cases) {
    const message = name === 'no such order' ? 'Order not found.' : expect.any(String)
    const { headers, ...answer } = await send()
    expect(answer, name).toEqual({ status, body: shaped(code, message, status) })
    const kind = errorShape === 'problem' ? 'problem+' : ''
    expect(headers.get('content-type')).toBe(`application/${kind}json`)
  }
  sandbox.expectCharges(1)
  sandbox.faults.add({ action: { type: 'status', status: 503 } })
  const down = shaped('SERVICE_UNAVAILABLE', expect.any(String), 503)
  expect((await api.get('/v1/balance')).body).toEqual(down)
})

/** Everything that a socket receives in response to these bytes. */
function exchange(port: number, bytes: Uint8Array | string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes))
    let answer = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      answer += chunk
    })
    // A server may reset the connection after its limit.
    socket.on('error', () => {}).on('close', () => resolve(answer))
  })
}

async function serve() {
  const log: string[] = []
  const onNotice = (notice: string): void => void log.push(notice)
  return { ...(await serving({}, { control: true, onNotice })), log }
}

test.each([
  ['a path with a broken escape', 'GET /v1/orders/%zz', 404],
  ['a foreign absolute URL', 'GET http://[', 400],
  ['an unknown method', 'TRACE /v1/orders', 405],
  ['dots', 'GET //../v1/../..//x', 404],
  ['bytes that are no UTF-8', 'POST /v1/orders', 401],
])('%s gets its status and does no harm', async (_, line, status) => {
  const { server } = await serve()
  const body = line.startsWith('POST') ? 'Content-Length: 2\r\n\r\n\xff\xfe' : '\r\n'
  const bytes = Buffer.from(`${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${body}`, 'latin1')
  expect(await exchange(server.port, bytes)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect((await fetch(`${server.url}/v1/balance`)).status).toBe(401)
})

test('a caller that disconnects in the middle of its body is logged', async () => {
  const { server, log } = await serve()
  await exchange(server.port, 'POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{')
  expect((await fetch(`${server.url}/v1/balance`)).status).toBe(401)
  expect(log).toContainEqual(expect.stringMatching(/^POST \/v1\/orders: connection closed/))
})

test('every message gets a response, and is charged only with a 201', async () => {
  const sandbox = createSandbox()
  const json = fc.oneof(
    fc.json(),
    fc.string(),
    fc
      .record(
        {
          serviceId: fc.constantFrom('svc_standard', 'svc_none', '__proto__', ''),
          target: fc.oneof(fc.string(), fc.jsonValue()),
          quantity: fc.oneof(fc.double(), fc.integer(), fc.jsonValue()),
          metadata: fc.oneof(fc.jsonValue(), fc.record({ externalOrderId: fc.jsonValue() })),
        },
        { requiredKeys: [] },
      )
      .map((body) => JSON.stringify(body)),
  )
  const header = fc.oneof(fc.string(), fc.constantFrom('application/json', `Bearer ${sandbox.apiKey}`))
  const message = fc.record({
    method: fc.oneof(fc.constantFrom('GET', 'POST', '__proto__'), fc.string()),
    url: fc.oneof(
      fc.constantFrom('/v1/orders', '/v1/services/__proto__', '/v1/orders?limit=%zz&offset=[]'),
      fc.string(),
      fc.webUrl(),
    ),
    headers: fc.record(
      { authorization: header, 'idempotency-key': header, 'content-type': header },
      { requiredKeys: [] },
    ),
    body: json,
  })
  const numRuns = effort(100, 1000)
  await fc.assert(
    fc.asyncProperty(message, async (input) => {
      const before = sandbox.ledger.length
      const { status, body, request } = await sandbox.handle(input)
      expect([200, 201, 400, 401, 402, 403, 404, 405, 409, 422], body).toContain(status)
      expect(request.charged).toBe(sandbox.ledger.length === before + 1)
      if (request.charged) expect(status).toBe(201)
    }),
    { numRuns, seed: 7 },
  )
  expect(sandbox.requests.length).toBe(numRuns)
  expect(new Set(sandbox.requests.map(({ status }) => status)).size).toBeGreaterThan(4)
})
