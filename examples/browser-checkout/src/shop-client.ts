/** The client of this page, and where it remembers orders. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'

export const client = new CustomerOrderingClient({
  // The proxy, which adds the API key.
  baseUrl: `${location.origin}/api`,
  apiKey: null,
  // Whose wallet it is. Keys are computed from it: choose it once and keep it.
  account: 'harbour',
  store: new IndexedDbStore({ name: 'orders' }),
  // A person is waiting. What is still open then is settled in the background.
  timeout: 10_000,
  totalTimeout: 20_000,
  maxRetries: 2,
})
