/**
 * Calls the sandbox through Prism, which validates every request and response against the OpenAPI
 * description:
 *
 * node --test proxy.check.ts
 *
 * Runs every operation with every status of the API document, once for each preset.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type SandboxServer, serveSandbox } from '../../../src/sandbox/http/server.ts'
import { createSandbox, type SandboxPermission, sandboxPresets } from '../../../src/sandbox/index.ts'
import { type Prism, startPrism, violationsOf } from './prism.ts'

/** The statuses that the API document shows. */
const documented: Readonly<Record<string, readonly number[]>> = {
  createOrder: [201, 400, 401, 402, 403, 404, 409, 422],
  listOrders: [200, 401, 403],
  retrieveOrder: [200, 401, 403, 404],
  listServices: [200, 401, 403],
  retrieveService: [200, 401, 403, 404],
  retrieveBalance: [200, 401, 403, 404],
}

let time = Date.UTC(2026, 0, 1)
/** Ends every wait of the sandbox. */
let wake = (): void => {}
const sandbox = createSandbox({
  now: () => time,
  sleep: () =>
    new Promise((resolve) => {
      wake = resolve
    }),
})

let server: SandboxServer
/** Responds to a violation with its own error. */
let strict: Prism
/** Forwards everything and lists the violations in a header. */
let lenient: Prism

before(
  async () => {
    server = await serveSandbox(sandbox)
    strict = await startPrism(server.url, '--errors')
    lenient = await startPrism(server.url)
  },
  { timeout: 60_000 },
)
after(async () => {
  strict?.stop()
  lenient?.stop()
  await server?.close()
})

interface Call {
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly apiKey?: string | null
  readonly key?: string
  readonly body?: unknown
  readonly contentType?: string
}

