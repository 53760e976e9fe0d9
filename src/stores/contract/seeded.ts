import { mulberry32 } from '../../mulberry32.ts'

export function seeded(seed: number): (below: number) => number {
  const { next } = mulberry32(seed)
  return (below) => Math.floor(next() * below)
}
