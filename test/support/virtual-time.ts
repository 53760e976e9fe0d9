import { platformRuntime, type Runtime } from '../../src/runtime.ts'
import { createRandom } from '../../src/sandbox/service/random.ts'

interface Timer {
  at: number
  readonly order: number
  readonly owner: object
  readonly callback: () => void
}

/** Nothing is left to do, but something is still awaited. */
export class Deadlock extends Error {
  override readonly name = 'Deadlock'

  constructor() {
    super('everybody waits for ever')
  }
}

export class Livelock extends Error {
  override readonly name = 'Livelock'

  constructor(turns: number) {
    super(`there is no end after ${turns} turns`)
  }
}

/** Far more turns than any run needs. */
const MOST_TURNS = 1_000_000

/** Resolves when all pending work has run without time passing. */
export type Turn = () => Promise<void>

/**
 * Waits for the next turn of the event loop: the platform's streams and requests have progressed,
 * and Node has reported unhandled rejections.
 */
export const nextLoop: Turn = () => new Promise((resolve) => setImmediate(resolve))

/**
 * Waits for the end of the microtasks, which is cheaper. Use it if all work is in microtasks. Node
 * does not report unhandled rejections then.
 */
export const afterMicrotasks: Turn = () => new Promise((resolve) => process.nextTick(resolve))

/**
 * Time that passes only while everything waits, for the clocks of all processes of a run and of
 * their service.
 */
export class VirtualTime {
  /** Milliseconds since 1970. Both clocks of {@link runtime} start here. */
  now: number = Date.UTC(2026, 0, 1)
  readonly #timers = new Set<Timer>()
  /** Waits until nothing is left to do without time passing. */
  readonly turn: Turn
  readonly #mostTurns: number
  #order = 0

  constructor(turn: Turn = nextLoop, mostTurns: number = MOST_TURNS) {
    this.turn = turn
    this.#mostTurns = mostTurns
  }

  get timers(): number {
    return this.#timers.size
  }

  /**
   * Clocks, timers and ids for one process. The same seed gives the same random numbers and ids.
   */
  runtime(owner: object, seed: number): Runtime {
    const random = createRandom(seed)
    let ids = 0
    const prefix = (seed >>> 0).toString(16).padStart(8, '0')
    return {
      now: () => this.now,
      monotonic: () => this.now,
      setTimer: (callback, milliseconds) => this.setTimer(owner, callback, milliseconds),
      random: () => random.next(),
      randomId: () => `${prefix}-0000-4000-8000-${(++ids).toString(16).padStart(12, '0')}`,
      deriveId,
    }
  }

  setTimer(owner: object, callback: () => void, milliseconds: number): () => void {
    const at = this.now + Math.max(0, milliseconds)
    const timer: Timer = { at, order: ++this.#order, owner, callback }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  sleep(owner: object, milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.setTimer(owner, resolve, milliseconds))
  }

  pending(owner: object): number {
    let count = 0
    for (const timer of this.#timers) if (timer.owner === owner) count++
    return count
  }

  /** Delays an owner's timers, as if its machine had slept. */
  postpone(owner: object, milliseconds: number): void {
    for (const timer of this.#timers) if (timer.owner === owner) timer.at += milliseconds
  }

  /** Drops an owner's timers, as the end of its process would. */
  drop(owner: object): void {
    for (const timer of this.#timers) if (timer.owner === owner) this.#timers.delete(timer)
  }

  /** Waits for the promise's result, and lets time pass as needed. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let settled = false
    const settle = (): void => {
      settled = true
    }
    promise.then(settle, settle)
    for (let turns = 0; turns < this.#mostTurns; turns++) {
      await this.turn()
      if (settled) return await promise
      if (!this.fire()) throw new Deadlock()
    }
    throw new Livelock(this.#mostTurns)
  }

  async advance(milliseconds: number): Promise<void> {
    const until = this.now + milliseconds
    do await this.turn()
    while (this.fire(until))
    this.now = until
  }

  /** Fires the next timer if it is due by the given time. */
  fire(until: number = Number.POSITIVE_INFINITY): boolean {
    let next: Timer | undefined
    for (const timer of this.#timers)
      if (next === undefined || timer.at < next.at || (timer.at === next.at && timer.order < next.order))
        next = timer
    if (next === undefined || next.at > until) return false
    this.#timers.delete(next)
    this.now = Math.max(this.now, next.at)
    next.callback()
    return true
  }
}

const derived = new Map<string, string>()

/** Cached, because every schedule of a run derives the same names. */
function deriveId(name: string): string {
  const known = derived.get(name)
  if (known !== undefined) return known
  // Long programmes derive many names once.
  if (derived.size > 20_000) derived.clear()
  const id = platformRuntime.deriveId(name)
  derived.set(name, id)
  return id
}
