/**
 * A seeded source of numbers: `next(n)` is an integer from 0 to n - 1. It is the mulberry32
 * generator: small, and good enough to mix operations.
 */
export function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((((mixed ^ (mixed >>> 14)) >>> 0) * below) / 2 ** 32) | 0
  }
}
