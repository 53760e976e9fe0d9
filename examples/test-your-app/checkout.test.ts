/**
 * How a shop tests its checkout against the sandbox: `npm run example test-your-app`. Each test makes one thing go wrong
 * and then looks at the ledger of the service, because what the shop believes is what is being tested.
 */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox, type SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Cart, checkout } from './checkout.ts'
import { checkoutWithBug } from './checkout-with-bug.ts'

const cart: Cart = { id: 'cart-7', service: 'svc_standard', target: '@ada', quantity: 2 }
const price = 500

/** A service of its own for each test, and a client with the shop's settings. */
function shop(options: SandboxOptions = {}) {
  const sandbox = createSandbox(options)
  const { baseUrl, apiKey, fetch } = sandbox
  const newWorker = () => new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'shop-eu' })
  return { sandbox, client: newWorker(), newWorker }
}

// Waiting takes no time: whenever nothing else is left to do, the next timer fires.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  vi.setTimerTickMode('nextTimerAsync')
})
afterEach(() => {
  vi.useRealTimers()
})

describe('checkout buys a cart once', () => {
  test('when the button is pressed again and again', async () => {
    const { sandbox, client } = shop({ balance: 10_000 })
    const [first, second] = await Promise.all([checkout(client, cart), checkout(client, cart)])
    const third = await checkout(client, cart)

    const { orderId } = sandbox.expectChargedOnce(cart.id)
    expect([first, second, third]).toEqual(Array(3).fill({ state: 'ordered', orderId }))
    sandbox.expectBalance(10_000 - price)
  })

  test('when the wallet is charged and the response is lost', async () => {
    const { sandbox, client } = shop()
    sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })

    expect(await checkout(client, cart)).toMatchObject({ state: 'ordered' })
    sandbox.expectChargedOnce(cart.id)
    expect(sandbox.faults.pending()).toEqual([])
  })

  test('when every response is lost until the customer gives up and comes back', async () => {
    const { sandbox, client } = shop()
    sandbox.faults.add({ times: 'always', action: { type: 'commitThenDrop' } })
    expect(await checkout(client, cart)).toEqual({ state: 'pending' })
    sandbox.faults.clear()

    expect(await checkout(client, cart)).toMatchObject({ state: 'ordered' })
    sandbox.expectChargedOnce(cart.id)
  })

  test('and does not pass off what was bought before as what is in the cart now', async () => {
    const { sandbox, client } = shop({ balance: 10_000 })
    await checkout(client, cart)

    expect(await checkout(client, { ...cart, quantity: 3 })).toEqual({
      state: 'refused',
      reason: 'idempotency_conflict',
    })
    sandbox.expectChargedOnce(cart.id)
    sandbox.expectBalance(10_000 - price)
  })

  test('when a gateway shows its HTML page instead of the order', async () => {
    const { sandbox, client } = shop()
    sandbox.faults.add({ times: 2, action: { type: 'status', status: 502, html: true, commit: true } })

    expect(await checkout(client, cart)).toMatchObject({ state: 'ordered' })
    sandbox.expectChargedOnce(cart.id)
  })

  test('when two workers take the same cart', async () => {
    const { sandbox, newWorker } = shop({ behaviour: { processingTime: 2000 } })
    const results = await Promise.all([checkout(newWorker(), cart), checkout(newWorker(), cart)])

    const { orderId } = sandbox.expectChargedOnce(cart.id)
    expect(results).toEqual(Array(2).fill({ state: 'ordered', orderId }))
  })
})

describe('checkout promises nothing', () => {
  test('while the service says that the order is in progress, for ever', async () => {
    const { sandbox, client } = shop()
    sandbox.faults.add({ times: 'always', action: { type: 'inProgress' } })

    expect(await checkout(client, cart)).toEqual({ state: 'pending' })
    sandbox.expectNotCharged(cart.id)
  })
})

describe('checkout says that nothing was bought', () => {
  test('when the wallet is too small, and buys once it is topped up', async () => {
    const { sandbox, client } = shop({ balance: price - 1 })
    expect(await checkout(client, cart)).toEqual({ state: 'refused', reason: 'payment_required' })
    sandbox.expectNotCharged(cart.id)

    sandbox.topUp(sandbox.customerId, 1)
    expect(await checkout(client, cart)).toMatchObject({ state: 'ordered' })
    sandbox.expectChargedOnce(cart.id)
    sandbox.expectBalance(0)
  })

  test('when the service is out of stock', async () => {
    const { sandbox, client } = shop()
    sandbox.addService({ productId: cart.service, amount: 250, stock: cart.quantity - 1 })

    expect(await checkout(client, cart)).toEqual({ state: 'refused', reason: 'order_not_accepted' })
    sandbox.expectNotCharged(cart.id)
  })
})

test('the double charge of checkout-with-bug.ts is caught', async () => {
  const { sandbox, client } = shop()
  sandbox.faults.add({
    match: { externalOrderId: cart.id },
    times: 'always',
    action: { type: 'commitThenDrop' },
  })

  // All is well as far as the shop can see.
  expect(await checkoutWithBug(client, cart)).toMatchObject({ state: 'ordered' })

  // The ledger knows better: the message lists both charges, each with its key and reference.
  expect(() => sandbox.expectCharges(1)).toThrow(
    /^expected 1 charge in all, found 2:\n.*500 EUR.*"cart-7"\n.*500 EUR.*"cart-7-second-try"$/,
  )
  expect(() => sandbox.expectBalance(1_000_000 - price)).toThrow(/found 999000 EUR. Charged to it:/)
})
