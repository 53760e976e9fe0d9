import { type Charged, ConfigurationError } from './errors/classes.ts'

export class Lifetime {
  #storeOwner: Lifetime | undefined
  #closed = false
  #calls = 0
  #onIdle: (() => void)[] = []

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

  /**
   * Runs a call whose outcome must be stored before the store closes: {@link end} waits for it.
   * Nothing but the caller may react to the promise of the call. Otherwise V8 would end the stack
   * traces of its errors here, without the caller's own line.
   */
  async use<T>(call: () => Promise<T>): Promise<T> {
    this.check('unknown')
    this.#count(1)
    try {
      return await call()
    } finally {
      this.#count(-1)
    }
  }

  async *each<T>(items: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
    const iterator = items[Symbol.asyncIterator]()
    try {
      for (;;) {
        this.check('unknown')
        this.#count(1)
        let next: IteratorResult<T>
        try {
          next = await iterator.next()
        } finally {
          this.#count(-1)
        }
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await iterator.return?.()
    }
  }

  async end(): Promise<void> {
    this.#closed = true
    while (this.#calls > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  #count(change: 1 | -1): void {
    this.#calls += change
    if (this.#storeOwner !== undefined) this.#storeOwner.#count(change)
    if (this.#calls > 0) return
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }
}
