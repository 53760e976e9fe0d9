import { v4 } from 'uuid'
import { uuidV5 } from './uuid-v5.ts'

/**
 * Everything that differs from one run to the next: clocks, timers, randomness and ids.
 *
 * The second parameter of the client's constructor can replace any of these, which makes a client
 * deterministic in tests.
 */
export interface Runtime {
  /**
   * Wall-clock time in milliseconds since 1970, which may jump.
   *
   * Used for the age of remembered orders, and if `Retry-After` is a date.
   */
  now(): number
  /** Clock for durations and deadlines: milliseconds since an arbitrary start. Never goes back. */
  monotonic(): number
  /** Calls back once after the given milliseconds; returns a function that cancels the timer. */
  setTimer(callback: () => void, milliseconds: number): () => void
  /** A random number, at least 0 and below 1. */
  random(): number
  /** A fresh UUID v4. */
  randomId(): string
  /**
   * UUID v5 of a name in this package's fixed namespace.
   *
   * The same name gives the same id on every machine and in every version.
   */
  deriveId(name: string): string
}

/** In milliseconds. With a longer delay, `setTimeout` fires immediately (measured in Node). */
const MAX_TIMER_DELAY = 2 ** 31 - 1

/** Reads globals at call time, so that fake timers work. */
export const platformRuntime: Runtime = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer: (callback, milliseconds) => {
    const timer = setTimeout(callback, Math.min(Math.max(milliseconds, 0), MAX_TIMER_DELAY))
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
  randomId: v4,
  deriveId: uuidV5,
}
