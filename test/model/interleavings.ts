/**
 * Calls of two clients over one store, side by side: fast-check's scheduler decides at every access to the store, every
 * request and every answer who goes on. Whatever it decides, each order is charged once at most, whoever was told
 * something was told the truth, and a recovery at the end finds what was charged.
 */
import fc from 'fast-check'
import {
  CustomerOrderingClient,
  isCustomerOrderingError,
  MemoryStore,
  type OrderStore,
  responseInfo,
} from '../../src/index.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { VirtualTime } from '../support/virtual-time.ts'

const PRICE = 250
const NAMES = ['ref-0', 'ref-1', 'key-0'] as const
type Name = (typeof NAMES)[number]

/** What becomes of an order request. */
const FATES = ['whole', 'whole', 'whole', 'lost', 'answer lost', 'refused'] as const

const call = fc.record({
  worker: fc.nat(1),
  name: fc.constantFrom(...NAMES),
  kind: fc.constantFrom('create', 'create', 'create', 'recover', 'enqueue'),
})
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never

const plan = fc.record({
  calls: fc.array(call, { minLength: 2, maxLength: 6 }),
  fates: fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 8 }),
  balance: fc.constantFrom(0, PRICE, 10 * PRICE),
  maxRetries: fc.nat(1),
})
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

interface Told {
  readonly name: Name
  readonly charged: string
  readonly orderId?: string
}

function requestOf(name: Name) {
  const named = name.startsWith('ref') ? { metadata: { externalOrderId: name } } : {}
  return { serviceId: 'svc_standard', target: `@${name}`, quantity: 1, ...named }
}
const optionsOf = (name: Name) => (name.startsWith('ref') ? {} : { idempotencyKey: name })

/** The store as one client sees it: each access begins and ends when the scheduler says so. */
function scheduled(store: MemoryStore, turn: (what: string) => Promise<unknown>): OrderStore {
  const at = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    await turn(what)
    const done = await work()
    await turn(`${what} has ended`)
    return done
  }
  return {
    durability: 'memory',
    get: (scope, id) => at('get', () => store.get(scope, id)),
    insert: (row) => at('insert', () => store.insert(row)),
    update: (row, version) => at('update', () => store.update(row, version)),
    listOpen: (scope, options) => at('listOpen', () => store.listOpen(scope, options)),
    list: (scope, options) => at('list', () => store.list(scope, options)),
    prune: (scope, options) => store.prune(scope, options),
    close: async () => {},
  }
}

