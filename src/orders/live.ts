import type { OrderStore } from '../stores/store.ts'
import { isAnonymous } from './identity.ts'
import type { Intent } from './intent.ts'

/** A call of this process that is placing an order right now. */
export interface LiveCall<Result> {
  readonly fingerprint: string
  readonly idempotencyKey: string | undefined
  /** The fields' canonical texts, for naming those that differ in a conflict. */
  readonly request: Readonly<Record<string, unknown>>
  /** Settles without error when the call has ended: with its result, or with nothing if it has none. */
  readonly ended: Promise<Result | undefined>
}

// By store and not by client: derived clients share a store, and two clients over one store are one process to it.
const registries = new WeakMap<OrderStore, Map<string, unknown>>()

/** The calls of this process that are at work over a store, by scope and record. */
export function liveCalls<Result>(store: OrderStore, scope: string): LiveCalls<Result> {
  let registry = registries.get(store)
  if (registry === undefined) {
    registry = new Map()
    registries.set(store, registry)
  }
  return new LiveCalls(registry, scope)
}

/** See {@link liveCalls}. */
export class LiveCalls<Result> {
  readonly #calls: Map<string, unknown>
  readonly #scope: string

  constructor(calls: Map<string, unknown>, scope: string) {
    this.#calls = calls
    this.#scope = scope
  }

  get(id: string): LiveCall<Result> | undefined {
    // Every entry under this scope was put there by a client of the same kind, with the same result type.
    return this.#calls.get(this.#name(id)) as LiveCall<Result> | undefined
  }

  /** Enters a call; the returned function ends it. Must follow {@link get} without an await in between. */
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

  /** Settles when every call of this scope that is at work now has ended. */
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

/** Why a call must not take the order of a call beside it, which it meets under its own name. */
export function whyNotJoin(
  { slot, fingerprint, idempotencyKey }: Intent,
  twin: LiveCall<unknown>,
): 'key' | 'payload' | 'anonymous' | undefined {
  const bothKeys = idempotencyKey !== undefined && twin.idempotencyKey !== undefined
  if (bothKeys && twin.idempotencyKey !== idempotencyKey) return 'key'
  if (twin.fingerprint !== fingerprint) return 'payload'
  return isAnonymous(slot) ? 'anonymous' : undefined
}

/** A twin's order as an object of its own, made before anybody who hears of it can change it. */
export function copyOf<Placed extends { readonly order: object }>(
  placed: Placed | undefined,
): Placed | undefined {
  try {
    return placed && { ...placed, order: structuredClone(placed.order) }
  } catch {
    // Nested too deeply to be copied: the record has as much of it as can be kept.
    return undefined
  }
}
