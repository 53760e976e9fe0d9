import { mulberry32 } from '../../mulberry32.ts'

/** A seeded source of numbers: `next(n)` is an integer from 0 to n - 1. */
export function seeded(seed: number): (below: number) => number {
  const { next } = mulberry32(seed)
  return (below) => Math.floor(next() * below)
}
