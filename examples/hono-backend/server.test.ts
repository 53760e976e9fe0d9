/**
 * Runs the backend as a separate process against the sandbox. Each order is paid once, even if
 * responses are lost, requests are repeated, or the process is killed.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createSandbox, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { type SandboxServer, serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { hc } from 'hono/client'
import type { App } from './app.ts'

const order = { serviceId: 'svc_standard', target: '@ada', quantity: 1 }
const script = new URL('server.ts', import.meta.url).pathname

let sandbox: Sandbox
let service: SandboxServer
let folder: string
const running = new Set<Backend>()

beforeEach(async () => {
  sandbox = createSandbox()
  service = await serveSandbox(sandbox)
  folder = await mkdtemp(join(tmpdir(), 'hono-'))
})
afterEach(async () => {
  for (const backend of running) await backend.end('SIGKILL')
  await service.close()
  await rm(folder, { recursive: true })
})

type Line = Readonly<Record<string, unknown>>

/** The process and its log. */
class Backend {
  readonly lines: Line[] = []
  readonly #process: ChildProcess
  readonly #waiting = new Set<() => void>()

  private constructor() {
    const { url: CUSTOMER_ORDERING_BASE_URL } = service
    this.#process = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script], {
      env: {
        ...process.env,
        CUSTOMER_ORDERING_BASE_URL,
        CUSTOMER_ORDERING_API_KEY: sandbox.apiKey,
        ORDERS_DB: join(folder, 'orders.db'),
        PORT: '0',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    running.add(this)
    if (this.#process.stdout === null) throw new Error('the process has no output')
    createInterface(this.#process.stdout).on('line', (line) => {
      this.lines.push(line.startsWith('{') ? JSON.parse(line) : { text: line })
      for (const check of this.#waiting) check()
    })
  }

  static async start(): Promise<Backend> {
    const backend = new Backend()
    const { listening } = await backend.line((line) => line['listening'] !== undefined)
    backend.url = `http://127.0.0.1:${listening}`
    return backend
  }

  url = ''

  get api() {
    return hc<App>(this.url)
  }

  /** Waits for the first log line that fits. The line may already be written. */
  line(fits: (line: Line) => boolean): Promise<Line> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        const found = this.lines.find(fits)
        if (found === undefined) return
        this.#waiting.delete(check)
        resolve(found)
      }
      this.#process.once('exit', () =>
        reject(new Error('the backend ended before it wrote the expected line')),
      )
      this.#waiting.add(check)
      check()
    })
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    running.delete(this)
    const ended = once(this.#process, 'exit')
    this.#process.kill(signal)
    const [code] = await ended
    return code
  }
}

const references = (): string[] => sandbox.ledger.map(({ externalOrderId }) => externalOrderId ?? '')

/** Waits until the service has charged for the order. */
async function charge(reference: string): Promise<void> {
  while (!references().includes(reference)) await pause(5)
}

/** Orders as a page does. `cart-1` is the shop's own reference for the order. */
async function put(backend: Backend, reference = 'cart-1', json = order) {
  const response = await backend.api.orders[':reference'].$put({ param: { reference }, json })
  return { status: response.status, body: await response.json(), headers: response.headers }
}

async function get(backend: Backend, reference = 'cart-1') {
  const response = await backend.api.orders[':reference'].$get({ param: { reference } })
  return { status: response.status, body: await response.json() }
}

test('an order whose response is lost is paid once, and a repeated request returns the same order', async () => {
  const backend = await Backend.start()
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })

  const first = await put(backend)
  const again = await put(backend)

  const { orderId } = sandbox.expectChargedOnce('cart-1')
  assert.deepEqual(first.body, { state: 'ordered', orderId, status: 'pending', amount: 250 })
  assert.deepEqual([first.status, again.status, again.body], [200, 200, first.body])
})

test('after a kill, the next process settles the order in flight before it serves requests', async () => {
  const killed = await Backend.start()
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'stall', commit: true } })
  const answer = put(killed).catch(() => 'none')
  await charge('cart-1')
  await killed.end('SIGKILL')
  assert.equal(await answer, 'none')

  const next = await Backend.start()
  assert.equal((await next.line((line) => line['recovered'] === 'cart-1'))['outcome'], 'created')
  const { orderId } = sandbox.expectChargedOnce('cart-1')
  const expected = { state: 'ordered', orderId, status: 'pending', amount: 250 }
  assert.deepEqual((await get(next)).body, expected)
  assert.deepEqual((await put(next)).body, expected)
  sandbox.expectChargedOnce('cart-1')
})

test('a paid order is still reported as ordered while the service cannot show it', async () => {
  const backend = await Backend.start()
  const placed = await put(backend)
  sandbox.faults.add({
    match: { operation: 'retrieveOrder' },
    times: 'always',
    action: { type: 'status', status: 401, code: 'INVALID_API_KEY' },
  })
  assert.deepEqual(await get(backend), { status: 200, body: placed.body })
})

