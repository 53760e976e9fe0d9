import { spawn } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect, createServer, type Server } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import {
  type ClientOptions,
  CustomerOrderingClient,
  isCustomerOrderingError,
  responseInfo,
} from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { undiciTransport } from 'customer-ordering-sdk/undici'
import { platformRuntime, type Runtime } from '../../../src/runtime.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { TRUSTED } from '../../support/certificates.ts'
import { MEANING } from '../../support/meaning.ts'
import { answerText, listening } from '../../support/raw-server.ts'
import { recordIn } from '../../support/stores.ts'
import { nextLoop } from '../../support/virtual-time.ts'
import { OUTCOMES, type OutcomeKind, scopeOf } from '../core.ts'
import { type FaultProxy, faultProxy } from './fault-proxy.ts'
import { type Cell, type Elsewhere, type Fault, IDLE_TIMEOUT } from './faults.ts'

export interface CellResult {
  readonly name: string
  readonly problems: readonly string[]
  /** The failure's code from the system or the transport, if any. */
  readonly cause?: string
}

const LABELS = { server: 'service', account: 'shop' } as const
/** A length that identifies this timer. It ends at an event, not after that time. */
const ATTEMPT = 77_777
const ERROR_NAMES: Readonly<Record<string, string>> = {
  connection: 'ConnectionError',
  timeout: 'TimeoutError',
  invalid_response: 'InvalidResponseError',
  server: 'ServerError',
  api: 'ApiError',
  aborted: 'RequestAbortedError',
}
/** Enough characters to exceed one read from a connection, below the limit of a request. */
const LONG = 200_000

const requestOf = (reference: string, long?: boolean) => ({
  serviceId: 'svc_standard',
  target: '@someone',
  quantity: 10,
  metadata: { externalOrderId: reference, ...(long === true ? { note: 'x'.repeat(LONG) } : {}) },
})

/** A runtime without waits: retries follow immediately, and the test ends an attempt's time. */
function impatient(): { readonly runtime: Partial<Runtime>; readonly timeUp: () => void } {
  const attempts = new Set<() => void>()
  return {
    runtime: {
      random: () => 0,
      setTimer: (callback, milliseconds) => {
        if (milliseconds === ATTEMPT) {
          attempts.add(callback)
          return () => attempts.delete(callback)
        }
        return platformRuntime.setTimer(callback, milliseconds < ATTEMPT ? 0 : milliseconds)
      },
    },
    timeUp: () => {
      for (const callback of attempts) callback()
    },
  }
}

/** Calls back whenever the headers of a response from this port were read. */
function onHeadersRead(url: string, callback: () => void): () => void {
  const listener = (message: unknown): void => {
    const { request } = message as { readonly request: { readonly origin: string | URL } }
    if (new URL(request.origin).origin === url) callback()
  }
  subscribe('undici:request:headers', listener)
  return () => unsubscribe('undici:request:headers', listener)
}

