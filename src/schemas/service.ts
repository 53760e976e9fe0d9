import * as z from 'zod/mini'
import {
  type AtSight,
  anyNumber,
  anyText,
  atSight,
  filled,
  isAnyNumber,
  isFilled,
  isJsonObject,
  isSafeInteger,
  NO_OBJECT,
  safeInteger,
} from './check.ts'

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

export const serviceSchema: AtSight<Service> = /* @__PURE__ */ atSight(
  (value): value is Service =>
    isJsonObject(value) &&
    isFilled(value['productId']) &&
    isSafeInteger(value['amount']) &&
    typeof value['currency'] === 'string' &&
    isAnyNumber(value['minQuantity']) &&
    isAnyNumber(value['maxQuantity']) &&
    isAnyNumber(value['stepQuantity']),
  makeServiceSchema,
)

export function makeServiceSchema(): z.ZodMiniType<Service> {
  return z.looseObject(
    {
      productId: filled(),
      amount: safeInteger(),
      currency: anyText(),
      minQuantity: anyNumber(),
      maxQuantity: anyNumber(),
      stepQuantity: anyNumber(),
    },
    NO_OBJECT,
  )
}
