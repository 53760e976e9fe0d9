import type { SandboxSleep } from './service/world.ts'

/** A clock for tests, made by {@link createTestClock}. Time passes only in `pass()` and `run()`. */
export interface TestClock {
  /** Pass this object as the client's second argument, so that the client uses this clock. */
  readonly runtime: {
    readonly now: () => number
    readonly monotonic: () => number
    readonly random: () => number
    readonly randomId: () => string
    readonly setTimer: (callback: () => void, milliseconds: number) => () => void
  }
  /** Pass these options to `createSandbox`, so that the sandbox uses this clock. */
  readonly sandbox: { readonly now: () => number; readonly sleep: SandboxSleep }
  /** Returns the clock's time in milliseconds since 1970. */
  now(): number
  /** Advances the clock, and ends the waits that become due. */
  pass(milliseconds: number): void
  /**
   * Waits for the promise and returns its value.
   *
   * Whenever no other work is pending, the clock jumps to the end of the next wait.
   */
  run<T>(promise: PromiseLike<T>): Promise<T>
}

/**
 * Makes a clock for tests of waits, retries and time windows.
 *
 * Such tests then take no real time. Use the clock with the sandbox's `fetch` and an in-memory
 * store, not with real connections or an encrypting `codec`: while one of them is working, the
 * clock would jump.
 *
 * @param start milliseconds since 1970; default 2026-01-01
 * @example
 * const clock = createTestClock()
 * const sandbox = createSandbox(clock.sandbox)
 * const client = new CustomerOrderingClient({ ...options, fetch: sandbox.fetch }, clock.runtime)
 * const order = await clock.run(client.orders.create(request))
 */
export function createTestClock(start: number = Date.UTC(2026, 0, 1)): TestClock {
  let time = start
  let ids = 0
  const timers = new Set<{ readonly at: number; readonly callback: () => void }>()
  const now = (): number => time
  const setTimer = (callback: () => void, milliseconds: number): (() => void) => {
    const timer = { at: time + Math.max(0, milliseconds), callback }
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const fireNext = (until: number): boolean => {
    const [next] = [...timers].sort((a, b) => a.at - b.at)
    if (next === undefined || next.at > until) return false
    timers.delete(next)
    time = Math.max(time, next.at)
    next.callback()
    return true
  }
  return {
    now,
    runtime: {
      now,
      monotonic: now,
      setTimer,
      random: () => 0.5,
      randomId: () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`,
    },
    sandbox: {
      now,
      sleep: (milliseconds) => new Promise((resolve) => void setTimer(resolve, milliseconds)),
    },
    pass(milliseconds) {
      const until = time + milliseconds
      while (fireNext(until));
      time = until
    },
    async run(promise) {
      // Call `promise.then` only once: the results of `orders.recover()` and `orders.createMany()`
      // can be awaited only once.
      const value = Promise.resolve(promise)
      let ended = false
      const end = (): void => {
        ended = true
      }
      value.then(end, end)
      while (!ended) {
        // Let the event loop turn a few times: other work must finish before the clock jumps.
        for (let turn = 0; turn < 5 && !ended; turn++) await new Promise((resolve) => setTimeout(resolve, 0))
        if (!ended) fireNext(Number.POSITIVE_INFINITY)
      }
      return await value
    },
  }
}