export async function runCell({ name, fault, age, transport }: Cell): Promise<CellResult> {
  const problems: string[] = []
  const check = (what: string, found: unknown, ...expected: readonly unknown[]): void => {
    if (!expected.includes(found)) problems.push(`${what}: ${String(found)}, not ${expected.join(' or ')}`)
  }
  const cleanups: (() => Promise<unknown> | unknown)[] = []
  try {
    const sandbox = createSandbox()
    const arrived: { readonly key: string | null; readonly body: string }[] = []
    const server = await serveSandbox(sandbox, {
      onRequest: ({ idempotencyKey, body, method }) => {
        if (method === 'POST') arrived.push({ key: idempotencyKey, body })
      },
    })
    cleanups.push(() => server.close())
    const arrivedOf = (reference: string) => arrived.filter(({ body }) => body.includes(`"${reference}"`))

    const { runtime, timeUp } = impatient()
    const controller = new AbortController()
    const end = fault.aborts === true ? () => controller.abort() : timeUp
    let afterHeaders = false
    const proxy = await faultProxy(server.url, {
      timeUp: end,
      timeUpAfterHeaders: () => {
        afterHeaders = true
      },
    })
    cleanups.push(() => proxy.close())
    cleanups.push(
      onHeadersRead(proxy.url, () => {
        if (!afterHeaders) return
        afterHeaders = false
        // The client must have received the response before its time ends.
        void nextLoop().then(nextLoop).then(nextLoop).then(end)
      }),
    )
    const elsewhere = fault.elsewhere === undefined ? undefined : await goElsewhere(fault.elsewhere)
    if (elsewhere !== undefined) cleanups.push(elsewhere.close)

    const undici = transport === 'undici' ? undiciTransport() : undefined
    if (undici !== undefined) cleanups.push(() => undici.close())
    const store = new MemoryStore()
    const clientOf = (options: ClientOptions): CustomerOrderingClient =>
      new CustomerOrderingClient(
        {
          baseUrl: proxy.url,
          apiKey: sandbox.apiKey,
          store,
          ...LABELS,
          timeout: ATTEMPT,
          totalTimeout: 900_000,
          transport: undici,
          logLevel: 'off',
          ...options,
        },
        runtime,
      )

    let cause: string | undefined
    let strikes = false
    const onRequest = (): void => {
      if (strikes && fault.timeUp === 'when sending') void nextLoop().then(nextLoop).then(timeUp)
    }
    const client = clientOf({
      maxRetries: 0,
      hooks: {
        onRequest,
        onResponse: ({ failure }) => {
          cause ??= failure
        },
      },
      ...(elsewhere === undefined ? {} : { baseUrl: elsewhere.url }),
    })
    if (age === 'reused') {
      await client.balance.retrieve()
      // Wait: the connection is free slightly later than its response arrives. Until then, another
      // would be opened.
      for (let turns = 0; turns < 5; turns++) await nextLoop()
    }
    await begin(proxy, fault.before)
    strikes = true
    proxy.behaviour = fault.behaviour ?? {}
    const seenBefore = proxy.requests.length
    let told: { charged: string; attempts: number; code?: string; name?: string; id?: string }
    try {
      const order = await client.orders.create(requestOf('r1', fault.long), { signal: controller.signal })
      told = { charged: 'yes', attempts: responseInfo(order)?.attempts ?? 0, id: order.id }
    } catch (error) {
      if (!isCustomerOrderingError(error)) throw error
      told = { charged: error.charged, attempts: error.attempts, code: error.code, name: error.name }
    }
    strikes = false
    if (age === 'reused' && fault.elsewhere === undefined && told.attempts === 1)
      check('connection', proxy.lastConnection(), fault.reconnects === true ? 2 : 1)

    const record = await recordIn(store, scopeOf(LABELS.server, LABELS.account), 'ref:r1')
    if (record === undefined) throw new Error('there is no record')
    const kinds: readonly OutcomeKind[] = [fault.row].flat()
    const kind =
      kinds.find((each) => MEANING[OUTCOMES[each].shows].charged === told.charged) ?? kinds[0] ?? 'created'
    const row = OUTCOMES[kind]
    const meaning = MEANING[row.shows]
    check('charged', told.charged, meaning.charged)
    check('error code', told.code, ...[fault.code].flat())
    check('error class', told.name, told.code && ERROR_NAMES[told.code])
    check('state of the record', record.state, meaning.state)
    check('rejection', record.rejection?.kind, meaning.rejection)
    check('doubt in the record', record.ambiguous, meaning.state === 'open')
    check('claim on the record', record.busyUntil, undefined)
    check('attempts in the record', record.attempts, told.attempts)
    check('attempts', told.attempts, row.next === 'replay' ? 3 : 1)
    if (fault.behaviour?.breaks !== undefined) check('requests in part', proxy.partial(), told.attempts)
    const passed = proxy.requests.length - seenBefore
    if (passed > 0) check('requests on the wire', passed, told.attempts)
    // A second copy of the expectation, because the table itself may be wrong. No response here is
    // a refusal.
    if (told.charged === 'no') check("row of an order that was told 'no'", kind, 'unreachable', 'untrusted')

    await proxy.quiet()
    check('requests at the service', arrivedOf('r1').length, fault.reaches * told.attempts)
    const charges = (): number =>
      sandbox.ledger.filter(({ externalOrderId }) => externalOrderId === 'r1').length
    check('charges', charges(), fault.reaches === 0 ? 0 : 1)

    // After the fault, the same request must get the order with one charge, with the same key and
    // client.
    await heal(proxy)
    const healthy = elsewhere === undefined ? client : clientOf({ maxRetries: 0 })
    const again = await healthy.orders.create(requestOf('r1', fault.long))
    await proxy.quiet()
    if (fault.reachesLater === true) check('requests at the service, late', arrivedOf('r1').length, 2)
    check(
      'id after the fault',
      again.id,
      sandbox.ledger.find((entry) => entry.externalOrderId === 'r1')?.orderId,
    )
    if (told.id !== undefined) check('id of a replay', again.id, told.id)
    check('charges after the fault', charges(), 1)
    for (const { key } of arrivedOf('r1')) check('key', key, record.key)
    check('bodies', new Set(arrivedOf('r1').map(({ body }) => body)).size, 1)
    const next = await healthy.orders.create(requestOf('r2'))
    check('another order', next.id === again.id, false)
    check('charges in all', sandbox.ledger.length, 2)

    // The same fault once, for a client that may retry. The connection has been used by now.
    if (elsewhere === undefined && fault.aborts === undefined && fault.before !== 'answer the idle') {
      const onRetry = (): void => {
        strikes = false
        void heal(proxy)
      }
      const retrying = clientOf({ maxRetries: 3, hooks: { onRequest, onRetry } })
      if (fault.before !== undefined) await begin(proxy, 'refuse and end idle connections')
      proxy.behaviour = fault.behaviour ?? {}
      strikes = true
      const order = await retrying.orders.create(requestOf('r3', fault.long)).catch(() => undefined)
      strikes = false
      await heal(proxy)
      const stops = row.next === 'stop' && kind !== 'created'
      check('order of a client that retries', order === undefined, stops)
      const later = await healthy.orders.create(requestOf('r3', fault.long))
      if (order !== undefined) check('its id', order.id, later.id)
      await proxy.quiet()
      const entries = sandbox.ledger.filter(({ externalOrderId }) => externalOrderId === 'r3')
      check('its charges', entries.length, 1)
    }
    return { name, problems, ...(cause === undefined ? {} : { cause }) }
  } catch (error) {
    return {
      name,
      problems: [...problems, error instanceof Error ? (error.stack ?? error.message) : 'thrown'],
    }
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup()
  }
}

