import * as z from 'zod/mini'
import { anyText, atSight, isJsonObject, isSafeInteger, NO_OBJECT, safeInteger } from './check.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/**
 * Wallet balance (API document, "Balance"). Undocumented fields are returned unchanged: add the
 * fields that you use to the type, as in {@link Order}, or check them with `schemas.balance`.
 */
export interface Balance {
  /** Wallet balance in minor currency units; always a safe integer. */
  readonly amount: number
  /** ISO 4217 currency code of `amount`. */
  readonly currency: string
}

export const balanceSchema: StandardSchemaV1<unknown, Balance> = /* @__PURE__ */ atSight(
  (value): value is Balance =>
    isJsonObject(value) && isSafeInteger(value['amount']) && typeof value['currency'] === 'string',
  makeBalanceSchema,
)

export function makeBalanceSchema(): z.ZodMiniType<Balance> {
  return z.looseObject({ amount: safeInteger(), currency: anyText() }, NO_OBJECT)
}
