// A process of the fleet. It may be killed or paused at any moment, so it writes each event to its
// log synchronously before it continues: a kill cannot erase what it has received or reported.
import { AsyncLocalStorage } from 'node:async_hooks'
import { openSync, writeSync } from 'node:fs'
import { CustomerOrderingClient, isCustomerOrderingError, type Order } from '../../../../src/index.ts'
import { seeded } from '../../../../src/stores/contract/seeded.ts'
import type { OrderStore, StoredRow } from '../../../../src/stores/store.ts'
import { type Recovered, recoveredOf, type Told, toldBy } from '../../../support/run-log.ts'
import { CALL_HEADER, type Happening, machineTime, type Task } from '../events.ts'
import { openStore } from '../open-store.ts'

/** How often a process calls create() for one order before it leaves the rest to others. */
const TRIES = 4
/** How often all orders are processed after the disturbances. */
const FINISHES = 8

/** Milliseconds after which a person tries again to abandon an order that a call may still send. */
const COME_BACK = 6 * 60_000

/** A person's time passes without a wait. */
let ahead = 0
const clock = Date.now
Date.now = () => clock() + ahead

const task = JSON.parse(process.argv[2] ?? '') as Task
const random = seeded(task.seed)
const log = openSync(task.log, 'a')
const calls = new AsyncLocalStorage<string>()
let callsMade = 0
/** Store operations that a call waits for. */
const unanswered = new Map<string, number>()

function note(happening: Happening): void {
  writeSync(log, `${JSON.stringify({ at: machineTime(), wall: Date.now(), ...happening })}\n`)
}

function ofCall(): { readonly call?: string } {
  const call = calls.getStore()
  return call === undefined ? {} : { call }
}

/** The store, with a log of all calls and results. */
function watched(store: OrderStore): OrderStore {
  const asked = async <T>(operation: () => Promise<T>): Promise<T> => {
    const call = calls.getStore() ?? ''
    note({ event: 'asked', ...ofCall() })
    unanswered.set(call, (unanswered.get(call) ?? 0) + 1)
    try {
      return await operation()
    } catch (error) {
      note({ event: 'store_failed', ...ofCall() })
      throw error
    } finally {
      unanswered.set(call, (unanswered.get(call) ?? 0) - 1)
    }
  }
  const saw = (row: StoredRow): void => note({ event: 'saw', row, ...ofCall() })
  const written = async <T>(row: StoredRow, write: () => Promise<T>, done: (result: T) => boolean) => {
    note({ event: 'writing', row, ...ofCall() })
    const result = await asked(write)
    if (done(result)) note({ event: 'wrote', row, ...ofCall() })
    return result
  }
  const listed = async <Page extends { readonly rows: readonly StoredRow[] }>(read: () => Promise<Page>) => {
    const page = await asked(read)
    page.rows.forEach(saw)
    return page
  }
  return {
    durability: store.durability,
    get: async (scope, id) => {
      const row = await asked(() => store.get(scope, id))
      if (row !== undefined) saw(row)
      return row
    },
    insert: async (row) => {
      const result = await written(
        row,
        () => store.insert(row),
        ({ inserted }) => inserted,
      )
      if (!result.inserted) saw(result.current)
      return result
    },
    update: (row, expectedVersion) =>
      written(
        row,
        () => store.update(row, expectedVersion),
        (updated) => updated,
      ),
    listOpen: (scope, options) => listed(() => store.listOpen(scope, options)),
    list: (scope, options) => listed(() => store.list(scope, options)),
    prune: (scope, options) => asked(() => store.prune(scope, options)),
    close: () => store.close(),
  }
}

const { store, close } = await openStore(task.store)
const client = new CustomerOrderingClient({
  baseUrl: task.baseUrl,
  apiKey: task.apiKey,
  account: 'fleet',
  server: 'fleet',
  store: watched(store),
  timeout: task.timeout,
  totalTimeout: task.totalTimeout,
  maxRetries: task.maxRetries,
  safeRetryWindow: task.safeRetryWindow,
  hooks: {
    onRequest: ({ idempotencyKey: key }) => {
      if (key !== undefined) note({ event: 'sending', key, ...ofCall() })
    },
    onResponse: ({ outcome, requestId }) => {
      if (outcome === 'answer' && requestId !== undefined) note({ event: 'heard', requestId, ...ofCall() })
    },
    onSettled: ({ remembered }) => {
      if (remembered === false) note({ event: 'unstored', ...ofCall() })
    },
  },
})

