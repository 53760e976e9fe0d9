import { getEventListeners } from 'node:events'
import {
  type ClientOptions,
  CustomerOrderingClient,
  isCustomerOrderingError,
  MemoryStore,
  type Order,
  type PruneOptions,
} from '../../../src/index.ts'
import { platformRuntime, type Runtime } from '../../../src/runtime.ts'
import type { Sandbox } from '../../../src/sandbox/index.ts'
import { walk } from '../../../src/stores/contract/rows.ts'
import { kept } from '../../support/heap.ts'
import { scopeOf } from '../core.ts'
import type { Look } from './flat.ts'

export const HOUR = 3_600_000

/**
 * A deliberate leak, to check that a soak detects it: a text for each order, a promise of each
 * `prune()`, or each closed client.
 */
export type Leak = 'orders' | 'prunes' | 'clients'

const KEPT = 2048

class PrunedStore extends MemoryStore {
  readonly #onPrune: (pruned: Promise<number>) => void

  constructor(onPrune: (pruned: Promise<number>) => void) {
    super()
    this.#onPrune = onPrune
  }

  override prune(scope: string, options: PruneOptions): Promise<number> {
    const pruned = super.prune(scope, options)
    this.#onPrune(pruned)
    return pruned
  }
}

/** One client for the whole run, and other clients that each place one order and are closed. */
export class Clients {
  readonly #store: PrunedStore
  readonly main: CustomerOrderingClient
  readonly #options: ClientOptions
  readonly #runtime: Partial<Runtime>
  readonly #signal: AbortSignal
  readonly #leak: Leak | undefined
  readonly #kept: unknown[] = []
  #orders = 0
  #others = 0

  constructor(options: ClientOptions, runtime: Partial<Runtime>, signal: AbortSignal, leak?: Leak) {
    this.#store = new PrunedStore((pruned) => this.#keep('prunes', pruned))
    this.#options = {
      ...options,
      account: 'shop',
      // Prune everything older, so that intended growth is not reported.
      retention: { created: 2 * HOUR, rejected: 2 * HOUR },
      hooks: {
        onSettled: ({ operation }) => {
          if (leak === 'orders' && operation === 'orders.create')
            this.#keep('orders', Buffer.alloc(KEPT, 'x').toString('latin1'))
        },
      },
    }
    // Virtual time caches derived ids.
    this.#runtime = { ...runtime, deriveId: platformRuntime.deriveId }
    this.#signal = signal
    this.#leak = leak
    this.main = new CustomerOrderingClient({ ...this.#options, store: this.#store }, this.#runtime)
  }

  get orders(): number {
    return this.#orders
  }

  /** Takes a sample, without the service's memory, which does not belong to the client. */
  async look(sandbox: Sandbox, resources: Look['resources']): Promise<Look> {
    forgetHistory(sandbox)
    const scope = scopeOf(String(this.#options.baseUrl), 'shop')
    return {
      orders: this.#orders,
      listeners: getEventListeners(this.#signal, 'abort').length,
      rows: (await walk((options) => this.#store.list(scope, options), 500)).length,
      resources,
      ...(await kept()),
    }
  }

  order(client: CustomerOrderingClient = this.main): Promise<Order> {
    const externalOrderId = `order-${++this.#orders}`
    return client.orders.create(
      { serviceId: 'svc_standard', target: '@x', quantity: 10, metadata: { externalOrderId } },
      { signal: this.#signal },
    )
  }

  /**
   * Places an order with a new client, then closes it. Every second one shares the store of the
   * long-lived client.
   */
  async orderElsewhere(): Promise<void> {
    const other =
      ++this.#others % 2 === 0
        ? new CustomerOrderingClient(this.#options, this.#runtime)
        : this.main.withOptions({ maxRetries: 1 })
    this.#keep('clients', other)
    await attempt(() => this.order(other))
    await other.close()
  }

  /** Settles open orders as a person would at the end: an order that was not found is abandoned. */
  async settle(): Promise<void> {
    const { orders } = this.main
    for await (const _ of orders.recover({ signal: this.#signal }));
    for await (const { state, externalOrderId } of orders.unresolved())
      if (state === 'open' && externalOrderId !== undefined)
        await orders.resolve({ externalOrderId }, { as: 'abandoned' })
  }

  #keep(leak: Leak, value: unknown): void {
    if (leak === this.#leak) this.#kept.push(value)
  }
}

export function forgetHistory(sandbox: Sandbox): void {
  sandbox.load({ ...sandbox.dump(), orders: [], ledger: [], keys: [] })
}

/** A call that may fail, but only with an error of this package. */
export async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
  }
}
