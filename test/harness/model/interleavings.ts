/**
 * Calls of two clients over one store, side by side: fast-check's scheduler decides at every access to the store, every
 * request and every answer who goes on. Whatever it decides, all promises hold (`test/support/invariants.ts`), and a
 * recovery at the end finds what was charged.
 */
import fc from 'fast-check'
import { CustomerOrderingClient, MemoryStore, type OrderStore, responseInfo } from '../../../src/index.ts'
import { createSandbox, type Sandbox } from '../../../src/sandbox/index.ts'
import { amplification, INVARIANTS } from '../../support/invariants.ts'
import {
  type LoggedCall,
  type LoggedRead,
  type LoggedRequest,
  type RunLog,
  RunRecorder,
  recoveredOf,
  type Told,
  toldBy,
} from '../../support/run-log.ts'
import { storeOver, writesNoted } from '../../support/store-over.ts'
import { VirtualTime } from '../../support/virtual-time.ts'

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

const plans = fc.record({
  calls: fc.array(call, { minLength: 2, maxLength: 6 }),
  fates: fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 8 }),
  balance: fc.constantFrom(0, PRICE, 10 * PRICE),
  maxRetries: fc.nat(1),
})
type Plan = typeof plans extends fc.Arbitrary<infer T> ? T : never

const TOTAL_TIMEOUT = 60_000
/** Tells which call a request belongs to. */
const CALL_HEADER = 'x-call'

function requestOf(name: Name) {
  const named = name.startsWith('ref') ? { metadata: { externalOrderId: name } } : {}
  return { serviceId: 'svc_standard', target: `@${name}`, quantity: 1, ...named }
}
const optionsOf = (name: Name) => (name.startsWith('ref') ? {} : { idempotencyKey: name })
const queryOf = (name: Name) =>
  name.startsWith('ref') ? { externalOrderId: name } : { idempotencyKey: name }
const slotOf = (name: Name): string => `${name.slice(0, 3)}:${name}`

type Turn = (what: string) => Promise<unknown>

/** The store as one client sees it: each access begins and ends when the scheduler says so. */
function scheduled(memory: MemoryStore, log: RunRecorder, turn: Turn): OrderStore {
  const at = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    await turn(what)
    const done = await work()
    await turn(`${what} has ended`)
    return done
  }
  const store = writesNoted(memory, (row) => {
    log.row(row)
    log.printed.push(row.data)
  })
  return storeOver(store, {
    get: (scope, id) => at('get', () => store.get(scope, id)),
    insert: (row) => at('insert', () => store.insert(row)),
    update: (row, version) => at('update', () => store.update(row, version)),
    listOpen: (scope, options) => at('listOpen', () => store.listOpen(scope, options)),
    list: (scope, options) => at('list', () => store.list(scope, options)),
    close: async () => {},
  })
}

/** The service as one client reaches it; what becomes of an order request is told when it leaves. */
function scheduledFetch(
  sandbox: Sandbox,
  log: RunRecorder,
  time: VirtualTime,
  turn: Turn,
  nextFate: () => (typeof FATES)[number],
): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, init)
    const order = request.method === 'POST'
    const fate = order ? nextFate() : 'whole'
    const logged = order ? await leaves(request, log) : undefined
    const read = order ? undefined : reads(request, log)
    const hears = (status: number, code: string | undefined): void => {
      if (logged === undefined) return
      log.answered(logged, status, code, true)
      logged.answeredTime = time.now
    }
    await turn('request')
    if (fate === 'lost') throw new TypeError('fetch failed')
    if (fate === 'refused') {
      hears(422, 'NO')
      return Response.json({ code: 'NO' }, { status: 422 })
    }
    const response = await sandbox.fetch(request)
    if (read !== undefined) read.answered = response.ok
    if (logged !== undefined) noteCharge(sandbox, log, logged)
    await turn('answer')
    if (fate === 'answer lost') throw new TypeError('fetch failed')
    hears(response.status, /"code":"(\w+)"/.exec(await response.clone().text())?.[1])
    return response
  }
}

function callOf(request: Request): number {
  const call = request.headers.get(CALL_HEADER)
  must(call !== null, 'a request that belongs to no call')
  return Number(call)
}

function reads(request: Request, log: RunRecorder): LoggedRead {
  const { pathname, search } = new URL(request.url)
  return log.read({ path: `${pathname}${search}`, call: callOf(request) })
}

async function leaves(request: Request, log: RunRecorder): Promise<LoggedRequest> {
  const body = await request.clone().text()
  const { target } = JSON.parse(body) as { readonly target: string }
  return log.request({
    intent: target.slice(1),
    key: request.headers.get('idempotency-key') ?? '',
    body,
    call: callOf(request),
  })
}

/** Notes the debit that a request has brought about, if it did. */
function noteCharge(sandbox: Sandbox, log: RunRecorder, { intent, key, at, call }: LoggedRequest): void {
  for (const { idempotencyKey, orderId } of sandbox.ledger)
    if (idempotencyKey === key && log.charges.every((charge) => charge.orderId !== orderId))
      log.charge({ intent, key, orderId, requestedAt: at, ...(call === undefined ? {} : { call }) })
}

/**
 * The log without what a recovery sent under an order's next key at once, after it had heard a refusal once more: of an
 * order that was written down, it sends one request for each key.
 */
function withoutNextKeys(log: RunLog): RunLog {
  const recoveries = new Set(log.calls.filter(({ kind }) => kind === 'recover').map(({ id }) => id))
  const isNext = ({ call, intent, key, at }: LoggedRequest): boolean =>
    call !== undefined &&
    recoveries.has(call) &&
    log.requests.some(
      (refused) =>
        refused.call === call &&
        refused.intent === intent &&
        refused.key !== key &&
        refused.heard === true &&
        (refused.status ?? 0) >= 400 &&
        (refused.answeredAt ?? Number.POSITIVE_INFINITY) < at,
    )
  return { ...log, requests: log.requests.filter((request) => !isNext(request)) }
}

