import { platformRuntime, type Runtime } from '../../src/runtime.ts'
import { createRandom } from '../../src/sandbox/service/random.ts'
import { nextLoop, VirtualTime } from './virtual-time.ts'

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

/** Turns of the event loop without a new or cancelled timer that count as nothing left to do. */
const IDLE_TURNS = 6

/** Deterministic clocks, timers, randomness and ids; `deriveId` is the real one. */
export function fakeRuntime(options: FakeRuntimeOptions = {}): FakeRuntime {
  // Its own clock is the one that nobody sets.
  const time = new VirtualTime(settle)
  time.now = 0
  const owner = {}
  const random = createRandom(options.seed ?? 1)
  /** How far the clock on the wall is ahead of it. */
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
    now: () => ahead + time.now,
    monotonic: () => time.now,
    setTimer(callback, milliseconds) {
      const cancel = time.setTimer(owner, callback, milliseconds)
      changes++
      if (auto) void watch()
      return () => {
        changes++
        cancel()
      }
    },
    random: () => random.next(),
    randomId: () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`,
    deriveId: platformRuntime.deriveId,
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
