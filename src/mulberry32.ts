export interface Mulberry32 {
  /** At least 0 and below 1. */
  next(): number
  position(): number
  restore(position: number): void
}

/** Good enough for a sandbox and for tests. Predictable: never use the numbers as secrets. */
export function mulberry32(seed: number): Mulberry32 {
  let state = seed | 0
  return {
    next: () => {
      state = (state + 0x6d2b79f5) | 0
      let t = Math.imul(state ^ (state >>> 15), 1 | state)
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296
    },
    position: () => state,
    restore: (position) => {
      state = position | 0
    },
  }
}
