import { type Charged, ConfigurationError } from './errors.ts'

/** Tracks whether a client is open, and which of its calls use the store. */
export class Lifetime {
  /** The lifetime of the client that owns the store and closes it. */
  #owner: Lifetime | undefined
  #closed = false
  readonly #calls = new Set<Promise<unknown>>()

  /** Closes this client when the client that owns the store is closed. */
  follow(owner: Lifetime): void {
    this.#owner = owner
  }

  /** @throws {ConfigurationError} once the client is closed, before anything is sent */
  check(charged: Charged = 'no'): void {
    if (this.#closed) {
      throw new ConfigurationError('This client is closed. This call sent nothing. Make a new client.', {
        charged,
      })
    }
    this.#owner?.check(charged)
  }

  /**
   * Runs a call that uses the store. {@link end} waits for the call, because its outcome must be
   * stored before the store closes.
   */
  async use<T>(call: () => Promise<T>): Promise<T> {
    this.check('unknown')
    const running = call()
    this.#enter(running)
    return await running
  }

  /** Iterates a source that uses the store. {@link end} waits for the item in progress. */
  async *each<T>(items: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
    const iterator = items[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await this.use(() => iterator.next())
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await iterator.return?.()
    }
  }

  /** Rejects further calls. Resolves once all calls that use the store have ended. */
  async end(): Promise<void> {
    this.#closed = true
    while (this.#calls.size > 0) await Promise.all(this.#calls)
  }

  #enter(running: Promise<unknown>): void {
    const ended: Promise<unknown> = running.then(ignore, ignore).then(() => this.#calls.delete(ended))
    this.#calls.add(ended)
    if (this.#owner !== undefined) this.#owner.#enter(running)
  }
}

function ignore(): void {}
