import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { expect, expectTypeOf, test } from 'vitest'
import { orderInit, settled } from './caller.ts'

const sandboxWith = (faults: NonNullable<Parameters<typeof createSandbox>[0]>['faults'] = []) => {
  const sandbox = createSandbox({ faults })
  const order = orderInit(sandbox.apiKey)
  return { sandbox, order, orders: `${sandbox.baseUrl}/v1/orders` }
}

test('sandbox.fetch has the type of fetch and needs no receiver', async () => {
  const { sandbox, orders, order } = sandboxWith()
  expectTypeOf(sandbox.fetch).toExtend<typeof fetch>()
  const { fetch: alone } = sandbox
  expect((await alone(orders, order)).status).toBe(201)
})

test('sandbox.fetch accepts a string, a URL, a Request, and a Request with changes', async () => {
  const { sandbox, orders, order } = sandboxWith()
  const again = { ...order, headers: { ...order.headers, 'idempotency-key': 'other' } }
  const answers = [
    await sandbox.fetch(orders, order),
    await sandbox.fetch(new URL(orders), order),
    await sandbox.fetch(new Request(orders, order)),
    await sandbox.fetch(new Request(orders, order), again),
  ]
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201])
  sandbox.expectCharges(2)
})

test("responses of sandbox.fetch have the request's URL", async () => {
  const { sandbox, orders } = sandboxWith()
  expect((await sandbox.fetch(orders)).url).toBe(orders)
})

test('sandbox.fetch rejects relative URLs and used bodies', async () => {
  const { sandbox, orders, order } = sandboxWith()
  await expect(sandbox.fetch('/v1/orders')).rejects.toThrow(TypeError)
  const request = new Request(orders, order)
  await request.text()
  await expect(sandbox.fetch(request)).rejects.toThrow(TypeError)
  expect(sandbox.requests).toEqual([])
})

test('sandbox.fetch reaches no other origin', async () => {
  const { sandbox } = sandboxWith()
  await expect(sandbox.fetch('https://elsewhere.test/v1/orders')).rejects.toMatchObject({
    message: 'fetch failed',
    cause: { code: 'ENOTFOUND', syscall: 'getaddrinfo' },
  })
})

test('sandbox.fetch sends nothing if the signal has already fired', async () => {
  const { sandbox, orders, order } = sandboxWith()
  const reason = new Error('no')
  await expect(sandbox.fetch(orders, { ...order, signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  expect(sandbox.requests).toEqual([])
})

test('sandbox.fetch waits with timers if no sleep is given', async () => {
  const { sandbox, orders, order } = sandboxWith([
    { action: { type: 'delay', ms: 1 } },
    { skip: 1, action: { type: 'delay', ms: 60_000, when: 'after' } },
  ])
  expect((await sandbox.fetch(orders, order)).status).toBe(201)
  const controller = new AbortController()
  const work = sandbox.fetch(orders, { ...order, signal: controller.signal })
  await settled()
  controller.abort(new Error('timeout'))
  await expect(work).rejects.toThrow('timeout')
  await settled()
  expect(sandbox.requests.map(({ status }) => status)).toEqual([201, 'dropped'])
})

test.each(['error', 'follow', 'manual'] as const)('a redirect fails unless manual: %s', async (redirect) => {
  const headers = { location: '/v1/orders' }
  const { sandbox, orders, order } = sandboxWith([
    { action: { type: 'status', status: 307, headers, commit: true } },
  ])
  const work = sandbox.fetch(orders, { ...order, redirect })
  if (redirect === 'manual') expect(await work).toMatchObject({ status: 307 })
  else await expect(work).rejects.toMatchObject({ cause: { message: 'unexpected redirect' } })
  expect(sandbox.requests).toHaveLength(1)
  sandbox.expectCharges(1)
})
