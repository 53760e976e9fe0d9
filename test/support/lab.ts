import {
  createSandbox,
  type FaultAction,
  type Sandbox,
  type SandboxOperation,
  type SandboxOptions,
} from 'customer-ordering-sdk/sandbox'
import type { CreateOptions } from '../../src/call-options.ts'
import { CustomerOrderingClient } from '../../src/client.ts'
import { defined } from '../../src/defined.ts'
import { type AnyCustomerOrderingError, isCustomerOrderingError } from '../../src/errors/classes.ts'
import type { SettledEvent } from '../../src/hooks.ts'
import { kyTransport } from '../../src/http/ky-transport.ts'
import { rowIdOf, scopeOf } from '../../src/identity/keys.ts'
import type { ClientOptions } from '../../src/options.ts'
import type { JournalRecord } from '../../src/orders/record/record.ts'
import { type ResponseInfo, responseInfo } from '../../src/response-info.ts'
import type { Runtime } from '../../src/runtime.ts'
import type { CreateOrderRequest, Order } from '../../src/schemas/order.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import type { OrderStore, StoredRow } from '../../src/stores/store.ts'
import { type FakeRuntime, fakeRuntime } from './runtime.ts'
import { faultyStore, recordIn, type StorePlan, storeOver } from './stores.ts'

export interface Told {
  readonly order?: Order
  readonly info?: ResponseInfo
  readonly error?: AnyCustomerOrderingError
}

/** A process: a client with its own store object. A test can kill or pause it at any moment. */
export interface LabProcess {
  readonly client: CustomerOrderingClient
  readonly store: OrderStore
  /** Kills it: it receives nothing and does nothing from now on. */
  kill(): void
  /** Pauses it until {@link LabProcess.wake}: it gets no responses, and no timer fires. */
  stop(): void
  wake(): void
}

/** A service, rows that outlive processes, and time that passes only while everything waits. */
export class Lab {
  readonly runtime: FakeRuntime
  readonly sandbox: Sandbox
  /** The store of {@link Lab.client}. All processes share its rows. */
  rows: MemoryStore = new MemoryStore()
  readonly settled: SettledEvent[] = []

  constructor(options: SandboxOptions = {}, runtime: FakeRuntime = fakeRuntime({ auto: true })) {
    this.runtime = runtime
    this.sandbox = createSandbox({
      now: runtime.now,
      sleep: (milliseconds) => new Promise((resolve) => void runtime.setTimer(resolve, milliseconds)),
      ...options,
    })
  }

  get options(): ClientOptions {
    return {
      baseUrl: this.sandbox.baseUrl,
      apiKey: this.sandbox.apiKey,
      // These tests run in browsers, too.
      dangerouslyAllowBrowser: true,
      account: 'shop',
      store: this.rows,
      fetch: this.sandbox.fetch as typeof fetch,
      hooks: { onSettled: (event) => this.settled.push(event) },
    }
  }

  client(options: ClientOptions = {}): CustomerOrderingClient {
    return new CustomerOrderingClient(this.#sending({ ...this.options, ...options }), this.runtime)
  }

  /** The sandbox receives each request once, unlike a given `fetch`, which may send it again. */
  #sending({ fetch, ...options }: ClientOptions): ClientOptions {
    if (fetch !== this.sandbox.fetch || options.transport !== undefined) return defined({ ...options, fetch })
    return { ...options, transport: { ...kyTransport(fetch), sendsOnce: () => true } }
  }

  get orders(): CustomerOrderingClient['orders'] {
    return this.client().orders
  }

