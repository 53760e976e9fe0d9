import { Reporter } from '../../src/hooks.ts'
import type { CallSettings, Connection } from '../../src/http/call.ts'
import { canonicalJson, type Member } from '../../src/identity/canonical.ts'
import { derivedKey, fingerprintOf } from '../../src/identity/keys.ts'
import { Lifetime } from '../../src/lifetime.ts'
import type { Codec } from '../../src/options.ts'
import type { OrdersContext } from '../../src/orders/record/context.ts'
import { Journal } from '../../src/orders/record/journal.ts'
import type { RecordContent } from '../../src/orders/record/record.ts'
import type { Runtime } from '../../src/runtime.ts'
import { type Order, orderSchema } from '../../src/schemas/order.ts'
import { reader } from '../../src/schemas/shape.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import type { OrderStore } from '../../src/stores/store.ts'
import { uuidV5 } from '../../src/uuid-v5.ts'
import { fakeRuntime } from './runtime.ts'

export const MINUTE = 60_000
export const WINDOW = 20 * MINUTE
export const NOW = 1_700_000_000_000

/** An order as the service returns it. */
export const ORDER = {
  id: 'o1',
  serviceId: 's',
  target: 't',
  quantity: 1,
  amount: 5,
  currency: 'EUR',
  status: 'pending',
}

/** Server and account of the records in these tests. */
export const OWNER = { server: 'https://api.example.com', account: 'shop' } as const

export function journalOver(store: OrderStore, runtime: Runtime, codec?: Codec): Journal {
  const retention = { created: 1, rejected: 1 }
  const reporter = new Reporter({}, undefined, 'off')
  return new Journal({ store, scope: 's', codec, runtime, reporter, retention })
}

/** The key that this package derives for a reference in these tests. */
export function derivedFor(externalOrderId: string, generation = 0): string {
  return derivedKey(uuidV5, { ...OWNER, externalOrderId, generation })
}

/** Two minutes for the whole call and no retries by default. */
export const callSettings = (changes: Partial<CallSettings> = {}): CallSettings => ({
  signal: undefined,
  timeout: 30_000,
  totalTimeout: 120_000,
  maxRetries: 0,
  headers: {},
  ...changes,
})

/**
 * The context of the order methods, with an empty store. Nothing is sent unless `connection`
 * defines how.
 */
export function orderContext(
  changes: Partial<Omit<OrdersContext<Order>, 'connection'>> = {},
  connection: Partial<Connection> = {},
): OrdersContext<Order> {
  const runtime = connection.runtime ?? fakeRuntime()
  const store = new MemoryStore()
  return {
    connection: {
      baseUrl: 'https://api.example.com',
      send: () => Promise.reject(new Error('nothing is sent')),
      mayResend: false,
      credentials: { rotates: false, get: () => 'key' },
      headers: {},
      runtime,
      reporter: new Reporter({}, undefined, 'off'),
      ...connection,
    },
    journal: journalOver(store, runtime),
    lifetime: new Lifetime(),
    defaults: callSettings(),
    ...OWNER,
    safeRetryWindow: 1000,
    idempotencyScope: 'apiKey',
    remember: 'order',
    listEnvelope: undefined,
    parse: reader<Order>(orderSchema, undefined).parse,
    ...changes,
  }
}

/** The fields of a request, and their canonical JSON. */
export const REQUEST = { quantity: 1, serviceId: 's', target: 't' } as const
export const MEMBERS = Object.entries(REQUEST).map(([name, value]): Member => [name, JSON.stringify(value)])

/** An open record of the order r1, in doubt after a call. */
export const LEFT_OPEN: RecordContent = {
  ...{ slot: 'ref:r1', externalOrderId: 'r1', key: derivedFor('r1'), origin: 'derived', generation: 0 },
  ...{ state: 'open', ambiguous: true, attempts: 1, apiKeyTag: 'tag', claim: 'claim' },
  fingerprint: fingerprintOf('ref:r1', MEMBERS),
  body: canonicalJson({ metadata: { externalOrderId: 'r1' }, ...REQUEST }),
}
