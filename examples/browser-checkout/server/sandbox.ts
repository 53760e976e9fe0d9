/**
 * The service for development and tests: a sandbox in memory, with a catalogue and a funded wallet.
 */
import { createSandbox, type Sandbox } from 'customer-ordering-sdk/sandbox'

export function createShopSandbox(): Sandbox {
  return createSandbox({
    balance: 100_000,
    services: [
      { productId: 'svc_profile_boost', amount: 250 },
      { productId: 'svc_newsletter_mention', amount: 1_900, maxQuantity: 20 },
      { productId: 'svc_impressions', amount: 3, minQuantity: 100, maxQuantity: 100_000, stepQuantity: 100 },
      { productId: 'svc_review_credits', amount: 40, minQuantity: 5, maxQuantity: 105, stepQuantity: 10 },
      { productId: 'svc_event_seat', amount: 4_500, maxQuantity: 8, stock: 0 },
      { productId: 'svc_brand_campaign', amount: 5_000_000, maxQuantity: 10 },
      { productId: 'svc_studio_day', amount: 120, minQuantity: 0.5, maxQuantity: 50, stepQuantity: 0.5 },
      { productId: 'svc_translation_page', amount: 1_450, maxQuantity: 200 },
      { productId: 'svc_photo_retouch', amount: 700, minQuantity: 3, maxQuantity: 60, stepQuantity: 3 },
    ],
  })
}
