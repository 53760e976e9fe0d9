import type { OrderStore } from '../stores/store.ts'
import { isAnonymous } from './identity.ts'
import type { Intent } from './intent.ts'

export interface LiveCall<Result> {
  readonly fingerprint: string
  readonly idempotencyKey: string | undefined
  readonly request: Readonly<Record<string, unknown>>
  /** Never rejects. */
  readonly ended: Promise<Result | undefined>
}

// One registry per store, not per client: clients that share a store must see each other's calls.
const registries = new WeakMap<OrderStore, Map<string, LiveCall<unknown>>>()

export function liveCalls<Result>(store: OrderStore, scope: string): LiveCalls<Result> {
  let registry = registries.get(store)
  if (registry === undefined) {
    registry = new Map()
    registries.set(store, registry)
  }
  return new LiveCalls(registry, scope)
}

export class LiveCalls<Result> {
  readonly #calls: Map<string, LiveCall<unknown>>
  readonly #scope: string

  constructor(calls: Map<string, LiveCall<unknown>>, scope: string) {
    this.#calls = calls
    this.#scope = scope
  }

  get(id: string): LiveCall<Result> | undefined {
    // The cast is safe: all clients register calls with the same result type.
    return this.#calls.get(this.#name(id)) as LiveCall<Result> | undefined
  }

  /**
   * Registers a call. The returned function ends the registration. Do not await anything between
   * {@link get} and `enter`: a second call for the order would replace this registration.
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

  async idle(): Promise<void> {
    const prefix = this.#name('')
    const pending: Promise<unknown>[] = []
    for (const [name, call] of this.#calls) if (name.startsWith(prefix)) pending.push(call.ended)
    await Promise.all(pending)
  }

  #name(id: string): string {
    return `${this.#scope} ${id}`
  }
}

export function whyNotJoin(
  { slot, fingerprint, idempotencyKey }: Intent,
  twin: LiveCall<unknown>,
): 'key' | 'payload' | 'anonymous' | undefined {
  const bothKeys = idempotencyKey !== undefined && twin.idempotencyKey !== undefined
  if (bothKeys && twin.idempotencyKey !== idempotencyKey) return 'key'
  if (twin.fingerprint !== fingerprint) return 'payload'
  return isAnonymous(slot) ? 'anonymous' : undefined
}

/** Copies the order, because the other call's caller may change its own object. */
export function copyOf<Placed extends { readonly order: object }>(
  placed: Placed | undefined,
): Placed | undefined {
  try {
    return placed && { ...placed, order: structuredClone(placed.order) }
  } catch {
    // The order is nested too deeply to copy, so the caller reads the record instead.
    return undefined
  }
}
