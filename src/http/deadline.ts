import { isObject } from '../defined.ts'
import type { Runtime } from '../runtime.ts'

export class Interruption {
  readonly why: 'aborted' | 'deadline'

  constructor(why: 'aborted' | 'deadline') {
    this.why = why
  }
}

/**
 * Why the caller's signal ends a call: `AbortSignal.timeout()` is a time limit, so its calls end as
 * at their own deadline. Any other reason is the caller's wish to stop. Undefined while the signal
 * has not fired.
 */
export function whyEnded(signal: AbortSignal | undefined): Interruption['why'] | undefined {
  if (signal?.aborted !== true) return undefined
  return isTimeout(signal.reason) ? 'deadline' : 'aborted'
}

export function isTimeout(reason: unknown): boolean {
  return isObject(reason) && reason['name'] === 'TimeoutError'
}

/**
 * Milliseconds for which one step may continue after its call has ended, so that the outcome is
 * stored before it is reported. Two consecutive steps, such as a write and the read that verifies
 * it, still end within one second of the deadline.
 */
export const GRACE = 450

/**
 * Milliseconds by which the clocks of two machines may differ. If a time is further in the future,
 * the clock was set back.
 */
export const CLOCK_SKEW: number = 30 * 1000

/** A store in memory responds within so many microtasks, and then needs no timer. */
const IMMEDIATE_TICKS = 3
const soon: Promise<void> = /* @__PURE__ */ Promise.resolve()

export class Deadline {
  readonly startedAt: number
  readonly signal: AbortSignal | undefined
  readonly #runtime: Runtime
  readonly #endsAt: number

  constructor(runtime: Runtime, totalTimeout: number, signal: AbortSignal | undefined) {
    this.#runtime = runtime
    this.startedAt = runtime.monotonic()
    this.#endsAt = this.startedAt + totalTimeout
    this.signal = signal
  }

  /** Milliseconds until the deadline; zero or less after it, or after a time limit in the signal. */
  remaining(): number {
    if (this.signal?.aborted === true && whyEnded(this.signal) === 'deadline') return 0
    return this.#endsAt - this.#runtime.monotonic()
  }

  elapsed(): number {
    return this.#runtime.monotonic() - this.startedAt
  }

  /**
   * Creates the deadline of a step that may continue after the call has ended. The caller's signal
   * does not end the step.
   * @param past maximum milliseconds after this deadline, or after the signal has fired
   */
  grace(past: number = 2 * GRACE): Deadline {
    const left = this.signal?.aborted === true ? Math.min(0, this.remaining()) : this.remaining()
    return new Deadline(this.#runtime, Math.min(GRACE, left + past), undefined)
  }

  /** Returns why the call must end now, or undefined if it may continue. */
  over(): Interruption | undefined {
    const why = whyEnded(this.signal)
    if (why !== undefined) return new Interruption(why)
    return this.remaining() > 0 ? undefined : new Interruption('deadline')
  }

  /** @param most milliseconds to wait, even if the deadline is later */
  race<T>(pending: Promise<T>, most: number = Number.POSITIVE_INFINITY): Promise<T | Interruption> {
    const over = this.over()
    if (over !== undefined) {
      // Without a handler, a later rejection would end the process.
      pending.catch(() => {})
      return Promise.resolve(over)
    }
    return new Promise((resolve, reject) => {
      let isSettled = false
      let left = IMMEDIATE_TICKS
      let stopWatching: (() => void) | undefined
      const settle = (): void => {
        isSettled = true
        stopWatching?.()
      }
      const end = (): void => {
        settle()
        resolve(this.over() ?? new Interruption('deadline'))
      }
      pending.then(settle, settle)
      pending.then(resolve, reject)
      const watch = (): void => {
        if (isSettled) return
        if (left-- > 0) soon.then(watch)
        else if (this.over() !== undefined) end()
        else {
          const cancel = this.#runtime.setTimer(end, Math.min(most, this.remaining()))
          this.signal?.addEventListener('abort', end)
          stopWatching = () => {
            cancel()
            this.signal?.removeEventListener('abort', end)
          }
        }
      }
      watch()
    })
  }

  async sleep(milliseconds: number): Promise<Interruption | undefined> {
    let cancel: () => void = () => {}
    const timer = new Promise<undefined>((resolve) => {
      cancel = this.#runtime.setTimer(() => resolve(undefined), milliseconds)
    })
    try {
      return await this.race(timer)
    } finally {
      cancel()
    }
  }
}
