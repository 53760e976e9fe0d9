import { type CustomerOrderingClient, isCustomerOrderingError, type Order } from 'customer-ordering-sdk'

/** What a shop's page sends. */
export interface Cart {
  /** Made when the cart is filled and kept with it: pressing the button twice is the same purchase. */
  readonly id: string
  readonly service: string
  readonly target: string
  readonly quantity: number
}

/** What the shop tells its customer. */
export type Checkout =
  | { readonly state: 'ordered'; readonly orderId: string | undefined }
  /** Money may have moved. Nothing is promised; asking again with the same cart is safe. */
  | { readonly state: 'pending' }
  | { readonly state: 'refused'; readonly reason: string }

/** Buys what is in the cart, once. */
export async function checkout(client: CustomerOrderingClient, cart: Cart): Promise<Checkout> {
  try {
    const order = await placeOrder(client, cart, cart.id)
    return { state: 'ordered', orderId: order.id }
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    // The cart was changed after it was ordered. What is charged is the order as it was; this one was not placed.
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

/** Orders under this reference. */
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