async function begin(proxy: FaultProxy, before: Fault['before']): Promise<void> {
  if (before === 'refuse' || before === 'refuse and end idle connections') await proxy.refuse()
  if (before === 'end idle connections' || before === 'refuse and end idle connections')
    await proxy.endConnections()
  if (before === 'answer the idle') await proxy.endConnections(IDLE_TIMEOUT)
}

async function heal(proxy: FaultProxy): Promise<void> {
  proxy.behaviour = {}
  await proxy.accept()
}

interface Place {
  readonly url: string
  readonly close: () => Promise<void> | void
}

async function goElsewhere(where: Elsewhere): Promise<Place> {
  if (where === 'unknown host') return { url: 'https://customer-ordering.invalid', close: () => {} }
  if (where === 'full backlog') return fullBacklog()
  if (typeof where === 'object')
    return secure(
      createTlsServer({ key: TRUSTED.key, cert: where.certificate }, (socket) => socket.destroy()),
    )
  if (where === 'old TLS')
    return secure(
      createTlsServer(
        { ...TRUSTED, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
        // The client must not send a request here. If it does, this response shows it.
        (socket) => socket.end(answerText(200, '{}')),
      ),
    )
  return secure(
    createServer((socket) => {
      socket.on('error', () => {})
      if (where === 'no TLS') socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')
      else socket.once('data', () => socket.end())
    }),
  )
}

async function secure(server: Server): Promise<Place> {
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => sockets.add(socket))
  const port = await listening(server)
  return {
    url: `https://127.0.0.1:${port}`,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Listens, accepts no connection, and sleeps forever. */
const DEAF = `
  const server = require('node:net').createServer()
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    require('node:fs').writeSync(1, String(server.address().port))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })`
/** Connections that the system accepts for a server with a backlog of 1. */
const BACKLOG = 2

/**
 * A port with a full connection queue, on which the next connection hangs, as with an address that
 * drops packets.
 */
async function fullBacklog(): Promise<Place> {
  const child = spawn(process.execPath, ['-e', DEAF], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise<number>((resolve) => {
    child.stdout.once('data', (data: Buffer) => resolve(Number(data)))
  })
  const waiting = Array.from({ length: BACKLOG }, () => connect(port, '127.0.0.1'))
  await Promise.all(waiting.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      for (const socket of waiting) socket.destroy()
      child.kill('SIGKILL')
    },
  }
}
