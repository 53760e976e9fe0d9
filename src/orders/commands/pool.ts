/**
 * Works on several items at the same time, and yields each result as soon as it is known. Leaving
 * the loop aborts the work in progress and waits for it. If the work on an item fails, the generator
 * throws after the other work in progress has ended.
 */
export async function* concurrently<Item, Result>(
  items: readonly Item[],
  concurrency: number,
  signal: AbortSignal | undefined,
  work: (item: Item, signal: AbortSignal) => Promise<Result>,
): AsyncGenerator<Result, void, undefined> {
  const controller = new AbortController()
  const abort = (): void => controller.abort(signal?.reason)
  if (signal?.aborted === true) abort()
  signal?.addEventListener('abort', abort, { once: true })
  const running = new Map<number, Promise<readonly [index: number, result: Result]>>()
  let next = 0
  try {
    for (;;) {
      for (let item = items[next]; item !== undefined && running.size < concurrency; item = items[next]) {
        const index = next++
        const result = work(item, controller.signal)
        running.set(
          index,
          result.then((value) => [index, value]),
        )
      }
      if (running.size === 0) return
      const [index, result] = await Promise.race(running.values())
      running.delete(index)
      yield result
    }
  } finally {
    signal?.removeEventListener('abort', abort)
    if (running.size > 0) controller.abort()
    await Promise.allSettled(running.values())
  }
}
