import type { Draw } from '../../support/seeds.ts'

export const MINUTE = 60_000
/** Maximum time that an abandoned request or write stays in transit. */
export const LONGEST_FLIGHT: number = 4 * MINUTE

/** The effects of a process outside it, which may fail. */
export type EffectKind = 'get' | 'insert' | 'update' | 'list' | 'send' | 'fetch' | 'seal'

/** What happens at one effect of a process. A process dies by never receiving anything again. */
export type Mishap =
  | 'crash before'
  | 'crash after'
  | 'crash while it flies'
  /**
   * The effect happens, and the machine falls asleep: the wall clock continues, the process does
   * not.
   */
  | 'sleeps'
  /** The effect happens, but an error states that it did not. */
  | 'unacknowledged'
  /** The effect does not happen, and an error states it. */
  | 'failed'
  /** For requests only: it was certainly never sent. */
  | 'unsent'
  /** The effect happens immediately, but the response comes too late. */
  | 'slow answer'
  /** The effect happens seconds later, with a response before its caller gives up. */
  | 'slow'
  /** The effect happens long after its caller gave up, without a response. */
  | 'late'
  /** For requests only: it arrives at the very moment when its caller gives up. */
  | 'lasts'
  /** The effect never happens, and there is no response. */
  | 'hangs'
  /**
   * For requests only, over a transport that may resend: the first response is lost, and the process
   * hears only the response to a second request.
   */
  | 'resent'

const CRASHES: readonly Mishap[] = ['crash before', 'crash after', 'crash while it flies', 'sleeps']
const OF_WRITES: readonly Mishap[] = ['unacknowledged', 'failed', 'slow answer', 'late', 'hangs']
const OF_READS: readonly Mishap[] = ['failed', 'slow answer', 'hangs']
const OF_REQUESTS: readonly Mishap[] = ['unacknowledged', 'failed', 'unsent', 'slow answer', 'late', 'hangs']

/** Probability of each kind of mishap at one effect of a process. */
export interface Rates {
  readonly crash: number
  readonly store: number
  readonly network: number
}

export interface Habit {
  readonly effects: readonly EffectKind[]
  readonly mishap: Mishap
  readonly chance: number
}

/**
 * Decides what happens at each numbered effect of a process. The simulation draws it with two
 * numbers from 0 (inclusive) to 1 (exclusive). The enumeration of crashes tries everything.
 */
export type Strategy = (
  process: number,
  effect: number,
  kind: EffectKind,
  whether: number,
  which: number,
) => Mishap | undefined

/**
 * Draws the mishap of an effect with two numbers from 0 (inclusive) to 1 (exclusive): whether there
 * is one, and which.
 */
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

/**
 * A few kinds of mishaps to use often, because a failure that needs two or three of the same kind
 * would be rare.
 */
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
