import * as z from 'zod/mini'
import {
  type AtSight,
  anyText,
  atSight,
  filled,
  isFilled,
  isJsonObject,
  isSafeInteger,
  mustBe,
  NO_OBJECT,
  safeInteger,
} from './check.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/**
 * Your own data about an order: any keys, sent unchanged. Misspellings of `externalOrderId` are
 * rejected before anything is sent.
 */
export interface OrderMetadata {
  /**
   * Your own reference for the order. One reference means one order: while the order is remembered,
   * a call with the same reference does not buy it again.
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

export const createOrderRequestSchema: StandardSchemaV1<unknown, RequestBody> = /* @__PURE__ */ atSight(
  (value): value is RequestBody =>
    isJsonObject(value) &&
    isFilled(value['serviceId']) &&
    isFilled(value['target']) &&
    isSafeInteger(value['quantity']) &&
    value['quantity'] >= 1 &&
    (!('metadata' in value) || isMetadata(value['metadata'])),
  makeCreateOrderRequestSchema,
)

function isMetadata(value: unknown): boolean {
  return isJsonObject(value) && (!('externalOrderId' in value) || isFilled(value['externalOrderId']))
}

export function makeCreateOrderRequestSchema(): z.ZodMiniType<RequestBody> {
  return z.looseObject(
    {
      serviceId: filled(),
      target: filled(),
      quantity: z.number(mustBe('an integer')).check(
        z.refine((value) => Number.isSafeInteger(value), 'must be a safe integer'),
        z.refine((value) => value >= 1, 'must be at least 1'),
      ),
      metadata: z.exactOptional(z.looseObject({ externalOrderId: z.exactOptional(filled()) }, NO_OBJECT)),
    },
    NO_OBJECT,
  )
}

export const orderSchema: AtSight<Order> = /* @__PURE__ */ atSight(
  (value): value is Order =>
    isJsonObject(value) &&
    isFilled(value['id']) &&
    typeof value['status'] === 'string' &&
    isSafeInteger(value['amount']),
  makeOrderSchema,
)

export function makeOrderSchema(): z.ZodMiniType<Order> {
  return z.looseObject({ id: filled(), status: anyText(), amount: safeInteger() }, NO_OBJECT)
}
