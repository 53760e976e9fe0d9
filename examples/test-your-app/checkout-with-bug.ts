import type { CustomerOrderingClient } from 'customer-ordering-sdk'
import { type Cart, type Checkout, checkout, placeOrder } from './checkout.ts'

/**
 * Do not copy this. It works on every developer's machine, but it charges customers twice. If the
 * response is lost, it assumes that the order was never placed, and places a second order with a
 * new reference.
 */
export async function checkoutWithBug(client: CustomerOrderingClient, cart: Cart): Promise<Checkout> {
  const first = await checkout(client, cart)
  if (first.state !== 'pending') return first
  const second = await placeOrder(client, cart, `${cart.id}-second-try`)
  return { state: 'ordered', orderId: second.id }
}
