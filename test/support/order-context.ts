import { Reporter } from '../../src/hooks.ts'
import type { Connection } from '../../src/http/call.ts'
import { Journal } from '../../src/idempotency/journal.ts'
import { liveCalls } from '../../src/idempotency/live.ts'
import type { OrderContext } from '../../src/resources/order-context.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import { fakeRuntime } from './runtime.ts'

/** What the order methods share, over an empty store of its own; nothing is sent unless `connection` says how. */
export function orderContext(
  changes: Partial<Omit<OrderContext, 'connection'>> = {},
  connection: Partial<Connection> = {},
): OrderContext {
  const runtime = connection.runtime ?? fakeRuntime()
  const store = new MemoryStore()
  return {
    connection: {
      baseUrl: 'https://api.example.com',
      transport: () => Promise.reject(new Error('nothing is sent')),
      credentials: { rotates: false, get: () => 'key' },
      headers: {},
      runtime,
      reporter: new Reporter({}, undefined, 'off'),
      ...connection,
    },
    journal: new Journal({ store, scope: 's', codec: undefined, runtime }),
    live: liveCalls(store, 's'),
    server: 'https://api.example.com',
    account: 'shop',
    safeRetryWindow: 1000,
    idempotencyScope: 'apiKey',
    remember: 'order',
    listEnvelope: undefined,
    retention: { created: 1, rejected: 1 },
    ...changes,
  }
}
