import { InvalidRequestError } from './errors.ts'

/** Maximum number of items that `await` collects into an array. */
const MOST = 10_000

/**
 * The result of a call that starts only when you iterate or await this object. `for await (const
 * item of call)` yields the items one by one. `await call` returns an array, a page or a summary.
 *
 * An async function that returns this object awaits the object first, like any promise. To let your
 * caller iterate, return the object from a function that is not async, or return a function that
 * makes the object. The object cannot be written as JSON: `res.json(call)` throws instead of sending `{}`.
 * Await it first.
 */
export class Lazy<Item, Whole> implements AsyncIterable<Item>, Promise<Whole> {
  readonly #items: () => AsyncIterableIterator<Item>
  readonly #whole: (items: AsyncIterable<Item>) => Promise<Whole>

  /**
   * @internal
   * @param items begins an iteration
   * @param whole makes the result of `await` from the items
   */
  constructor(
    items: () => AsyncIterableIterator<Item>,
    whole: (items: AsyncIterable<Item>) => Promise<Whole>,
  ) {
    this.#items = items
    this.#whole = whole
  }

  /** Iterates the items. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Item> {
    return this.#items()
  }

  /** Called by `await`. Starts the call immediately and returns the whole result. */
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

  // `async` turns a failure to start the iteration into a rejection.
  async #begin(): Promise<Whole> {
    return await this.#whole(this)
  }

  get [Symbol.toStringTag](): string {
    return 'Lazy'
  }

  /**
   * Throws, because the JSON would silently be `{}`.
   *
   * @throws {InvalidRequestError} always
   */
  toJSON(): never {
    throw new InvalidRequestError(
      'A list or run cannot be written as JSON. Nothing was sent. Await it first.',
    )
  }
}

/**
 * Lets a run be iterated or awaited only once. A second use would look like a new run, but would
 * only report the first run.
 */
export function once<Item>(
  call: string,
  items: () => AsyncIterableIterator<Item>,
): () => AsyncIterableIterator<Item> {
  let used = false
  return () => {
    if (used) {
      throw new InvalidRequestError(
        `This run of ${call}() was already iterated or awaited. Nothing was sent this time. Call ${call}() again.`,
        { charged: 'unknown' },
      )
    }
    used = true
    return items()
  }
}

/** A list that may be iterated several times. `await` returns an array. */
export function listOf<Item>(call: string, items: () => AsyncIterableIterator<Item>): Lazy<Item, Item[]> {
  return new Lazy(items, async (all) => {
    const found: Item[] = []
    for await (const item of all) {
      if (found.length === MOST) {
        throw new InvalidRequestError(
          `${call}() has more than ${MOST.toLocaleString('en')} items, too many for an array. Iterate instead: for await (const item of client.${call}(…)).`,
        )
      }
      found.push(item)
    }
    return found
  })
}
