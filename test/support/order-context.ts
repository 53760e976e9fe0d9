import { Reporter } from '../../src/hooks.ts'
import type { Connection } from '../../src/http/call.ts'
import { Deadline } from '../../src/http/deadline.ts'
import type { OrderContext } from '../../src/orders/context.ts'
import { rowIdOf } from '../../src/orders/identity.ts'
import { type Found, type FoundRecord, Journal } from '../../src/orders/journal.ts'
import { liveCalls } from '../../src/orders/live.ts'
import type { JournalRecord, RecordContent } from '../../src/orders/record.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import { fakeRuntime } from './runtime.ts'

/**
 * The context of the order methods, with an empty store. Nothing is sent unless `connection`
 * defines how.
 */
export function orderContext(
  changes: Partial<Omit<OrderContext, 'connection'>> = {},
  connection: Partial<Connection> = {},
): OrderContext {
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

/** An open record of an order with the reference `r1`, in doubt after a call. */
export const LEFT_OPEN: RecordContent = {
  slot: 'ref:r1',
  key: 'key-r1',
  keyOrigin: 'derived',
  generation: 0,
  state: 'open',
  ambiguous: true,
  externalOrderId: 'r1',
  attempts: 1,
  fingerprint: 'fingerprint',
  fields: {},
  body: '{}',
  apiKeyTag: 'tag',
  claim: 'claim',
  readable: false,
  refused: false,
  foreign: false,
}

/** Stores a record with the id of its slot, over the given row if there is one. */
export async function remember(
  { connection, journal }: OrderContext,
  content: RecordContent,
  over: Found = { id: rowIdOf(connection.runtime.deriveId, content.slot) },
): Promise<FoundRecord> {
  const written = await journal.write(over, content, new Deadline(connection.runtime, 1000, undefined))
  if (written.result !== 'written') throw new Error(`the record is not written: ${written.result}`)
  return written.found
}

export async function recordOf(
  { connection, journal }: OrderContext,
  slot: string,
): Promise<JournalRecord | undefined> {
  const { runtime } = connection
  const found = await journal.load(rowIdOf(runtime.deriveId, slot), new Deadline(runtime, 1000, undefined))
  return 'why' in found ? undefined : found.record
}

/** The stored records, as a read returns them. */
export async function storedRecords({ journal }: OrderContext): Promise<FoundRecord[]> {
  const stored: FoundRecord[] = []
  for await (const row of journal.rows({ since: 0 })) {
    const record = await journal.decode(row)
    if (typeof record === 'object') stored.push({ id: row.id, row, record })
  }
  return stored
}
