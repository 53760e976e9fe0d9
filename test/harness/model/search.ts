/** Walks all worlds of a setting, and the worlds that a wrong rule leads to. */
import type { RecordEvent } from './core.ts'
import { Broken, numberOf, type Setting, type World } from './world.ts'
import { worldsOf } from './worlds.ts'

interface Way {
  readonly world: World
  readonly what: string
  readonly before: Way | undefined
}

export interface Found {
  readonly setting: Setting
  readonly states: number
  /** False if the search stopped at the bound. */
  readonly whole: boolean
  /** A broken promise, and the steps that led to it. */
  readonly broken: string | undefined
  readonly events: ReadonlySet<RecordEvent['type']>
  /** The worlds that use an entry of a cell. */
  readonly uses: ReadonlyMap<readonly unknown[], ReadonlyMap<number, readonly Way[]>>
  /**
   * Continues the search where an entry is used, after it was changed. Returns a broken promise, if
   * any.
   */
  searchFrom(cell: readonly unknown[], index: number, bound: number): string | undefined
}

export function search(setting: Setting, bound: number): Found {
  const events = new Set<RecordEvent['type']>()
  const uses = new Map<readonly unknown[], Map<number, Way[]>>()
  let here: Way | undefined
  let noting = true
  const worlds = worldsOf(setting, {
    event: (type) => void events.add(type),
    entry: (cell, index) => {
      if (!noting || here === undefined) return
      const entries = uses.get(cell) ?? new Map<number, Way[]>()
      uses.set(cell, entries)
      const ways = entries.get(index) ?? []
      entries.set(index, ways)
      if (ways.at(-1) !== here) ways.push(here)
    },
  })
  const seen = new Set<number>()

  /** Continues from these worlds. Returns a broken promise, if any. */
  function walk(
    from: readonly Way[],
    most: number,
    known: { has(world: number): boolean; add(world: number): unknown },
  ): string | undefined {
    const waiting = [...from]
    let walked = 0
    for (const way of waiting) {
      if (walked > most) return undefined
      here = way
      let doing = ''
      try {
        for (const [what, act] of worlds.next(way.world)) {
          doing = what
          const world = act()
          const number = numberOf(world)
          if (known.has(number)) continue
          known.add(number)
          walked++
          waiting.push({ world, what, before: way })
        }
      } catch (error) {
        const steps = [doing]
        for (let step: Way | undefined = way; step !== undefined; step = step.before) steps.unshift(step.what)
        if (error instanceof Broken) return [error.message, ...steps].join('\n')
        // In a real call, a step that cannot be taken would be a program error.
        if (!noting && error instanceof TypeError) return ['the step cannot be taken', ...steps].join('\n')
        throw error
      }
    }
    return undefined
  }

  const { origin } = worlds
  seen.add(numberOf(origin))
  const broken = walk([{ world: origin, what: 'it begins', before: undefined }], bound, seen)
  noting = false
  return {
    setting,
    states: seen.size,
    whole: seen.size <= bound,
    broken,
    events,
    uses,
    searchFrom: (cell, index, most) => {
      const more = new Set<number>()
      const known = {
        has: (world: number) => seen.has(world) || more.has(world),
        add: (world: number) => more.add(world),
      }
      return walk(uses.get(cell)?.get(index) ?? [], most, known)
    },
  }
}
