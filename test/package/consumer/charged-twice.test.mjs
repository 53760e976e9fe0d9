// Fails on purpose in Vitest, Jest and node:test, to show their output to users. RUNNER names the
// runner.
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { order } from './order.mjs'

const test = process.env.RUNNER === 'node:test' ? (await import('node:test')).test : globalThis.test

async function chargedTwice() {
  const sandbox = createSandbox()
  const { baseUrl, apiKey, fetch } = sandbox
  for (const account of ['one', 'two']) {
    const client = new CustomerOrderingClient({ baseUrl, apiKey, fetch, account })
    await client.orders.create(order('cart-7'))
  }
  return sandbox
}

test('one charge', async () => {
  const sandbox = await chargedTwice()
  sandbox.expectChargedOnce('cart-7')
})

test('no charge', async () => {
  const sandbox = await chargedTwice()
  sandbox.expectNotCharged('cart-7')
})

test('three charges in all', async () => {
  const sandbox = await chargedTwice()
  sandbox.expectCharges(3)
})

test('a balance after one charge', async () => {
  const sandbox = await chargedTwice()
  sandbox.expectBalance(999_500)
})

test('what is true', async () => {
  const sandbox = await chargedTwice()
  sandbox.expectNotCharged('cart-8')
  sandbox.expectCharges(2)
  sandbox.expectBalance(999_000)
})