  /** A client without an account, whose keys are random. */
  unlabelled(options: ClientOptions = {}): CustomerOrderingClient {
    const { account: _account, ...rest } = this.options
    return new CustomerOrderingClient(this.#sending({ ...rest, ...options }), this.runtime)
  }

  /**
   * A client with the same rows, in a store that all processes share. It knows nothing of this
   * process's calls.
   */
  shared(options: ClientOptions = {}): CustomerOrderingClient {
    return this.client({ store: storeOver(this.rows, { durability: 'server' }), ...options })
  }

  /**
   * A client with the same rows that knows nothing of this process's calls. `plan` adds faults to
   * its store.
   */
  elsewhere(options: ClientOptions = {}, plan?: StorePlan): CustomerOrderingClient {
    return this.client({ store: faultyStore(this.rows, this.runtime, plan), ...options })
  }

  /** A client of another process with the same rows, whose clock is ahead by this time. */
  ahead(milliseconds: number, options: ClientOptions = {}): CustomerOrderingClient {
    const { runtime } = this
    const store = faultyStore(this.rows, runtime)
    const now = (): number => runtime.now() + milliseconds
    return new CustomerOrderingClient({ ...this.options, store, ...options }, { ...runtime, now })
  }

  /** Another process with the same rows. */
  process(options: ClientOptions = {}, plan?: StorePlan): LabProcess {
    const { runtime } = this
    let dead = false
    let woken: Promise<void> | undefined
    let wake: () => void = () => {}
    const timers = new Set<() => void>()
    const waiting = new Set<() => void>()
    /** Passes a result to the process once it is alive and not paused. */
    const heard = <T>(pending: Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        const hand = async (deliver: () => void): Promise<void> => {
          while (woken !== undefined) await woken
          if (!dead) deliver()
        }
        pending.then(
          (value) => hand(() => resolve(value)),
          (error) => hand(() => reject(error)),
        )
      })
    const own: Runtime = {
      ...runtime,
      now: runtime.now,
      setTimer(callback, milliseconds) {
        if (dead) return () => {}
        const run = (): void => callback()
        const cancel = runtime.setTimer(() => {
          if (woken === undefined) run()
          else waiting.add(run)
        }, milliseconds)
        const stop = (): void => {
          timers.delete(stop)
          waiting.delete(run)
          cancel()
        }
        timers.add(stop)
        return stop
      },
    }
    const below = faultyStore(this.rows, runtime, plan)
    const store: OrderStore = {
      ...below,
      get: (scope, id) => (dead ? new Promise(() => {}) : heard(below.get(scope, id))),
      insert: (row) => (dead ? new Promise(() => {}) : heard(below.insert(row))),
      update: (row, version) => (dead ? new Promise(() => {}) : heard(below.update(row, version))),
    }
    const send = options.fetch ?? (this.sandbox.fetch as typeof fetch)
    const client = new CustomerOrderingClient(
      {
        ...this.options,
        store,
        ...options,
        fetch: undefined,
        transport: {
          ...kyTransport((input, init) => (dead ? new Promise(() => {}) : heard(send(input, init)))),
          sendsOnce: () => options.fetch === undefined,
        },
      },
      own,
    )
    return {
      client,
      store,
      kill() {
        dead = true
        for (const cancel of [...timers]) cancel()
      },
      stop() {
        woken = new Promise((resolve) => {
          wake = resolve
        })
      },
      wake() {
        woken = undefined
        for (const run of waiting) if (waiting.delete(run)) run()
        wake()
      },
    }
  }

  /**
   * Starts a call and runs it as far as possible without time passing. Later calls let time pass
   * again.
   */
  async begin<T>(start: () => Promise<T>): Promise<{ readonly ending: Promise<T> }> {
    this.runtime.auto = false
    const ending = start()
    // The test handles a failure later, so it must not count as unhandled now.
    ending.catch(() => {})
    await this.runtime.settle()
    await this.runtime.settle()
    this.runtime.auto = true
    return { ending }
  }

  /** The order requests as received by the service. */
  get posts() {
    return this.sandbox.requests
      .filter(({ operation }) => operation === 'createOrder')
      .map(({ idempotencyKey, body, status, charged, apiKeyId }) => ({
        key: idempotencyKey,
        body,
        status,
        charged,
        apiKey: apiKeyId,
      }))
  }

