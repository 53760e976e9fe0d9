/** The calls of this process that are working on an order. */
import type { OrderStore } from '../../stores/store.ts'

// One registry per store, not per client: clients that share a store must see each other's calls.
const registries = new WeakMap<OrderStore, Map<string, Promise<void>>>()

export class LiveCalls {
  readonly #calls: Map<string, Promise<void>>
  readonly #scope: string

  constructor(store: OrderStore, scope: string) {
    this.#calls = registries.get(store) ?? new Map<string, Promise<void>>()
    registries.set(store, this.#calls)
    this.#scope = scope
  }

  /** The end of the call that is working on the order. Never rejects. */
  get(id: string): Promise<void> | undefined {
    return this.#calls.get(this.#name(id))
  }

  /**
   * Registers a call. The returned function ends the registration. Do not await anything between
   * {@link get} and `enter`: a second call for the order would replace this registration.
   */
  enter(id: string): () => void {
    let end: () => void = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const name = this.#name(id)
    this.#calls.set(name, ended)
    return () => {
      this.#calls.delete(name)
      end()
    }
  }

  async idle(): Promise<void> {
    const prefix = this.#name('')
    await Promise.all([...this.#calls].filter(([name]) => name.startsWith(prefix)).map(([, ended]) => ended))
  }

  #name(id: string): string {
    return `${this.#scope} ${id}`
  }
}
