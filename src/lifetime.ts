import { type Charged, ConfigurationError } from './errors/classes.ts'

export class Lifetime {
  #storeOwner: Lifetime | undefined
  #closed = false
  readonly #calls = new Set<Promise<unknown>>()

  closeWith(storeOwner: Lifetime): void {
    this.#storeOwner = storeOwner
  }

  check(charged: Charged = 'no'): void {
    if (this.#closed) {
      const earlier = charged === 'no' ? '' : ' An earlier request may have charged the wallet.'
      const problem = `This client is closed and sends nothing more.${earlier} Make a new client.`
      throw new ConfigurationError(problem, { charged })
    }
    this.#storeOwner?.check(charged)
  }

  /** Runs a call whose outcome must be stored before the store closes: {@link end} waits for it. */
  async use<T>(call: () => Promise<T>): Promise<T> {
    this.check('unknown')
    const running = call()
    this.#enter(running)
    return await running
  }

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

  async end(): Promise<void> {
    this.#closed = true
    while (this.#calls.size > 0) await Promise.all(this.#calls)
  }

  #enter(running: Promise<unknown>): void {
    const ended: Promise<unknown> = running.then(ignore, ignore).then(() => this.#calls.delete(ended))
    this.#calls.add(ended)
    if (this.#storeOwner !== undefined) this.#storeOwner.#enter(running)
  }
}

function ignore(): void {}