  /** Scope and row id of a slot, for the lab's clients without other options. */
  place(slot: string, account: string | null = 'shop'): { readonly scope: string; readonly id: string } {
    return {
      scope: scopeOf(this.sandbox.baseUrl, account ?? undefined),
      id: rowIdOf(this.runtime.deriveId, slot),
    }
  }

  async row(slot: string, account?: string | null): Promise<StoredRow | undefined> {
    const { scope, id } = this.place(slot, account)
    return await this.rows.get(scope, id)
  }

  async record(slot: string, account?: string | null): Promise<JournalRecord | undefined> {
    return await recordIn(this.rows, this.place(slot, account).scope, slot)
  }

  /** Overwrites a row, as a person with access to the database could. */
  async tamper(slot: string, change: object | ((content: Record<string, unknown>) => void)): Promise<void> {
    const row = await this.row(slot)
    if (row === undefined) throw new Error(`there is no row of ${slot}`)
    const content: Record<string, unknown> = JSON.parse(row.data)
    if (typeof change === 'function') change(content)
    else Object.assign(content, change)
    await this.rows.update({ ...row, data: JSON.stringify(content) }, row.version)
  }

  wipe(): void {
    this.rows = new MemoryStore()
  }

  /**
   * Makes the next requests fail, or those of one operation. Returns a function that ends the
   * fault.
   */
  fault(action: FaultAction, times: number | 'always' = 1, operation?: SandboxOperation): () => void {
    return this.sandbox.faults.add({ action, times, ...(operation && { match: { operation } }) })
  }

  /** Places an order with one call of the application. */
  create(request: CreateOrderRequest = order('r1'), options: CreateOptions = {}): Promise<Order> {
    return this.client().orders.create(request, options)
  }

  /** r1 is refused because the wallet is empty. Tops up the wallet afterwards. */
  async refused(): Promise<void> {
    this.drain()
    await failure(this.create())
    this.topUp()
  }

  /** An order's only response is lost, after its charge or before. */
  async doubted(
    type: 'commitThenDrop' | 'drop' = 'commitThenDrop',
    request: CreateOrderRequest = order('r1'),
    options: ClientOptions = {},
  ): Promise<void> {
    this.fault({ type })
    await failure(this.client({ maxRetries: 0, ...options }).orders.create(request))
  }

  /** A process starts a call, and dies while its request is in flight, which is charged or not. */
  async dies(
    call: (orders: CustomerOrderingClient['orders']) => Promise<unknown>,
    { charged = true, ...options }: ClientOptions & { readonly charged?: boolean } = {},
  ): Promise<void> {
    const process = this.process(options)
    this.fault({ type: 'stall', commit: charged }, 1, 'createOrder')
    await this.begin(() => call(process.client.orders))
    process.kill()
  }

  /** The id of the order, which must be charged exactly once. */
  charged(reference = 'r1'): string {
    return this.sandbox.expectChargedOnce(reference).orderId
  }

  drain(): void {
    this.sandbox.setBalance(this.sandbox.customerId, 0)
  }

  topUp(amount: number = 1_000_000): void {
    this.sandbox.topUp(this.sandbox.customerId, amount)
  }
}

/** The result of a call. An error of another package ends the test. */
export async function told(call: Promise<Order>): Promise<Told> {
  try {
    const order = await call
    const info = responseInfo(order)
    return info === undefined ? { order } : { order, info }
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    return { error }
  }
}

/** The error of a call that must fail. */
export async function failure(call: Promise<unknown>): Promise<AnyCustomerOrderingError> {
  let result: unknown
  try {
    result = await call
  } catch (error) {
    if (isCustomerOrderingError(error)) return error
    throw error
  }
  throw new Error(`expected an error, got ${JSON.stringify(result)}`)
}

export function order(
  externalOrderId: string,
  changes: Partial<CreateOrderRequest> = {},
): CreateOrderRequest {
  return { ...anonymousOrder(), metadata: { externalOrderId }, ...changes }
}

export function anonymousOrder(changes: Partial<CreateOrderRequest> = {}): CreateOrderRequest {
  return { serviceId: 'svc_standard', target: '@someone', quantity: 10, ...changes }
}