async function send(proxy: Prism, call: Call): Promise<Response> {
  const { method = 'GET', path, apiKey = sandbox.apiKey, key, body, contentType = 'application/json' } = call
  return fetch(proxy.url + path, {
    method,
    signal: AbortSignal.timeout(20_000),
    headers: {
      ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }),
      ...(key !== undefined && { 'idempotency-key': key }),
      ...(body !== undefined && { 'content-type': contentType }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

/** Sends a call that the description allows. Prism must accept the request and the response. */
async function pass(call: Call): Promise<unknown> {
  const response = await send(strict, call)
  const text = await response.text()
  const place = `${call.method ?? 'GET'} ${call.path}: ${response.status} ${text}`
  assert.ok(!text.includes('stoplight.io/prism'), place)
  assert.equal(response.headers.get('sl-violations'), null, place)
  return JSON.parse(text)
}

/**
 * Sends a call that the description forbids. Prism must reject the request, but not the response.
 */
async function passAnswer(call: Call): Promise<void> {
  const response = await send(lenient, call)
  const violations = violationsOf(response)
  const text = `${call.method ?? 'GET'} ${call.path}: ${response.status} ${JSON.stringify(violations)}`
  assert.ok(violations.length > 0, text)
  assert.ok(
    violations.every(({ location }) => location[0] === 'request'),
    text,
  )
  await response.arrayBuffer()
}

const keyOf = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`

const order = (number: number, changes: Record<string, unknown> = {}): Call => ({
  method: 'POST',
  path: '/v1/orders',
  key: keyOf(number),
  body: {
    serviceId: 'svc_standard',
    target: '@ada',
    quantity: 2,
    metadata: { externalOrderId: `shop-${number}` },
    ...changes,
  },
})

/** One call of each operation. */
const calls: readonly (readonly [SandboxPermission, Call])[] = [
  ['orders:write', order(90)],
  ['orders:read', { path: '/v1/orders' }],
  ['orders:read', { path: '/v1/orders/ord_1' }],
  ['services:read', { path: '/v1/services' }],
  ['services:read', { path: '/v1/services/svc_standard' }],
  ['balance:read', { path: '/v1/balance' }],
]

/** Waits for a condition of the server, without a fixed time. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

async function session(): Promise<void> {
  await pass({ path: '/v1/services' })
  await pass({ path: '/v1/services?limit=2&offset=1' })
  await pass({ path: '/v1/services/svc_standard' })
  await pass({ path: '/v1/services/svc_none' })
  await pass({ path: '/v1/balance' })
  await pass({ path: '/v1/balance', apiKey: sandbox.organizationApiKey })

  const created = await pass(order(1))
  const id = String(Reflect.get(Object(created), 'id'))
  await pass(order(1))
  await pass(order(1, { quantity: 3 }))
  await pass(order(2, { quantity: -1 }))
  await pass(order(3, { serviceId: 'svc_premium', quantity: 1 }))
  await pass(order(4, { serviceId: 'svc_none' }))
  await pass(order(5, { serviceId: 'svc_sold_out', quantity: 1 }))
  await pass(order(6, { metadata: { externalOrderId: 'shop-6', sourceSystem: 'web' } }))

  sandbox.faults.add({ action: { type: 'delay', ms: 1000, when: 'during' } })
  const first = pass(order(7))
  await until(() => sandbox.keys().some(({ key, answer }) => key === keyOf(7) && answer === null))
  const second = await pass(order(7))
  assert.match(JSON.stringify(second), /IDEMPOTENCY_IN_PROGRESS/)
  wake()
  await first

  time += 60_000
  await pass({ path: '/v1/orders' })
  await pass({ path: '/v1/orders?limit=1&offset=1&sourceSystem=web' })
  await pass({ path: '/v1/orders?limit=-1' })
  await pass({ path: `/v1/orders/${id}` })
  await pass({ path: '/v1/orders/none' })
  await pass({ path: `/v1/orders/${id}`, apiKey: sandbox.organizationApiKey })

  const penniless = sandbox.addApiKey({ customer: sandbox.addCustomer({ type: 'personal', wallet: null }) })
  await pass({ path: '/v1/balance', apiKey: penniless })
  await pass({ ...order(8), apiKey: penniless })

  for (const [permission, call] of calls) {
    await pass({ ...call, apiKey: 'unknown' })
    const others = (['orders:write', 'orders:read', 'services:read', 'balance:read'] as const).filter(
      (name) => name !== permission,
    )
    const apiKey = sandbox.addApiKey({ customer: sandbox.customerId, permissions: others })
    await pass({ ...call, apiKey })
  }
}

async function malformed(): Promise<void> {
  for (const [, call] of calls) await passAnswer({ ...call, apiKey: null })
  for (const query of ['limit=abc', 'limit=1.5', 'offset=x']) {
    await passAnswer({ path: `/v1/orders?${query}` })
    await passAnswer({ path: `/v1/services?${query}` })
  }
  const { key: _, ...withoutKey } = order(20)
  await passAnswer(withoutKey)
  await passAnswer(order(21, { quantity: '2' }))
  await passAnswer(order(22, { quantity: 1.5 }))
  await passAnswer(order(23, { serviceId: 7 }))
  await passAnswer(order(24, { metadata: [] }))
  await passAnswer({ ...order(25), body: [] })
}

describe('the sandbox behind Prism', { timeout: 120_000 }, () => {
  for (const preset of Object.keys(sandboxPresets) as (keyof typeof sandboxPresets)[])
    test(`the sandbox sends only responses that the description allows, preset ${preset}`, async () => {
      sandbox.reset()
      sandbox.configure(preset)
      await session()
      const seen = new Set(sandbox.requests.map(({ operation, status }) => `${operation} ${status}`))
      const missing = Object.entries(documented).flatMap(([operation, statuses]) =>
        statuses.map((status) => `${operation} ${status}`).filter((name) => !seen.has(name)),
      )
      assert.deepEqual(missing, [])
      await malformed()
    })

  test('Prism rejects a response that the description forbids', async () => {
    sandbox.reset()
    sandbox.faults.add({
      action: { type: 'transformBody', patch: { amount: '12.50' } },
    })
    await assert.rejects(pass({ path: '/v1/balance' }), /prism\/errors#VIOLATIONS/)
    sandbox.faults.add({ action: { type: 'status', status: 418 } })
    await assert.rejects(pass({ path: '/v1/balance' }), /Unable to match the returned status code/)
    sandbox.faults.add({ action: { type: 'bytes', body: '{"amount":1,"currency":7}' } })
    await assert.rejects(passAnswer({ path: '/v1/balance', apiKey: null }), /"response"/)
  })
})
