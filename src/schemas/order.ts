import { filled, optional, quantity, type Shape, safeInteger, shape, text } from './shape.ts'

/**
 * Your own data about an order: any keys, sent unchanged.
 *
 * Misspellings of `externalOrderId` are rejected before anything is sent.
 */
export interface OrderMetadata {
  /**
   * Your own reference for the order.
   *
   * One reference means one order: while the order is remembered, a call with the same reference
   * does not buy it again.
   */
  readonly externalOrderId?: string
  readonly [key: string]: unknown
}

/**
 * Body of `POST /v1/orders` (API document, "CreateOrderRequest").
 *
 * Undocumented fields are sent unchanged and are part of the order's identity. Misspellings of
 * known fields are rejected, and so are call options (docs/guide/orders.md). The type has only the
 * documented fields, so a misspelling does not compile. If your provider supports more fields, add
 * them to the type.
 *
 * @example
 * declare module 'customer-ordering-sdk' {
 *   interface CreateOrderRequest {
 *     readonly sourceSystem?: string
 *   }
 * }
 */
export interface CreateOrderRequest {
  /** `productId` of a service, as the services endpoints return it. */
  readonly serviceId: string
  /** What the order is applied to, such as a handle. The API document shows no constraints. */
  readonly target: string
  /** Ordered quantity: a positive safe integer within the service's bounds and step. */
  readonly quantity: number
  /** Your own reference for the order, and other metadata. */
  readonly metadata?: OrderMetadata
}

export interface RequestBody extends CreateOrderRequest {
  readonly [field: string]: unknown
}

/**
 * An order as the service returns it (API document, "Order").
 *
 * Undocumented fields are returned unchanged. The type has only the documented fields, so a
 * misspelling does not compile. Add the fields that your provider returns, or check them with
 * `schemas.order`.
 *
 * @example
 * declare module 'customer-ordering-sdk' {
 *   interface Order {
 *     readonly createdAt?: string
 *   }
 * }
 */
export interface Order {
  /** Order identifier. */
  readonly id: string
  /** Current status. The API document lists no values, so any string is accepted. */
  readonly status: string
  /** Amount charged, in minor currency units; always a safe integer. */
  readonly amount: number
}

export const createOrderRequestSchema: Shape<RequestBody> = /* @__PURE__ */ shape({
  serviceId: filled,
  target: filled,
  quantity,
  metadata: /* @__PURE__ */ optional(
    /* @__PURE__ */ shape({ externalOrderId: /* @__PURE__ */ optional(filled) }),
  ),
})

export const orderSchema: Shape<Order> = /* @__PURE__ */ shape({
  id: filled,
  status: text,
  amount: safeInteger,
})
