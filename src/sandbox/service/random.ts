import { type Mulberry32, mulberry32 } from '../../mulberry32.ts'

/** Seeded random numbers and ids. The same seed gives the same sequence on every run. */
export interface Random extends Mulberry32 {
  /** An identifier such as `ord_4k2v9x0m7c1d`: the prefix, an underscore and 12 letters or digits. */
  id(prefix: string): string
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** Makes a seeded generator. */
export function createRandom(seed: number): Random {
  const numbers = mulberry32(seed)
  const { next } = numbers
  return {
    ...numbers,
    id: (prefix) => {
      const codes: number[] = []
      for (let i = 0; i < 12; i++) codes.push(ALPHABET.charCodeAt(Math.floor(next() * ALPHABET.length)))
      return `${prefix}_${String.fromCharCode(...codes)}`
    },
  }
}
