import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox, createTestClock } from 'customer-ordering-sdk/sandbox'
import { expect, it } from 'vitest'
import { order } from '../support/lab.ts'

function shop() {
  const clock = createTestClock()
  const sandbox = createSandbox(clock.sandbox)
  const { baseUrl, apiKey, fetch } = sandbox
  const waits: number[] = []
  const hooks = { onRetry: ({ delayMs }: { readonly delayMs: number }) => void waits.push(delayMs) }
  const client = new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'shop', hooks }, clock.runtime)
  return { clock, sandbox, client, waits }
}

it('the test clock skips the waits of a call, and no other time', async () => {
  const { clock, sandbox, client, waits } = shop()
  const before = clock.now()
  sandbox.faults.add({ match: { operation: 'createOrder' }, times: 3, action: { type: 'inProgress' } })
  const placed = await clock.run(client.orders.create(order('r1')))
  expect(placed.id).toBe(sandbox.expectChargedOnce('r1').orderId)
  expect(waits).toEqual([500, 750, 1500])
  expect(clock.now() - before).toBe(2750)
})

it('the test clock ends a call at its time limit if the service is silent', async () => {
  const { clock, sandbox, client } = shop()
  const before = clock.now()
  sandbox.faults.add({ times: 'always', action: { type: 'stall' } })
  const read = clock.run(client.balance.retrieve({ timeout: 2000, maxRetries: 0 }))
  await expect(read).rejects.toMatchObject({ code: 'timeout' })
  expect(clock.now() - before).toBe(2000)
})

it('the test clock runs awaitables that work once: a recovery and many orders', async () => {
  const { clock, sandbox, client } = shop()
  const placed = await clock.run(client.orders.createMany([order('r3'), order('r4')]))
  expect(placed).toMatchObject({ created: 2, failed: 0 })
  sandbox.expectChargedOnce('r3')
  sandbox.expectChargedOnce('r4')
  expect(await clock.run(client.orders.recover())).toMatchObject({ created: 0, stillOpen: 0 })
})

it('the test clock can be moved past a window by hand', async () => {
  const { clock, sandbox, client } = shop()
  sandbox.faults.add({ times: 'always', action: { type: 'drop' } })
  await clock.run(client.orders.create(order('r2'), { maxRetries: 0 }).catch(() => {}))
  clock.pass(60 * 60 * 1000)
  const requests = sandbox.requests.length
  const placed = clock.run(client.orders.create(order('r2')))
  await expect(placed).rejects.toMatchObject({ code: 'unresolved_order' })
  expect(sandbox.requests).toHaveLength(requests)
})

it('the test clock fires due timers in order, and no cancelled timer', () => {
  const { now, pass, runtime } = createTestClock(1000)
  const ended: string[] = []
  runtime.setTimer(() => ended.push(`late ${now()}`), 20)
  runtime.setTimer(() => ended.push(`early ${now()}`), 10)
  runtime.setTimer(() => ended.push(`never ${now()}`), 15)()
  runtime.setTimer(() => ended.push(`later ${now()}`), 31)
  pass(30)
  expect([ended, now()]).toEqual([['early 1010', 'late 1020'], 1030])
  pass(1)
  expect(ended).toHaveLength(3)
})

it('the test clock makes the same ids in the next test', () => {
  const ids = () => Array.from({ length: 2 }, createTestClock().runtime.randomId)
  expect(ids()).toEqual(ids())
  expect(new Set(ids()).size).toBe(2)
})
