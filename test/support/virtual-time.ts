import { platformRuntime, type Runtime } from '../../src/runtime.ts'
import { createRandom } from '../../src/sandbox/service/random.ts'

interface Timer {
  at: number
  readonly order: number
  readonly owner: object
  readonly callback: () => void
}

/** Nobody has anything left to do, and somebody is still waited for. */
export class Deadlock extends Error {
  override readonly name = 'Deadlock'

  constructor() {
    super('everybody waits for ever')
  }
}

/** Somebody does the same for ever. */
export class Livelock extends Error {
  override readonly name = 'Livelock'

  constructor(turns: number) {
    super(`there is no end after ${turns} turns`)
  }
}

/** Far more turns than any run takes. */
const MOST_TURNS = 1_000_000

/** Resolves when all has happened that can happen without time passing. */
export type Turn = () => Promise<void>

/**
 * The next turn of the event loop: streams and requests of the platform have done all they can, and Node has looked for
 * rejected promises that nobody handles.
 */
export const nextLoop: Turn = () => new Promise((resolve) => setImmediate(resolve))

/** The end of the microtasks, which costs less, where nothing happens but in them. Node looks for no rejected promises then. */
export const afterMicrotasks: Turn = () => new Promise((resolve) => process.nextTick(resolve))

/** Time that passes only while everybody waits, for the clocks of all processes of a run and of their service. */
export class VirtualTime {
  /** Milliseconds since 1970; both clocks of {@link runtime} start here. */
  now: number = Date.UTC(2026, 0, 1)
  readonly #timers = new Set<Timer>()
  readonly #turn: Turn
  readonly #mostTurns: number
  #order = 0

  constructor(turn: Turn = nextLoop, mostTurns: number = MOST_TURNS) {
    this.#turn = turn
    this.#mostTurns = mostTurns
  }

  /** Number of timers that anybody waits for. */
  get timers(): number {
    return this.#timers.size
  }

  /** Clocks, timers and ids for one process; the same seed gives the same random numbers and ids. */
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

  /** Resolves when that much time has passed. */
  sleep(owner: object, milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.setTimer(owner, resolve, milliseconds)
    })
  }

  /** Number of timers that an owner waits for. */
  pending(owner: object): number {
    let count = 0
    for (const timer of this.#timers) if (timer.owner === owner) count++
    return count
  }

  /** Lets an owner's timers fire later, as a machine's that was asleep. */
  postpone(owner: object, milliseconds: number): void {
    for (const timer of this.#timers) if (timer.owner === owner) timer.at += milliseconds
  }

  /** Drops an owner's timers, as the end of its process would. */
  drop(owner: object): void {
    for (const timer of this.#timers) if (timer.owner === owner) this.#timers.delete(timer)
  }

  /** The promise's ending, reached by letting as much time pass as it takes. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let settled = false
    const settle = (): void => {
      settled = true
    }
    promise.then(settle, settle)
    for (let turns = 0; turns < this.#mostTurns; turns++) {
      await this.#turn()
      if (settled) return await promise
      if (!this.fire()) throw new Deadlock()
    }
    throw new Livelock(this.#mostTurns)
  }

  /** Lets that much time pass. */
  async advance(milliseconds: number): Promise<void> {
    const until = this.now + milliseconds
    do await this.#turn()
    while (this.fire(until))
    this.now = until
  }

  /** Fires the timer that is due next, if that is not later than the time given. */
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

/** The same names come again in every schedule of a run. */
function deriveId(name: string): string {
  const known = derived.get(name)
  if (known !== undefined) return known
  // Long programmes derive many names once.
  if (derived.size > 20_000) derived.clear()
  const id = platformRuntime.deriveId(name)
  derived.set(name, id)
  return id
}
