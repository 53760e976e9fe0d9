import type { CreateOrderRequest } from '../../../src/schemas/order.ts'

let orders = 0

/** A service that responds immediately, without a network. */
export const instantFetch: typeof fetch = async () =>
  Response.json({ id: `ord_${++orders}`, status: 'pending', amount: 250, currency: 'EUR' }, { status: 201 })

let requests = 0

/** The request of a new order. */
export function nextRequest(): CreateOrderRequest {
  return {
    serviceId: 'svc_standard',
    target: '@someone',
    quantity: 10,
    metadata: { externalOrderId: `order-${++requests}` },
  }
}
