import type { SandboxService } from './state.ts'

/** The default wallet can pay for every product except `svc_premium`. */
export function defaultCatalogue(currency: string): readonly SandboxService[] {
  const base = { currency, minQuantity: 1, maxQuantity: 1000, stepQuantity: 1, stock: null, published: true }
  return [
    { ...base, productId: 'svc_standard', amount: 250 },
    { ...base, productId: 'svc_bulk', amount: 3, minQuantity: 100, maxQuantity: 100_000, stepQuantity: 100 },
    // The valid quantities of `svc_offset` depend on the switch `stepFrom`.
    { ...base, productId: 'svc_offset', amount: 40, minQuantity: 5, maxQuantity: 105, stepQuantity: 10 },
    {
      ...base,
      productId: 'svc_fractional',
      amount: 120,
      minQuantity: 0.5,
      maxQuantity: 50,
      stepQuantity: 0.5,
    },
    { ...base, productId: 'svc_sold_out', amount: 199, stock: 0 },
    { ...base, productId: 'svc_premium', amount: 5_000_000, maxQuantity: 10 },
    { ...base, productId: 'svc_draft', amount: 75, published: false },
  ]
}
