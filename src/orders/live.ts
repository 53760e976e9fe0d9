import type { OrderStore } from '../stores/store.ts'
import { isAnonymous } from './identity.ts'
import type { Intent } from './intent.ts'

/** A call of this process that is placing an order right now. */
export interface LiveCall<Result> {
  readonly fingerprint: string
  readonly idempotencyKey: string | undefined
  /** The request's fields, to name those that differ in a conflict. */
  readonly request: Readonly<Record<string, unknown>>
  /**
   * Resolves when the call has ended: with its result, or undefined if it has none. Never rejects.
   */
  readonly ended: Promise<Result | undefined>
}

// Calls are registered per store, not per client: all clients of one process that use the same
// store must see each other's calls.
const registries = new WeakMap<OrderStore, Map<string, unknown>>()

/** The calls of this process that are in progress in one scope of a store. */
export function liveCalls<Result>(store: OrderStore, scope: string): LiveCalls<Result> {
  let registry = registries.get(store)
  if (registry === undefined) {
    registry = new Map()
    registries.set(store, registry)
  }
  return new LiveCalls(registry, scope)
}

export class LiveCalls<Result> {
  readonly #calls: Map<string, unknown>
  readonly #scope: string

  constructor(calls: Map<string, unknown>, scope: string) {
    this.#calls = calls
    this.#scope = scope
  }

  get(id: string): LiveCall<Result> | undefined {
    // Every entry under this scope comes from a client of the same kind, with the same result type.
    return this.#calls.get(this.#name(id)) as LiveCall<Result> | undefined
  }

  /**
   * Registers a call. The returned function ends the registration. Do not await anything between
   * {@link get} and `enter`: two calls for the same order could both be registered.
   */
  enter(id: string, call: Omit<LiveCall<Result>, 'ended'>): (result: Result | undefined) => void {
    let end: (result: Result | undefined) => void = () => {}
    const ended = new Promise<Result | undefined>((resolve) => {
      end = resolve
    })
    const name = this.#name(id)
    this.#calls.set(name, { ...call, ended })
    return (result) => {
      this.#calls.delete(name)
      end(result)
    }
  }

  /** Resolves when every current call of this scope has ended. */
  async idle(): Promise<void> {
    const prefix = this.#name('')
    const pending: Promise<unknown>[] = []
    for (const [name, call] of this.#calls)
      if (name.startsWith(prefix)) pending.push((call as LiveCall<Result>).ended)
    await Promise.all(pending)
  }

  #name(id: string): string {
    return `${this.#scope} ${id}`
  }
}

/**
 * Why a call must not return the order of a concurrent call under the same name. Undefined if the
 * call may return that order.
 */
export function whyNotJoin(
  { slot, fingerprint, idempotencyKey }: Intent,
  twin: LiveCall<unknown>,
): 'key' | 'payload' | 'anonymous' | undefined {
  const bothKeys = idempotencyKey !== undefined && twin.idempotencyKey !== undefined
  if (bothKeys && twin.idempotencyKey !== idempotencyKey) return 'key'
  if (twin.fingerprint !== fingerprint) return 'payload'
  return isAnonymous(slot) ? 'anonymous' : undefined
}

/** Copies the order of a concurrent call before any caller can change it. */
export function copyOf<Placed extends { readonly order: object }>(
  placed: Placed | undefined,
): Placed | undefined {
  try {
    return placed && { ...placed, order: structuredClone(placed.order) }
  } catch {
    // The order is nested too deeply to copy. The record has the part that can be stored.
    return undefined
  }
}
