import type { NewService } from './options.ts'
import { assertShape } from './shape.ts'
import { type SandboxService, serviceShape } from './state.ts'

/** The default wallet can pay for every product except `svc_premium`. */
export const defaultCatalogue: readonly NewService[] = [
  { productId: 'svc_standard', amount: 250 },
  { productId: 'svc_bulk', amount: 3, minQuantity: 100, maxQuantity: 100_000, stepQuantity: 100 },
  // The valid quantities of `svc_offset` depend on the switch `stepFrom`.
  { productId: 'svc_offset', amount: 40, minQuantity: 5, maxQuantity: 105, stepQuantity: 10 },
  { productId: 'svc_fractional', amount: 120, minQuantity: 0.5, maxQuantity: 50, stepQuantity: 0.5 },
  { productId: 'svc_sold_out', amount: 199, stock: 0 },
  { productId: 'svc_premium', amount: 5_000_000, maxQuantity: 10 },
  { productId: 'svc_draft', amount: 75, published: false },
]

/** @throws {TypeError} if a value is invalid */
export function serviceRow(service: NewService, currency: string): SandboxService {
  const quantities = { minQuantity: 1, maxQuantity: 1000, stepQuantity: 1 }
  const row = { currency, ...quantities, stock: null, published: true, ...service }
  assertShape<SandboxService>(row, serviceShape, 'service')
  return row
}
