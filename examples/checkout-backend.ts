/**
 * A shop's backend: `POST /checkout` buys the service that a cart asks for. `npm run example
 * checkout-backend` runs it against a sandbox that loses some responses, and simulates the shop's
 * customers.
 *
 * The rule: the shop's own cart id is the order's `externalOrderId`, so a cart is bought once,
 * however often the customer presses the button. The HTTP response to an error depends on whether
 * the wallet was charged, not on what failed.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type CreateOrderRequest,
  CustomerOrderingClient,
  isCustomerOrderingError,
} from 'customer-ordering-sdk'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'

const directory = await mkdtemp(join(tmpdir(), 'checkout-'))
const client = new CustomerOrderingClient({
  account: 'example.com/shop-eu',
  store: new SqliteStore({ path: join(directory, 'orders.db') }),
  // A person is waiting: respond within ten seconds, and let recovery finish orders that are still
  // open.
  totalTimeout: 10_000,
  maxRetries: 1,
})

// Recover the orders that an earlier run left open, before selling anything new.
for await (const { outcome, record } of client.orders.recover({ takeOver: true }))
  console.log(`recovered ${record.externalOrderId}: ${outcome}`)

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

async function checkout(cart: CreateOrderRequest): Promise<Answer> {
  try {
    const order = await client.orders.create(cart)
    return { status: 200, body: { state: 'ordered', orderId: order.id } }
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    // The cart was changed after it was ordered: `charged` is about the original cart.
    if (error.code === 'idempotency_conflict')
      return { status: 409, body: { state: 'changed', orderId: error.orderId ?? null } }
    switch (error.charged) {
      case 'yes':
        // The order is paid, but its details could not be read. Never let the customer pay again.
        return { status: 200, body: { state: 'ordered', orderId: error.orderId ?? null } }
      case 'unknown':
        // Promise neither success nor failure. Calling again with the same cart is safe.
        return { status: 202, body: { state: 'pending', quote: error.supportReference } }
      case 'no':
        return { status: refusalStatus(error.code), body: { state: 'refused', reason: error.code } }
    }
  }
}

function refusalStatus(code: string): number {
  if (code === 'invalid_request' || code === 'bad_request' || code === 'not_found') return 400
  if (code === 'order_not_accepted') return 409
  if (code === 'payment_required') return 402
  return 503 // the cause is the shop (API key, rate limit, no connection), not the customer
}

const server = createServer(async (request, response) => {
  const answer: Answer =
    request.method === 'POST' && request.url === '/checkout'
      ? await checkout(readCart(await readBody(request))).catch(() => ({
          status: 500,
          body: { state: 'failed' },
        }))
      : { status: 404, body: { state: 'unknown path' } }
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
})

async function readBody(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}

/** Reads the cart. `create()` checks every field. */
function readCart(text: string): CreateOrderRequest {
  const { id, service, target, quantity } = JSON.parse(text)
  return { serviceId: service, target, quantity, metadata: { externalOrderId: id } }
}

server.listen(0, '127.0.0.1')
await once(server, 'listening')

/** Presses the button on the shop's page. */
async function press(id: string, service: string, quantity: unknown = 1): Promise<Answer> {
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/checkout`, {
    method: 'POST',
    body: JSON.stringify({ id, service, target: '@ada', quantity }),
  })
  const answer = { status: response.status, body: await response.json() }
  console.log(`${id}, ${quantity} of ${service}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer
}

const before = (await client.balance.retrieve()).amount

const plain = await press('cart-1', 'svc_standard')
assert.equal(plain.status, 200)

// The button is pressed three times concurrently, and the first response of the service is lost.
const [first, ...others] = await Promise.all([1, 2, 3].map(() => press('cart-2', 'svc_standard')))
for (const other of others) assert.deepEqual(other, first)

// A gateway responds 502 for longer than the customer waits, although the order was placed. The
// customer presses again.
assert.equal((await press('cart-3', 'svc_standard')).status, 202)
assert.equal((await press('cart-3', 'svc_standard')).status, 200)

assert.equal((await press('cart-4', 'svc_premium')).status, 402)
assert.equal((await press('cart-5', 'svc_sold_out')).status, 409)
assert.equal((await press('cart-6', 'svc_standard', 0)).status, 400)
assert.equal((await press('cart-1', 'svc_standard', 2)).status, 409)

const spent = before - (await client.balance.retrieve()).amount
console.log(`three carts were bought for ${spent} minor units`)
assert.equal(spent, 3 * 250)

server.close()
await client.close()
await rm(directory, { recursive: true })
