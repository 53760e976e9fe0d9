/**
 * Shows how a shop tests its checkout against the sandbox: `npm run example test-your-app`. Each
 * test injects one fault, then checks the service's ledger, which does not depend on what the shop
 * believes.
 */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox, type SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Cart, checkout } from './checkout.ts'
import { checkoutWithBug } from './checkout-with-bug.ts'

const cart: Cart = { id: 'cart-7', service: 'svc_standard', target: '@ada', quantity: 2 }
const price = 500

/** Creates a sandbox for one test, and a client with the shop's settings. */
function shop(options: SandboxOptions = {}) {
  const sandbox = createSandbox(options)
  const { baseUrl, apiKey, fetch } = sandbox
  const newWorker = () =>
    new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'example.com/shop-eu' })
  return { sandbox, client: newWorker(), newWorker }
}

// Waits take no time: when the program is idle, the next timer fires.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  vi.setTimerTickMode('nextTimerAsync')
})
afterEach(() => {
  vi.useRealTimers()
})

test('checkout buys a cart once if the button is pressed repeatedly', async () => {
  const { sandbox, client } = shop({ balance: 10_000 })
  const [first, second] = await Promise.all([checkout(client, cart), checkout(client, cart)])
  const third = await checkout(client, cart)

  const { orderId } = sandbox.expectChargedOnce(cart.id)
  expect([first, second, third]).toEqual(Array(3).fill({ state: 'ordered', orderId }))
  sandbox.expectBalance(10_000 - price)
})

test('checkout buys a cart once if the response is lost after the charge', async () => {
  const { sandbox, client } = shop()
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })

  expect(await checkout(client, cart)).toMatchObject({ state: 'ordered' })
  sandbox.expectChargedOnce(cart.id)
  expect(sandbox.faults.pending()).toEqual([])
})

test('checkout buys a cart once if every response is lost and the customer comes back later', async () => {
  const { sandbox, client } = shop()
  sandbox.faults.add({ times: 'always', action: { type: 'commitThenDrop' } })
  expect(await checkout(client, cart)).toEqual({ state: 'pending' })
  sandbox.faults.clear()

  expect(await checkout(client, cart)).toMatchObject({ state: 'ordered' })
  sandbox.expectChargedOnce(cart.id)
})

test('checkout refuses a cart that was changed after it was bought', async () => {
  const { sandbox, client } = shop({ balance: 10_000 })
  await checkout(client, cart)

  expect(await checkout(client, { ...cart, quantity: 3 })).toEqual({
    state: 'refused',
    reason: 'idempotency_conflict',
  })
  sandbox.expectChargedOnce(cart.id)
  sandbox.expectBalance(10_000 - price)
})

test('checkout buys a cart once if a gateway responds with an HTML page', async () => {
  const { sandbox, client } = shop()
  sandbox.faults.add({ times: 2, action: { type: 'status', status: 502, html: true, commit: true } })

  expect(await checkout(client, cart)).toMatchObject({ state: 'ordered' })
  sandbox.expectChargedOnce(cart.id)
})

test('checkout buys a cart once if two workers order it at the same time', async () => {
  const { sandbox, newWorker } = shop({ behaviour: { processingTime: 2000 } })
  const results = await Promise.all([checkout(newWorker(), cart), checkout(newWorker(), cart)])

  const { orderId } = sandbox.expectChargedOnce(cart.id)
  expect(results).toEqual(Array(2).fill({ state: 'ordered', orderId }))
})

test('checkout reports an order as pending if the service never stops reporting it as in progress', async () => {
  const { sandbox, client } = shop()
  sandbox.faults.add({ times: 'always', action: { type: 'inProgress' } })

  expect(await checkout(client, cart)).toEqual({ state: 'pending' })
  sandbox.expectNotCharged(cart.id)
})

test('checkout refuses a cart that the wallet cannot pay, and buys it after a top-up', async () => {
  const { sandbox, client } = shop({ balance: price - 1 })
  expect(await checkout(client, cart)).toEqual({ state: 'refused', reason: 'payment_required' })
  sandbox.expectNotCharged(cart.id)

  sandbox.topUp(sandbox.customerId, 1)
  expect(await checkout(client, cart)).toMatchObject({ state: 'ordered' })
  sandbox.expectChargedOnce(cart.id)
  sandbox.expectBalance(0)
})

test('checkout refuses a cart if the service is out of stock', async () => {
  const { sandbox, client } = shop()
  sandbox.addService({ productId: cart.service, amount: 250, stock: cart.quantity - 1 })

  expect(await checkout(client, cart)).toEqual({ state: 'refused', reason: 'order_not_accepted' })
  sandbox.expectNotCharged(cart.id)
})

test('the ledger shows the double charge of checkout-with-bug.ts', async () => {
  const { sandbox, client } = shop()
  sandbox.faults.add({
    match: { externalOrderId: cart.id },
    times: 'always',
    action: { type: 'commitThenDrop' },
  })

  // The shop sees no problem.
  expect(await checkoutWithBug(client, cart)).toMatchObject({ state: 'ordered' })

  // The ledger has two charges. The error message lists both, each with its key and reference.
  expect(() => sandbox.expectCharges(1)).toThrow(
    /^expected 1 charge in all, found 2:\n.*: 500 minor.*"cart-7"\n.*: 500 minor.*"cart-7-second-try"$/,
  )
  expect(() => sandbox.expectBalance(1_000_000 - price)).toThrow(/found 999000 minor units of EUR. Charges:/)
})
