import { platformRuntime, type Runtime } from '../../src/runtime.ts'

/** A runtime whose time stands still until the test moves it. */
export interface FakeRuntime extends Runtime {
  /** Moves both clocks on and fires the timers that are due, in the order of their times, letting work go on between. */
  advance(milliseconds: number): Promise<void>
  /** Moves the wall clock only, back or forth, as a clock correction does. */
  jump(milliseconds: number): void
  /** Lets everything run that can run without time passing. */
  settle(): Promise<void>
  /** Timers that wait. */
  readonly timers: number
  /** Whether time moves by itself, see {@link FakeRuntimeOptions.auto}. May be switched at any time. */
  auto: boolean
}

export interface FakeRuntimeOptions {
  /** Wall clock at the start, milliseconds since 1970. Default 2023-11-14T22:13:20Z. */
  readonly now?: number
  /** Decides what `random()` gives. Default 1. */
  readonly seed?: number
  /**
   * True to move time to the next timer whenever nothing else is left to do: sleeps end at once, in the order of their
   * times, and a timeout still loses against an answer that is there already. Only for tests without real sockets or
   * files, whose waiting cannot be told from idleness. Default false.
   */
  readonly auto?: boolean
}

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/** Turns of the event loop without a new or cancelled timer that count as nothing left to do. */
const IDLE_TURNS = 6

/** Deterministic clocks, timers, randomness and ids; `deriveId` is the real one. */
export function fakeRuntime(options: FakeRuntimeOptions = {}): FakeRuntime {
  let wall = options.now ?? 1_700_000_000_000
  let elapsed = 0
  let ids = 0
  let seed = options.seed ?? 1
  let auto = options.auto ?? false
  let changes = 0
  let watching = false
  const timers = new Set<Timer>()

  const next = (): Timer | undefined => {
    let found: Timer | undefined
    // Those set first come first among equals, as Set keeps their order.
    for (const timer of timers) if (found === undefined || timer.at < found.at) found = timer
    return found
  }
  const fire = (timer: Timer): void => {
    const step = Math.max(0, timer.at - elapsed)
    elapsed += step
    wall += step
    timers.delete(timer)
    timer.callback()
  }
  const watch = async (): Promise<void> => {
    if (watching) return
    watching = true
    while (auto && timers.size > 0) {
      for (let turns = 0, before = changes; turns < IDLE_TURNS; turns++) {
        await turn()
        if (changes !== before) {
          before = changes
          turns = 0
        }
      }
      const timer = next()
      if (auto && timer !== undefined) fire(timer)
    }
    watching = false
  }

  return {
    now: () => wall,
    monotonic: () => elapsed,
    setTimer(callback, milliseconds) {
      const timer = { at: elapsed + Math.max(0, milliseconds), callback }
      timers.add(timer)
      changes++
      if (auto) void watch()
      return () => {
        if (timers.delete(timer)) changes++
      }
    },
    random() {
      // mulberry32
      seed = (seed + 0x6d2b79f5) | 0
      let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
    },
    randomId: () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`,
    deriveId: platformRuntime.deriveId,
    async advance(milliseconds) {
      const end = elapsed + milliseconds
      await settle()
      for (let timer = next(); timer !== undefined && timer.at <= end; timer = next()) {
        fire(timer)
        await settle()
      }
      wall += end - elapsed
      elapsed = end
    },
    jump(milliseconds) {
      wall += milliseconds
    },
    settle,
    get timers() {
      return timers.size
    },
    get auto() {
      return auto
    },
    set auto(value) {
      auto = value
      if (auto) void watch()
    },
  }
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < IDLE_TURNS; turns++) await turn()
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
