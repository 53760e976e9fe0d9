/**
 * A source of numbers that the seed alone decides: `next(n)` is a whole number from 0 up to, not including, n. The
 * mulberry32 generator: small, and good enough to mix operations.
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
