import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import {
  type ClientOptions,
  type CreateOptions,
  CustomerOrderingClient,
  type Transport,
} from 'customer-ordering-sdk'
import { createSandbox, type FaultAction, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { undiciTransport } from 'customer-ordering-sdk/undici'
import { expect, it, onTestFinished } from 'vitest'
import { scopeOf } from '../../src/identity/keys.ts'
import { judgeOutcome, OUTCOMES, type OutcomeKind } from '../../src/orders/protocol/outcome.ts'
import { isPending } from '../../src/orders/record/record.ts'
import { platformRuntime, type Runtime } from '../../src/runtime.ts'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import { transportUnderTest } from '../support/attempt.ts'
import { TRUSTED } from '../support/certificates.ts'
import { sample } from '../support/effort.ts'
import { order, type Told, told } from '../support/lab.ts'
import { MEANING } from '../support/meaning.ts'
import { type RawRequest, rawServer } from '../support/raw-server.ts'
import { recordIn, storeOver } from '../support/stores.ts'
import { refusing, serving } from './addresses.ts'

/** Time runs twenty times as fast, and waits are minimal. */
const SPEED = 20
const runtime: Partial<Runtime> = {
  now: () => 1_700_000_000_000 + Math.round(performance.now() * SPEED),
  monotonic: () => performance.now() * SPEED,
  setTimer: (callback, milliseconds) => platformRuntime.setTimer(callback, milliseconds / SPEED),
  random: () => 0,
}

const MAX_RETRIES = 2
const LABELS = { server: 'service', account: 'shop' } as const

/** A request as received over the socket. */
interface Arrived {
  readonly key: string | null | undefined
  readonly body: string
}

/** A service on a port, the caller's store, and the received requests. */
interface Bench {
  readonly sandbox: Sandbox
  readonly url: string
  readonly store: MemoryStore
  readonly arrived: Arrived[]
  /** Called when a request has arrived and its response, if any, is being sent. */
  onArrival: () => void
}

/** How an outcome is caused. */
interface Scenario {
  /** The service's fault for every such request. Undefined means a normal response. */
  readonly fault?: FaultAction
  /** True if the service processes such a request. */
  readonly commits?: boolean
  /** A server other than the sandbox that causes the outcome. */
  readonly elsewhere?: (bench: Bench) => Promise<string>
  readonly options?: CreateOptions
  readonly transport?: () => Promise<Transport>
  /** When the caller aborts. */
  readonly abort?: 'on arrival' | 'at the claim'
}

const status = (code: number, name?: string): Scenario => ({
  fault: { type: 'status', status: code, ...(name === undefined ? {} : { code: name }) },
})

/** One scenario for each row of the table. A missing kind does not compile. */
const SCENARIOS: Readonly<Record<OutcomeKind, Scenario>> = {
  created: { commits: true },
  created_flawed: { fault: { type: 'transformBody', patch: { amount: 'much' } }, commits: true },
  created_unreadable: { fault: { type: 'cutBody' }, commits: true },
  success_unreadable: {
    fault: { type: 'bytes', body: '<html>', contentType: 'text/html', status: 200 },
    commits: true,
  },
  contradicted: {
    fault: { type: 'transformBody', patch: { id: 'ord_of_another', metadata: { externalOrderId: 'r2' } } },
    commits: true,
  },
  redirected: { fault: { type: 'status', status: 307, headers: { location: 'http://127.0.0.1:9/' } } },
  refused: status(402),
  refused_unprocessed: status(413),
  unauthorized: status(401),
  forbidden: status(403),
  too_early: status(425),
  rate_limited: status(429),
  conflict: status(409, 'IDEMPOTENCY_CONFLICT'),
  in_progress: { fault: { type: 'inProgress' }, options: { totalTimeout: 9_000 } },
  conflict_unknown: status(409, 'BUSY'),
  request_timeout: status(408),
  server_error: { fault: { type: 'status', status: 503, html: true } },
  unrecognised: { fault: { type: 'status', status: 402, html: true } },
  unreachable: { elsewhere: refusing },
  untrusted: { elsewhere: async () => `https://${await serving(createTlsServer(TRUSTED))}` },
  transport_closed: { transport: closedTransport },
  connection_closed: { fault: { type: 'drop' } },
  connection_lost: { elsewhere: babbler },
  timed_out: { fault: { type: 'stall' }, options: { timeout: 4_000 } },
  aborted: { fault: { type: 'stall' }, abort: 'on arrival' },
  not_sent: { abort: 'at the claim' },
}

async function closedTransport(): Promise<Transport> {
  const transport = undiciTransport()
  await transport.close()
  return transport
}

/** A server that accepts requests and responds in another protocol. */
async function babbler({ arrived }: Bench): Promise<string> {
  const { url } = await rawServer((socket: Socket, request: RawRequest) => {
    const key = request.headers.find(([name]) => name === 'idempotency-key')?.[1]
    arrived.push({ key, body: request.body })
    socket.end('220 mail.example ESMTP ready\r\n\r\n')
  })
  return url
}

async function bench(): Promise<Bench> {
  const sandbox = createSandbox()
  const arrived: Arrived[] = []
  const made = { sandbox, url: '', store: new MemoryStore(), arrived, onArrival: () => {} }
  const server = await serveSandbox(sandbox, {
    onRequest: ({ idempotencyKey, body }) => {
      arrived.push({ key: idempotencyKey, body })
      made.onArrival()
    },
  })
  onTestFinished(() => server.close())
  made.url = server.url
  return made
}

function clientOf({ sandbox, url, store }: Bench, options: ClientOptions = {}): CustomerOrderingClient {
  return new CustomerOrderingClient(
    {
      baseUrl: url,
      apiKey: sandbox.apiKey,
      store,
      ...LABELS,
      maxRetries: MAX_RETRIES,
      transport: transportUnderTest(),
      ...options,
    },
    runtime,
  )
}

async function place(made: Bench, scenario: Scenario): Promise<Told> {
  const controller = new AbortController()
  if (scenario.abort === 'on arrival') {
    const before = made.arrived.length
    made.onArrival = () => {
      const { length } = made.arrived
      if (made.sandbox.requests[length - 1]?.delivery === 'stall' && length > before) controller.abort()
    }
  }
  const { store } = made
  const claiming = storeOver(store, {
    insert: (row) => {
      controller.abort()
      return store.insert(row)
    },
    update: (row, version) => {
      controller.abort()
      return store.update(row, version)
    },
  })
  const client = clientOf(made, {
    baseUrl: (await scenario.elsewhere?.(made)) ?? made.url,
    store: scenario.abort === 'at the claim' ? claiming : store,
    ...(scenario.transport === undefined ? {} : { transport: await scenario.transport() }),
  })
  const { signal } = controller
  return await told(client.orders.create(order('r1'), { ...scenario.options, signal }))
}

/** The doubt from the attempts before this outcome. */
const HISTORIES: Readonly<Record<string, { readonly earlierCall?: Lost; readonly sameCall?: Lost }>> = {
  'with nothing in doubt': {},
  'after an attempt of the same call that was lost on its way': { sameCall: 'drop' },
  'after an attempt of the same call that was charged': { sameCall: 'commitThenDrop' },
  'after an earlier call that was lost on its way': { earlierCall: 'drop' },
  'after an earlier call that was charged': { earlierCall: 'commitThenDrop' },
}
type Lost = 'drop' | 'commitThenDrop'

/**
 * Attempts of a call with this outcome in every attempt, including the previous one of the same
 * call. Undefined means many.
 */
function attemptsOf(kind: OutcomeKind, lostFirst: boolean): number | undefined {
  if (kind === 'not_sent') return 0
  switch (OUTCOMES[kind].next) {
    case 'stop':
      return lostFirst ? 2 : 1
    case 'poll':
      return undefined
    case 'replay':
      return lostFirst ? 4 : 3
    default:
      return 1 + MAX_RETRIES
  }
}

const kinds = Object.keys(OUTCOMES) as OutcomeKind[]

const cases = kinds.flatMap((kind) => {
  const { elsewhere, transport, abort } = SCENARIOS[kind]
  const inOneCall = elsewhere === undefined && transport === undefined && abort !== 'at the claim'
  return Object.entries(HISTORIES).flatMap(([when, { earlierCall, sameCall }]) => {
    if (sameCall !== undefined && !inOneCall) return []
    const before = { ambiguous: (earlierCall ?? sameCall) !== undefined, proven: false }
    const meaning = MEANING[judgeOutcome(kind, before).shows]
    return [{ kind, when, earlierCall, sameCall, meaning, ...meaning }]
  })
})

// 4 divides neither number of histories, so a short run contains some of each.
it.each(sample(cases, 4))(
  '$kind means charged $charged and $state $when',
  async ({ kind, earlierCall, sameCall, meaning }) => {
    const scenario = SCENARIOS[kind]
    const row = OUTCOMES[kind]
    const made = await bench()
    const { sandbox, arrived } = made
    if (earlierCall !== undefined) {
      sandbox.faults.add({ action: { type: earlierCall } })
      const client = clientOf(made, { maxRetries: 0 })
      await expect(client.orders.create(order('r1'))).rejects.toMatchObject({ charged: 'unknown' })
    }
    const before = arrived.length
    if (sameCall !== undefined) sandbox.faults.add({ action: { type: sameCall } })
    if (scenario.fault !== undefined) sandbox.faults.add({ action: scenario.fault, times: 'always' })
    const { order: placed, info, error } = await place(made, scenario)

    // The result for the caller.
    expect(error?.charged ?? 'yes').toBe(meaning.charged)
    if (kind === 'created') expect(placed?.id).toBe(sandbox.expectChargedOnce('r1').orderId)
    else expect(placed).toBeUndefined()

    // The key and the bytes of every attempt.
    const sent = (info ?? error)?.attempts ?? 0
    const came = arrived.length - before
    const expected = attemptsOf(kind, sameCall !== undefined)
    if (expected === undefined) expect(sent).toBeGreaterThan(3)
    else expect(sent).toBe(expected)
    if (['unreachable', 'untrusted', 'transport_closed'].includes(kind)) expect(came).toBe(0)
    // The deadline may have cut off the last of many attempts.
    else expect([sent, expected === undefined ? sent - 1 : sent]).toContain(came)
    const record = await recordIn(made.store, scopeOf(LABELS.server, LABELS.account), 'ref:r1')
    if (record === undefined) throw new Error('there is no record')
    for (const { key, body } of arrived) {
      expect(key).toBe(record.key)
      expect(body).toBe(
        '{"metadata":{"externalOrderId":"r1"},"quantity":10,"serviceId":"svc_standard","target":"@someone"}',
      )
    }

    expect(record).toMatchObject({ state: meaning.state, generation: 0, attempts: before + sent })
    expect(record.busyUntil).toBeUndefined()
    expect(record.rejection?.kind).toBe(meaning.rejection)
    expect(record.ambiguous).toBe(meaning.state === 'open')
    const hold = scenario.abort === undefined ? row.hold : 'aborted'
    expect(record.hold).toBe(meaning.state === 'open' ? hold : undefined)
    expect(isPending(record)).toBe(record.state !== 'rejected' && kind !== 'created')
    // An open order needs its body: an order found by its reference is compared with it.
    const isSettled = kind === 'created' || meaning.state === 'rejected'
    expect(record.body === undefined).toBe(isSettled)

    // The ledger must agree with the reported charge.
    const charged = scenario.commits === true || (earlierCall ?? sameCall) === 'commitThenDrop'
    sandbox.expectCharges(charged ? 1 : 0)
    if (meaning.charged === 'no') sandbox.expectCharges(0)
    if (meaning.charged === 'yes') sandbox.expectCharges(1)

    // When the service works again, the same request gets the order, with the same key and for
    // one charge.
    sandbox.faults.clear()
    const again = await clientOf(made).orders.create(order('r1'))
    expect(again.id).toBe(sandbox.expectChargedOnce('r1').orderId)
    expect(sandbox.ledger[0]?.idempotencyKey).toBe(record.key)
    sandbox.expectCharges(1)
  },
)