/** Runs one public call with its own name. */
async function called<T>(
  kind: 'create' | 'recover' | 'resolve',
  reference: string | undefined,
  action: (call: string) => Promise<T>,
): Promise<T> {
  const call = `${task.name}-${++callsMade}`
  note({ event: 'began', call, kind, ...(reference === undefined ? {} : { reference }) })
  const since = Date.now()
  const ending = calls.run(call, () => action(call))
  note({ event: 'called', call, since })
  return await ending
}

function create(reference: string): Promise<Told> {
  return called('create', reference, async (call) => {
    const told = await client.orders
      .create(
        {
          serviceId: task.dear?.includes(reference) ? 'svc_premium' : 'svc_standard',
          target: '@fleet',
          quantity: 1,
          metadata: { externalOrderId: reference },
        },
        { headers: { [CALL_HEADER]: call } },
      )
      .then(({ id }): Told => ({ charged: 'yes', orderId: id }), toldBy)
    note({ event: 'told', call, told, waiting: (unanswered.get(call) ?? 0) > 0 })
    return told
  })
}

/** Recovers open orders. Returns the outcomes so far if the store fails. */
function recover(takeOver: boolean): Promise<readonly Recovered[]> {
  return called('recover', undefined, async (call) => {
    const recovered: Recovered[] = []
    try {
      const outcomes = client.orders.recover({ takeOver, headers: { [CALL_HEADER]: call } })
      for await (const outcome of outcomes)
        recovered.push(recoveredOf(outcome.record.externalOrderId ?? '', outcome, Date.now()))
    } catch (error) {
      if (!isCustomerOrderingError(error)) throw error
    }
    note({ event: 'recovered', call, recovered })
    return recovered
  })
}

async function race(references: readonly string[], tries: number): Promise<readonly string[]> {
  const waiting = references.map((reference) => ({ reference, left: tries }))
  for (let last = waiting.length - 1; last > 0; last--) {
    const other = random(last + 1)
    const [one, two] = [waiting[last], waiting[other]]
    if (one !== undefined && two !== undefined) [waiting[last], waiting[other]] = [two, one]
  }
  const wanted: string[] = []
  await Promise.all(
    Array.from({ length: task.concurrency }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { charged, orderId, code } = await create(next.reference)
        if (charged === 'yes' && orderId !== undefined) continue
        // An unresolved order needs a person.
        if (next.left > 1 && code !== 'unresolved_order') waiting.push({ ...next, left: next.left - 1 })
        else wanted.push(next.reference)
      }
    }),
  )
  return wanted
}

/** The sandbox returns an order's metadata as it was sent. */
function externalOrderIdOf(order: Order): unknown {
  const { metadata }: Readonly<Record<string, unknown>> = { ...order }
  return typeof metadata === 'object' && metadata !== null && 'externalOrderId' in metadata
    ? metadata.externalOrderId
    : undefined
}

/**
 * Acts as a person for orders that need one: looks them up at the service, and reports the result
 * to the client.
 */
async function decide(references: readonly string[]): Promise<void> {
  for (const reference of references)
    await called('resolve', reference, async (call) => {
      while (!(await isResolved(reference, call))) ahead += COME_BACK
      note({ event: 'resolved', call })
    })
}

/**
 * Looks the order up and reports a person's decision. Returns false if the client does not accept
 * an abandonment yet: a call whose claim another call took over may still send the order, and that
 * the call was killed shows only when its claim ends.
 */
async function isResolved(externalOrderId: string, call: string): Promise<boolean> {
  const orders = await client.orders.list({ limit: 100 }).toArray({ max: 10_000 })
  const found = orders.find((each) => externalOrderIdOf(each) === externalOrderId)
  const how =
    found === undefined ? ({ as: 'abandoned' } as const) : ({ as: 'created', orderId: found.id } as const)
  try {
    await client.orders.resolve({ externalOrderId }, how, { headers: { [CALL_HEADER]: call } })
    return true
  } catch (error) {
    const waits = isCustomerOrderingError(error) && error.code === 'unresolved_order'
    if (waits && found === undefined) return false
    throw error
  }
}

if (task.role === 'race') {
  if (task.recover !== 'no') await recover(task.recover === 'takeOver')
  await race(task.references, TRIES)
} else {
  let wanted = task.references
  for (let round = 0; round < FINISHES && wanted.length > 0; round++) {
    const outcomes = await recover(true)
    const attention = outcomes.filter(({ outcome }) => outcome === 'needs_attention')
    if (attention.length > 0) await decide(attention.map(({ intent }) => intent))
    wanted = await race(wanted, 1)
  }
  await recover(false)
}
await client.close()
await close()
