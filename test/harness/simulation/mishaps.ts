import type { Draw } from './draw.ts'

export const MINUTE = 60_000
/** Longest that a request or a write is on its way after it was given up. */
export const LONGEST_FLIGHT: number = 4 * MINUTE

/** What a process does to the world outside of it, which may go wrong. */
export type EffectKind = 'get' | 'insert' | 'update' | 'list' | 'send' | 'fetch' | 'seal'

/** What happens at one effect of a process. A process dies by never hearing anything again. */
export type Mishap =
  | 'crash before'
  | 'crash after'
  | 'crash while it flies'
  /** It takes place, and the machine falls asleep: the clock on the wall goes on, the process does not. */
  | 'sleeps'
  /** It takes place, and an error says that it did not. */
  | 'unacknowledged'
  /** It does not take place, and an error says so. */
  | 'failed'
  /** Only requests: it surely never left. */
  | 'unsent'
  /** It takes place at once, and the answer comes too late for anybody to wait for it. */
  | 'slow answer'
  /** It takes place seconds later, and is answered then, before anybody has given it up. */
  | 'slow'
  /** It takes place long after it was given up, and is never answered. */
  | 'late'
  /** It never takes place and is never answered. */
  | 'hangs'

const CRASHES: readonly Mishap[] = ['crash before', 'crash after', 'crash while it flies', 'sleeps']
const OF_WRITES: readonly Mishap[] = ['unacknowledged', 'failed', 'slow answer', 'late', 'hangs']
const OF_READS: readonly Mishap[] = ['failed', 'slow answer', 'hangs']
const OF_REQUESTS: readonly Mishap[] = ['unacknowledged', 'failed', 'unsent', 'slow answer', 'late', 'hangs']

/** Chance of each kind of trouble at one effect of a process. */
export interface Rates {
  readonly crash: number
  readonly store: number
  readonly network: number
}

/** One mishap that comes again and again at the same effects. */
export interface Habit {
  readonly effects: readonly EffectKind[]
  readonly mishap: Mishap
  readonly chance: number
}

/**
 * Decides what happens at an effect of a process, each by its number: the simulation draws it, by two numbers from 0 up to, not
 * including, 1; the enumeration of crashes goes through all there is.
 */
export type Strategy = (
  process: number,
  effect: number,
  kind: EffectKind,
  whether: number,
  which: number,
) => Mishap | undefined

/** What happens at an effect, by two numbers from 0 up to, not including, 1: whether anything does, and which. */
export function mishapAt(
  { rates: { crash, store, network }, habits }: { readonly rates: Rates; readonly habits: readonly Habit[] },
  kind: EffectKind,
  whether: number,
  which: number,
): Mishap | undefined {
  let left = whether
  for (const { effects, mishap, chance } of habits) {
    if (!effects.includes(kind)) continue
    if (left < chance) return mishap
    left -= chance
  }
  const request = kind === 'send' || kind === 'fetch'
  if (left >= crash + (request ? network : store)) return undefined
  const kinds =
    left < crash
      ? CRASHES
      : request
        ? OF_REQUESTS
        : kind === 'insert' || kind === 'update'
          ? OF_WRITES
          : OF_READS
  return kinds[Math.floor(which * kinds.length)]
}

/** A few kinds of mishaps to be used often: what needs two or three of the same kind comes seldom otherwise. */
export function drawHabits(draw: Draw): Habit[] {
  return Array.from({ length: draw.weighted([1, 3], [2, 3], [3, 1]) }, () => {
    const chance = draw.pick(0.1, 0.3, 0.3, 0.6)
    switch (draw.weighted(['write', 6], ['read', 3], ['request', 3], ['seal', 1])) {
      case 'write':
        return {
          effects: draw.pick(['insert'], ['update'], ['insert', 'update']),
          mishap: draw.pick(...OF_WRITES_OFTEN),
          chance,
        }
      case 'read':
        return {
          effects: draw.pick(['get'], ['list'], ['get', 'list']),
          mishap: draw.pick('slow', 'slow', 'sleeps', 'failed'),
          chance,
        }
      case 'request':
        return {
          effects: draw.pick(['send'], ['send'], ['send', 'fetch']),
          mishap: draw.pick(
            'unacknowledged',
            'late',
            'slow answer',
            'crash while it flies',
            'unsent',
            'slow',
          ),
          chance,
        }
      default:
        return { effects: ['seal'], mishap: draw.pick('failed', 'slow answer', 'slow', 'hangs'), chance }
    }
  })
}

const OF_WRITES_OFTEN = [
  'sleeps',
  'sleeps',
  'slow',
  'slow',
  'late',
  'late',
  'crash while it flies',
  'crash after',
  'unacknowledged',
  'failed',
] as const
