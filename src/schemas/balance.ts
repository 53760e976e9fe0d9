import { type Shape, safeInteger, shape, text } from './shape.ts'

/**
 * Wallet balance (API document, "Balance").
 *
 * Undocumented fields are returned unchanged: add the fields that you use to the type, as in
 * {@link Order}, or check them with `schemas.balance`.
 */
export interface Balance {
  /** Wallet balance in minor currency units; always a safe integer. */
  readonly amount: number
  /** ISO 4217 currency code of `amount`. */
  readonly currency: string
}

export const balanceSchema: Shape<Balance> = /* @__PURE__ */ shape({
  amount: safeInteger,
  currency: text,
})