async function runPlan(plan: Plan, scheduler: fc.Scheduler): Promise<void> {
  const { calls, balance, maxRetries } = plan
  let { fates } = plan
  const time = new VirtualTime()
  const log = new RunRecorder()
  for (const name of NAMES) log.intent(name, [slotOf(name)])
  const sandbox = createSandbox({
    balance,
    now: () => time.now,
    sleep: (milliseconds) => time.sleep(sandbox, milliseconds),
    services: [{ productId: 'svc_standard', amount: PRICE }],
  })
  const store = new MemoryStore()
  const { baseUrl, apiKey } = sandbox
  log.secrets.push(apiKey)
  let requests = 0
  const nextFate = () => fates[requests++ % fates.length] ?? 'whole'
  const connect = (worker: number, turn: Turn) => {
    const owner = {}
    const client = new CustomerOrderingClient(
      {
        baseUrl,
        apiKey,
        account: 'shop',
        maxRetries,
        totalTimeout: TOTAL_TIMEOUT,
        fetch: scheduledFetch(sandbox, log, time, turn, nextFate),
        store: scheduled(store, log, turn),
      },
      time.runtime(owner, worker + 1),
    )
    return { client, owner }
  }
  const workers = [0, 1].map((worker) =>
    connect(worker, (what) => scheduler.schedule(Promise.resolve(), `${worker}: ${what}`)),
  )

  const run = async ({ worker, name, kind }: Call): Promise<void> => {
    const { client } = workers[worker] ?? {}
    if (client !== undefined) await (kind === 'recover' ? recover(client, {}) : place(client, kind, name))
  }
  const began = (kind: LoggedCall['kind'], intent?: Name): LoggedCall =>
    log.call({
      kind,
      ...(intent === undefined ? {} : { intent, ...optionsOf(intent) }),
      time: time.now,
      wall: time.now,
      totalTimeout: TOTAL_TIMEOUT,
      maxRetries,
    })
  const heardBy = (error: unknown): Told => {
    const told = toldBy(error)
    must(told.code !== 'invalid_request', String(error))
    log.printed.push(String(error), JSON.stringify(error))
    return told
  }
  const place = async (
    { orders }: CustomerOrderingClient,
    kind: 'create' | 'enqueue',
    name: Name,
  ): Promise<void> => {
    // Both ask for the order, so both explain a charge. An `enqueue()` says nothing of the wallet.
    const call = began('create', name)
    if (kind === 'enqueue') {
      await orders.enqueue(requestOf(name), optionsOf(name)).catch(heardBy)
      return log.ended(call, time.now, {})
    }
    const told = await orders
      .create(requestOf(name), { ...optionsOf(name), headers: { [CALL_HEADER]: String(call.id) } })
      .then((order): Told => {
        must(responseInfo(order) !== undefined, 'an order without its facts')
        return { charged: 'yes', orderId: order.id }
      }, heardBy)
    log.ended(call, time.now, { told })
  }
  const recover = async (
    { orders }: CustomerOrderingClient,
    options: { readonly takeOver?: boolean },
  ): Promise<void> => {
    const call = began('recover')
    call.recovered = []
    try {
      const headers = { [CALL_HEADER]: String(call.id) }
      for await (const outcome of orders.recover({ ...options, headers }))
        log.said(call, recoveredOf(outcome.record.slot.slice(4), outcome, time.now))
      log.ended(call, time.now, {})
    } catch (error) {
      log.ended(call, time.now, { told: heardBy(error) })
    }
  }
  await pumped(Promise.all(calls.map(run)), scheduler, time)
  for (const { client, owner } of workers) {
    await pumped(client.close(), scheduler, time)
    log.leftovers += time.pending(owner)
  }

  // Nothing goes wrong any more.
  fates = ['whole']
  const { client: last } = connect(2, async () => {})
  await time.run(recover(last, { takeOver: true }))
  log.recovered = true
  const broken = INVARIANTS.flatMap((promise) =>
    promise(promise === amplification ? withoutNextKeys(log) : log),
  )
  must(broken.length === 0, broken.join('\n'))

  const listed = log.calls.at(-1)?.recovered ?? []
  for (const { intent, orderId } of log.charges) {
    const name = NAMES.find((each) => each === intent)
    must(name !== undefined, `nobody wanted ${intent}`)
    const found = async (): Promise<void> => {
      let known = listed.some((each) => each.intent === name && each.outcome === 'needs_attention')
      for await (const record of last.orders.remembered(queryOf(name)))
        known ||= record.state === 'created' && record.order?.id === orderId
      must(known, `nobody knows of ${orderId}`)
    }
    await time.run(found())
  }
  must(log.charges.length === sandbox.ledger.length, 'a debit without a request')
  const left = sandbox.customer(sandbox.customerId).wallet?.amount
  must(left === balance - PRICE * sandbox.ledger.length, `the wallet holds ${left}`)
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

function must(held: boolean, what: string): asserts held {
  if (!held) throw new Error(what)
}

/** Draws that many runs; the report of a shrunk one in which something is wrong. */
export async function checkInterleavings(runs: number, seed: number): Promise<string | undefined> {
  const property = fc.asyncProperty(plans, fc.scheduler(), runPlan)
  const details = await fc.check(property, { numRuns: runs, seed })
  return details.failed ? `${fc.defaultReportMessage(details)}\n${String(details.errorInstance)}` : undefined
}
