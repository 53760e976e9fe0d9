import { mulberry32 } from '../../mulberry32.ts'

/** Makes a seeded generator: `next(n)` returns an integer from 0 to n - 1. */
export function seeded(seed: number): (below: number) => number {
  const { next } = mulberry32(seed)
  return (below) => Math.floor(next() * below)
}
