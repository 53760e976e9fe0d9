import { filled, number, type Shape, safeInteger, shape, text } from './shape.ts'

/**
 * An orderable store product (API document, "Service").
 *
 * Undocumented fields are returned unchanged. One of them is the state of the stock, whose name and
 * values the API document does not show. Add the fields that you use to the type, as in
 * {@link Order}, or check them with `schemas.service`.
 */
export interface Service {
  /** Identifier of the product; the `serviceId` of an order. */
  readonly productId: string
  /** Current price in minor currency units; always a safe integer. */
  readonly amount: number
  /** ISO 4217 currency code of `amount`. */
  readonly currency: string
  /** Smallest orderable quantity. May be a fraction. */
  readonly minQuantity: number
  /** Largest orderable quantity. May be a fraction. */
  readonly maxQuantity: number
  /** Step that a quantity must respect. May be a fraction. */
  readonly stepQuantity: number
}

export const serviceSchema: Shape<Service> = /* @__PURE__ */ shape({
  productId: filled,
  amount: safeInteger,
  currency: text,
  minQuantity: number,
  maxQuantity: number,
  stepQuantity: number,
})
