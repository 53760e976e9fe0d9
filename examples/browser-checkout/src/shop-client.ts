/** The client of this page, and where it remembers orders. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'

export const client = new CustomerOrderingClient({
  // The proxy, which adds the API key.
  baseUrl: `${location.origin}/api`,
  apiKey: null,
  // The service behind the proxy, and the owner of the wallet. Idempotency keys are computed from
  // both, so choose them once and keep them. Without `server`, the same order could be bought at
  // two addresses of the shop, with and without www.
  server: 'https://api.example.com',
  account: 'harbour.example/main-wallet',
  store: new IndexedDbStore({ name: 'orders' }),
  // A person is waiting. An order that is still open after this time is settled in the background.
  timeout: 10_000,
  totalTimeout: 20_000,
  maxRetries: 2,
})
