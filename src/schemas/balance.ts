import * as z from 'zod/mini'
import { anyText, NO_OBJECT, safeInteger } from './check.ts'

/** Wallet balance (API document, "Balance"). Fields the document does not show are kept. */
export interface Balance {
  /** Wallet balance in minor currency units; always a safe integer. */
  readonly amount: number
  /** ISO 4217 currency code of `amount`. */
  readonly currency: string
  readonly [field: string]: unknown
}

/** Checks a balance as the service returned it. */
export const balanceSchema: z.ZodMiniType<Balance> = z.looseObject(
  {
    amount: safeInteger,
    currency: anyText,
  },
  NO_OBJECT,
)
