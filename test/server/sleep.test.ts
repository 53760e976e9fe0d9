import dns from 'node:dns'
import { ConnectionError, CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { undiciTransport } from 'customer-ordering-sdk/undici'
import { expect, onTestFinished, test, vi } from 'vitest'
import { platformRuntime } from '../../src/runtime.ts'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { order } from '../support/lab.ts'

const HOUR = 3_600_000

/** A shop, and a client whose wall clock the test can move while no call's time passes. */
async function sleeper(whileConnecting: () => void) {
  const sandbox = createSandbox()
  let requests = 0
  const server = await serveSandbox(sandbox, { onRequest: () => requests++ })
  onTestFinished(() => server.close())
  let slept = 0
  const sleep = (milliseconds: number): void => {
    slept += milliseconds
  }
  const lookup = vi.spyOn(dns, 'lookup')
  onTestFinished(() => lookup.mockRestore())
  // Pauses between the client's last clock check and its connection, as long as the test needs.
  lookup.mockImplementation(((...[, , done]: [string, object, (...found: unknown[]) => void]) => {
    whileConnecting()
    setImmediate(done, null, [{ address: '127.0.0.1', family: 4 }])
  }) as never)
  const transport = undiciTransport()
  onTestFinished(() => transport.close())
  const sending: (() => void)[] = []
  const client = new CustomerOrderingClient(
    {
      baseUrl: server.url.replace('127.0.0.1', 'shop.localhost'),
      apiKey: sandbox.apiKey,
      account: 'shop',
      transport,
      hooks: { onRequest: () => sending.shift()?.() },
    },
    { ...platformRuntime, now: () => Date.now() + slept },
  )
  return { sandbox, client, sleep, sending, lookup, requests: () => requests }
}

test('after a sleep, the transport sends nothing over a new connection, and the next call orders once', async () => {
  const sleeps = [() => shop.sleep(HOUR)]
  const shop = await sleeper(() => sleeps.shift()?.())
  const failed = await shop.client.orders.create(order('r1')).catch((error: unknown) => error)
  expect(failed).toBeInstanceOf(ConnectionError)
  expect(failed).toMatchObject({ charged: 'no', attempts: 1 })
  expect(String(failed)).toContain('(LATE)')
  expect(shop.lookup).toHaveBeenCalledTimes(1)
  expect(shop.requests()).toBe(0)
  expect(shop.sandbox.orders()).toHaveLength(0)

  await shop.client.orders.create(order('r1'))
  shop.sandbox.expectChargedOnce('r1')
  expect(shop.requests()).toBe(1)
})

test('after a sleep, the transport sends nothing over a kept connection', async () => {
  const shop = await sleeper(() => {})
  await shop.client.orders.create(order('r1'))
  shop.sending.push(() => shop.sleep(HOUR))
  const second = shop.client.orders.create(order('r2'))
  await expect(second).rejects.toMatchObject({ charged: 'no' })
  expect(shop.requests()).toBe(1)
  await shop.client.orders.create(order('r2'))
  shop.sandbox.expectChargedOnce('r1')
  shop.sandbox.expectChargedOnce('r2')
  expect(shop.requests()).toBe(2)
})

test('after a short clock jump, the transport sends requests that may still be sent', async () => {
  const shop = await sleeper(() => shop.sleep(1_000))
  await shop.client.orders.create(order('r1'))
  shop.sandbox.expectChargedOnce('r1')
  expect(shop.requests()).toBe(1)
})
