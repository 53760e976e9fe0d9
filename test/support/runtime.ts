import type { Runtime } from '../../src/runtime.ts'
import { nextLoop, VirtualTime } from './virtual-time.ts'

/** A runtime whose time moves only when the test moves it. */
export interface FakeRuntime extends Runtime {
  /** Moves both clocks and fires the due timers in order. Lets pending work run in between. */
  advance(milliseconds: number): Promise<void>
  /** Moves only the wall clock, forward or back, as a clock correction does. */
  jump(milliseconds: number): void
  /** Lets all pending work run without time passing. */
  settle(): Promise<void>
  readonly timers: number
  /**
   * True if time moves automatically, see {@link FakeRuntimeOptions.auto}. May be changed at any
   * time.
   */
  auto: boolean
}

export interface FakeRuntimeOptions {
  /** Wall clock at the start, milliseconds since 1970. Default 2023-11-14T22:13:20Z. */
  readonly now?: number
  /** The result of `random()`. Default 1. */
  readonly seed?: number
  /**
   * True to move time to the next timer when everything is idle: sleeps end immediately and in
   * order, and a timeout loses against a response that has already arrived. Use it only in tests
   * without real sockets or files, whose waits look like idleness. Default false.
   */
  readonly auto?: boolean
}

/** The number of turns of the event loop without a new or cancelled timer that counts as idle. */
const IDLE_TURNS = 6

/** Deterministic clocks, timers, randomness and ids. `deriveId` is the real one. */
export function fakeRuntime(options: FakeRuntimeOptions = {}): FakeRuntime {
  // `time.now` is the monotonic clock.
  const time = new VirtualTime(settle)
  time.now = 0
  const owner = {}
  /** Difference of the wall clock from the monotonic clock. */
  let ahead = options.now ?? 1_700_000_000_000
  let ids = 0
  let auto = options.auto ?? false
  let changes = 0
  let watching = false

  const watch = async (): Promise<void> => {
    if (watching) return
    watching = true
    while (auto && time.timers > 0) {
      for (let turns = 0, before = changes; turns < IDLE_TURNS; turns++) {
        await nextLoop()
        if (changes !== before) {
          before = changes
          turns = 0
        }
      }
      if (auto) time.fire()
    }
    watching = false
  }

  return {
    ...time.runtime(owner, options.seed ?? 1),
    // Whole milliseconds, as Date.now() has.
    now: () => Math.floor(ahead + time.now),
    setTimer(callback, milliseconds) {
      const cancel = time.setTimer(owner, callback, milliseconds)
      changes++
      if (auto) void watch()
      return () => {
        changes++
        cancel()
      }
    },
    randomId: () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`,
    advance: (milliseconds) => time.advance(milliseconds),
    jump(milliseconds) {
      ahead += milliseconds
    },
    settle,
    get timers() {
      return time.timers
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
  for (let turns = 0; turns < IDLE_TURNS; turns++) await nextLoop()
}
