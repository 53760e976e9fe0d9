/** The worker against the sandbox over HTTP: responses are lost, and workerd is killed with an order in flight. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createSandbox, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { type SandboxServer, serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { Miniflare } from 'miniflare'
import config from '../wrangler.json' with { type: 'json' }
import { bundle } from './bundle.ts'

const modules = [await bundle(config.main)]
const durableObjects = Object.fromEntries(
  config.durable_objects.bindings.map(({ name, class_name }) => [
    name,
    {
      className: class_name,
      useSQLite: config.migrations.some((step) => step.new_sqlite_classes.includes(class_name)),
    },
  ]),
)

let sandbox: Sandbox
let service: SandboxServer
let folder: string
const running = new Set<Miniflare>()

beforeEach(async () => {
  sandbox = createSandbox()
  service = await serveSandbox(sandbox)
  folder = await mkdtemp(join(tmpdir(), 'durable-worker-'))
})
afterEach(async () => {
  for (const miniflare of running) await miniflare.dispose()
  running.clear()
  await service.close()
  await rm(folder, { recursive: true })
})

const CALLER_TOKEN = 'token-of-the-shop'

/** Starts workerd with the objects on the disk. */
function start(bindings: Readonly<Record<string, string>> = {}): Miniflare {
  const miniflare = new Miniflare({
    name: config.name,
    modules,
    compatibilityDate: config.compatibility_date,
    durableObjects,
    durableObjectsPersist: folder,
    bindings: {
      ...config.vars,
      ORDERING_BASE_URL: service.url,
      ORDERING_API_KEY: sandbox.apiKey,
      CALLER_TOKEN,
      // No other worker takes over the order of a dead worker before this time has passed.
      ORDERING_TOTAL_TIMEOUT: 3000,
      ...bindings,
    },
    cf: false,
  })
  running.add(miniflare)
  return miniflare
}

async function put(
  miniflare: Miniflare,
  reference: string,
  authorization = `Bearer ${CALLER_TOKEN}`,
): Promise<{ status: number; body: unknown }> {
  const response = await miniflare.dispatchFetch(`http://worker.test/orders/${reference}`, {
    method: 'PUT',
    headers: { authorization },
    body: JSON.stringify({ serviceId: 'svc_standard', target: '@ada', quantity: 1 }),
  })
  return { status: response.status, body: await response.json() }
}

/** What the cron trigger of `wrangler.json` does. */
async function tick(miniflare: Miniflare): Promise<void> {
  const worker = await miniflare.getWorker()
  const { outcome } = await worker.scheduled({ cron: config.triggers.crons[0] ?? '' })
  assert.equal(outcome, 'ok')
}

/** The number of create requests that the service received. */
const sent = (): number => sandbox.requests.filter(({ method }) => method === 'POST').length

test('a caller without the token cannot order', async () => {
  const miniflare = start()
  for (const authorization of ['', 'Bearer ', 'Bearer undefined', CALLER_TOKEN, `Bearer ${CALLER_TOKEN}s`])
    assert.deepEqual(await put(miniflare, 'cart-1', authorization), {
      status: 401,
      body: { state: 'refused', reason: 'unauthenticated' },
    })
  assert.equal(sandbox.requests.length, 0)
})

test('no caller can order while a secret is missing', async () => {
  for (const missing of ['CALLER_TOKEN', 'ORDERING_API_KEY'])
    for (const authorization of ['Bearer ', `Bearer ${CALLER_TOKEN}`])
      assert.deepEqual(await put(start({ [missing]: '' }), 'cart-1', authorization), {
        status: 503,
        body: { state: 'refused', reason: 'not_configured' },
      })
  assert.equal(sandbox.requests.length, 0)
})

test('an order whose responses are lost is placed once', async () => {
  const miniflare = start()
  sandbox.faults.add({ match: { operation: 'createOrder' }, times: 2, action: { type: 'commitThenDrop' } })
  const first = await put(miniflare, 'cart-1')
  const { orderId } = sandbox.expectChargedOnce('cart-1')
  assert.deepEqual(first, { status: 200, body: { state: 'ordered', orderId } })
  assert.deepEqual(await put(miniflare, 'cart-1'), first)
  assert.equal(sent(), 3)
})

test('concurrent requests with one reference place one order', async () => {
  const miniflare = start()
  sandbox.faults.add({
    match: { operation: 'createOrder' },
    action: { type: 'delay', ms: 200, when: 'after' },
  })
  const answers = await Promise.all([1, 2, 3, 4].map(() => put(miniflare, 'cart-1')))
  const { orderId } = sandbox.expectChargedOnce('cart-1')
  assert.deepEqual(answers, Array(4).fill({ status: 200, body: { state: 'ordered', orderId } }))
})

test('after workerd is killed, a scheduled run settles the order in flight', {
  timeout: 60_000,
}, async () => {
  const killed = start()
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'stall', commit: true } })
  const answer = put(killed, 'cart-1').catch(() => 'none')
  while (sandbox.ledger.length === 0) await pause(10)
  running.delete(killed)
  // Miniflare kills workerd with SIGKILL.
  await killed.dispose()
  assert.equal(await answer, 'none')
  const before = sent()

  const next = start()
  // The record stays claimed until the dead call's time limit has passed. Until then, a run skips
  // it.
  while (sent() === before) {
    await tick(next)
    await pause(100)
  }
  const { orderId } = sandbox.expectChargedOnce('cart-1')
  const after = sent()
  assert.deepEqual(await put(next, 'cart-1'), { status: 200, body: { state: 'ordered', orderId } })
  assert.equal(sent(), after)
  sandbox.expectChargedOnce('cart-1')
})

test('an order that may have been paid is pending until a scheduled run settles it', async () => {
  const miniflare = start()
  sandbox.faults.add({
    match: { operation: 'createOrder' },
    times: 3,
    action: { type: 'status', status: 502, html: true, commit: true },
  })
  assert.deepEqual(await put(miniflare, 'cart-1'), { status: 202, body: { state: 'pending' } })
  await tick(miniflare)
  const after = sent()
  const { orderId } = sandbox.expectChargedOnce('cart-1')
  assert.deepEqual(await put(miniflare, 'cart-1'), { status: 200, body: { state: 'ordered', orderId } })
  assert.equal(sent(), after)
})

test('an order that was certainly not charged is reported as refused', async () => {
  const miniflare = start()
  sandbox.setBalance(sandbox.customerId, 10)
  assert.deepEqual(await put(miniflare, 'cart-1'), {
    status: 422,
    body: { state: 'refused', reason: 'payment_required' },
  })
  sandbox.expectCharges(0)
})
