import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { manualClock, orderInit, settled } from './caller.ts'

const sandboxWith = (faults: NonNullable<Parameters<typeof createSandbox>[0]>['faults'] = []) => {
  const sandbox = createSandbox({ faults })
  const order = orderInit(sandbox.apiKey)
  return { sandbox, order, orders: `${sandbox.baseUrl}/v1/orders` }
}

describe('sandbox.fetch', () => {
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

  test('sandbox.fetch rejects with the reason of a signal that fires during processing', async () => {
    const clock = manualClock()
    const sandbox = createSandbox({ ...clock.options, behaviour: { processingTime: 10 } })
    const { order } = sandboxWith()
    const controller = new AbortController()
    const work = sandbox
      .fetch(`${sandbox.baseUrl}/v1/orders`, { ...order, signal: controller.signal })
      .catch((error: unknown) => error)
    await settled()
    controller.abort(new Error('timeout'))
    expect(await work).toMatchObject({ message: 'timeout' })
    clock.advance(10)
    await settled()
    sandbox.expectChargedOnce('k')
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
})

describe('redirects', () => {
  const redirecting = (location: string, status: 301 | 302 | 303 | 307 | 308 = 307, times = 1) =>
    sandboxWith([{ times, action: { type: 'redirect', location, status } }])

  test('redirects are returned unchanged in mode manual', async () => {
    const { sandbox, orders, order } = redirecting('https://elsewhere.test/')
    const response = await sandbox.fetch(orders, { ...order, redirect: 'manual' })
    expect([response.status, response.headers.get('location')]).toEqual([307, 'https://elsewhere.test/'])
    expect(sandbox.requests).toHaveLength(1)
  })

  test('redirects fail in mode error', async () => {
    const { sandbox, orders, order } = redirecting('/v1/orders')
    await expect(sandbox.fetch(orders, { ...order, redirect: 'error' })).rejects.toThrow('fetch failed')
  })

  test.each([307, 308] as const)('redirects with %i keep method and body', async (status) => {
    const { sandbox, orders, order } = redirecting('/v1/orders', status)
    expect((await sandbox.fetch(orders, order)).status).toBe(201)
    expect(sandbox.requests.map(({ body }) => body)).toEqual([order.body, order.body])
    sandbox.expectChargedOnce('k')
  })

  test.each([301, 302, 303] as const)('redirects with %i turn a POST into a GET', async (status) => {
    const { sandbox, orders, order } = redirecting('/v1/balance', status)
    expect(await (await sandbox.fetch(orders, order)).json()).toMatchObject({ amount: 1_000_000 })
    expect(sandbox.requests).toMatchObject([{ method: 'POST' }, { method: 'GET', body: '' }])
  })

  test('redirects to another origin fail', async () => {
    const { sandbox, orders, order } = redirecting('https://elsewhere.test/')
    await expect(sandbox.fetch(orders, order)).rejects.toMatchObject({ cause: { code: 'ENOTFOUND' } })
  })

  test('redirects in a cycle fail', async () => {
    const { sandbox, orders, order } = redirecting('/v1/orders', 307, 1000)
    await expect(sandbox.fetch(orders, order)).rejects.toMatchObject({
      cause: { message: 'redirect count exceeded' },
    })
    expect(sandbox.requests).toHaveLength(21)
  })

  test('a redirect can come after the charge', async () => {
    const { sandbox, orders, order } = sandboxWith([
      { action: { type: 'redirect', location: '/v1/orders', commit: true } },
    ])
    const response = await sandbox.fetch(orders, { ...order, redirect: 'manual' })
    expect(response.status).toBe(307)
    sandbox.expectCharges(1)
  })
})