test('an order that may have been paid is pending, for PUT and for GET', async () => {
  const backend = await Backend.start()
  sandbox.faults.add({
    match: { operation: 'createOrder' },
    times: 2,
    action: { type: 'status', status: 502, html: true, commit: true },
  })

  const first = await put(backend)
  assert.deepEqual([first.status, first.body], [202, { state: 'pending' }])
  assert.equal(first.headers.get('retry-after'), '5')
  assert.deepEqual(await get(backend), { status: 202, body: { state: 'pending' } })

  assert.equal((await put(backend)).status, 200)
  sandbox.expectChargedOnce('cart-1')
})

test('an order that was certainly not charged gets a response that depends on the reason', async () => {
  const backend = await Backend.start()
  const premium = { ...order, serviceId: 'svc_premium' }
  const soldOut = { ...order, serviceId: 'svc_sold_out' }
  const none = { ...order, serviceId: 'svc_none' }
  assert.equal((await put(backend, 'cart-1', premium)).status, 402)
  assert.equal((await put(backend, 'cart-2', soldOut)).status, 422)
  assert.equal((await put(backend, 'cart-3', none)).status, 404)
  assert.equal((await put(backend, 'cart-4', { ...order, quantity: 0 })).status, 400)
  sandbox.expectCharges(0)
  assert.deepEqual(await get(backend, 'cart-1'), {
    status: 200,
    body: { state: 'refused', reason: 'PAYMENT_REQUIRED' },
  })
  assert.equal((await get(backend, 'cart-5')).status, 404)

  // A reference cannot be used for another order.
  assert.equal((await put(backend, 'cart-6')).status, 200)
  assert.equal((await put(backend, 'cart-6', { ...order, quantity: 2 })).status, 409)
  sandbox.expectChargedOnce('cart-6')
})

test('the id of a request is in the response, in the log, and in the request to the service', async () => {
  const backend = await Backend.start()
  sandbox.revokeApiKey(sandbox.apiKey)
  const response = await fetch(`${backend.url}/balance`, { headers: { 'x-request-id': 'page-7' } })
  assert.deepEqual([response.status, response.headers.get('x-request-id')], [502, 'page-7'])
  assert.deepEqual(await response.json(), { state: 'refused', reason: 'authentication' })

  const line = await backend.line(({ requestId }) => requestId === 'page-7')
  assert.equal(line['code'], 'authentication')
  assert.equal(sandbox.requests.at(-1)?.headers['x-request-id'], 'page-7')
  assert.ok(!JSON.stringify(backend.lines).includes(sandbox.apiKey))
})

test('a read stops when the caller disconnects, but an order does not', async () => {
  const backend = await Backend.start()
  const gone = new AbortController()
  let open = 0
  sandbox.faults.add({
    match: { operation: 'retrieveBalance', when: () => ++open > 0 },
    action: { type: 'stall' },
  })
  const reading = fetch(`${backend.url}/balance`, { signal: gone.signal }).catch(() => 'gone')
  while (open === 0) await pause(5)
  gone.abort()
  assert.equal(await reading, 'gone')
  assert.equal((await backend.line(({ path }) => path === '/balance'))['code'], 'aborted')

  const leaving = new AbortController()
  sandbox.faults.add({
    match: { operation: 'createOrder' },
    action: { type: 'delay', ms: 300, when: 'after' },
  })
  const buying = fetch(`${backend.url}/orders/cart-1`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(order),
    signal: leaving.signal,
  }).catch(() => 'gone')
  await charge('cart-1')
  leaving.abort()
  assert.equal(await buying, 'gone')
  while ((await get(backend)).status === 202) await pause(20)
  assert.deepEqual([(await get(backend)).status, references()], [200, ['cart-1']])
})

test('at SIGTERM the process finishes the order in progress, then ends', async () => {
  const backend = await Backend.start()
  sandbox.faults.add({
    match: { operation: 'createOrder' },
    action: { type: 'delay', ms: 300, when: 'after' },
  })
  const answer = put(backend)
  await charge('cart-1')
  assert.equal(await backend.end('SIGTERM'), 0)
  assert.equal((await answer).status, 200)
  assert.deepEqual(backend.lines.at(-1), { stopped: true })
  sandbox.expectChargedOnce('cart-1')
})

test('the backend lists the services for sale and shows the balance', async () => {
  const { api } = await Backend.start()
  const services = await (await api.services.$get({ query: { limit: '2', offset: '0' } })).json()
  assert.deepEqual(services[0], { productId: 'svc_standard', amount: 250, currency: 'EUR' })
  assert.equal(services.length, 2)
  assert.deepEqual(await (await api.balance.$get()).json(), { amount: 1_000_000, currency: 'EUR' })
})