async function runPlan({ calls, fates, balance, maxRetries }: Plan, scheduler: fc.Scheduler): Promise<void> {
  const time = new VirtualTime()
  const sandbox = createSandbox({
    balance,
    now: () => time.now,
    sleep: (milliseconds) => time.sleep(sandbox, milliseconds),
    services: [{ productId: 'svc_standard', amount: PRICE }],
  })
  const store = new MemoryStore()
  const { baseUrl, apiKey } = sandbox
  const base = { baseUrl, apiKey, account: 'shop', maxRetries, totalTimeout: 60_000 }
  let requests = 0
  const clients = [0, 1].map((worker) => {
    const turn = (what: string) => scheduler.schedule(Promise.resolve(), `${worker}: ${what}`)
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const fate = init?.method === 'POST' ? fates[requests++ % fates.length] : 'whole'
      await turn('request')
      if (fate === 'lost') throw new TypeError('fetch failed')
      if (fate === 'refused') return Response.json({ code: 'NO' }, { status: 422 })
      const response = await sandbox.fetch(input, init)
      await turn('answer')
      if (fate === 'answer lost') throw new TypeError('fetch failed')
      return response
    }
    return new CustomerOrderingClient(
      { ...base, fetch, store: scheduled(store, turn) },
      time.runtime({}, worker + 1),
    )
  })

  const told: Told[] = []
  const run = async ({ worker, name, kind }: Call): Promise<void> => {
    const { orders } = clients[worker] ?? {}
    if (orders === undefined) return
    try {
      if (kind === 'recover') for await (const _ of orders.recover());
      else if (kind === 'enqueue') await orders.enqueue(requestOf(name), optionsOf(name))
      else {
        const order = await orders.create(requestOf(name), optionsOf(name))
        must(responseInfo(order) !== undefined, 'an order without its facts')
        told.push({ name, charged: 'yes', orderId: order.id })
      }
    } catch (error) {
      if (!isCustomerOrderingError(error)) throw error
      if (kind === 'create') told.push({ name, charged: error.charged })
    }
  }
  await pumped(Promise.all(calls.map(run)), scheduler, time)

  for (const name of NAMES) {
    const charges = sandbox.ledger.filter(({ orderId }) => targetOf(orderId) === `@${name}`)
    must(charges.length <= 1, `${name} was charged ${charges.length} times`)
    for (const { charged, orderId } of told.filter((each) => each.name === name)) {
      if (charged === 'yes') must(charges[0]?.orderId === orderId, `${name} was told another order`)
    }
    const others = calls.some(
      ({ name: other, kind }) => kind !== 'create' && (other === name || kind === 'recover'),
    )
    const all = told.filter((each) => each.name === name)
    if (!others && all.length > 0 && all.every(({ charged }) => charged === 'no'))
      must(charges.length === 0, `everybody was told 'no' of ${name}, which was charged`)
  }

  const last = new CustomerOrderingClient({ ...base, fetch: sandbox.fetch, store }, time.runtime({}, 3))
  const listed: string[] = []
  const recovered = async (): Promise<void> => {
    for await (const { record } of last.orders.recover({ takeOver: true })) listed.push(record.slot)
  }
  await time.run(recovered())
  for (const { orderId } of sandbox.ledger) {
    const name = String(targetOf(orderId)).slice(1)
    const query = name.startsWith('ref') ? { externalOrderId: name } : { idempotencyKey: name }
    const found = async (): Promise<void> => {
      let known = false
      for await (const record of last.orders.remembered(query)) known ||= record.order?.id === orderId
      must(known || listed.some((slot) => slot.endsWith(name)), `nobody knows of ${orderId}`)
    }
    await time.run(found())
    must(
      sandbox.ledger.filter((charge) => targetOf(charge.orderId) === `@${name}`).length === 1,
      `recovery charged ${name} again`,
    )
  }
  const left = sandbox.customer(sandbox.customerId).wallet?.amount
  must(left === balance - PRICE * sandbox.ledger.length, `the wallet holds ${left}`)

  function targetOf(orderId: string): string | undefined {
    return sandbox.orders().find(({ id }) => id === orderId)?.target
  }
}

/** Lets the scheduler choose until the work is done; time passes only while there is nothing to choose from. */
async function pumped(work: Promise<unknown>, scheduler: fc.Scheduler, time: VirtualTime): Promise<void> {
  let over = false
  const end = (): void => {
    over = true
  }
  work.then(end, end)
  for (let idle = 0; !over; ) {
    await new Promise((resolve) => setImmediate(resolve))
    if (over) break
    if (scheduler.count() > 0) {
      idle = 0
      await scheduler.waitOne()
    } else {
      must(++idle < 20_000, 'everybody waits for ever')
      await time.advance(25)
    }
  }
  await work
}

function must(held: boolean, what: string): void {
  if (!held) throw new Error(what)
}

/** Draws that many runs; the report of a shrunk one in which something is wrong. */
export async function checkInterleavings(runs: number, seed: number): Promise<string | undefined> {
  const property = fc.asyncProperty(plan, fc.scheduler(), runPlan)
  const details = await fc.check(property, { numRuns: runs, seed })
  return details.failed ? `${fc.defaultReportMessage(details)}\n${String(details.errorInstance)}` : undefined
}
