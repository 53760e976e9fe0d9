/** The client of this page, and where it remembers orders. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'

export const client = new CustomerOrderingClient({
  // The proxy, which adds the API key.
  baseUrl: `${location.origin}/api`,
  apiKey: null,
  // The service behind it and whose wallet it is. Keys are computed from both, and with the address that the visitor typed
  // in place of `server`, an order would be bought once with www and once without. Choose them once and keep them.
  server: 'https://api.example.com',
  account: 'harbour.example/main-wallet',
  store: new IndexedDbStore({ name: 'orders' }),
  // A person is waiting. What is still open then is settled in the background.
  timeout: 10_000,
  totalTimeout: 20_000,
  maxRetries: 2,
})
