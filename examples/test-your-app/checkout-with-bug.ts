import type { CustomerOrderingClient } from 'customer-ordering-sdk'
import { type Cart, type Checkout, checkout, placeOrder } from './checkout.ts'

/**
 * Do not copy this. It works on every developer's machine, and it charges customers twice: it takes an order whose
 * response was lost for an order that was never made, and places another one under a new reference.
 */
export async function checkoutWithBug(client: CustomerOrderingClient, cart: Cart): Promise<Checkout> {
  const first = await checkout(client, cart)
  if (first.state !== 'pending') return first
  const second = await placeOrder(client, cart, `${cart.id}-second-try`)
  return { state: 'ordered', orderId: second.id }
}
