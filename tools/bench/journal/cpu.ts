/**
 * CPU time of `create()` with a `MemoryStore`, compared with two variants. The first uses a store
 * that keeps nothing. The second has no journal: it has the same validation, body, transport over a
 * real socket and parsing, but no identity, record or settling. The service is another process, so
 * that only the client's CPU counts.
 *
 * node tools/bench/journal/cpu.ts [ROUNDS]
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { CustomerOrderingClient } from '../../../src/client.ts'
import { Reporter } from '../../../src/hooks.ts'
import { sendOver } from '../../../src/http/attempt.ts'
import { type Connection, perform } from '../../../src/http/call.ts'
import { Deadline } from '../../../src/http/deadline.ts'
import { kyTransport } from '../../../src/http/ky-transport.ts'
import { infoLater, MAX_ITEM_BYTES } from '../../../src/http/request.ts'
import { canonicalJson } from '../../../src/identity/canonical.ts'
import { classify } from '../../../src/orders/protocol/outcome.ts'
import { CREATE_ORDER, ORDERS_PATH } from '../../../src/orders/record/context.ts'
import { attachInfo } from '../../../src/response-info.ts'
import { platformRuntime as runtime } from '../../../src/runtime.ts'
import { check } from '../../../src/schemas/check.ts'
import { type CreateOrderRequest, createOrderRequestSchema, type Order } from '../../../src/schemas/order.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { positiveInteger, readArguments } from '../../programs/arguments.ts'
import { noStore } from '../no-store.ts'
import { median } from './median.ts'

const ROUNDS = readArguments(
  {
    usage: `npx node tools/bench/journal/cpu.ts [ROUNDS]
  that many rounds (default 40)`,
    positionals: 1,
    options: {},
  },
  ({ positionals: [rounds = '40'] }) => positiveInteger('ROUNDS', rounds),
)
const ORDERS = 500
const WARM_UP = 6

const server = fork(fileURLToPath(new URL('server.ts', import.meta.url)))
const [port] = (await once(server, 'message')) as [number]
const baseUrl = `http://127.0.0.1:${port}`
const apiKey = 'sk_bench'

let number = 0
const request = (): CreateOrderRequest => ({
  serviceId: 'svc_standard',
  target: '@someone',
  quantity: 10,
  metadata: { externalOrderId: `order-${++number}` },
})

const connection: Connection = {
  baseUrl,
  send: sendOver(kyTransport(), runtime),
  mayResend: false,
  credentials: { get: () => apiKey, rotates: false },
  headers: {},
  runtime,
  reporter: new Reporter({}, undefined, 'off'),
}

/** Places the order as a client without a journal would. */
async function createWithoutJournal(wanted: CreateOrderRequest): Promise<Order> {
  const checked = check(createOrderRequestSchema, wanted)
  if (checked instanceof Promise || !('value' in checked)) throw new Error('the request is wrong')
  const body = canonicalJson(checked.value)
  const deadline = new Deadline(runtime, 120_000, undefined)
  const ending = await perform<Order>(connection, {
    endpoint: CREATE_ORDER,
    path: ORDERS_PATH,
    query: undefined,
    body,
    idempotencyKey: runtime.randomId(),
    settings: { signal: undefined, timeout: 30_000, totalTimeout: 120_000, maxRetries: 4, headers: {} },
    deadline,
    callId: runtime.randomId(),
    maxBytes: MAX_ITEM_BYTES,
    attemptsBefore: 0,
    credential: undefined,
    beforeSend: undefined,
    isLate: undefined,
    judge: (result) => {
      const { order } = classify(result, () => undefined)
      return order === undefined ? { next: 'stop' } : { next: 'done', value: order }
    },
  })
  if (ending.end !== 'done') throw new Error(`the service did not answer: ${ending.end}`)
  attachInfo(ending.value, infoLater(ending.trail, deadline.elapsed()))
  return ending.value
}

/** Microseconds of CPU per order, averaged over many concurrent orders. */
async function cpuOf(create: (wanted: CreateOrderRequest) => Promise<Order>): Promise<number> {
  const before = process.cpuUsage()
  let left = ORDERS
  const worker = async (): Promise<void> => {
    while (left-- > 0) await create(request())
  }
  await Promise.all([1, 2, 3, 4].map(worker))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / ORDERS
}

/** Measures a new client, so that no round pays for the records of earlier rounds. */
async function cpuOfClient(store: OrderStore): Promise<number> {
  const client = new CustomerOrderingClient({ baseUrl, apiKey, account: 'bench', store })
  const spent = await cpuOf((wanted) => client.orders.create(wanted))
  await client.close()
  return spent
}

const SUBJECTS = {
  'no journal': () => cpuOf(createWithoutJournal),
  'no store': () => cpuOfClient(noStore),
  MemoryStore: () => cpuOfClient(new MemoryStore()),
}
type Subject = keyof typeof SUBJECTS
const NAMES = ['no journal', 'no store', 'MemoryStore'] as const satisfies readonly Subject[]

const spent: Record<Subject, number[]> = { 'no journal': [], 'no store': [], MemoryStore: [] }
for (let round = -WARM_UP; round < ROUNDS; round++) {
  // Alternate in changing order, so that neither load nor warm-up favours a variant.
  for (const [place] of NAMES.entries()) {
    const name = NAMES[(place + round + WARM_UP) % NAMES.length] ?? 'MemoryStore'
    const cost = await SUBJECTS[name]()
    if (round >= 0) spent[name].push(cost)
  }
}
const ratiosTo = (base: Subject): number[] =>
  spent.MemoryStore.map((cost, round) => cost / (spent[base][round] ?? Number.NaN)).sort((a, b) => a - b)
for (const name of NAMES)
  console.log(`${name.padEnd(12)} ${median(spent[name]).toFixed(1)} µs of CPU per order`)
for (const base of ['no store', 'no journal'] as const) {
  const ratios = ratiosTo(base)
  const [low, high] = [ratios[Math.floor(ratios.length / 4)], ratios[Math.floor((ratios.length * 3) / 4)]]
  console.log(
    `MemoryStore / ${base}: ${median(ratios).toFixed(3)} (middle half ${low?.toFixed(3)} to ${high?.toFixed(3)}; ${ROUNDS} rounds of ${ORDERS} orders)`,
  )
}
server.disconnect()
