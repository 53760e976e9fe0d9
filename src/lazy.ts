import { InvalidRequestError } from './errors.ts'

/** Most items that `await` collects where its result is an array. */
const MOST = 10_000

/**
 * Many things, of which nothing is done before they are iterated or awaited: `for await (const item of call)` hands out
 * one after the other, `await call` gives the whole.
 *
 * Like any promise, it is awaited when an async function returns it: return it from a function that is not async, or
 * return a function, where the caller is to iterate it. It cannot be written as JSON: `res.json(call)` throws instead of
 * sending `{}`; await it first.
 */
export class Lazy<Item, Whole> implements AsyncIterable<Item>, Promise<Whole> {
  readonly #items: () => AsyncIterableIterator<Item>
  readonly #whole: (items: AsyncIterable<Item>) => Promise<Whole>

  /**
   * @internal
   * @param items begins an iteration
   * @param whole makes of the items what `await` gives
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

  /** What `await` calls: begins now, and gives the whole. */
  // biome-ignore lint/suspicious/noThenProperty: being awaited is what it is for
  then<Fulfilled = Whole, Rejected = never>(
    onFulfilled?: ((whole: Whole) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.#begin().then(onFulfilled, onRejected)
  }

  /** Begins now, as {@link Lazy.then} does. */
  catch<Rejected = never>(
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Whole | Rejected> {
    return this.#begin().catch(onRejected)
  }

  /** Begins now, as {@link Lazy.then} does. */
  finally(onFinally?: (() => void) | null): Promise<Whole> {
    return this.#begin().finally(onFinally)
  }

  // Async, so that an iteration which cannot begin rejects.
  async #begin(): Promise<Whole> {
    return await this.#whole(this)
  }

  get [Symbol.toStringTag](): string {
    return 'Lazy'
  }

  /** @throws {InvalidRequestError} always: without it, JSON would be `{}` and nobody would notice */
  toJSON(): never {
    throw new InvalidRequestError(
      'A list or run was written as JSON before it was read. Nothing was sent. Await it first.',
    )
  }
}

/** A run that is used once. A second use would look like another run, and report what the first one did. */
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

/** Things that were found, as a list that may be read again and that `await` gives as an array. */
export function listOf<Item>(call: string, items: () => AsyncIterableIterator<Item>): Lazy<Item, Item[]> {
  return new Lazy(items, async (all) => {
    const found: Item[] = []
    for await (const item of all) {
      if (found.length === MOST) {
        throw new InvalidRequestError(
          `${call}() found more than ${MOST.toLocaleString('en')} items, too many for an array. Iterate it: for await (const item of client.${call}(…)).`,
        )
      }
      found.push(item)
    }
    return found
  })
}
