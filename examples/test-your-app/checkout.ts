import { type CustomerOrderingClient, isCustomerOrderingError, type Order } from 'customer-ordering-sdk'

/** The body that a shop's page sends. */
export interface Cart {
  /** Created with the cart and kept with it, so pressing the button twice buys once. */
  readonly id: string
  readonly service: string
  readonly target: string
  readonly quantity: number
}

/** The shop's response to its customer. */
export type Checkout =
  | { readonly state: 'ordered'; readonly orderId: string | undefined }
  /** The wallet may have been charged. Calling again with the same cart is safe. */
  | { readonly state: 'pending' }
  | { readonly state: 'refused'; readonly reason: string }

/** Buys the cart once. */
export async function checkout(client: CustomerOrderingClient, cart: Cart): Promise<Checkout> {
  try {
    const order = await placeOrder(client, cart, cart.id)
    return { state: 'ordered', orderId: order.id }
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    // The cart was changed after it was ordered: `charged` is about the original cart.
    if (error.code === 'idempotency_conflict') return { state: 'refused', reason: error.code }
    switch (error.charged) {
      case 'yes':
        return { state: 'ordered', orderId: error.orderId }
      case 'unknown':
        return { state: 'pending' }
      case 'no':
        return { state: 'refused', reason: error.code }
    }
  }
}

/** Places the cart's order with this reference. */
export function placeOrder(
  client: CustomerOrderingClient,
  { service, target, quantity }: Cart,
  reference: string,
): Promise<Order> {
  return client.orders.create({
    serviceId: service,
    target,
    quantity,
    metadata: { externalOrderId: reference },
  })
}
