import { InvalidRequestError } from './errors/classes.ts'

const MAX_AWAITED_ITEMS = 10_000

/**
 * The result of a call that starts only when you iterate or await this object.
 *
 * `for await (const item of call)` yields the items one by one. `await call` returns an array, a
 * page or a summary.
 *
 * If an async function returns this object, the function's caller gets the awaited result, as with
 * any promise. To let your caller iterate, return the object from a function that is not async.
 * Await the object before you write it as JSON: `res.json(call)` throws instead of sending `{}`.
 */
export class Lazy<Item, Whole> implements AsyncIterable<Item>, Promise<Whole> {
  readonly #items: () => AsyncIterableIterator<Item>
  readonly #whole: (items: AsyncIterable<Item>) => Promise<Whole>

  /** @internal */
  constructor(
    items: () => AsyncIterableIterator<Item>,
    whole: (items: AsyncIterable<Item>) => Promise<Whole>,
  ) {
    this.#items = items
    this.#whole = whole
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Item> {
    return this.#items()
  }

  /** Starts the call immediately. `await` calls this method to get the result of the whole call. */
  // biome-ignore lint/suspicious/noThenProperty: it is meant to be awaited
  then<Fulfilled = Whole, Rejected = never>(
    onFulfilled?: ((whole: Whole) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.#begin().then(onFulfilled, onRejected)
  }

  /** Starts the call immediately, like {@link Lazy.then}. */
  catch<Rejected = never>(
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Whole | Rejected> {
    return this.#begin().catch(onRejected)
  }

  /** Starts the call immediately, like {@link Lazy.then}. */
  finally(onFinally?: (() => void) | null): Promise<Whole> {
    return this.#begin().finally(onFinally)
  }

  async #begin(): Promise<Whole> {
    // An error before the first await would have a stack trace without the caller's line.
    await undefined
    return await this.#whole(this)
  }

  get [Symbol.toStringTag](): string {
    return 'Lazy'
  }

  /**
   * Throws, because `JSON.stringify` would silently write `{}`.
   *
   * @throws {InvalidRequestError} always
   */
  toJSON(): never {
    throw new InvalidRequestError(
      'A pending call cannot be written as JSON. Await it, then write its result.',
    )
  }
}

/** Rejects a second use, which would look like a new run but only report the first run. */
export function once<Item>(
  call: string,
  items: () => AsyncIterableIterator<Item>,
): () => AsyncIterableIterator<Item> {
  let used = false
  return () => {
    if (used) {
      throw new InvalidRequestError(
        `This run of ${call}() was used before, and may have charged the wallet. This use sent nothing. Call ${call}() again.`,
        { charged: 'unknown' },
      )
    }
    used = true
    return items()
  }
}

export function listOf<Item>(call: string, items: () => AsyncIterableIterator<Item>): Lazy<Item, Item[]> {
  return new Lazy(items, async (all) => {
    const found: Item[] = []
    for await (const item of all) {
      if (found.length === MAX_AWAITED_ITEMS) {
        throw new InvalidRequestError(
          `${call}() has more than ${MAX_AWAITED_ITEMS.toLocaleString('en')} items, too many for an array. Iterate with for await.`,
        )
      }
      found.push(item)
    }
    return found
  })
}
